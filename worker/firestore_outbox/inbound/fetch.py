"""The lane that fetches an account's inbound files from its provider into storage, one after another.

What a crash leaves: a document in `accounts/{accountId}/fetches`, and perhaps a file that is in storage already. The
next holder finds the file there, and does not fetch it again. The lane makes sure that one worker does it.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import assert_never

from firestore_outbox import log
from firestore_outbox.clock import Clock
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.gateway import Gateway, Snapshot
from firestore_outbox.firestore.queries import Find
from firestore_outbox.firestore.writes import SERVER_TIME, delete, update
from firestore_outbox.inbound.arriving import Again, Missing, Stored, TryAt, Waiting, WaitingFile, after, waiting_in
from firestore_outbox.lane.holder import Holder
from firestore_outbox.lane.state import Later, More, Nothing, Work
from firestore_outbox.media.budget import ByteBudget
from firestore_outbox.media.storage import FileRef, Storage, StorageUnavailable
from firestore_outbox.providers.outcome import Rejected
from firestore_outbox.providers.protocol import InboundFile
from firestore_outbox.providers.registry import Providers

PAGE = 20
CALL_LIMIT = timedelta(seconds=20)
"""For one file, from the call to its last byte: less than half of a lease."""


class FetchHandler:
    def __init__(
        self, gateway: Gateway, providers: Providers, storage: Storage | None, clock: Clock, *, max_bytes: int
    ) -> None:
        """A process holds `max_bytes` of inbound files at a time, and takes no larger file."""
        self._gateway = gateway
        self._providers = providers
        self._storage = storage
        self._clock = clock
        self._max_bytes = max_bytes
        self._budget = ByteBudget(max_bytes)

    async def run(self, holder: Holder) -> Work:
        account_id = holder.ref.key
        if self._storage is None:
            return Nothing()  # the next webhook with a file finds storage, or the documents stay
        page = await self._gateway.find(Find(collection=paths.fetches(account_id), limit=PAGE))
        next_at = None
        for document in page:
            if not holder.may_start() or holder.must_yield():
                return More()
            waiting = waiting_in(document.id, document.data)
            at = waiting.not_before
            if at is None or at <= self._clock():
                found = [await self._file(account_id, waiting, file, self._storage) for file in waiting.files]
                at = await self._settle(account_id, document, waiting, after(waiting, found, self._clock()))
            if at is not None:
                next_at = at if next_at is None else min(next_at, at)
        if len(page) == PAGE and next_at is None:
            return More()
        return Nothing() if next_at is None else Later(next_at)

    async def _file(
        self, account_id: str, waiting: Waiting, file: WaitingFile, storage: Storage
    ) -> Stored | Missing | Again:
        ref = FileRef(account_id, file.media_id)
        try:
            if await storage.find(ref) is not None:
                return Stored()
            async with self._budget.hold(self._max_bytes):
                fetched = await self._providers.inbound_file(
                    waiting.provider, account_id, file.media_id, most_bytes=self._max_bytes, limit=CALL_LIMIT
                )
                if isinstance(fetched, Rejected):
                    return Missing(fetched.detail)
                if not isinstance(fetched, InboundFile):
                    return Again(getattr(fetched, "detail", ""))
                await storage.add(ref, fetched.content, mime_type=file.mime_type, filename=file.filename)
        except StorageUnavailable as error:
            log.storage_unavailable(account_id, error)
            return Again("storage does not answer")
        return Stored()

    async def _settle(
        self, account_id: str, document: Snapshot, waiting: Waiting, came: Stored | Missing | TryAt
    ) -> datetime | None:
        """When to try again; None: it is settled. The message first: a crash in between repeats it."""
        message = paths.message(waiting.thread_id, waiting.message_id)
        match came:
            case TryAt(at=at, attempts=attempts):
                await self._gateway.commit(
                    [update(document.path, {"attempts": attempts, "notBefore": at}, version=None)]
                )
                return at
            case Stored():
                await self._gateway.commit([update(message, {"filesStoredAt": SERVER_TIME}, version=None)])
                log.inbound_files_stored(account_id, waiting.message_id, len(waiting.files))
            case Missing(reason=reason):
                await self._gateway.commit([update(message, {"filesMissing": True}, version=None)])
                log.inbound_files_missing(account_id, waiting.message_id, reason)
            case _:
                assert_never(came)
        await self._gateway.commit([delete(document.path)])
        return None
