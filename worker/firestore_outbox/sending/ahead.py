"""Messages that go ahead of what a turn has read: how the holder notices them, and how it finds them.

A page brings the documents that came due first. While the turn sends bulk messages of its page, a message that goes
ahead of them may be written, and its wake marks the lane (lane/marks.py). The holder sees the mark when it renews its
lease. If the account sent an urgent message within a day, that is too late: then, while bulk waits, the holder reads
its lane shortly before each place of the pace, and at most once a second. Accounts without urgent messages pay nothing.

What a mark leads to. If the turn had read everything that was due, the next page has the new message. If a longer line
is not read yet, the message is looked for beyond the page's end: urgent ones by an index of their own, normal ones by
their time, which the mark has. Such a message may go only with what waits before it in its thread, so the thread is
read, and all of it up to the message becomes a candidate.

A mark is cleared before the look that it leads to, by a write of its own: a later wake marks the lane again. What the
turn knows and has not sent is marked again on release. If the holder dies in between, the next turn finds urgent ones
by their index, and normal ones at their place in the line.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta

from firestore_outbox.errors import StoreUnavailable
from firestore_outbox.lane.holder import Holder
from firestore_outbox.lane.state import Lane
from firestore_outbox.messages.line import Line
from firestore_outbox.messages.model import OutboxMessage
from firestore_outbox.messages.outbox_document import Stored
from firestore_outbox.messages.priority import Priority
from firestore_outbox.messages.states import OutboxStatus
from firestore_outbox.messages.store import MessageStore
from firestore_outbox.sending.candidates import Candidates
from firestore_outbox.sending.page_cursor import Cursor

LOOK_EVERY = timedelta(seconds=1)
"""The least time between two looks at the lane."""
BEFORE_A_PLACE = timedelta(milliseconds=250)
"""How long before the next place of the pace the lane is read: the answer is there in time."""
LATE_EVENTS = timedelta(seconds=2)
"""How far before a mark's time normal messages are looked for: events come out of order."""
MOST_URGENT, MOST_OF_A_THREAD, MOST_PAGES = 20, 50, 5
"""Documents that one look reads of each, and pages. What is beyond waits for its place in the line."""

ReadPage = Callable[[datetime], Awaitable[None]]


