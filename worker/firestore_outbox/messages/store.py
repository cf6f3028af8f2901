"""Outbox documents: read, claimed, completed. shown_store.py has what receipts do to the messages that people see.

The reads and writes of a message's way are counted here: it is read once, by the query that finds it; written once when
it is claimed; and its end is one commit of two writes with no read. Everything that costs more is a slow path.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from firestore_outbox.errors import Unwritable
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.gateway import Committed, Conflict, Gateway
from firestore_outbox.firestore.queries import Find
from firestore_outbox.firestore.writes import WriteOp
from firestore_outbox.messages import outbox_document
from firestore_outbox.messages.message_document import (
    followed,
    shown_again,
)
from firestore_outbox.messages.model import OutboxMessage
from firestore_outbox.messages.outbox_document import LARGEST_BYTES, PAGE_BYTES, Stored, rewritten, without_ballast
from firestore_outbox.messages.states import ENDED, MessageStatus, OutboxStatus
from firestore_outbox.sending.page_cursor import Cursor

IN_WAITING = (OutboxStatus.QUEUED.value, OutboxStatus.UNCERTAIN.value)
"""What a lane looks for: to be sent, or to be settled when its wait for a receipt ends."""
WAITING_OR_CLAIMED = (*IN_WAITING, OutboxStatus.SENDING.value)
"""The same with what is in flight. A claimed document keeps its `nextAttemptAt`, so it comes at its place."""
_EVER = datetime(1970, 1, 1, tzinfo=UTC)
"""Before any time that a document may have."""


@dataclass(frozen=True, slots=True)
class Page:
    documents: list[Stored]
    moment: datetime
    """When this was true, by the database."""
    is_cut: bool = False
    """It reached PAGE_BYTES before its limit: more documents may follow."""


@dataclass(frozen=True, slots=True)
class NextDue:
    at: datetime
    run_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class InFlight:
    """A document that is `sending`, as far as the sweep needs it."""

    path: str
    account_id: str
    due_at: datetime
    lease_until: datetime | None


class MessageStore:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self.compare_and_set = gateway.compare_and_set

    # --- what a lane reads

    async def due(self, account_id: str, now: datetime, limit: int, after: Cursor | None = None) -> Page:
        """Queued or uncertain, due by now, in order. Without `after` the page is the first one, and has what is in
        flight as well: what earlier holders of the lane left shows at the same moment. With it, the page is behind
        that place."""
        statuses = WAITING_OR_CLAIMED if after is None else IN_WAITING
        where = (("accountId", "==", account_id), ("status", "in", statuses), ("nextAttemptAt", "<=", now))
        query = Find(
            collection=paths.OUTBOX,
            where=where,
            order_by=("nextAttemptAt", "createdAt", "__name__"),
            limit=limit,
            start_after=None if after is None else _start_after(after),
            most_bytes=PAGE_BYTES,
            hollow_above=LARGEST_BYTES,
        )
        page = await self._gateway.find_at(query, None)
        return Page([outbox_document.read(snapshot) for snapshot in page.found], page.moment, page.is_cut)

    async def waiting(self, account_id: str, limit: int) -> Page:
        """The first documents that wait or are in flight, whenever they are due, in order."""
        query = Find(
            collection=paths.OUTBOX,
            where=(("accountId", "==", account_id), ("status", "in", WAITING_OR_CLAIMED)),
            order_by=("nextAttemptAt", "createdAt", "__name__"),
            limit=limit,
            most_bytes=PAGE_BYTES,
            hollow_above=LARGEST_BYTES,
        )
        page = await self._gateway.find_at(query, None)
        return Page([outbox_document.read(snapshot) for snapshot in page.found], page.moment, page.is_cut)

    async def next_due(self, account_id: str, after: datetime) -> NextDue | None:
        """The first document that comes due after that."""
        where = (("accountId", "==", account_id), ("status", "in", IN_WAITING), ("nextAttemptAt", ">", after))
        query = Find(
            collection=paths.OUTBOX,
            where=where,
            order_by=("nextAttemptAt", "createdAt"),  # not needed, but then one index serves both
            limit=1,
            select=("nextAttemptAt", "runId"),
        )
        found = await self._gateway.find(query)
        at = found[0].data.get("nextAttemptAt") if found else None
        return NextDue(at, found[0].data.get("runId")) if isinstance(at, datetime) else None

    async def abandoned(self, account_id: str, by: datetime, moment: datetime) -> list[Stored]:
        """In flight at that moment under a claim whose lease ended by then: what earlier holders of the lane left."""
        where = (
            ("accountId", "==", account_id),
            ("status", "==", OutboxStatus.SENDING.value),
            ("leaseUntil", "<=", by),
        )
        query = Find(
            collection=paths.OUTBOX, where=where, order_by=("leaseUntil",), hollow_above=LARGEST_BYTES
        )  # read to the end: a claim that was missed here would be overtaken
        return [outbox_document.read(snapshot) for snapshot in (await self._gateway.find_at(query, moment)).found]

    async def in_flight(self, due_by: datetime, limit: int, after: InFlight | None = None) -> list[InFlight]:
        """A page of the documents that are `sending` and came due by then, by account; behind `after`, if given."""
        query = Find(
            collection=paths.OUTBOX,
            where=(
                ("status", "==", OutboxStatus.SENDING.value),
                ("accountId", ">", ""),
                ("nextAttemptAt", "<=", due_by),
            ),
            order_by=("accountId", "nextAttemptAt", "__name__"),
            limit=limit,
            start_after=None if after is None else (after.account_id, after.due_at, after.path),
            select=("accountId", "nextAttemptAt", "leaseUntil"),
        )
        return [
            InFlight(
                path=snapshot.path,
                account_id=str(snapshot.data["accountId"]),
                due_at=snapshot.data["nextAttemptAt"],
                lease_until=snapshot.data.get("leaseUntil"),
            )
            for snapshot in await self._gateway.find(query)
        ]

    async def cancel_requested(self, limit: int = 100) -> list[Stored]:
        """Queued, and its author wants it no more. A part of them, if they are many or large."""
        query = Find(
            collection=paths.OUTBOX,
            where=(("status", "==", OutboxStatus.QUEUED.value), ("cancelRequested", "==", True)),
            limit=limit,
            most_bytes=PAGE_BYTES,
            hollow_above=LARGEST_BYTES,
        )
        return [outbox_document.read(snapshot) for snapshot in await self._gateway.find(query)]

    async def due_by_account(
        self, by: datetime, *, after: str, before: str | None = None, since: datetime | None = None, limit: int = 1
    ) -> list[str]:
        """The accounts of the first documents, in the order of their accounts, that wait and came due by then; only of
        accounts behind `after`, not beyond `before`, and of documents that came due after `since`, if given."""
        bounds = [("accountId", ">", after), ("nextAttemptAt", "<=", by)]
        if before is not None:
            bounds.append(("accountId", "<=", before))
        if since is not None:
            bounds.append(("nextAttemptAt", ">", since))
        query = Find(
            collection=paths.OUTBOX,
            where=(("status", "in", IN_WAITING), *bounds),
            order_by=("accountId", "nextAttemptAt"),
            limit=limit,
            select=("accountId",),
        )
        return [str(snapshot.data["accountId"]) for snapshot in await self._gateway.find(query)]

    async def in_status(
        self, status: OutboxStatus, *, account_id: str | None = None, limit: int, after: str | None = None
    ) -> list[Stored]:
        """A page of the documents of one status, of all accounts or of one, by name; behind that requestId, if given.
        Large documents make it shorter than its limit; it is empty only when none follow."""
        of_account = () if account_id is None else (("accountId", "==", account_id),)
        query = Find(
            collection=paths.OUTBOX,
            where=(*of_account, ("status", "==", status.value)),
            order_by=("__name__",),
            limit=limit,
            start_after=None if after is None else (paths.outbox(after),),
            most_bytes=PAGE_BYTES,
            hollow_above=LARGEST_BYTES,
        )
        return [outbox_document.read(snapshot) for snapshot in await self._gateway.find(query)]

    async def get(self, request_ids: Sequence[str]) -> list[Stored]:
        """Those that exist."""
        names = [paths.outbox(request_id) for request_id in request_ids]
        found = await self._gateway.get_all(names, hollow_above=LARGEST_BYTES)
        return [outbox_document.read(snapshot) for snapshot in found.values()]

    # --- what a lane writes

    async def claim(self, claims: Sequence[tuple[Stored, OutboxMessage]]) -> list[Stored] | Conflict:
        """All of them or none: each document as it was read becomes the one beside it."""
        result = await self._gateway.commit([rewritten(old, new) for old, new in claims])
        if isinstance(result, Conflict):
            return result
        return [
            replace(old, message=new, version=version)
            for (old, new), version in zip(claims, result.versions, strict=True)
        ]

    async def end(self, document: Stored, new: OutboxMessage) -> Committed | Conflict:
        """A document that ends, or goes back to the queue, and what people see of it.

        If Firestore refuses both, the outbox document is written alone, since the message document may be full; and if
        it ends, without its ballast. Raises Unwritable if it does not end, and Firestore refuses it."""
        writes = completion(document, new)
        with suppress(Unwritable):
            return await self._gateway.commit(writes)
        try:
            return await self._gateway.commit(writes[:1])
        except Unwritable:
            if new.status not in ENDED:
                raise
            return await self._gateway.commit([without_ballast(document, writes[0])])

    async def write(self, writes: Sequence[WriteOp]) -> Committed | Conflict:
        return await self._gateway.commit(writes)

    async def put_back(self, ended: Stored, again: OutboxMessage) -> bool:
        """A person's way back: due when it is written, and people see it as queued once more. False: it was changed
        meanwhile, or people see nothing of it."""
        writes = [rewritten(ended, again, due_at_commit=True), shown_again(again)]
        return not isinstance(await self._gateway.commit(writes), Conflict)

    # --- what a run reads and writes

    async def of_run(
        self, run_id: str, status: OutboxStatus | None, limit: int, after: str | None = None
    ) -> list[Stored]:
        """A page of a run's documents, by name, behind the requestId `after`. `status` None means all of them. Large
        documents make the page shorter than its limit; it is empty only if none follow."""
        of_status = () if status is None else (("status", "==", status.value),)
        query = Find(
            collection=paths.OUTBOX,
            where=(("runId", "==", run_id), *of_status),
            order_by=("__name__",),
            limit=limit,
            start_after=None if after is None else (paths.outbox(after),),
            most_bytes=PAGE_BYTES,
            hollow_above=LARGEST_BYTES,
        )
        return [outbox_document.read(snapshot) for snapshot in await self._gateway.find(query)]

    async def is_in_sight(self, run_id: str) -> bool:
        """Whether a lane may come to any of a run's documents: one look at all of them at one moment. Those that are
        parked, or wait for a person, have no time."""
        open_ones = (OutboxStatus.QUEUED.value, OutboxStatus.SENDING.value, OutboxStatus.UNCERTAIN.value)
        query = Find(
            collection=paths.OUTBOX,
            where=(("runId", "==", run_id), ("status", "in", open_ones), ("nextAttemptAt", ">", _EVER)),
            order_by=("nextAttemptAt",),
            limit=1,
            select=("status",),
        )
        return bool(await self._gateway.find(query))

    async def count_of_run(self, run_id: str, status: OutboxStatus) -> int:
        where = (("runId", "==", run_id), ("status", "==", status.value))
        return await self._gateway.count(Find(collection=paths.OUTBOX, where=where))

    async def count_shown_of_run(self, run_id: str, status: MessageStatus) -> int:
        where = (("runId", "==", run_id), ("status", "==", status.value))
        return await self._gateway.count(Find(collection=paths.MESSAGES, group=True, where=where))

    async def count_in_status(self, account_id: str | None, status: OutboxStatus) -> int:
        """Of all accounts if `account_id` is None."""
        of_account = () if account_id is None else (("accountId", "==", account_id),)
        query = Find(collection=paths.OUTBOX, where=(*of_account, ("status", "==", status.value)))
        return await self._gateway.count(query)

    async def move(
        self, changes: Sequence[tuple[Stored, OutboxMessage]], at_commit: Collection[str] = ()
    ) -> list[Stored]:
        """Each document as it was read becomes the one beside it, except those that changed in the meantime.
        `at_commit` are those that come due when they are written. Returns those that Firestore refuses to write."""
        if not changes:
            return []
        writes = [rewritten(old, new, due_at_commit=new.request_id in at_commit) for old, new in changes]
        with suppress(Unwritable):  # one document can stop a commit of many: then each has its own
            if not isinstance(await self._gateway.commit(writes), Conflict):
                return []
        unwritable = []
        for (old, _), write in zip(changes, writes, strict=True):
            try:
                await self._gateway.commit([write])
            except Unwritable:
                unwritable.append(old)
        return unwritable


def _start_after(cursor: Cursor) -> tuple[object, ...]:
    if cursor.created_at is None or cursor.request_id is None:
        return (cursor.due_at,)
    return (cursor.due_at, cursor.created_at, paths.outbox(cursor.request_id))


def completion(claim: Stored, new: OutboxMessage) -> list[WriteOp]:
    """The writes that end or put back an attempt: the document under its claim, and what people see of it."""
    return [rewritten(claim, new), *followed(claim.valid, new)]
