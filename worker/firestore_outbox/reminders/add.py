"""A reminder is added: judged, written with its targets, and its lane told; paused, and let go on.

A second call with the same reminderId writes nothing. Whether it asks for the same is told by a digest of what was
asked for, kept in the document: the worker moves its own fields, and thousands of targets are not to be read again. A
call that was cut short leaves a reminder that is `incomplete` and does not fire; the same call again completes it.

The lane is told before, of a look a little later, and after; so a crash in between forgets nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from firestore_outbox.accounts.account import Account, sending
from firestore_outbox.accounts.store import AccountStore
from firestore_outbox.accounts.window import window_end_at
from firestore_outbox.clock import Clock
from firestore_outbox.firestore.compare_and_set import AGAIN, Again, Contended
from firestore_outbox.firestore.gateway import Conflict, Snapshot
from firestore_outbox.lane.ref import reminder_lane
from firestore_outbox.lane.wake import Waker
from firestore_outbox.messages.store import MessageStore
from firestore_outbox.reminders.calendar import InvalidSchedule
from firestore_outbox.reminders.check import NO_TIME_LEFT, Faulty, Judged, NewReminder, judge, next_fires
from firestore_outbox.reminders.fire import SECOND_LOOK
from firestore_outbox.reminders.forecast import Forecast, forecast, held_up
from firestore_outbox.reminders.reminder import LATE, InvalidReminder, Reminder, parse_reminder
from firestore_outbox.reminders.reminder_states import ReminderStatus
from firestore_outbox.reminders.store import INCOMPLETE, RunStore, StoredReminder, forecast_fields

A_CHUNK_TAKES = timedelta(seconds=1)
"""At the very most, to be written."""


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


@dataclass(frozen=True, slots=True)
class Changed:
    status: ReminderStatus
    fires: tuple[datetime, ...]


@dataclass(frozen=True, slots=True)
class NotChanged:
    sentence: str


@dataclass(frozen=True, slots=True)
class Remind:
    runs: RunStore
    messages: MessageStore
    accounts: AccountStore
    waker: Waker
    clock: Clock

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

    async def _add(self, new: NewReminder, judged: Judged, account: Account) -> Added | Differs:
        lane, chunks, targets = reminder_lane(new.reminder_id), judged.chunks, len(judged.targets)
        told = await self._forecast(judged.reminder, account, judged.fires[0], targets)
        fields = {
            **judged.asked_for,
            "targets": judged.inline,
            "targetCount": targets,
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
            await self.runs.complete_reminder(found.id, found.version, judged.chunks)
        await self.waker.wake(reminder_lane(found.id))  # the first call may have ended before it could
        stored = await self.runs.reminder(found.id)
        if not isinstance(stored, StoredReminder):
            return Differs()  # somebody has spoilt it, or taken it away
        reminder, targets = stored.reminder, len(judged.targets)
        fires = () if reminder.status is ReminderStatus.ENDED else _fires(reminder, self.clock())
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
        fired = fire_at if now - fire_at <= LATE else now
        start = max(fired, now)
        waiting = await self.messages.count_waiting(reminder.account_id) if interval else 0
        told = forecast(
            targets=targets,
            ahead=max(0, waiting - int((start - now) / interval)) if interval else 0,
            interval=interval,
            window=reminder.window,
            window_end=window_end_at(reminder.window, fired),
            on_window_end=reminder.on_window_end,
            now=start,
        )
        return held_up(told, sending(account, now))

    async def set_status(self, reminder_id: str, status: ReminderStatus) -> Changed | NotChanged:
        """Paused, or active again; what was missed meanwhile is then treated as `missed` says."""

        async def attempt() -> Changed | NotChanged | Again:
            document = await self.runs.reminder_document(reminder_id)
            if document is None:
                return NotChanged(f"there is no reminder {reminder_id}")
            if document.data.get(INCOMPLETE):
                return NotChanged("its targets are not all there; add it once more as it was, and it is completed")
            reminder = parse_reminder(reminder_id, document.data)
            if isinstance(reminder, InvalidReminder):
                return NotChanged(f"it cannot fire as it is: {reminder}")
            if reminder.status is ReminderStatus.ENDED:
                return NotChanged("the reminder has ended")
            stored = StoredReminder(reminder, document.version)
            if reminder.status is not status and isinstance(
                await self.runs.set_reminder(stored, {"status": status.value}), Conflict
            ):
                return AGAIN
            return Changed(status, _fires(reminder, self.clock()) if status is ReminderStatus.ACTIVE else ())

        try:
            result: Changed | NotChanged = await self.runs.compare_and_set(attempt)
        except Contended:
            return NotChanged("the reminder is being changed by others; try again")
        if isinstance(result, Changed):
            await self.waker.wake(reminder_lane(reminder_id))
        return result


def _fires(reminder: Reminder, now: datetime) -> tuple[datetime, ...]:
    try:
        return next_fires(reminder, now)
    except InvalidSchedule:
        return ()
