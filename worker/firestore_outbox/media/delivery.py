"""What an adapter gets instead of a file: a handle, a URL or the bytes, as its provider takes them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from datetime import timedelta
from typing import TypeVar, assert_never
from urllib.parse import quote

from firestore_outbox.media.answers import A_WHILE, not_yet
from firestore_outbox.media.files import Files, StoredFile
from firestore_outbox.media.shared import Remembered, Shared
from firestore_outbox.media.storage import FileRef, Storage, StorageUnavailable
from firestore_outbox.media.uploads import FileKey, Uploads
from firestore_outbox.messages.model import MediaPart
from firestore_outbox.providers.media import MediaHandle, MediaLink, NotUploaded, ReadyMedia, Upload
from firestore_outbox.providers.outcome import ErrorCode, Postponed, Rejected
from firestore_outbox.providers.protocol import MediaMode

T = TypeVar("T")

LINK_LASTS = timedelta(days=2)
"""A provider may fetch a file only when its recipient's phone is back."""
BRIEF_LINK_LASTS = timedelta(minutes=20)
"""Of a link that the provider fetches while it answers the call. A worker uses one for half of that."""


_NO_ADDRESS = Rejected(
    code=ErrorCode.MEDIA_MISSING,
    detail="the provider fetches files by their address, and they have none here: set OUTBOX_MEDIA_URL "
    "to where they can be fetched",
)


class FileDelivery:
    """`link_base`: the URL below which files can be fetched. Empty: storage makes the URLs."""

    def __init__(self, storage: Storage, files: Files, uploads: Uploads, *, link_base: str = "") -> None:
        self._storage = storage
        self._files = files
        self._uploads = uploads
        self._link_base = link_base.rstrip("/")
        self._linking: Shared[tuple[FileRef, timedelta], MediaLink | Rejected | Postponed] = Shared()
        self._has_links: bool | None = None
        """Whether storage has URLs; None: not asked yet."""
        self._links: Remembered[tuple[FileRef, timedelta], MediaLink] = Remembered()

    async def ready(
        self,
        account_id: str,
        provider: str,
        part: MediaPart,
        mode: MediaMode,
        upload: Upload | None,
        *,
        limit: timedelta,
    ) -> ReadyMedia | NotUploaded:
        match mode:
            case MediaMode.UPLOAD:
                assert upload is not None, f"{provider} takes files by upload, and its adapter offers none"
                key = FileKey(account_id, provider, part.mediaId)
                return await self._uploads.handle(
                    key, lambda: self._files.stream(account_id, part), upload, limit=limit
                )
            case MediaMode.LINK:
                return await _within(limit / 2, self._link(account_id, part, LINK_LASTS))
            case MediaMode.LINK_OR_INLINE:
                return await _within(limit / 2, self._link_or_content(account_id, part))
            case MediaMode.INLINE:
                return await _within(limit / 2, self._files.content(account_id, part))
            case _:
                assert_never(mode)

    async def forget(self, account_id: str, provider: str, part: MediaPart, handle: MediaHandle) -> None:
        self._uploads.forget(FileKey(account_id, provider, part.mediaId), handle.handle)

    async def close(self) -> None:
        await self._uploads.stop()
        self._storage.close()

    async def _link_or_content(self, account_id: str, part: MediaPart) -> ReadyMedia | Rejected | Postponed:
        if self._has_links is not False:
            link = await self._link(account_id, part, BRIEF_LINK_LASTS)
            if link is not _NO_ADDRESS:
                return link
        return await self._files.content(account_id, part)

    async def _link(self, account_id: str, part: MediaPart, lasts: timedelta) -> MediaLink | Rejected | Postponed:
        own = FileRef(account_id, part.mediaId)
        known = self._links.get((own, lasts))
        if known is not None:
            return known
        return await self._linking.get((own, lasts), lambda: self._new_link(account_id, part, lasts))

    async def _new_link(self, account_id: str, part: MediaPart, lasts: timedelta) -> MediaLink | Rejected | Postponed:
        own = FileRef(account_id, part.mediaId)
        file = await self._files.find(account_id, part)
        if not isinstance(file, StoredFile):
            return file
        try:
            url = await self._address(file.ref, lasts)
        except StorageUnavailable:
            return not_yet("no address of the file can be had at the moment", retry_after=A_WHILE)
        self._has_links = url is not None
        if url is None:
            return _NO_ADDRESS
        link = MediaLink(url=url, mime_type=file.found.mime_type, filename=file.found.filename)
        self._links.keep((own, lasts), link, lasts / 2)
        return link

    async def _address(self, ref: FileRef, lasts: timedelta) -> str | None:
        if self._link_base:
            names = [name for name in (ref.account_id, ref.media_id) if name is not None]
            return "/".join((self._link_base, *(quote(name, safe="") for name in names)))
        return await self._storage.link(ref, lasts=lasts)


async def _within(limit: timedelta, work: Awaitable[T]) -> T | Postponed:
    try:
        async with asyncio.timeout(limit.total_seconds()):
            return await work
    except TimeoutError:
        return not_yet("the file was not read in time")
