"""A file of the shelf, as a message needs it: found, not too large, and read once for many that ask at a time.

A provider that takes files inside messages would have a file read for each of a thousand; so the last ones are kept in
memory, up to a total. That a file is missing or too large is remembered for a moment, for the same reason.
"""

from __future__ import annotations

from collections import OrderedDict
from datetime import timedelta

from worker import log
from worker.domain.message import MediaPart
from worker.domain.outcome import ErrorCode, Postponed, Rejected
from worker.media.answers import A_WHILE, not_yet
from worker.media.shared import Remembered, Shared
from worker.media.shelf import Found, Shelf, ShelfUnavailable
from worker.providers.media import MediaContent

REMEMBER = timedelta(seconds=30)
KEEP_BYTES = 32_000_000
_MEGABYTE = 1_000_000


class Files:
    def __init__(self, shelf: Shelf, *, max_bytes: int, keep_bytes: int = KEEP_BYTES) -> None:
        self._shelf = shelf
        self._max_bytes = max_bytes
        self._found: Remembered[str, Found | Rejected] = Remembered()
        self._looking: Shared[str, Found | Rejected] = Shared()
        self._reading: Shared[str, bytes | Rejected] = Shared()
        self._kept = _Kept(keep_bytes)

    async def content(self, account_id: str, part: MediaPart) -> MediaContent | Rejected | Postponed:
        found = await self.find(account_id, part)
        if not isinstance(found, Found):
            return found
        media_id = part.mediaId
        content: bytes | Rejected | None = self._kept.get(media_id)
        if content is None:
            try:
                content = await self._reading.get(media_id, lambda: self._read(part))
            except ShelfUnavailable as error:
                return _unavailable(account_id, error)
        if isinstance(content, Rejected):
            return content
        return MediaContent(
            media_id=media_id,
            mime_type=found.mime_type or part.mimeType,
            filename=part.filename or found.filename or media_id,
            content=content,
        )

    async def find(self, account_id: str, part: MediaPart) -> Found | Rejected | Postponed:
        known = self._found.get(part.mediaId)
        if known is not None:
            return known
        try:
            return await self._looking.get(part.mediaId, lambda: self._look(part))
        except ShelfUnavailable as error:
            return _unavailable(account_id, error)

    async def _look(self, part: MediaPart) -> Found | Rejected:
        found = await self._shelf.find(part.mediaId)
        answer = self._checked(part, found)
        self._found.keep(part.mediaId, answer, REMEMBER)
        return answer

    def _checked(self, part: MediaPart, found: Found | None) -> Found | Rejected:
        if found is None:
            return self._missing(part)
        if found.size_bytes == 0:
            return Rejected(code=ErrorCode.MEDIA_MISSING, detail=f"the file {_shown(part)} is empty")
        if found.size_bytes > self._max_bytes:
            detail = (
                f"the file {_shown(part)} has {_megabytes(found.size_bytes)} MB, and at most "
                f"{_megabytes(self._max_bytes)} MB are sent (OUTBOX_MEDIA_MAX_MB)"
            )
            return Rejected(code=ErrorCode.INVALID_MESSAGE, detail=detail)
        return found

    async def _read(self, part: MediaPart) -> bytes | Rejected:
        content = await self._shelf.read(part.mediaId)
        if content is None:
            return self._missing(part)
        self._kept.put(part.mediaId, content)
        return content

    def _missing(self, part: MediaPart) -> Rejected:
        detail = f"there is no file {_shown(part)}: it must be at {self._shelf.where(part.mediaId)[:300]} first"
        return Rejected(code=ErrorCode.MEDIA_MISSING, detail=detail)


class _Kept:
    """The files used last, up to a total size."""

    def __init__(self, bytes_in_all: int) -> None:
        self._room = bytes_in_all
        self._files: OrderedDict[str, bytes] = OrderedDict()

    def get(self, media_id: str) -> bytes | None:
        if media_id in self._files:
            self._files.move_to_end(media_id)
        return self._files.get(media_id)

    def put(self, media_id: str, content: bytes) -> None:
        if media_id in self._files:
            return
        self._files[media_id] = content
        self._room -= len(content)
        while self._room < 0:
            _, dropped = self._files.popitem(last=False)
            self._room += len(dropped)


def _unavailable(account_id: str, error: ShelfUnavailable) -> Postponed:
    log.shelf_unavailable(account_id, error)
    return not_yet("the file cannot be read at the moment", retry_after=A_WHILE)


def _shown(part: MediaPart) -> str:
    return part.mediaId if len(part.mediaId) <= 80 else f"{part.mediaId[:79]}…"


def _megabytes(size_bytes: int) -> str:
    return f"{size_bytes / _MEGABYTE:.1f}".removesuffix(".0")
