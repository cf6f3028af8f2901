"""A file in storage, as a message needs it: the account's own, not too large, whole or in pieces.

A provider that takes files inside messages would cause a read for each of a thousand messages, so the files used last
stay in memory, up to a total. For the same reason, a missing or too large file is remembered for `REMEMBER`.

Before version 0.2 all accounts shared one folder. An account can still use a file there if it has uploaded it before,
as its upload document shows; for other accounts the file does not exist.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from typing import Protocol

from firestore_outbox import log
from firestore_outbox.errors import StoreUnavailable
from firestore_outbox.media.answers import A_WHILE, not_yet
from firestore_outbox.media.budget import ByteBudget
from firestore_outbox.media.opened import OpenFiles
from firestore_outbox.media.shared import Remembered, Shared
from firestore_outbox.media.storage import FileRef, Found, Storage, StorageUnavailable, media_id_of
from firestore_outbox.messages.model import MediaPart
from firestore_outbox.providers.http import Streamed
from firestore_outbox.providers.media import MediaContent, MediaStream
from firestore_outbox.providers.outcome import ErrorCode, Postponed, Rejected

REMEMBER = timedelta(seconds=30)
REMEMBER_DIFFERENT = timedelta(minutes=10)
"""How long a file that is not what its app announced is not read again: longer than a message waits after a read that
failed, so that its next attempt hears the reason."""
KEEP_BYTES = 32_000_000
_MEGABYTE = 1_000_000


class HadIt(Protocol):
    async def __call__(self, ref: FileRef) -> bool:
        """Whether the account has uploaded a file of that id before. Raises StoreUnavailable."""
        ...


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file that the account may send."""

    ref: FileRef
    """Where it is."""
    found: Found


