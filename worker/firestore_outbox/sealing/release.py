"""Who unwraps private keys. The one place that an attested provider replaces (docs/privacy.md)."""

from __future__ import annotations

from typing import Protocol

from firestore_outbox.errors import Unavailable


class KeyUnavailable(Unavailable):
    """The key service did not answer, or refuses this process. The same call can succeed later."""


class KeyDestroyed(Exception):
    """The key service will never unwrap this again."""


class KeyRelease(Protocol):
    """`context` is authenticated with the key: what was wrapped for one account and version unwraps for no other."""

    async def wrap(self, kms_key: str, private_key: bytes, context: bytes) -> str: ...

    async def unwrap(self, kms_key: str, wrapped: str, context: bytes) -> bytes:
        """Raises KeyUnavailable or KeyDestroyed."""
        ...

    async def close(self) -> None: ...
