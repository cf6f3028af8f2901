"""The handler of `run` lanes: one step after the other, as reminders/run.py says, until the run can only wait."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import assert_never

from firestore_outbox.clock import Clock
from firestore_outbox.firestore.writes import DELETE
from firestore_outbox.lane.holder import Holder
from firestore_outbox.lane.ref import outbox_lane
from firestore_outbox.lane.state import Later, More, Nothing, Work
from firestore_outbox.lane.wake import Waker
from firestore_outbox.reminders import run as steps
from firestore_outbox.reminders.expand import Expand
from firestore_outbox.reminders.fire import SECOND_LOOK
from firestore_outbox.reminders.run import TRANSITIONS, Run, RunEvent, RunStatus, next_step
from firestore_outbox.reminders.store import RunStore, StoredRun, forecast_fields
from firestore_outbox.reminders.summary import Summary
from firestore_outbox.reminders.window_end import WindowEnd
from firestore_outbox.reminders.withdraw import Clear
from firestore_outbox.transitions import after

SOON = timedelta(seconds=5)
"""Until the next look while something of a run that is to end, or to pause, is still in flight."""
LEAST_REST = timedelta(minutes=1)
"""Between two looks at a run that goes its way; the outbox sends word when it has no more of it."""


@dataclass(frozen=True, slots=True)
class RunHandler:
    runs: RunStore
    expand: Expand
    clear: Clear
    summary: Summary
    waker: Waker
    window_end: WindowEnd
    clock: Clock

    async def run(self, holder: Holder) -> Work:
        while holder.may_start() and not holder.must_yield():
            stored = await self.runs.run(holder.ref.key)
            if stored is None:
                return Nothing()
            holder.account_id = stored.run.account_id
            work = await self._step(stored, holder)
            if work is not None:
                return work
        return More()

    async def _step(self, stored: StoredRun, holder: Holder) -> Work | None:
        """None: something was done; look again."""
        run, now, may_go_on = stored.run, self.clock(), holder.may_start
        step = next_step(run, now)
        match step:
            case steps.Rest():
                return Nothing()
            case steps.Expand():
                return await self._expanded(stored, holder)
            case steps.CancelRest():
                return await self._ended_or_soon(stored) if await self.clear.cancel(run, may_go_on) else None
            case steps.SkipRest():
                if not run.window_closed and await self.summary.is_open(run):
                    await self.runs.write(stored, {"windowClosed": True})
                    return None
                return await self._ended_or_soon(stored) if await self.clear.skip(run, may_go_on) else None
            case steps.DeferRest():
                if (window_end := await self.clear.defer(run, may_go_on)) is not None:
                    await self.runs.write(stored, {"windowEndAt": window_end})
                    await self.window_end.announce(run, window_end)
            case steps.ParkRest():
                if await self.clear.park(run, may_go_on):
                    if await self.summary.is_in_sight(run):
                        return Later(now + SOON)  # what is in flight, or in doubt, may come back to the queue
                    if not await self.summary.is_open(run):
                        return Nothing() if await self.summary.end(stored) else None
                    await self.runs.write(stored, {"status": _after(run, RunEvent.PAUSED), "requested": DELETE})
            case steps.UnparkRest():
                if run.status is RunStatus.PAUSED:
                    # First of all: what comes back may be sent at once, and nothing of a paused run ever is.
                    await self.runs.write(stored, {"status": _after(run, RunEvent.RESUMED)})
                elif await self.clear.bring_back(run, may_go_on, holder.database_time):
                    await self.waker.wake(outbox_lane(run.account_id))
                    await self.runs.write(stored, {"requested": DELETE})
            case steps.Look():
                return await self._look(stored)
            case _:
                assert_never(step)
        return None  # if somebody else wrote to the run, the next look does the same again

    async def _expanded(self, stored: StoredRun, holder: Holder) -> Work | None:
        """The first page and the last one wake the account's lane. The last one also announces the window's end."""
        was_last = await self.expand.page(stored, holder.database_time)
        if was_last:
            await self.window_end.announce(stored.run, stored.run.window_end_at)
        if was_last or stored.run.cursor is None:
            await self.waker.wake(outbox_lane(stored.run.account_id))
        return None

    async def _ended_or_soon(self, stored: StoredRun) -> Work | None:
        if await self.summary.is_open(stored.run):
            return Later(self.clock() + SOON)
        return Nothing() if await self.summary.end(stored) else None

    async def _look(self, stored: StoredRun) -> Work | None:
        run, now = stored.run, self.clock()
        if run.status is RunStatus.PAUSED:
            return Later(run.window_end_at + SECOND_LOOK)
        if not await self.summary.is_open(run):
            return Nothing() if await self.summary.end(stored) else None
        forecast = await self.summary.forecast(run)
        if _shown_forecast(stored) != (forecast.warning is None):
            await self.runs.write(stored, {"forecast": forecast_fields(forecast, now)})
        return Later(_next_look(run, forecast.look_at or forecast.ends_at, now))


def _after(run: Run, event: RunEvent) -> str:
    return after(TRANSITIONS, run.status, event).value


def _next_look(run: Run, ends_at: datetime | None, now: datetime) -> datetime:
    """When all should be sent; at the latest a little after the end of the window, which has a task of its own."""
    latest = run.window_end_at + SECOND_LOOK
    return min(latest, max(ends_at or latest, now + LEAST_REST))


def _shown_forecast(stored: StoredRun) -> bool | None:
    """Whether the run document says that all is well; None if it has no forecast yet."""
    shown = stored.data.get("forecast")
    return None if not isinstance(shown, Mapping) else shown.get("warning") is None
