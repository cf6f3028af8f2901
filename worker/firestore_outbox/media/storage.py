"""Storage for files: each file has an account and a mediaId, and never changes.

A file under an id that is already taken would be sent in place of the first one by some workers and not by others, so
ids are made from the content (`media_id_of`). A frontend that makes its own must keep to that rule.

A message can send only files of its own account: the account is part of a file's path. Before version 0.2 all accounts
shared one folder; `FileRef.old` names a file there (see files.py).
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from firestore_outbox.errors import OutboxError


class StorageUnavailable(OutboxError):
    """Storage does not answer, or refuses access. Whether a file exists is unknown."""


PIECE_BYTES = 4 * 1024 * 1024
"""A file that is streamed is read in pieces of this size."""


@dataclass(frozen=True, slots=True)
class FileRef:
    """A file's name."""

    account_id: str | None
    """None: in the folder that all accounts shared before version 0.2."""
    media_id: str

    @property
    def old(self) -> FileRef:
        return FileRef(None, self.media_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    size_bytes: int
    mime_type: str | None = None
    """None if storage has none: the message names it too."""
    filename: str | None = None
    crc32c: str | None = None
    """Checksum of the content, in base64; None if storage has none."""
    announced_sha256: str | None = None
    """What an app said that it would upload, in hex. None: no app uploaded the file."""


class Storage(Protocol):
    def where(self, ref: FileRef) -> str:
        """Where the file is or should be, for error messages."""
        ...

    async def find(self, ref: FileRef) -> Found | None:
        """None: there is no such file. Raises StorageUnavailable."""
        ...

    async def read(self, ref: FileRef) -> bytes | None:
        """The whole content; None if it is gone. Raises StorageUnavailable."""
        ...

    def pieces(self, ref: FileRef, found: Found) -> AsyncIterator[bytes]:
        """The content in pieces of PIECE_BYTES. Raises StorageUnavailable, also for a file that is gone or has changed,
        before the last piece."""
        ...

    async def link(self, ref: FileRef, *, lasts: timedelta) -> str | None:
        """A public URL of the file; None if this storage has no URLs."""
        ...

    async def open_upload(
        self, ref: FileRef, *, size_bytes: int, mime_type: str, filename: str | None, origin: str | None
    ) -> str | None:
        """The address of a resumable upload of this one file, whose id is the SHA-256 that the app announces; an
        existing file stays. None if this storage takes none. `origin`: the web page that uploads. Raises
        StorageUnavailable."""
        ...

    async def add(self, ref: FileRef, content: bytes, *, mime_type: str, filename: str | None) -> None:
        """Store a whole file or nothing; an existing file stays. Raises StorageUnavailable."""
        ...

    async def copy(self, ref: FileRef, to: FileRef) -> None:
        """Copy a file; an existing target stays. Raises StorageUnavailable."""
        ...

    async def delete_all(self, account_id: str) -> int:
        """Delete the files of an account, and return how many there were. Raises StorageUnavailable."""
        ...

    async def delete(self, ref: FileRef) -> bool:
        """False: there is no such file. Raises StorageUnavailable."""
        ...

    def close(self) -> None: ...


def media_id_of(content: bytes) -> str:
    """The same file has the same id in every account's folder."""
    return hashlib.sha256(content).hexdigest()
