"""A place for files: each is there under its mediaId, and never changes.

A file under an id that is already taken would be sent in place of the first one by some workers and not by others, so
ids are made from the content (`media_id_of`). A frontend that makes its own must keep to that rule.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from worker.errors import OutboxError


class ShelfUnavailable(OutboxError):
    """The place where files are kept does not answer, or refuses us. Whether a file is there is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    size_bytes: int
    mime_type: str | None = None
    """None where the place keeps none: the message says it too."""
    filename: str | None = None


class Shelf(Protocol):
    def where(self, media_id: str) -> str:
        """For a person: where the file is, or would have to be."""
        ...

    async def find(self, media_id: str) -> Found | None:
        """None: there is no such file. Raises ShelfUnavailable."""
        ...

    async def read(self, media_id: str) -> bytes | None:
        """None: it is gone. Raises ShelfUnavailable."""
        ...

    async def link(self, media_id: str, *, lasts: timedelta) -> str | None:
        """An address that anybody can fetch the file from; None if this place has none to give."""
        ...

    async def add(self, media_id: str, content: bytes, *, mime_type: str, filename: str | None) -> None:
        """Whole or not at all; what is there already stays. Raises ShelfUnavailable."""
        ...

    def close(self) -> None: ...


def media_id_of(content: bytes) -> str:
    """The same file has the same id, whoever adds it."""
    return hashlib.sha256(content).hexdigest()
