"""What the lane has read and not yet claimed, and the claim itself.

Documents are read in pages and kept until they are claimed, so each is read once, however often the plan is made. Pages
overlap (sending/page_cursor.py): a document may become visible behind others that carry a later timestamp. If a
document has changed since it was read, its precondition fails and everything is read again.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from firestore_outbox import log
from firestore_outbox.clock import Clock
from firestore_outbox.errors import Unwritable
from firestore_outbox.firestore.gateway import Conflict
from firestore_outbox.lane.lease import Hold
from firestore_outbox.lane.ref import LaneRef
from firestore_outbox.messages.model import OutboxMessage
from firestore_outbox.messages.outbox_document import Stored
from firestore_outbox.messages.priority import Priority
from firestore_outbox.messages.states import OutboxStatus
from firestore_outbox.messages.store import MessageStore
from firestore_outbox.messages.validation import InvalidMessage
from firestore_outbox.sending.page_cursor import PAUSE_FOR_EACH, Cursor, is_confirmed, next_cursor
from firestore_outbox.sending.plan import Plan, claimed
from firestore_outbox.sending.refuse import refuse, unwritable


class Candidates:
    def __init__(self, messages: MessageStore, ref: LaneRef, overlap: timedelta, clock: Clock) -> None:
        self._messages = messages
        self._clock = clock
        self._ref = ref
        self._overlap = overlap
        self._kept: dict[str, Stored] = {}
        self._last: Stored | None = None
        """The last document of the page read last. Until everything is read, documents from its place on wait."""
        self._cursor: Cursor | None = None
        """Where the next scan begins. None: at the start."""
        self._continue_at: Cursor | None = None
        """Where the next page begins if it continues the present scan. None: the next page begins a new scan."""
        self._scan_at: datetime | None = None
        """The database's time of the scan's first page."""
        self._named: set[str] = set()
        """Those that a hold waits for."""
        self._gone: set[str] = set()
        """Looked for by their id, and not there to be claimed."""
        self.exhausted = False
        """Everything that was due by `due_by` is here."""
        self.is_last_page = False
        """The last page was not full: nothing that was due is behind it."""
        self.read_at: datetime | None = None
        """When the last page was read."""
        self.due_by: datetime | None = None
        """How far its query went."""
        self.moment: datetime | None = None
        """When the last page was true, by the database."""
        self.in_flight: list[Stored] | None = None
        """What the last page found in flight, beside our own; None: it was not the first page, and did not look."""
        self.readings = 0
        """How often everything was read from the start, because something had changed."""
        self._ordered: list[OutboxMessage | InvalidMessage] | None = None
        """What `in_order` gave last, if it still holds."""

    def __len__(self) -> int:
        return len(self._kept)

    def __contains__(self, request_id: str) -> bool:
        return request_id in self._kept

    def in_order(self) -> list[OutboxMessage | InvalidMessage]:
        """Those whose predecessors are all here. Times that a server set are equal for all that was written within a
        millisecond, and of those the query brings the names in order, not the ages: the last of them wait for the next
        page."""
        if self._ordered is None:
            self._ordered = self._in_order()
        return self._ordered

    def _in_order(self) -> list[OutboxMessage | InvalidMessage]:
        ordered = sorted(self._kept.values(), key=_order)
        if not self.exhausted and self._last is not None:
            last = _order(self._last)[:2]
            ordered = [
                stored
                for stored in ordered
                if stored.request_id in self._named or (_order(stored)[:2] < last and self._is_confirmed(stored))
            ]
        return [stored.message for stored in ordered]

    def _is_confirmed(self, stored: Stored) -> bool:
        """Whether every predecessor of the document has been read (sending/page_cursor.py)."""
        if self._scan_at is None:
            return True
        return is_confirmed(stored.created, _due_at(stored) or stored.created, self._scan_at)

    def look_again(self) -> None:
        """More may have come due since the last page: the next is read. What the last one ended with waits for it."""
        self._ordered = None
        self._continue_at = None
        self.exhausted = False

    async def read_more(self, now: datetime, due_by: datetime, limit: int, skip: Collection[str]) -> list[Stored]:
        """Read the next page with room for `limit` documents that are not known yet; return those that it brought.

        `skip` are the documents in flight. `due_by` is not beyond the database's time."""
        if self._continue_at is None:
            limit += self.known_in_overlap
        after = self._continue_at or self._cursor
        page = await self._messages.due(self._ref.key, due_by, limit, after)
        if self._continue_at is None or self._scan_at is None:
            self._scan_at = page.moment
        found = page.documents
        others = [stored for stored in found if stored.request_id not in skip]
        waiting = [stored for stored in others if stored.status != OutboxStatus.SENDING]
        self.in_flight = (
            None if after is not None else [stored for stored in others if stored.status == OutboxStatus.SENDING]
        )
        new = [stored for stored in waiting if stored.request_id not in self._kept]
        for stored in waiting:
            known = self._kept.get(stored.request_id)
            if known is None or known.version < stored.version:
                self._kept[stored.request_id] = stored
        self._ordered = None
        self.read_at, self.due_by, self.moment = now, due_by, page.moment
        if found:
            # A malformed document has no place in the order to continue from: the next page begins at the start.
            self._last = found[-1] if isinstance(found[-1].message, OutboxMessage) else None
            self._cursor = next_cursor(_place(self._last), self._scan_at, self._overlap)
        self.is_last_page = is_last_page = len(found) < limit and not page.is_cut
        # A page that was cut by its bytes is continued: a new scan might be cut before it comes to anything new. A page
        # whose end became visible after the scan's moment is not: what follows could not go before another scan either.
        is_new_scan = is_last_page or (
            not page.is_cut and (self.known_in_overlap <= limit // 10 or not self._is_confirmed(found[-1]))
        )
        self._continue_at = None if is_new_scan else _place(self._last)
        self.exhausted = is_last_page and all(
            self._is_confirmed(stored) or stored.request_id in self._named for stored in self._kept.values()
        )
        return new

    @property
    def known_in_overlap(self) -> int:
        """How many documents the first page of the next scan reads again."""
        if self._cursor is None:
            return 0
        since = self._cursor.due_at
        return sum(1 for stored in self._kept.values() if (at := _due_at(stored)) is not None and at >= since)

    @property
    def price_of_a_look(self) -> timedelta:
        """How much longer to wait before looking for new documents, for what that reads again."""
        return PAUSE_FOR_EACH * self.known_in_overlap

    async def read_named(self, request_ids: Sequence[str], skip: Collection[str]) -> None:
        """Documents that a hold waits for, if the query did not bring them; candidates wherever their page ends."""
        here = {one for one in request_ids if one in self._kept}
        if not here <= self._named:
            self._ordered = None
            self._named |= here
        wanted = [one for one in request_ids if one not in here and one not in self._gone and one not in skip]
        if not wanted:
            return
        found = await self._messages.get(wanted)
        self._ordered = None
        for stored in found:
            if isinstance(stored.message, OutboxMessage) and stored.message.status in ("queued", "uncertain"):
                self._kept[stored.request_id] = stored
                self._named.add(stored.request_id)
        self._gone.update(one for one in wanted if one not in self._kept)

    def settled(self, stored: Stored | None) -> None:
        """A document as it is after an attempt; None if it has ended. In the queue again, by us or by the worker that
        had it before, it is a candidate wherever its page ends. In doubt, it is one when its thread's hold elapses."""
        if stored is None:
            return
        self._gone.discard(stored.request_id)
        if stored.valid.status is not OutboxStatus.QUEUED:
            return
        self._ordered = None
        self._kept[stored.request_id] = stored
        self._named.add(stored.request_id)

    @property
    def has_page(self) -> bool:
        return self._scan_at is not None

    @property
    def has_bulk(self) -> bool:
        messages = (stored.message for stored in self._kept.values())
        return any(isinstance(one, OutboxMessage) and one.priority is Priority.BULK for one in messages)

    def move_up(self, found: Sequence[Stored], skip: Collection[str]) -> None:
        """The first messages of a thread, all of them: candidates wherever their page ends. `skip` are in flight."""
        self._ordered = None
        for stored in found:
            known = self._kept.get(stored.request_id)
            if stored.request_id in skip or stored.status == OutboxStatus.SENDING:
                continue
            if known is None or known.version < stored.version:
                self._kept[stored.request_id] = stored
            self._named.add(stored.request_id)

    def take_out(self, request_id: str) -> Stored:
        self._ordered = None
        return self._kept.pop(request_id)

    def forget(self) -> None:
        """Something changed behind our back: read everything again."""
        self._ordered = None
        self._kept.clear()
        self._named.clear()
        self._gone.clear()
        self._last = self._cursor = self._continue_at = self._scan_at = None
        self.readings += 1
        self.exhausted = False

    async def claim(self, plan: Plan, hold: Hold) -> list[Stored]:
        """The planned documents, claimed in one commit; none of them if one has changed."""
        pairs = [(self._kept[message.request_id], claimed(message, hold)) for message in plan.claims]
        try:
            result = await self._messages.claim(pairs)
        except Unwritable:
            return await self._claimed_without_unwritable(pairs, hold)
        if isinstance(result, Conflict):
            log.claim_conflict(self._ref, self._ref.account_id, len(pairs))
            claimed_by_us = await self._ours(pairs, hold) if result.maybe_ours else []
            self.forget()
            return claimed_by_us
        for stored in result:
            del self._kept[stored.request_id]
        if self._ordered is not None:
            self._ordered = [message for message in self._ordered if message.request_id in self._kept]
        return result

    async def _claimed_without_unwritable(
        self, pairs: Sequence[tuple[Stored, OutboxMessage]], hold: Hold
    ) -> list[Stored]:
        """Firestore refuses one of the claims. That document fails; each of the others has a commit of its own."""
        by_us: list[Stored] = []
        for pair in pairs:
            try:
                result = await self._messages.claim([pair])
            except Unwritable:
                await refuse(self._messages, pair[0], unwritable(pair[0].valid, self._clock()))
                continue
            if isinstance(result, Conflict):
                by_us += await self._ours([pair], hold) if result.maybe_ours else []
            else:
                by_us += result
        self.forget()
        return by_us

    async def _ours(self, pairs: Sequence[tuple[Stored, OutboxMessage]], hold: Hold) -> list[Stored]:
        """After a commit whose answer was lost: it was applied whole or not at all, and our name tells."""
        found = await self._messages.get([new.request_id for _, new in pairs])
        wanted = {new.request_id: new for _, new in pairs}
        return [
            stored
            for stored in found
            if isinstance(stored.message, OutboxMessage)
            and stored.message.claimed_by == hold.claimed_by
            and stored.message.attempts == wanted[stored.request_id].attempts
        ]


def _due_at(stored: Stored) -> datetime | None:
    return stored.message.next_attempt_at if isinstance(stored.message, OutboxMessage) else None


def _place(stored: Stored | None) -> Cursor | None:
    """A document's place in the order of the query. None: it has none."""
    if stored is None or not isinstance(stored.message, OutboxMessage) or stored.message.next_attempt_at is None:
        return None
    return Cursor(
        due_at=stored.message.next_attempt_at, created_at=stored.message.created_at, request_id=stored.request_id
    )


def _order(stored: Stored) -> tuple[datetime, datetime, datetime, str]:
    message = stored.message
    if isinstance(message, OutboxMessage):
        due = message.next_attempt_at or message.created_at
        return (due, message.created_at, stored.created, stored.request_id)
    return (stored.created, stored.created, stored.created, stored.request_id)
