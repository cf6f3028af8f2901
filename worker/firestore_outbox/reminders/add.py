"""A reminder is added: judged, written with its targets, and its lane told; paused, and let go on.

A second call with the same reminderId writes nothing. Whether it asks for the same is seen from a digest of what was
asked for, kept in the document: the worker moves its own fields, and thousands of targets are not to be read again. A
call that was cut short leaves a reminder that is `incomplete` and does not fire; the same call again completes it.

The lane is woken before, for a look a little later, and after; so a crash in between forgets nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from firestore_outbox.accounts.account import Account, sending
from firestore_outbox.accounts.store import AccountStore
from firestore_outbox.accounts.window import window_end_at
from firestore_outbox.clock import Clock
from firestore_outbox.firestore.gateway import Snapshot
from firestore_outbox.health.days import days_of, new_contacts_warning
from firestore_outbox.lane.ref import reminder_lane
from firestore_outbox.lane.wake import Waker
from firestore_outbox.messages.states import OutboxStatus
from firestore_outbox.messages.store import MessageStore
from firestore_outbox.reminders.calendar import InvalidSchedule
from firestore_outbox.reminders.check import NO_TIME_LEFT, Faulty, Judged, NewReminder, judge, next_fires
from firestore_outbox.reminders.forecast import Forecast, forecast, held_up, warned
from firestore_outbox.reminders.looks import SECOND_LOOK
from firestore_outbox.reminders.progress import estimated
from firestore_outbox.reminders.reminder import LATE, Reminder
from firestore_outbox.reminders.reminder_states import ReminderStatus
from firestore_outbox.reminders.run_queries import RunQueries
from firestore_outbox.reminders.store import INCOMPLETE, RunStore, StoredReminder, forecast_fields

A_CHUNK_TAKES = timedelta(seconds=1)
"""At the very most, to be written."""
MOST_OVERLAPS = 5
"""Runs and reminders of each kind that a warning names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """Stored, or there already with the same content."""

    reminder_id: str
    is_new: bool
    status: ReminderStatus
    targets: int
    fires: tuple[datetime, ...]
    """The next few; none if it has ended."""
    forecast: Forecast | None
    """Of the next run, as things are now."""


