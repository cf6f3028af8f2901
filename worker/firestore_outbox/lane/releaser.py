"""Releasing a held lane: the write, and the task that follows from it.

The release gives back what the holder reserved and did not use, and says when there is work again. A wake that came
meanwhile is never lost: the lane goes for another round, or back to the tail of the queue.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import assert_never

from firestore_outbox import log, metrics
from firestore_outbox.clock import Clock
from firestore_outbox.lane.holder import Holder, LaneLost
from firestore_outbox.lane.state import Idle, Lane, Lost, More, Requeued, Sleeping, Work, release
from firestore_outbox.lane.wake import Waker

Released = Requeued | Sleeping | Idle


class Releaser:
    def __init__(self, waker: Waker, clock: Clock) -> None:
        self._waker = waker
        self._clock = clock

    async def release(self, holder: Holder, work: Work, *, may_go_round: Callable[[], bool]) -> bool:
        """False: a wake came while we ran, no other lane waits for our place, and ours goes for another round.

        Raises `LaneLost`."""
        decision: Released | None = None
        # Kept over tries: the first may have been written, though its answer did not come, and with it the wake.
        took_wake = False

        def change(lane: Lane) -> Lane:
            nonlocal decision, took_wake
            now = self._clock()
            is_due = took_wake or (lane.rerun_requested and (lane.due_at is None or lane.due_at <= now))
            if is_due and not isinstance(work, More) and may_go_round():
                decision, took_wake = None, True
                return replace(holder.tidied(lane), rerun_requested=False, woken_at=None, due_at=None, failures=0)
            left = More() if took_wake else work
            released = release(holder.tidied(lane), holder.hold, now, left)
            if isinstance(released, Lost):
                raise LaneLost(holder.ref)
            decision = released
            return released.lane

        try:
            await holder.write(change)
        except LaneLost:
            # Perhaps to our own release, whose answer did not come. A hint too many is harmless, a missing one is not.
            if isinstance(decision, Requeued | Sleeping):
                await self._waker.enqueue(holder.ref, decision.at)
            raise
        if decision is None:
            holder.extend_with(None)
            return False
        await self.follow(holder, decision)
        return True

    async def follow(self, holder: Holder, released: Released) -> None:
        """What follows from a release that is written: a log line, and a task unless the lane has one."""
        match released:
            case Requeued(at=at) | Sleeping(at=at):
                log.lane_released(holder.ref, holder.account_id, type(released).__name__, at)
                if isinstance(released, Requeued) and holder.ref.is_for_user_code:
                    metrics.handler_run(holder.ref.kind, "requeued")
                    log.handler_requeued(holder.ref, holder.account_id, at)
                if not isinstance(released, Sleeping) or not released.has_task:
                    await self._waker.enqueue(holder.ref, at)
            case Idle():
                log.lane_released(holder.ref, holder.account_id, "Idle", None)
            case _:
                assert_never(released)