class Ahead:
    def __init__(
        self,
        holder: Holder,
        messages: MessageStore,
        line: Line,
        candidates: Candidates,
        *,
        page: int,
        read_page: ReadPage,
        in_flight: Callable[[], set[str]],
        expects_urgent: Callable[[datetime], bool],
    ) -> None:
        """`page`: documents in a page. `in_flight` are the requestIds of the turn's own calls. `expects_urgent`:
        whether the lane is looked at between renewals."""
        self._holder = holder
        self._messages = messages
        self._line = line
        self._candidates = candidates
        self._page = page
        self._read_page = read_page
        self._in_flight = in_flight
        self._expects_urgent = expects_urgent
        self._looked_at = holder.started_at
        """When the lane was read, or could have been."""
        self._known = (holder.lane.urgent_at, holder.lane.normal_at)
        """Marks on the lane that the pages answer: they were there before the first page was read."""
        self._answered: tuple[datetime | None, datetime | None] = (None, None)
        """Marks on the lane that lead to nothing more. The release clears them."""
        self._begun: int | None = None
        """The reading of the candidates, counted, for which the beginning of the line was looked at."""
        self._since: datetime | None = None
        """The earliest normal message that was looked for beyond the pages."""

    # --- when

    def look_at(self, now: datetime, next_at: datetime | None) -> datetime | None:
        """When to read the lane while the turn waits; None: nothing waits that others go ahead of. `next_at`: the next
        place of the pace."""
        if not self._candidates.has_bulk or not self._expects_urgent(now):
            return None
        earliest = self._looked_at + LOOK_EVERY
        return earliest if next_at is None or next_at <= now else max(earliest, next_at - BEFORE_A_PLACE)

    def has_just_looked(self, now: datetime) -> bool:
        return now - self._looked_at <= 2 * BEFORE_A_PLACE

    async def look(self, now: datetime) -> None:
        self._looked_at = now
        with suppress(StoreUnavailable):  # the next look comes soon
            await self._holder.look()

    # --- what

    async def serve(self, now: datetime, due_by: datetime) -> bool:
        """Read what marks on the lane tell of. Whether anything was read."""
        if not self._candidates.has_page:
            return False
        if self._begun != self._candidates.readings and await self._begin(now, due_by):
            return True
        urgent_at, normal_at = self._marks(now)
        if urgent_at is None and (normal_at is None or not self._candidates.has_bulk):
            return False
        await self._holder.write(lambda lane: _without(lane, (urgent_at, normal_at)))
        if self._candidates.is_last_page:
            self._candidates.look_again()
            await self._read_page(now)
        if not self._candidates.is_last_page:
            await self._find(due_by, has_urgent=urgent_at is not None, since=normal_at)
        return True

    async def _begin(self, now: datetime, due_by: datetime) -> bool:
        """After the first pages. If they are everything, they have what the marks tell of. In a longer line with bulk
        there may be urgent messages that no mark tells of any more."""
        urgent_at, normal_at = self._known
        if self._candidates.is_last_page:
            self._begun = self._candidates.readings
            is_due = urgent_at is not None and urgent_at <= now
            self._answered = (urgent_at if is_due else None, normal_at)
            return False
        if not self._candidates.has_bulk:
            return False
        self._begun = self._candidates.readings
        self._answered = self._known
        since = min((at for at in (normal_at, self._since) if at is not None), default=None)
        await self._find(due_by, has_urgent=True, since=since)
        return True

    def _marks(self, now: datetime) -> tuple[datetime | None, datetime | None]:
        """Those that are new, and due."""
        lane = self._holder.lane
        urgent_at = lane.urgent_at if lane.urgent_at != self._answered[0] else None
        normal_at = lane.normal_at if lane.normal_at != self._answered[1] else None
        return urgent_at if urgent_at is not None and urgent_at <= now else None, normal_at

    async def _find(self, due_by: datetime, *, has_urgent: bool, since: datetime | None) -> None:
        found: list[Stored] = []
        if has_urgent:
            found += await self._line.urgent(self._holder.ref.key, MOST_URGENT)
        if since is not None:
            self._since = since
            found += await self._written_since(since - LATE_EVENTS, due_by)
        threads: dict[str, OutboxMessage] = {}
        for stored in found:
            if (message := self._ahead(stored, due_by)) is not None:
                threads[message.thread_id] = max(message, threads.get(message.thread_id, message), key=_order)
        for thread_id, last in threads.items():
            await self._move_up(thread_id, last)

    async def _written_since(self, since: datetime, due_by: datetime) -> list[Stored]:
        found: list[Stored] = []
        after: Cursor | None = Cursor(due_at=since)
        for _ in range(MOST_PAGES):
            page = await self._messages.due(self._holder.ref.key, due_by, self._page, after)
            found += page.documents
            after = _place(page.documents)
            if after is None or (len(page.documents) < self._page and not page.is_cut):
                break
        return found

    def _ahead(self, stored: Stored, due_by: datetime) -> OutboxMessage | None:
        message = stored.message
        if not isinstance(message, OutboxMessage) or message.priority is Priority.BULK:
            return None
        is_due = message.next_attempt_at is not None and message.next_attempt_at <= due_by
        is_known = message.request_id in self._candidates or message.request_id in self._in_flight()
        return message if is_due and not is_known and message.status is OutboxStatus.QUEUED else None

    async def _move_up(self, thread_id: str, last: OutboxMessage) -> None:
        """The thread's messages up to `last` become candidates. Nothing of it overtakes what an earlier holder left in
        flight, or what was not read."""
        found = await self._line.of_thread(last.account_id, thread_id, MOST_OF_A_THREAD)
        own = self._in_flight()
        is_left = any(one.status == OutboxStatus.SENDING and one.request_id not in own for one in found)
        if is_left or len(found) == MOST_OF_A_THREAD:
            return
        self._candidates.move_up(
            [one for one in found if isinstance(one.message, OutboxMessage) and _order(one.message) <= _order(last)],
            skip=own,
        )

    # --- the lane document

    def kept(self, lane: Lane) -> Lane:
        """The lane as it is released: with marks for what is known beyond the pages and not sent. A mark of a time that
        the pages reached leads to nothing more: should its message be missing, its wake asked for another run."""
        lane, moment = _without(lane, self._answered), self._candidates.moment
        if self._candidates.is_last_page and moment is not None:
            return _without(lane, (_passed(lane.urgent_at, moment), _passed(lane.normal_at, moment)))
        if not self._candidates.has_bulk:
            return lane
        left = [one for one in self._candidates.in_order() if isinstance(one, OutboxMessage)]
        return replace(
            lane,
            urgent_at=_earliest(lane.urgent_at, left, Priority.URGENT),
            normal_at=_earliest(lane.normal_at, left, Priority.NORMAL),
        )


def _earliest(marked: datetime | None, left: Sequence[OutboxMessage], priority: Priority) -> datetime | None:
    times = [one.next_attempt_at for one in left if one.priority is priority]
    return min((at for at in (marked, *times) if at is not None), default=None)


def _without(lane: Lane, marks: tuple[datetime | None, datetime | None]) -> Lane:
    """Without these marks; those that are newer stay."""
    urgent_at, normal_at = marks
    return replace(
        lane,
        urgent_at=None if lane.urgent_at == urgent_at else lane.urgent_at,
        normal_at=None if lane.normal_at == normal_at else lane.normal_at,
    )


def _passed(at: datetime | None, moment: datetime) -> datetime | None:
    return at if at is not None and at <= moment else None


def _order(message: OutboxMessage) -> tuple[datetime, datetime, str]:
    return message.order


def _place(found: Sequence[Stored]) -> Cursor | None:
    last = found[-1].message if found else None
    if not isinstance(last, OutboxMessage) or last.next_attempt_at is None:
        return None
    return Cursor(due_at=last.next_attempt_at, created_at=last.created_at, request_id=last.request_id)
