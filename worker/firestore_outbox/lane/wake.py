"""Waking a lane: the change to its document, and the task that follows from it.

Many events for one lane come at once when a client writes many messages. They are joined: while a wake of a lane is
under way in this process, all that come in the meantime become one more wake behind it. A wake that began after a
document was committed serves that document, so nothing is lost, no time is added, and a burst costs a wake or two.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import assert_never

from firestore_outbox.clock import Clock
from firestore_outbox.firestore.compare_and_set import AGAIN, Again
from firestore_outbox.lane.ref import LaneRef
from firestore_outbox.lane.state import NO_DEBOUNCE, Debounce, Lane, Marked, Orphaned, Queued, Served, wake, wake_later
from firestore_outbox.lane.store import LaneStore
from firestore_outbox.lane.tasks import Tasks
from firestore_outbox.lane.transitions import LaneState

Adapt = Callable[[str, Debounce], Awaitable[Debounce]]
"""The debounce of a kind under the pressure of the moment."""
LANE_TASK = "/tasks/lane"


class Waker:
    def __init__(
        self,
        lanes: LaneStore,
        tasks: Tasks,
        clock: Clock,
        debounces: Mapping[str, Debounce] | None = None,
        adapt: Adapt | None = None,
    ) -> None:
        """`adapt` is asked before each wake of a kind that has a debounce."""
        self._lanes = lanes
        self._tasks = tasks
        self._clock = clock
        self._debounces = debounces or {}
        self._adapt = adapt
        self._under_way: dict[LaneRef, asyncio.Task[None]] = {}
        self._waiting: dict[LaneRef, tuple[datetime | None, asyncio.Future[None]]] = {}

    async def wake(self, ref: LaneRef, at: datetime | None = None) -> None:
        """There is work, committed already: for now, or for `at`. Returns when the lane and its task know."""
        if ref not in self._under_way:
            self._start(ref, at)
            await asyncio.shield(self._under_way[ref])
            return
        waiting = self._waiting.get(ref)
        if waiting is None:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting[ref] = (at, future)
        else:
            earlier, future = waiting
            self._waiting[ref] = (None if earlier is None or at is None else min(earlier, at), future)
        await asyncio.shield(future)

    def _start(self, ref: LaneRef, at: datetime | None) -> asyncio.Task[None]:
        task = asyncio.create_task(self._wake_now(ref, at))
        self._under_way[ref] = task
        task.add_done_callback(lambda done: self._next(ref, done))
        return task

    def _next(self, ref: LaneRef, done: asyncio.Task[None]) -> None:
        del self._under_way[ref]
        if not done.cancelled():
            done.exception()  # looked at: whoever waits hears of it, and all may have given up waiting
        waiting = self._waiting.pop(ref, None)
        if waiting is None:
            return
        at, future = waiting
        self._start(ref, at).add_done_callback(lambda task: _pass_on(task, future))

    async def _wake_now(self, ref: LaneRef, at: datetime | None) -> None:
        tried_for: datetime | None = None
        debounce = self._debounces.get(ref.kind, NO_DEBOUNCE)
        if self._adapt is not None and ref.kind in self._debounces:
            debounce = await self._adapt(ref.kind, debounce)

        async def attempt() -> datetime | Again | None:
            """The time to enqueue a task for; None: it needs none."""
            nonlocal tried_for
            stored = await self._lanes.read(ref)
            now = self._clock()
            woken = wake(stored.lane, now, debounce) if at is None else wake_later(stored.lane, at, now, debounce)
            lane: Lane
            task_at: datetime | None
            match woken:
                case Served():
                    return tried_for  # perhaps by our own write, whose answer did not come
                case Queued(lane=lane, at=task_at):
                    pass
                case Orphaned(lane=lane):
                    task_at = now
                case Marked(lane=lane):
                    task_at = None
                case _:
                    assert_never(woken)
            tried_for = task_at
            return AGAIN if await self._lanes.write(ref, lane, stored) is None else task_at

        task_at = await self._lanes.compare_and_set(attempt)
        if task_at is not None:
            await self.enqueue(ref, task_at)

    async def hasten(self, ref: LaneRef, lane: Lane) -> None:
        """After a write that ended what the lane waited for: the task that a ready one has would come too late."""
        if lane.state is LaneState.READY:
            await self.enqueue(ref, lane.ready_at or self._clock())
        else:
            await self.wake(ref)

    async def enqueue(self, ref: LaneRef, at: datetime) -> None:
        """A task for a lane that is known to be ready, or to have work at `at`."""
        await self._tasks.enqueue(LANE_TASK, {"kind": ref.kind, "key": ref.key}, at)


def _pass_on(task: asyncio.Task[None], future: asyncio.Future[None]) -> None:
    if future.done():
        return
    if task.cancelled():
        future.cancel()
    elif (error := task.exception()) is not None:
        future.set_exception(error)
    else:
        future.set_result(None)
