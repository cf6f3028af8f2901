"""A reminder fires: the handler of `reminder` lanes.

The run and the mark that the reminder has fired are one commit, so a fire happens once. The run's lane is woken twice:
of a look half a minute later before the commit, and of the run itself after it. A crash in between leaves the first.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import assert_never

from firestore_outbox import log
from firestore_outbox.accounts.window import window_end_at
from firestore_outbox.clock import Clock
from firestore_outbox.firestore.gateway import Snapshot
from firestore_outbox.firestore.writes import DELETE
from firestore_outbox.lane.holder import Holder
from firestore_outbox.lane.ref import run_lane
from firestore_outbox.lane.state import Later, More, Nothing, Work
from firestore_outbox.lane.wake import Waker
from firestore_outbox.reminders.asked import AskedOfReminders
from firestore_outbox.reminders.calendar import InvalidSchedule, calendar_of
from firestore_outbox.reminders.looks import SECOND_LOOK, SOON, RandomId
from firestore_outbox.reminders.reminder import (
    LATE,
    Calendar,
    Fire,
    InvalidReminder,
    Over,
    PassOver,
    Reminder,
    SleepUntil,
    due,
    parse_reminder,
)
from firestore_outbox.reminders.reminder_states import TRANSITIONS, ReminderEvent, ReminderStatus
from firestore_outbox.reminders.request_store import marked_since
from firestore_outbox.reminders.run import Run, run_id_of
from firestore_outbox.reminders.store import INCOMPLETE, RunStore, StoredReminder
from firestore_outbox.transitions import after


@dataclass(frozen=True, slots=True)
class ReminderHandler:
    runs: RunStore
    waker: Waker
    clock: Clock
    random_id: RandomId
    asked: AskedOfReminders

    async def run(self, holder: Holder) -> Work:
        while holder.may_start():
            found = await self.runs.reminder_document(holder.ref.key)
            if found is None:
                return Nothing()
            if (since := marked_since(found.data)) is not None:
                if await self.asked.apply_next(found, since):
                    continue
                return Later(self.clock() + SOON)
            reminder = parse_reminder(found.id, found.data)
            if isinstance(reminder, InvalidReminder):
                return await self._cannot_fire(found, reminder)
            holder.account_id = reminder.account_id
            if reminder.status is not ReminderStatus.ACTIVE or found.data.get(INCOMPLETE):
                return Nothing()
            work = await self._turn(found, StoredReminder(reminder, found.version))
            if work is not None:
                return work
        return More()

    async def _cannot_fire(self, found: Snapshot, why: InvalidReminder) -> Work:
        """Say so in the document, for the app that wrote it. A write that repairs it wakes the lane."""
        log.reminder_invalid(why.account_id, found.id, str(why))
        problem = " ".join(why.sentences)
        if found.data.get("problem") != problem:
            await self.runs.change_reminder(found, {"problem": problem})
        return Nothing()

    async def _turn(self, found: Snapshot, stored: StoredReminder) -> Work | None:
        """None: look again, something was written."""
        reminder = stored.reminder
        try:
            calendar = calendar_of(reminder.schedule, reminder.window.zone)
        except InvalidSchedule as error:
            why = InvalidReminder(reminder.reminder_id, (f"schedule: {error}.",), reminder.account_id)
            return await self._cannot_fire(found, why)
        decision = due(reminder, calendar, self.clock())
        match decision:
            case Fire(at=at):
                await self._fire(stored, calendar, at)
                return None
            case PassOver(to=to):
                following = calendar(to)
                fields = {"lastFireAt": to, "nextFireAt": DELETE if following is None else following}
                await self.runs.set_reminder(stored, fields)
                return None
            case SleepUntil(at=at):
                if found.data.get("nextFireAt") is None and not await self.runs.change_reminder(
                    found, {"nextFireAt": at, "problem": DELETE}
                ):
                    return None
                return Later(at)
            case Over():
                ended = after(TRANSITIONS, stored.reminder.status, ReminderEvent.RUN_OUT)
                await self.runs.set_reminder(stored, {"status": ended.value})
                return Nothing()
            case _:
                assert_never(decision)

    async def _fire(self, stored: StoredReminder, calendar: Calendar, at: datetime) -> None:
        run = new_run(stored.reminder, at, self.clock(), seed=self.random_id())
        await self.waker.wake(run_lane(run.run_id), self.clock() + SECOND_LOOK)
        await self.runs.fire(stored, run, calendar(at))  # a conflict is a person's edit, or our own lost answer
        await self.waker.wake(run_lane(run.run_id))


def new_run(reminder: Reminder, fire_at: datetime, now: datetime, *, seed: str) -> Run:
    """Its window is that of the day it fires for, even if that has closed; one that was missed goes out in today's."""
    at = fire_at if now - fire_at <= LATE else now
    return Run(
        run_id=run_id_of(reminder.reminder_id, fire_at),
        account_id=reminder.account_id,
        parts=reminder.parts,
        window=reminder.window,
        on_window_end=reminder.on_window_end,
        fire_at=fire_at,
        reminder_id=reminder.reminder_id,
        is_personal=reminder.is_personal,
        category=reminder.category,
        seed=seed,
        window_end_at=window_end_at(reminder.window, at),
    )