class Files:
    def __init__(
        self, storage: Storage, *, budget: ByteBudget, had_it: HadIt, max_bytes: int, keep_bytes: int = KEEP_BYTES
    ) -> None:
        self._storage = storage
        self._budget = budget
        self._had_it = had_it
        self._max_bytes = max_bytes
        self._found: Remembered[FileRef, StoredFile | Rejected] = Remembered()
        self._looking: Shared[FileRef, StoredFile | Rejected] = Shared()
        self._open = OpenFiles(budget)
        self._kept = _Kept(keep_bytes)

    async def content(self, account_id: str, part: MediaPart) -> MediaContent | Rejected | Postponed:
        """The whole file, in memory until its `done` is called."""
        file = await self.find(account_id, part)
        if not isinstance(file, StoredFile):
            return file
        ref, size = file.ref, file.found.size_bytes
        if size > self._budget.total_bytes:
            return _too_large(
                part, size, self._budget.total_bytes, "are sent inside a message (OUTBOX_MEDIA_MEMORY_MB)"
            )
        try:
            content = await self._open.use(ref, size, lambda: self._read(ref))
        except StorageUnavailable as error:
            return _unavailable(account_id, error)
        if content is None:
            return self._missing(FileRef(account_id, part.mediaId), part)
        if file.found.announced_sha256 not in (None, media_id_of(content)):
            self._open.done(ref)
            return self._different(account_id, part)
        return MediaContent(
            media_id=part.mediaId,
            mime_type=file.found.mime_type or part.mimeType,
            filename=part.filename or file.found.filename or part.mediaId,
            content=content,
            done=lambda: self._open.done(ref),
        )

    async def stream(self, account_id: str, part: MediaPart) -> MediaStream | Rejected | Postponed:
        """The file in pieces. Reading them raises StorageUnavailable."""
        file = await self.find(account_id, part)
        if not isinstance(file, StoredFile):
            return file
        found = file.found
        return MediaStream(
            media_id=part.mediaId,
            mime_type=found.mime_type or part.mimeType,
            filename=part.filename or found.filename or part.mediaId,
            body=Streamed(size_bytes=found.size_bytes, pieces=lambda: self._verified(account_id, part, file)),
        )

    async def _verified(self, account_id: str, part: MediaPart, file: StoredFile) -> AsyncIterator[bytes]:
        """The pieces. The last one is held back if the content is not what an app announced: so no such file is
        uploaded as a whole, and from then on its messages are rejected."""
        so_far, announced, read = sha256(), file.found.announced_sha256, 0
        async for piece in self._storage.pieces(file.ref, file.found):
            read += len(piece)
            if announced is not None:
                so_far.update(piece)
                if read >= file.found.size_bytes and so_far.hexdigest() != announced:
                    raise StorageUnavailable(self._different(account_id, part).detail)
            yield piece

    async def find(self, account_id: str, part: MediaPart) -> StoredFile | Rejected | Postponed:
        ref = FileRef(account_id, part.mediaId)
        known = self._found.get(ref)
        if known is not None:
            return known
        try:
            return await self._looking.get(ref, lambda: self._look(ref, part))
        except StorageUnavailable as error:
            return _unavailable(account_id, error)
        except StoreUnavailable:
            return not_yet("it cannot be told whether the account has this file")

    async def _look(self, ref: FileRef, part: MediaPart) -> StoredFile | Rejected:
        at, found = ref, await self._storage.find(ref)
        if found is None and await self._had_it(ref):
            at, found = ref.old, await self._storage.find(ref.old)
        answer = self._missing(ref, part) if found is None else self._checked(part, at, found)
        self._found.keep(ref, answer, REMEMBER)
        return answer

    def _checked(self, part: MediaPart, ref: FileRef, found: Found) -> StoredFile | Rejected:
        if found.size_bytes == 0:
            return Rejected(code=ErrorCode.MEDIA_MISSING, detail=f"the file {_shown(part)} is empty")
        if found.size_bytes > self._max_bytes:
            return _too_large(part, found.size_bytes, self._max_bytes, "are sent (OUTBOX_MEDIA_MAX_MB)")
        return StoredFile(ref, found)

    async def _read(self, ref: FileRef) -> bytes | None:
        content = self._kept.get(ref) or await self._storage.read(ref)
        if content is not None:
            self._kept.put(ref, content)
        return content

    def _different(self, account_id: str, part: MediaPart) -> Rejected:
        detail = (
            f"the file {_shown(part)} is not what the app announced: its SHA-256 is another one. Delete it from the "
            "account's storage, and upload it again"
        )
        answer = Rejected(code=ErrorCode.INVALID_MESSAGE, detail=detail)
        self._found.keep(FileRef(account_id, part.mediaId), answer, REMEMBER_DIFFERENT)
        return answer

    def _missing(self, ref: FileRef, part: MediaPart) -> Rejected:
        detail = f"the account has no file {_shown(part)}: it must be at {self._storage.where(ref)[:300]} first"
        return Rejected(code=ErrorCode.MEDIA_MISSING, detail=detail)


class _Kept:
    """The files used last, up to a total size."""

    def __init__(self, bytes_in_all: int) -> None:
        self._room = bytes_in_all
        self._files: OrderedDict[FileRef, bytes] = OrderedDict()

    def get(self, ref: FileRef) -> bytes | None:
        if ref in self._files:
            self._files.move_to_end(ref)
        return self._files.get(ref)

    def put(self, ref: FileRef, content: bytes) -> None:
        if ref in self._files:
            return
        self._files[ref] = content
        self._room -= len(content)
        while self._room < 0:
            _, dropped = self._files.popitem(last=False)
            self._room += len(dropped)


def _too_large(part: MediaPart, size: int, most: int, what: str) -> Rejected:
    detail = f"the file {_shown(part)} has {_megabytes(size)} MB, and at most {_megabytes(most)} MB {what}"
    return Rejected(code=ErrorCode.INVALID_MESSAGE, detail=detail)


def _unavailable(account_id: str, error: StorageUnavailable) -> Postponed:
    log.storage_unavailable(account_id, error)
    return not_yet("the file cannot be read at the moment", retry_after=A_WHILE)


def _shown(part: MediaPart) -> str:
    return part.mediaId if len(part.mediaId) <= 80 else f"{part.mediaId[:79]}…"


def _megabytes(size_bytes: int) -> str:
    return f"{size_bytes / _MEGABYTE:.1f}".removesuffix(".0")
