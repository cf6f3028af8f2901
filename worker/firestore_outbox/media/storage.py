"""A place for files: each is there under its account and its mediaId, and never changes.

A file under an id that is already taken would be sent in place of the first one by some workers and not by others, so
ids are made from the content (`media_id_of`). A frontend that makes its own must keep to that rule.

An account's messages can name files of that account alone: where a file is depends on the account that sends it. Before
version 0.2 all accounts shared one place; `FileRef.old` names a file there (see files.py).
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from firestore_outbox.errors import OutboxError


class ShelfUnavailable(OutboxError):
    """The place where files are kept does not answer, or refuses us. Whether a file is there is not known."""


PIECE_BYTES = 4 * 1024 * 1024
"""A file that is streamed is read in pieces of this size."""


@dataclass(frozen=True, slots=True)
class FileRef:
    """A file's name."""

    account_id: str | None
    """None: in the place that all accounts shared before version 0.2."""
    media_id: str

    @property
    def old(self) -> FileRef:
        return FileRef(None, self.media_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    size_bytes: int
    mime_type: str | None = None
    """None where the place keeps none: the message says it too."""
    filename: str | None = None
    crc32c: str | None = None
    """Of the content, in base64; None where the place keeps none."""


class Shelf(Protocol):
    def where(self, ref: FileRef) -> str:
        """For a person: where the file is, or would have to be."""
        ...

    async def find(self, ref: FileRef) -> Found | None:
        """None: there is no such file. Raises ShelfUnavailable."""
        ...

    async def read(self, ref: FileRef) -> bytes | None:
        """The whole content; None if it is gone. Raises ShelfUnavailable."""
        ...

    def pieces(self, ref: FileRef, found: Found) -> AsyncIterator[bytes]:
        """The content in pieces of PIECE_BYTES. Raises ShelfUnavailable, also for a file that is gone or has changed,
        before the last piece."""
        ...

    async def link(self, ref: FileRef, *, lasts: timedelta) -> str | None:
        """An address that anybody can fetch the file from; None if this place has none to give."""
        ...

    async def add(self, ref: FileRef, content: bytes, *, mime_type: str, filename: str | None) -> None:
        """Whole or not at all; what is there already stays. Raises ShelfUnavailable."""
        ...

    async def copy(self, ref: FileRef, to: FileRef) -> None:
        """Both are there afterwards; what is there already stays. Raises ShelfUnavailable."""
        ...

    def close(self) -> None: ...


def media_id_of(content: bytes) -> str:
    """The same file has the same id, whoever adds it."""
    return hashlib.sha256(content).hexdigest()
