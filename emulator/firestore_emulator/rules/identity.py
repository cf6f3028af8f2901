"""The caller, as Google's emulator sees it: an administrator, a user, or a caller without a token.

The emulator checks neither signatures nor expiry, so every readable token is valid. It must not listen on a public
address.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from firestore_emulator.rpc.errors import RpcError, invalid_argument


@dataclass(frozen=True, slots=True)
class Admin:
    """`Bearer owner`: rules do not apply."""


@dataclass(frozen=True, slots=True)
class User:
    uid: str | None
    """The token's `sub`; None without one."""
    claims: Mapping[str, Any]
    """The whole payload."""


@dataclass(frozen=True, slots=True)
class Anonymous:
    """No token."""


Identity = Admin | User | Anonymous


def identity_of(metadata: Mapping[str, str]) -> Identity:
    """Return the caller; INVALID_ARGUMENT if the token is unreadable."""
    header = metadata.get("authorization")
    return Anonymous() if header is None else _identity(header)


@lru_cache(maxsize=256)
def _identity(header: str) -> Identity:
    scheme, _, token = header.partition(" ")
    if scheme.lower() != "bearer":
        raise _unreadable()
    if token.lower() == "owner":
        return Admin()
    parts = token.split(".")
    if len(parts) != 3:
        raise _unreadable()
    _decoded(parts[0])
    claims = _decoded(parts[1])
    subject = claims.get("sub")
    return User(subject if isinstance(subject, str) else None, claims)


def _decoded(part: str) -> dict[str, Any]:
    try:
        content = json.loads(base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True))
    except (ValueError, binascii.Error, RecursionError):
        raise _unreadable() from None
    if not isinstance(content, dict):
        raise _unreadable()
    return content


def _unreadable() -> RpcError:
    return invalid_argument("invalid jwt")
