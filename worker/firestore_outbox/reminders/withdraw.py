"""What a run does to all of its documents that are still queued: cancel, skip, move to the next day, park, bring back.

Page by page in the order of their names, each document under its own version. One that a lane claims at the same moment
is left alone; the run looks again until nothing is left open.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from datetime import datetime

from firestore_outbox.accounts.store import AccountStore
from firestore_outbox.accounts.window import opening_before
from firestore_outbox.clock import Clock
from firestore_outbox.firestore.writes import ServerTime
from firestore_outbox.messages.model import OutboxMessage
from firestore_outbox.messages.states import OutboxStatus
from firestore_outbox.messages.store import MessageStore
from firestore_outbox.messages.validation import InvalidMessage
from firestore_outbox.reminders.due_times import due_at
from firestore_outbox.reminders.expand import in_the_queue, send_interval
from firestore_outbox.reminders.run import Run
from firestore_outbox.sending.deadline import deferral, last_moment
from firestore_outbox.sending.plan import Cancel, Defer, Skip, ending_of
from firestore_outbox.sending.refuse import refuse, unwritable

PAGE = 300

MayGoOn = Callable[[], bool]
"""Whether the run's lane is still ours. A page that is written late, when another worker has it, would undo what was
done meanwhile: what had been brought back would be parked for ever."""
Change = Callable[[OutboxMessage, int], OutboxMessage | None]
"""Given a document and its place among those changed; None leaves it as it is."""


@dataclass(frozen=True, slots=True)
class Clear:
    """Each says whether it came to its end; otherwise the lane is lost, or about to be."""

    messages: MessageStore
    accounts: AccountStore
    clock: Clock

    async def cancel(self, run: Run, may_go_on: MayGoOn) -> bool:
        """What is in flight, or in doubt, is not tried again if this attempt fails."""
        for status in (OutboxStatus.SENDING, OutboxStatus.UNCERTAIN):
            if not await self._each(run, lambda message, _: _unwanted(message), may_go_on, status):
                return False
        return await self._each(run, lambda message, _: _ended(_unwanted(message) or message, self.clock()), may_go_on)

    async def skip(self, run: Run, may_go_on: MayGoOn) -> bool:
        """Their deadline was the end of the window, which has passed."""
        return await self._each(run, lambda message, _: _ended(message, self.clock()), may_go_on)

    async def defer(self, run: Run, may_go_on: MayGoOn) -> datetime | None:
        """To the next opening, a minute's worth at a time as at the start. When that window ends; None if it came to no
        end."""
        next_window = deferral(run.window, max(self.clock(), run.window_end_at))
        interval = await send_interval(self.accounts, run.account_id)

        def change(message: OutboxMessage, place: int) -> OutboxMessage | None:
            if message.next_attempt_at is None or message.send_by == next_window.send_by:
                return None  # parked, or moved already
            return message.deferred(to=due_at(place, next_window.to, interval), send_by=next_window.send_by)

        return next_window.window_end if await self._each(run, change, may_go_on) else None

    async def park(self, run: Run, may_go_on: MayGoOn) -> bool:
        return await self._each(
            run, lambda message, _: None if message.next_attempt_at is None else message.parked(), may_go_on
        )

    async def bring_back(self, run: Run, may_go_on: MayGoOn, database_time: Clock) -> bool:
        start = opening_before(run.window, run.window_end_at, database_time())
        interval = await send_interval(self.accounts, run.account_id)
        send_by = last_moment(run.window_end_at)
        at_commit: set[str] = set()

        def change(message: OutboxMessage, place: int) -> OutboxMessage | None:
            if message.next_attempt_at is not None:
                return None
            due = in_the_queue(due_at(place, start, interval), start, database_time())
            if isinstance(due, ServerTime):
                at_commit.add(message.request_id)
                due = start
            return message.unparked(at=due, send_by=send_by)

        return await self._each(run, change, may_go_on, at_commit=at_commit)

    async def _each(
        self,
        run: Run,
        change: Change,
        may_go_on: MayGoOn,
        status: OutboxStatus = OutboxStatus.QUEUED,
        at_commit: Collection[str] = (),
    ) -> bool:
        after: str | None = None
        place = 0
        while page := await self.messages.of_run(run.run_id, status, PAGE, after):
            changes = []
            for stored in page:
                message = stored.message
                if isinstance(message, InvalidMessage):
                    await refuse(self.messages, stored, message.error(self.clock()))
                elif (new := change(message, place)) is not None:
                    changes.append((stored, new))
                    place += 1
            if not may_go_on():
                return False
            for stored in await self.messages.move(changes, at_commit):
                await refuse(self.messages, stored, unwritable(stored.valid, self.clock()))
            after = page[-1].request_id
        return may_go_on()


def _unwanted(message: OutboxMessage) -> OutboxMessage | None:
    return None if message.cancel_requested else replace(message, cancel_requested=True)


def _ended(message: OutboxMessage, now: datetime) -> OutboxMessage | None:
    ending = ending_of(message, now)
    return ending.message if isinstance(ending, Cancel | Skip | Defer) else None
