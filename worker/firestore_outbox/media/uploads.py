"""A file at a provider: uploaded once for an account, however many messages and workers need it at a time.

Within a worker, all who need a file share one piece of work, which reads the document once; what it finds is known to
the worker for as long as the handle is good. Between workers the document decides (media/upload.py). The work
outlives the attempt that asked for it: a message waits for half of its time, then goes back to the queue for a moment,
and finds the handle when it comes again. So a file may take longer than a message has.

A handle that the provider refused is noted here and nowhere else. The next worker that claims the document, because of
it, replaces the handle; a worker that finds another handle there uses that one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import assert_never

from firestore_outbox import log
from firestore_outbox.clock import Clock
from firestore_outbox.errors import StoreUnavailable
from firestore_outbox.firestore.compare_and_set import while_unavailable
from firestore_outbox.firestore.gateway import Conflict
from firestore_outbox.media.answers import A_WHILE, not_yet
from firestore_outbox.media.budget import ByteBudget
from firestore_outbox.media.shared import Remembered, Shared
from firestore_outbox.media.storage import PIECE_BYTES, StorageUnavailable
from firestore_outbox.media.store import StoredUpload, UploadRef, UploadStore
from firestore_outbox.media.upload import Busy, Free, Ready, Refused, claimed, look, time_for
from firestore_outbox.media.upload import Upload as UploadState
from firestore_outbox.providers.media import MediaHandle, MediaStream, NotUploaded, Upload, Uploaded
from firestore_outbox.providers.outcome import Postponed, Rejected, Unknown

STREAM_BYTES = 2 * PIECE_BYTES
"""What an upload holds in memory at most: the piece that is sent, and the one that is read."""
LOOK_AGAIN = timedelta(seconds=1)
"""Between two looks at an upload that another worker does."""
KNOWN_AT_MOST = timedelta(hours=1)
"""Then the document is looked at again, whatever the handle's life."""
NEVER = timedelta(days=365)
PAUSE_SECONDS = 0.5

Content = Callable[[], Awaitable[MediaStream | Rejected | Postponed]]


@dataclass(frozen=True, slots=True)
class FileKey:
    account_id: str
    provider: str
    media_id: str

    @property
    def ref(self) -> UploadRef:
        return UploadRef(self.account_id, self.media_id)


