"""Files that apps upload: a session at storage for each, which an app resumes after any break.

The app names the file by its SHA-256, so the same content is one file. What storage has is never uploaded again, and an
upload that began is continued under its session, by any member's app: `accounts/{accountId}/incoming/{mediaId}` keeps
the session's address. That address allows to write this one object, so only this service reads the document.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from firestore_outbox.clock import Clock
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.gateway import Gateway
from firestore_outbox.firestore.writes import SERVER_TIME, upsert
from firestore_outbox.media.new_file import Malformed, NewFile, TooLarge, WrongType, fault_of
from firestore_outbox.media.storage import FileRef, Found, Storage

SESSION_LASTS = timedelta(days=6)
"""A session of Cloud Storage lasts a week."""
LINK_LASTS = timedelta(minutes=15)
"""How long a member's app can show a file before it asks again."""


@dataclass(frozen=True, slots=True)
class Stored:
    """The account has this file."""

    media_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """To be uploaded, from where it stopped, to this address."""

    media_id: str
    url: str
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class NoUploads:
    """No storage is configured, or it has no addresses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    url: str
    expires_at: datetime
    found: Found


@dataclass(frozen=True, slots=True)
class NoFile:
    """The account has no file of this id."""


class Intake:
    def __init__(
        self, storage: Storage | None, gateway: Gateway, clock: Clock, *, max_bytes: int, types: Sequence[str]
    ) -> None:
        self._storage = storage
        self._gateway = gateway
        self._clock = clock
        self._max_bytes = max_bytes
        self._types = types

    async def start(
        self, account_id: str, file: NewFile, *, by: str, origin: str | None, is_lost: bool
    ) -> Stored | Open | NoUploads | Malformed | TooLarge | WrongType:
        """`origin`: the web page that will upload, if one will. `is_lost`: storage does not know the session any more.
        Raises StorageUnavailable and StoreUnavailable."""
        fault = fault_of(file, max_bytes=self._max_bytes, types=self._types)
        if fault is not None:
            return fault
        if self._storage is None:
            return NoUploads()
        ref = FileRef(account_id, file.sha256)
        if await self._storage.find(ref) is not None:
            return Stored(file.sha256)
        path = paths.incoming_file(account_id, file.sha256)
        before = None if is_lost else await self._gateway.get(path)
        if before is not None and _fits(before.data, file, origin, self._clock()):
            return Open(media_id=file.sha256, url=before.data["url"], expires_at=before.data["expireAt"])
        url = await self._storage.open_upload(
            ref, size_bytes=file.size_bytes, mime_type=file.mime_type, filename=file.filename, origin=origin
        )
        if url is None:
            return NoUploads()
        # Of two apps that begin at once, the last one's session stays. The other's works too: storage keeps one object.
        expires_at = self._clock() + SESSION_LASTS
        fields = {
            "url": url,
            "bytes": file.size_bytes,
            "mimeType": file.mime_type,
            "origin": origin,
            "createdBy": by,
            "createdAt": SERVER_TIME,
            "expireAt": expires_at,
        }
        await self._gateway.commit([upsert(path, fields)])
        return Open(media_id=file.sha256, url=url, expires_at=expires_at)

    async def link(self, account_id: str, media_id: str) -> Link | NoFile | NoUploads:
        """An address at which a member's app finds the file. Raises StorageUnavailable."""
        if self._storage is None:
            return NoUploads()
        ref = FileRef(account_id, media_id)
        found = await self._storage.find(ref)
        if found is None:
            return NoFile()
        expires_at = self._clock() + LINK_LASTS
        url = await self._storage.link(ref, lasts=LINK_LASTS)
        return NoUploads() if url is None else Link(url=url, expires_at=expires_at, found=found)


def _fits(data: dict[str, Any], file: NewFile, origin: str | None, now: datetime) -> bool:
    """Whether an app may go on under this session: storage answers a page of one origin alone."""
    same = (data.get("bytes"), data.get("mimeType"), data.get("origin")) == (file.size_bytes, file.mime_type, origin)
    expires_at = data.get("expireAt")
    return same and isinstance(expires_at, datetime) and now < expires_at
