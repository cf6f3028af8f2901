"""A reminder is changed: paused, resumed, edited, removed. By a person at once, or by its lane for a member's request.

Targets that stand in documents of their own are replaced in steps, with the reminder `incomplete` meanwhile, so it does
not fire with half of them. A run copies its targets while it expands; until it has, they are neither replaced nor
removed (`Busy`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from firestore_outbox.clock import Clock
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.compare_and_set import AGAIN, Again, Contended
from firestore_outbox.firestore.gateway import Snapshot
from firestore_outbox.firestore.writes import DELETE, WriteOp
from firestore_outbox.lane.ref import reminder_lane
from firestore_outbox.lane.wake import Waker
from firestore_outbox.reminders.add import fires_of
from firestore_outbox.reminders.check import Faulty
from firestore_outbox.reminders.edit import Edited, edited
from firestore_outbox.reminders.reminder import InvalidReminder, parse_reminder
from firestore_outbox.reminders.reminder_states import ReminderStatus
from firestore_outbox.reminders.request_store import RequestStore
from firestore_outbox.reminders.store import INCOMPLETE, RunStore


@dataclass(frozen=True, slots=True)
class Changed:
    status: ReminderStatus
    fires: tuple[datetime, ...]
    """The next few; none if it is paused or has ended."""


@dataclass(frozen=True, slots=True)
class Removed:
    pass


@dataclass(frozen=True, slots=True)
class NotChanged:
    sentence: str


@dataclass(frozen=True, slots=True)
class Busy:
    """A run is copying its targets: try again in a moment."""

    run_id: str


Result = Changed | Removed | NotChanged | Busy | Again
Step = Callable[[Snapshot, Sequence[WriteOp]], Any]


@dataclass(frozen=True, slots=True)
class ChangeReminder:
    runs: RunStore
    requests: RequestStore
    waker: Waker
    clock: Clock

    # --- by a person, at once

    async def set_status(self, reminder_id: str, status: ReminderStatus) -> Changed | NotChanged:
        """Paused, or active again; what was missed meanwhile is then treated as `missed` says."""
        result = await self._by_hand(reminder_id, lambda found, others: self.status_step(found, status, others))
        assert isinstance(result, Changed | NotChanged)
        return result

    async def edit(self, reminder_id: str, changes: Mapping[str, Any]) -> Changed | NotChanged:
        result = await self._by_hand(reminder_id, lambda found, others: self.edit_step(found, changes, others))
        assert isinstance(result, Changed | NotChanged)
        return result

    async def remove(self, reminder_id: str) -> Removed | NotChanged:
        """The reminder, its targets and its requests. Its runs stay, and go on."""
        result = await self._by_hand(reminder_id, lambda found, others: self.remove_step(found))
        assert isinstance(result, Removed | NotChanged)
        return result

    async def _by_hand(self, reminder_id: str, step: Step) -> Changed | Removed | NotChanged:
        async def attempt() -> Changed | Removed | NotChanged | Again:
            found = await self.runs.reminder_document(reminder_id)
            if found is None:
                return NotChanged(f"there is no reminder {reminder_id}")
            result: Result = await step(found, ())
            if isinstance(result, Busy):
                return NotChanged(f"its run {result.run_id} is taking over its targets; try again in a moment")
            return result

        try:
            changed: Changed | Removed | NotChanged = await self.runs.compare_and_set(attempt)
        except Contended:
            return NotChanged("the reminder is being changed by others; try again")
        if isinstance(changed, Changed):
            await self.waker.wake(reminder_lane(reminder_id))
        return changed

    # --- one try each, on the document as it was read. `others` are written in the same commit.

    async def status_step(self, found: Snapshot, status: ReminderStatus, others: Sequence[WriteOp] = ()) -> Result:
        if found.data.get(INCOMPLETE):
            return NotChanged("its targets are not all there; add it once more as it was, and it is completed")
        reminder = parse_reminder(found.id, found.data)
        if isinstance(reminder, InvalidReminder):
            return NotChanged(f"it cannot fire as it is: {reminder}")
        if reminder.status is ReminderStatus.ENDED:
            return NotChanged("the reminder has ended")
        is_new = reminder.status is not status
        if (is_new or others) and not await self.runs.change_reminder(found, {"status": status.value}, others):
            return AGAIN
        return Changed(status, fires_of(reminder, self.clock()) if status is ReminderStatus.ACTIVE else ())

    async def edit_step(self, found: Snapshot, changes: Mapping[str, Any], others: Sequence[WriteOp] = ()) -> Result:
        new = edited(found.id, found.data, changes, self.clock())
        if isinstance(new, Faulty):
            return NotChanged(" ".join(new.sentences))
        if found.data.get(INCOMPLETE) and new.targets is None:
            return NotChanged("its targets are not all there; add it once more as it was, and it is completed")
        if new.targets is not None and (busy := await self._busy(found)) is not None:
            return busy
        if not await self._write(found, new, others):
            return AGAIN
        return Changed(new.status, new.fires if new.status is ReminderStatus.ACTIVE else ())

    async def _write(self, found: Snapshot, new: Edited, others: Sequence[WriteOp]) -> bool:
        next_fire = new.fires[0] if new.fires else DELETE
        fields: dict[str, Any] = {**new.fields, "nextFireAt": next_fire, "problem": DELETE}
        if new.targets is None:
            return await self.runs.change_reminder(found, fields, others)
        fields |= {"targets": new.targets.inline, "targetCount": len(new.targets.targets)}
        fields["personal"] = True if new.targets.has_variables else DELETE
        return await self.runs.replace_targets(found, fields, new.targets.chunks, others)

    async def remove_step(self, found: Snapshot) -> Result:
        if (busy := await self._busy(found)) is not None:
            return busy
        await self.requests.delete_all(paths.reminder(found.id))
        return Removed() if await self.runs.remove_reminder(found) else AGAIN

    async def _busy(self, found: Snapshot) -> Busy | None:
        run_id = found.data.get("lastRunId")
        stored = await self.runs.run(run_id) if isinstance(run_id, str) else None
        is_copying = stored is not None and not stored.run.is_expanded and not stored.run.has_ended
        return Busy(str(run_id)) if is_copying else None
