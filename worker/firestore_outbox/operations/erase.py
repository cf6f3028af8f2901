"""Documents erased for good: all of an account that was removed, or one address of an account.

Each page is deleted before the next is read, so a run that ends early leaves less, and the next run goes on. A message
that is being sent stays, because its worker still writes to it; the caller hears of it and runs again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field

from firestore_outbox.accounts.changes import Refused
from firestore_outbox.consent.frequency_store import frequency_path
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.gateway import Gateway, Snapshot
from firestore_outbox.firestore.queries import Find
from firestore_outbox.firestore.writes import delete
from firestore_outbox.lane.ref import LaneRef, conversation_lane, fetch_lane, notify_lane, outbox_lane, session_lane
from firestore_outbox.media.missing import named_files
from firestore_outbox.media.storage import FileRef, Storage
from firestore_outbox.messages.ids import thread_id_of
from firestore_outbox.messages.states import OutboxStatus
from firestore_outbox.sessions.store import contact_path, session_path

PAGE = 200
"""Documents of one commit."""
OF_ACCOUNT = (
    "members",
    "actions",
    "contacts",
    "frequency",
    "session",
    "uploads",
    "incoming",
    "fetches",
    "keys",
    "billing",
    "notifications",
    "devices",
)
"""Collections below an account."""
BELOW: Mapping[str, tuple[str, ...]] = {
    paths.THREADS: ("messages",),
    paths.REMINDERS: ("targets", "requests"),
    paths.RUNS: ("requests",),
}
"""Collections below the documents of a collection."""
Where = tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    documents: Mapping[str, int] = field(default_factory=dict)
    """Collection -> deleted documents."""
    in_flight: int = 0
    """Messages that are being sent, and stay."""
    files: int = 0
    """Deleted files."""


class Erase:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def account(self, account_id: str, storage: Storage | None) -> Erased | Refused:
        """Everything of an account whose own document is gone. Raises StorageUnavailable."""
        if await self._gateway.get(paths.account(account_id)) is not None:
            return Refused(f"the account {account_id} exists; remove it first: outbox accounts remove {account_id}")
        count: Counter[str] = Counter()
        where: Where = (("accountId", "==", account_id),)
        in_flight = await self._outbox(where, count)
        for collection in BELOW:
            async for page in self._pages(collection, where):
                for document in page:
                    await self._below(document, count)
                await self._delete(page, count)
        for name in OF_ACCOUNT:
            async for page in self._pages(f"{paths.account(account_id)}/{name}"):
                await self._delete(page, count)
        rest = [session_path(account_id), *(paths.lane(one.kind, one.key) for one in _lanes(account_id))]
        await self._gateway.commit([delete(path) for path in rest])
        # Files last: a run that storage broke off begins again with what is left.
        files = 0 if storage is None else await storage.delete_all(account_id)
        return Erased(documents=dict(count), in_flight=in_flight, files=files)

    async def address(self, account_id: str, address: str, storage: Storage | None) -> Erased:
        """The conversation with one address: its thread, its messages, the files that it sent, and what waits to be
        sent to it. Files that were sent to it stay: other conversations may name them. Raises StorageUnavailable."""
        count: Counter[str] = Counter()
        thread_id = thread_id_of(account_id, address)
        where: Where = (("accountId", "==", account_id), ("threadId", "==", thread_id))
        in_flight = await self._outbox(where, count)
        thread = await self._gateway.get(paths.thread(thread_id))
        files = 0 if storage is None else await self._files_of(account_id, thread_id, storage)
        await self._conversation(thread_id, count)
        if thread is not None:
            await self._delete([thread], count)
        about = (contact_path(account_id, address), frequency_path(account_id, address))
        await self._gateway.commit([delete(path) for path in about])
        return Erased(documents=dict(count), in_flight=in_flight, files=files)

    async def _files_of(self, account_id: str, thread_id: str, storage: Storage) -> int:
        """Delete the files of a thread's inbound messages, before the messages, so that a broken run finds them."""
        deleted, after = 0, ""
        messages = f"{paths.thread(thread_id)}/messages"
        while True:
            query = Find(
                collection=messages,
                order_by=("__name__",),
                limit=PAGE,
                start_after=(after,) if after else None,
                select=("direction", "parts"),
            )
            page = await self._gateway.find(query)
            for document in page:
                inbound = document.data.get("direction") == "inbound"
                for media_id in named_files(document.data.get("parts") or []) if inbound else []:
                    deleted += await storage.delete(FileRef(account_id, media_id))
            if len(page) < PAGE:
                return deleted
            after = page[-1].path

    async def _outbox(self, where: Where, count: Counter[str]) -> int:
        """Returns how many are being sent."""
        left = 0
        for status in OutboxStatus:
            of_status: Where = (*where, ("status", "==", status.value))
            if status is OutboxStatus.SENDING:
                left = await self._gateway.count(Find(collection=paths.OUTBOX, where=of_status))
                continue
            async for page in self._pages(paths.OUTBOX, of_status):
                await self._delete(page, count)
        return left

    async def _below(self, document: Snapshot, count: Counter[str]) -> None:
        collection = document.path.partition("/")[0]
        if collection == paths.THREADS:
            await self._conversation(document.id, count)
            return
        for name in BELOW[collection]:
            async for page in self._pages(f"{document.path}/{name}"):
                await self._delete(page, count)

    async def _conversation(self, thread_id: str, count: Counter[str]) -> None:
        """What belongs to a thread: its messages, and the lane and events of a handler."""
        lane = conversation_lane(thread_id)
        for collection in (f"{paths.thread(thread_id)}/messages", f"inbox/{lane.kind}:{lane.key}/events"):
            async for page in self._pages(collection):
                await self._delete(page, count)
        await self._gateway.commit([delete(paths.lane(lane.kind, lane.key))])

    async def _pages(self, collection: str, where: Where = ()) -> AsyncIterator[list[Snapshot]]:
        """The caller deletes each page before it asks for the next."""
        query = Find(collection=collection, where=where, limit=PAGE, select=("__name__",))
        while page := await self._gateway.find(query):
            yield page

    async def _delete(self, page: list[Snapshot], count: Counter[str]) -> None:
        await self._gateway.commit([delete(document.path) for document in page])
        count[page[0].path.split("/")[-2]] += len(page)


def _lanes(account_id: str) -> tuple[LaneRef, ...]:
    return outbox_lane(account_id), session_lane(account_id), fetch_lane(account_id), notify_lane(account_id)
