"""Waking a lane: the change to its document, and the task that follows from it.

Many events for one lane come at once when a client writes many messages. They are joined (joined.py): a burst costs a
wake or two.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import assert_never

from firestore_outbox.clock import Clock
from firestore_outbox.firestore.compare_and_set import AGAIN, Again
from firestore_outbox.firestore.gateway import Conflict
from firestore_outbox.lane.joined import Joined
from firestore_outbox.lane.marks import Mark, both
from firestore_outbox.lane.ref import LaneRef
from firestore_outbox.lane.state import NO_DEBOUNCE, Debounce, Lane, Marked, Orphaned, Queued, Served, wake, wake_later
from firestore_outbox.lane.store import LaneStore, StoredLane
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
        self._joined = Joined(self._wake_now, _together)

    async def wake(
        self,
        ref: LaneRef,
        at: datetime | None = None,
        known: StoredLane | None = None,
        mark: Mark | None = None,
    ) -> None:
        """There is work, committed already: for now, or for `at`. Returns when the lane and its task know.

        `known` is the lane as it was read after the work was committed; None: it is read. `mark` is for the holder."""
        await self._joined(ref, _Wanted(at, known, mark))

    async def _wake_now(self, ref: LaneRef, wanted: _Wanted) -> None:
        at, known, mark = wanted.at, wanted.known, wanted.mark
        tried_for: datetime | None = None
        debounce = self._debounces.get(ref.kind, NO_DEBOUNCE)
        if self._adapt is not None and ref.kind in self._debounces:
            debounce = await self._adapt(ref.kind, debounce)

        async def attempt() -> datetime | Again | None:
            """The time to enqueue a task for; None: it needs none."""
            nonlocal tried_for, known
            stored, known = known or await self._lanes.read(ref), None
            now = self._clock()
            woken = (
                wake(stored.lane, now, debounce, mark)
                if at is None
                else wake_later(stored.lane, at, now, debounce, mark)
            )
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
            written = await self._lanes.try_write(ref, lane, stored)
            if not isinstance(written, Conflict):
                return task_at
            if written.maybe_ours:
                tried_for = task_at
            return AGAIN

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


@dataclass(frozen=True, slots=True)
class _Wanted:
    at: datetime | None
    known: StoredLane | None
    mark: Mark | None


def _together(one: _Wanted, other: _Wanted) -> _Wanted:
    """The earlier time; and what was read before the other's work was committed does not count."""
    at = None if one.at is None or other.at is None else min(one.at, other.at)
    return _Wanted(at, None, both(one.mark, other.mark))