class Uploads:
    def __init__(self, store: UploadStore, *, budget: ByteBudget, owner: str, clock: Clock) -> None:
        self._store = store
        self._owner = owner
        self._clock = clock
        self._known: Remembered[FileKey, MediaHandle | Rejected] = Remembered()
        self._refused: Remembered[FileKey, str] = Remembered()
        self._under_way: Shared[FileKey, MediaHandle | NotUploaded] = Shared()
        self._budget = budget

    async def handle(
        self, key: FileKey, content: Content, upload: Upload, *, limit: timedelta
    ) -> MediaHandle | NotUploaded:
        known = self._known.get(key)
        if known is not None:
            return known
        work = self._under_way.start(key, lambda: self._obtain(key, content, upload))
        await asyncio.wait({work}, timeout=limit.total_seconds() / 2)
        if not work.done():
            return not_yet("the file is still on its way to the provider")
        try:
            return work.result()
        except StoreUnavailable:
            return not_yet("it cannot be told whether the file is at the provider")

    def forget(self, key: FileKey, handle: str) -> None:
        """The provider refuses it."""
        log.media_handle_refused(key.account_id, key.media_id)
        self._refused.keep(key, handle, NEVER)
        if self._known.get(key) == MediaHandle(handle=handle):
            self._known.drop(key)

    async def stop(self) -> None:
        """What is under way is given up: its lease ends, and another worker goes on."""
        await self._under_way.stop()

    # --- the work that many share

    async def _obtain(self, key: FileKey, content: Content, upload: Upload) -> MediaHandle | NotUploaded:
        while True:
            stored = await self._store.read(key.ref)
            now = self._clock()
            found = look(stored.upload, provider=key.provider, refused=self._refused.get(key), now=now)
            match found:
                case Ready(handle=handle, until=until):
                    return self._learned(key, MediaHandle(handle=handle), until, now)
                case Refused(because=because, until=until):
                    return self._learned(key, because, until, now)
                case Busy(until=until):
                    await asyncio.sleep(min(LOOK_AGAIN, max(until - now, timedelta(0))).total_seconds())
                case Free():
                    outcome = await self._upload(key, stored, content, upload)
                    if outcome is not None:
                        return outcome
                case _:
                    assert_never(found)

    async def _upload(
        self, key: FileKey, stored: StoredUpload, content: Content, upload: Upload
    ) -> MediaHandle | NotUploaded | None:
        """None: another worker was faster."""
        file = await content()
        if not isinstance(file, MediaStream):
            return file
        async with self._budget.hold(min(file.body.size_bytes, STREAM_BYTES)):
            return await self._uploaded(key, stored, file, upload)

    async def _uploaded(
        self, key: FileKey, stored: StoredUpload, file: MediaStream, upload: Upload
    ) -> MediaHandle | NotUploaded | None:
        asked = _loop_time()
        claim = await self._claim(key, stored, file.body.size_bytes)
        if claim is None or claim.upload is None:
            return None
        allowed = time_for(file.body.size_bytes).total_seconds()
        outcome = await _called(key, upload, file, timedelta(seconds=asked + allowed - _loop_time()))
        now = self._clock()
        if isinstance(outcome, Uploaded):
            state = claim.upload.done(outcome.handle, expires_at=outcome.expires_at, now=now)
            await self._written(key, state, claim, until=asked + allowed)
            log.media_uploaded(key.account_id, key.media_id, file.body.size_bytes, _loop_time() - asked)
            return self._learned(key, MediaHandle(handle=outcome.handle), state.good_until, now)
        log.media_not_uploaded(key.account_id, key.media_id, outcome.detail)
        await self._written(key, claim.upload.failed(outcome, now=now), claim, until=asked + allowed)
        return outcome

    async def _claim(self, key: FileKey, stored: StoredUpload, size_bytes: int) -> StoredUpload | None:
        claim = claimed(
            stored.upload,
            provider=key.provider,
            refused=self._refused.get(key),
            owner=self._owner,
            now=self._clock(),
            size_bytes=size_bytes,
        )
        written = await self._store.write(key.ref, claim, stored)
        if not isinstance(written, Conflict):
            return written
        if written.maybe_ours:
            found = await self._store.read(key.ref)
            if found.upload is not None and found.upload.is_claim_of(self._owner, claim.attempts):
                return found
        return None

    async def _written(self, key: FileKey, state: UploadState, claim: StoredUpload, *, until: float) -> None:
        """Tries while our lease lasts: a handle that no other worker learns of is a second upload. If another worker
        took over in the meantime, or the store stays away, what we know is still true for ourselves."""
        with suppress(StoreUnavailable):
            await while_unavailable(
                lambda: self._store.write(key.ref, state, claim),
                pause_seconds=PAUSE_SECONDS,
                give_up=lambda: _loop_time() >= until,
            )

    def _learned(
        self, key: FileKey, what: MediaHandle | Rejected, until: datetime | None, now: datetime
    ) -> MediaHandle | Rejected:
        self._known.keep(key, what, KNOWN_AT_MOST if until is None else min(KNOWN_AT_MOST, until - now))
        return what


async def _called(key: FileKey, upload: Upload, file: MediaStream, limit: timedelta) -> Uploaded | NotUploaded:
    try:
        async with asyncio.timeout(limit.total_seconds()):
            return await upload(file, limit)
    except TimeoutError:
        return Unknown(detail="the upload was not answered in time")
    except StorageUnavailable:
        return not_yet("the file cannot be read at the moment", retry_after=A_WHILE)
    except Exception as error:  # noqa: BLE001 - the border: an adapter that broke must not end the account's turn
        log.adapter_failed(key.account_id, error, media_id=key.media_id)
        return Unknown(detail=f"the adapter failed ({type(error).__name__})")


def _loop_time() -> float:
    return asyncio.get_running_loop().time()
