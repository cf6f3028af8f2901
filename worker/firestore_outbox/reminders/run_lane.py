"""The handler of `run` lanes: one step after the other, as reminders/run.py says, until the run can only wait."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, assert_never

from firestore_outbox.accounts.account import Account
from firestore_outbox.accounts.devices import Devices
from firestore_outbox.accounts.store import AccountStore
from firestore_outbox.accounts.window import next_open
from firestore_outbox.clock import Clock
from firestore_outbox.firestore.writes import DELETE
from firestore_outbox.lane.holder import Holder
from firestore_outbox.lane.ref import notify_lane, outbox_lane
from firestore_outbox.lane.state import Later, More, Nothing, Work
from firestore_outbox.lane.wake import Waker
from firestore_outbox.reminders import run as steps
from firestore_outbox.reminders.asked import AskedOfRuns
from firestore_outbox.reminders.expand import Expand
from firestore_outbox.reminders.looks import SECOND_LOOK, SOON
from firestore_outbox.reminders.refresh import Refresh, Refreshed
from firestore_outbox.reminders.request_store import marked_since
from firestore_outbox.reminders.run import TRANSITIONS, Command, Run, RunEvent, RunStatus, next_step, paused_sentence
from firestore_outbox.reminders.store import RunStore, StoredRun
from firestore_outbox.reminders.summary import Summary
from firestore_outbox.reminders.window_end import WindowEnd
from firestore_outbox.reminders.withdraw import Clear
from firestore_outbox.transitions import after


@dataclass(frozen=True, slots=True)
class RunHandler:
    runs: RunStore
    expand: Expand
    clear: Clear
    summary: Summary
    refresh: Refresh
    accounts: AccountStore
    devices: Devices
    waker: Waker
    window_end: WindowEnd
    asked: AskedOfRuns
    clock: Clock

    async def run(self, holder: Holder) -> Work:
        while holder.may_start() and not holder.must_yield():
            stored = await self.runs.run(holder.ref.key)
            if stored is None:
                return Nothing()
            holder.account_id = stored.run.account_id
            if (since := marked_since(stored.data)) is not None:
                await self.asked.apply_next(stored, since)
                continue
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
                    await self._go_on_next_day(stored, window_end)
            case steps.ParkRest():
                if await self.clear.park(run, may_go_on):
                    if await self.summary.is_in_sight(run):
                        return Later(now + SOON)  # what is in flight, or in doubt, may come back to the queue
                    if not await self.summary.is_open(run):
                        return await self._ended(stored)
                    await self.runs.write(stored, await self._paused(stored))
            case steps.UnparkRest():
                if run.status is RunStatus.PAUSED:
                    # First of all: what comes back may be sent at once, and nothing of a paused run ever is.
                    await self.runs.write(stored, {"status": _after(run, RunEvent.RESUMED)})
                elif await self.clear.bring_back(run, may_go_on, holder.database_time):
                    await self.waker.wake(outbox_lane(run.account_id))
                    await self.runs.write(stored, {"requested": DELETE, "pausedBecause": DELETE})
            case steps.Look():
                return await self._look(stored)
            case _:
                assert_never(step)
        return None  # if the run was changed meanwhile, the next look does the same again

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
        return await self._ended(stored)

    async def _ended(self, stored: StoredRun) -> Work | None:
        """None: the run was changed meanwhile; look again."""
        if not await self._notifies(stored.run):
            return Nothing() if await self.summary.end(stored, notify=False) else None
        if not await self.summary.end(stored, notify=True):
            return None
        await self.waker.wake(notify_lane(stored.run.account_id))
        return Nothing()

    async def _go_on_next_day(self, stored: StoredRun, window_end: datetime) -> None:
        run = stored.run
        notifies = await self._notifies(run)
        told = [await self.summary.window_closed(run, next_open(run.window, self.clock()))] if notifies else []
        await self.runs.write(stored, {"windowEndAt": window_end}, told)
        await self.window_end.announce(run, window_end)
        if notifies:
            await self.waker.wake(notify_lane(run.account_id))

    async def _notifies(self, run: Run) -> bool:
        """Whether the account has a webhook, or a member of it a device. If so, its lane looks for notifications soon,
        even if this process dies before it can wake the lane."""
        account = await self.accounts.read(run.account_id)
        if not isinstance(account, Account):
            return False
        if account.notify_url is None and not await self.devices.any(run.account_id):
            return False
        await self.waker.wake(notify_lane(run.account_id), self.clock() + SECOND_LOOK)
        return True

    async def _paused(self, stored: StoredRun) -> dict[str, Any]:
        """Nothing of it is in flight, so its counts stay as they are now."""
        counted = await self.refresh.counted(stored, await self.summary.counts(stored.run))
        waits = [paused_sentence(stored.run)]
        status = _after(stored.run, RunEvent.PAUSED)
        return {**counted, "status": status, "requested": DELETE, "waitsFor": waits, "rate": DELETE}

    async def _pause_itself(self, stored: StoredRun, refreshed: Refreshed) -> None:
        """As if a person had asked for it, with the reason. A race is lost to the person who changed the run."""
        run, because = stored.run, refreshed.pause or ""
        notifies = await self._notifies(run)
        told = [await self.summary.paused_itself(run, because)] if notifies else []
        fields = {**refreshed.fields, "requested": Command.PAUSE.value, "pausedBecause": because}
        if await self.runs.write(stored, fields, told) and notifies:
            await self.waker.wake(notify_lane(run.account_id))

    async def _look(self, stored: StoredRun) -> Work | None:
        run = stored.run
        if run.status is RunStatus.PAUSED:
            return Later(run.window_end_at + SECOND_LOOK)
        left = await self.summary.queued(run)
        if not left and not await self.summary.is_in_sight(run):
            return await self._ended(stored)
        refreshed = await self.refresh(stored, left)
        if refreshed.pause is not None:
            await self._pause_itself(stored, refreshed)
            return None
        if not await self.runs.write(stored, refreshed.fields):
            return None
        return Later(min(refreshed.at, run.window_end_at + SECOND_LOOK))  # the window's end has a task of its own


def _after(run: Run, event: RunEvent) -> str:
    return after(TRANSITIONS, run.status, event).value