@dataclass(frozen=True, slots=True)
class Differs:
    """The reminderId belongs to another reminder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreseen:
    """What adding a reminder would do."""

    judged: Judged
    forecast: Forecast
    """Of its first run, as things are now."""
    is_suppressing: bool
    """Whether some address ever opted out of the account."""


@dataclass(frozen=True, slots=True)
class Remind:
    runs: RunStore
    messages: MessageStore
    accounts: AccountStore
    queries: RunQueries
    waker: Waker
    clock: Clock
    pause: timedelta = timedelta(0)
    """The average pause between two parts of a message."""

    async def __call__(self, new: NewReminder) -> Added | Faulty | Differs:
        judged = judge(new, self.clock())
        if isinstance(judged, Faulty):
            return judged
        account = await self.accounts.read(judged.reminder.account_id)
        if not isinstance(account, Account):
            return Faulty((account.sentence,))
        found = await self.runs.reminder_document(new.reminder_id)
        if found is not None:
            return await self._existing(judged, account, found)
        if not judged.fires:
            return Faulty((NO_TIME_LEFT,))
        return await self._add(new, judged, account)

    async def foresee(self, new: NewReminder) -> Foreseen | Faulty:
        """Judge it as adding does, and write nothing."""
        judged = judge(new, self.clock())
        if isinstance(judged, Faulty):
            return judged
        account = await self.accounts.read(judged.reminder.account_id)
        if not isinstance(account, Account):
            return Faulty((account.sentence,))
        if not judged.fires:
            return Faulty((NO_TIME_LEFT,))
        told = await self._forecast(judged.reminder, account, judged.fires[0], len(judged.targets))
        return Foreseen(judged=judged, forecast=told, is_suppressing=account.is_suppressing)

    async def _add(self, new: NewReminder, judged: Judged, account: Account) -> Added | Differs:
        documents, targets = judged.documents, len(judged.targets)
        lane, chunks = reminder_lane(new.reminder_id), documents.chunks
        told = await self._forecast(judged.reminder, account, judged.fires[0], targets)
        fields = {
            **judged.asked_for,
            "targets": documents.inline,
            "targetCount": targets,
            **({"personal": True} if documents.has_variables else {}),
            "status": ReminderStatus.ACTIVE.value,
            "createdBy": new.created_by,
            "digest": judged.digest,
            "nextFireAt": judged.fires[0],
            "forecast": forecast_fields(told, self.clock()),
        }
        await self.waker.wake(lane, self.clock() + SECOND_LOOK + A_CHUNK_TAKES * len(chunks))
        if not await self.runs.add_reminder(new.reminder_id, fields, chunks):
            found = await self.runs.reminder_document(new.reminder_id)  # others', or our own without an answer
            return Differs() if found is None else await self._existing(judged, account, found)
        await self.waker.wake(lane)
        return Added(
            reminder_id=new.reminder_id,
            is_new=True,
            status=ReminderStatus.ACTIVE,
            targets=targets,
            fires=judged.fires,
            forecast=told,
        )

    async def _existing(self, judged: Judged, account: Account, found: Snapshot) -> Added | Differs:
        if found.data.get("digest") != judged.digest:
            return Differs()
        if found.data.get(INCOMPLETE):
            await self.runs.complete_reminder(found.id, found.version, judged.documents.chunks)
        await self.waker.wake(reminder_lane(found.id))  # the first call may have ended before it could
        stored = await self.runs.reminder(found.id)
        if not isinstance(stored, StoredReminder):
            return Differs()  # it was spoilt or removed
        reminder, targets = stored.reminder, len(judged.targets)
        fires = () if reminder.status is ReminderStatus.ENDED else fires_of(reminder, self.clock())
        return Added(
            reminder_id=found.id,
            is_new=False,
            status=reminder.status,
            targets=targets,
            fires=fires,
            forecast=await self._forecast(reminder, account, fires[0], targets) if fires else None,
        )

    async def _forecast(self, reminder: Reminder, account: Account, fire_at: datetime, targets: int) -> Forecast:
        """Of what the account has waiting now, whatever is left when the reminder fires goes first."""
        now = self.clock()
        interval = None if account.cap is None else account.cap.interval
        each = estimated(interval, parts=len(reminder.parts), concurrency=account.concurrency, pause=self.pause)
        fired = fire_at if now - fire_at <= LATE else now
        start = max(fired, now)
        waiting = await self.messages.count_in_status(reminder.account_id, OutboxStatus.QUEUED) if interval else 0
        told = forecast(
            targets=targets,
            ahead=max(0, waiting - int((start - now) / interval)) if interval else 0,
            interval=each,
            window=reminder.window,
            window_end=window_end_at(reminder.window, fired),
            on_window_end=reminder.on_window_end,
            now=start,
            days=days_of(account.caps, account.tier, reminder.window.zone),
        )
        overlapping = await self._overlapping(reminder, start, told.ends_at)
        told = warned(told, new_contacts_warning(account.caps, targets))
        return warned(held_up(told, sending(account, now)), overlapping)

    async def _overlapping(self, reminder: Reminder, start: datetime, ends_at: datetime | None) -> str | None:
        """What else of the account is sent at the same time; None: nothing is known of."""
        under_way = await self.queries.under_way(reminder.account_id, MOST_OVERLAPS)
        others = await self.queries.firing(reminder.account_id, start, ends_at or window_end_at(reminder.window, start))
        firing = [f"the reminder {one}" for one in others if one != reminder.reminder_id][:MOST_OVERLAPS]
        named = [*(f"the run {one}" for one in sorted(under_way)), *firing]
        return f"{', '.join(named)} of this account may send at the same time, and shares its pace" if named else None


def fires_of(reminder: Reminder, now: datetime) -> tuple[datetime, ...]:
    try:
        return next_fires(reminder, now)
    except InvalidSchedule:
        return ()
