"""What the lane has read and not yet claimed, and the claim itself.

Documents are read in pages and kept until they are claimed, so each is read once however often the plan is made anew.
What has changed since it was read fails its precondition, and everything is read again.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from worker import log
from worker.domain.claim import Plan, claimed
from worker.domain.lease import Hold
from worker.domain.message import OutboxMessage, OutboxStatus
from worker.domain.validation import InvalidMessage
from worker.store.gateway import Conflict
from worker.store.lanes import LaneRef
from worker.store.messages import MessageStore
from worker.store.outbox_document import Stored


class Candidates:
    def __init__(self, messages: MessageStore, ref: LaneRef) -> None:
        self._messages = messages
        self._ref = ref
        self._kept: dict[str, Stored] = {}
        self._last: Stored | None = None
        """The last document of the page read last: the next page begins behind it."""
        self._named: set[str] = set()
        """Those that a hold waits for."""
        self._gone: set[str] = set()
        """Looked for by their id, and not there to be claimed."""
        self.exhausted = False
        """Everything that was due by `due_by` is here."""
        self.read_at: datetime | None = None
        """When the last page was read."""
        self.due_by: datetime | None = None
        """How far its query went."""
        self.moment: datetime | None = None
        """Of which the last page is true, by the database."""
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
            ordered = [stored for stored in ordered if _order(stored)[:2] < last or stored.request_id in self._named]
        return [stored.message for stored in ordered]

    def look_again(self) -> None:
        """More may have come due since the last page: the next is read. What the last one ended with waits for it."""
        self._ordered = None
        self.exhausted = False

    async def read_more(self, now: datetime, due_by: datetime, limit: int, skip: Collection[str]) -> int:
        """The next page of so many, without what is in flight (its documents may still be queued as the query sees
        them). How many documents it had.

        `due_by` is not beyond the database's time. The next page begins where this one ended, and a time that a server
        sets may then no longer fall before that."""
        page = await self._messages.due(self._ref.key, due_by, limit, self._last)
        found = page.documents
        self._ordered = None
        for stored in found:
            if stored.request_id not in skip:
                self._kept[stored.request_id] = stored
        self.exhausted = len(found) < limit
        self.read_at, self.due_by, self.moment = now, due_by, page.moment
        if found:
            # A malformed document has no place in the order to go on from; the page is then read anew from its start.
            self._last = found[-1] if isinstance(found[-1].message, OutboxMessage) else None
        return len(found)

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
        """A document as it is after an attempt; None if it has ended. In the queue again, by us or by whoever had it
        before, it is a candidate wherever its page ends. In doubt, it is one when its thread's hold elapses."""
        if stored is None:
            return
        self._gone.discard(stored.request_id)
        if stored.valid.status is not OutboxStatus.QUEUED:
            return
        self._ordered = None
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
        self._last = None
        self.exhausted = False

    async def claim(self, plan: Plan, hold: Hold) -> list[Stored]:
        """The planned documents, claimed in one commit; none of them if one has changed."""
        pairs = [(self._kept[message.request_id], claimed(message, hold)) for message in plan.claims]
        result = await self._messages.claim(pairs)
        if isinstance(result, Conflict):
            log.claim_conflict(self._ref, len(pairs))
            claimed_by_us = await self._ours(pairs, hold) if result.maybe_ours else []
            self.forget()
            return claimed_by_us
        for stored in result:
            del self._kept[stored.request_id]
        if self._ordered is not None:
            self._ordered = [message for message in self._ordered if message.request_id in self._kept]
        return result

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


def _order(stored: Stored) -> tuple[datetime, datetime, datetime, str]:
    message = stored.message
    if isinstance(message, OutboxMessage):
        due = message.next_attempt_at or message.created_at
        return (due, message.created_at, stored.created, stored.request_id)
    return (stored.created, stored.created, stored.created, stored.request_id)
