"""Requests of members are carried out by the lane of their run or reminder, one at a time in the order of arrival."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, assert_never

from firestore_outbox import log
from firestore_outbox.clock import Clock
from firestore_outbox.firestore.compare_and_set import Again
from firestore_outbox.firestore.gateway import Snapshot
from firestore_outbox.lane.ref import reminder_lane, run_lane
from firestore_outbox.lane.wake import Waker
from firestore_outbox.reminders.change import Busy, Changed, ChangeReminder, NotChanged, Removed
from firestore_outbox.reminders.control import Control, NotTaken
from firestore_outbox.reminders.reminder_states import ReminderStatus
from firestore_outbox.reminders.request_store import RequestStore, outcome_of
from firestore_outbox.reminders.requests import (
    OF_REMINDERS,
    OF_RUNS,
    Asked,
    Outcome,
    Request,
    Unreadable,
    ignored_because,
    parse_request,
)
from firestore_outbox.reminders.run import Command, accepts
from firestore_outbox.reminders.store import RunStore, StoredRun


@dataclass(frozen=True, slots=True)
class Announce:
    """A new request: its run or reminder gets the mark, and its lane is woken."""

    requests: RequestStore
    waker: Waker

    async def request(self, collection: str, parent_id: str, request_id: str, created_at: object) -> None:
        """The event may come late and twice."""
        if collection not in ("runs", "reminders") or not isinstance(created_at, datetime):
            log.bad_task("a request that no lane can take")
            return
        if await self.requests.announce(f"{collection}/{parent_id}", request_id, created_at):
            await self.waker.wake(run_lane(parent_id) if collection == "runs" else reminder_lane(parent_id))

    async def reminder(self, reminder_id: str, data: Mapping[str, Any]) -> None:
        """Written by a client; whatever is wrong with it, its lane says so. One with a digest was added by the worker's
        own code, which wakes the lane itself."""
        if "digest" not in data:
            await self.waker.wake(reminder_lane(reminder_id))


@dataclass(frozen=True, slots=True)
class AskedOfRuns:
    runs: RunStore
    requests: RequestStore
    control: Control
    clock: Clock

    async def apply_next(self, stored: StoredRun, since: datetime) -> None:
        """The first that waits; without one, the mark is taken away. The caller reads the run again."""
        parent = f"runs/{stored.run.run_id}"
        waiting = await self.requests.waiting(parent, since)
        if waiting.first is None:
            await self.requests.clear(parent, stored.version)
            return
        request = parse_request(waiting.first.id, waiting.first.data, OF_RUNS)
        path, now = waiting.first.path, self.clock()
        if isinstance(request, Unreadable):
            await self.requests.write(outcome_of(path, Outcome.REFUSED, now, request.sentence))
        elif (late := ignored_because(request, waiting.applied)) is not None:
            await self.requests.write(outcome_of(path, Outcome.IGNORED, now, late))
        elif request.action is Asked.RETRY_FAILED:
            again = await self.control.retry_failed(stored.run.run_id)
            why = again.sentence if isinstance(again, NotTaken) else None
            await self.requests.write(outcome_of(path, Outcome.REFUSED if why else Outcome.APPLIED, now, why))
        else:
            command = Command(request.action.value)
            if (objection := accepts(stored.run, command)) is not None:
                await self.requests.write(outcome_of(path, Outcome.REFUSED, now, objection))
            else:
                applied = outcome_of(path, Outcome.APPLIED, now)
                await self.runs.write(stored, {"requested": command.value}, [applied])


@dataclass(frozen=True, slots=True)
class AskedOfReminders:
    requests: RequestStore
    change: ChangeReminder
    clock: Clock

    async def apply_next(self, found: Snapshot, since: datetime) -> bool:
        """As for runs. False: nothing can be done before a run has copied the targets."""
        waiting = await self.requests.waiting(found.path, since)
        if waiting.first is None:
            await self.requests.clear(found.path, found.version)
            return True
        path, now = waiting.first.path, self.clock()
        request = parse_request(waiting.first.id, waiting.first.data, OF_REMINDERS)
        if isinstance(request, Unreadable):
            return await self.requests.write(outcome_of(path, Outcome.REFUSED, now, request.sentence))
        if (late := ignored_because(request, waiting.applied)) is not None:
            return await self.requests.write(outcome_of(path, Outcome.IGNORED, now, late))
        result = await self._step(found, request, path)
        if isinstance(result, NotChanged):
            return await self.requests.write(outcome_of(path, Outcome.REFUSED, now, result.sentence))
        return not isinstance(result, Busy)

    async def _step(
        self, found: Snapshot, request: Request, path: str
    ) -> Changed | Removed | NotChanged | Busy | Again:
        applied = [outcome_of(path, Outcome.APPLIED, self.clock())]
        match request.action:
            case Asked.PAUSE:
                return await self.change.status_step(found, ReminderStatus.PAUSED, applied)
            case Asked.RESUME:
                return await self.change.status_step(found, ReminderStatus.ACTIVE, applied)
            case Asked.EDIT:
                return await self.change.edit_step(found, request.changes, applied)
            case Asked.REMOVE:
                return await self.change.remove_step(found)
            case Asked.CANCEL | Asked.RETRY_FAILED:
                raise AssertionError("refused when it was read")
            case _:
                assert_never(request.action)
