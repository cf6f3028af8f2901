"""The requests of tasks that a process has open, and the lanes that run under them.

Cloud Run gives a process its processor while a request is open, and Cloud Tasks limits how many are open at once. A
lane that waits for its pace may run for minutes. If each held a request, a thousand busy lanes would hold a thousand of
them, and an idle account's task would wait behind them. So a process keeps one request open for all its lanes: the
**carrier**. Every other request is answered when its lane ends, or after `ANSWER_AFTER`, and the lane goes on under the
carrier. Requests that are open then follow the instances, not the lanes.

A lane ends when the last carrier does. A carrier's time counts from the beginning of its request, whatever the lane
waited for before it was acquired. When a carrier has used up most of its time, the next request that is not
answered early becomes one, and the old one is answered.

What a crash leaves: a lane whose task was answered has no other task. Its lease ends, and the sweep finds it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta

from firestore_outbox.clock import Clock
from firestore_outbox.lane.engine import Failed, LaneEngine, NotHeld, Ran
from firestore_outbox.lane.ref import LaneRef

ANSWER_AFTER = timedelta(seconds=1)
"""A lane that takes longer goes on under the carrier. Most lanes end sooner, and their task learns how."""
LEAST_LEFT = 1 / 9
"""The share of a carrier's time that must be left for a lane to be left to it: a minute of nine."""


@dataclass(frozen=True, slots=True)
class Carried:
    """The lane runs on in this process, under another request."""


@dataclass(eq=False, slots=True)
class _Open:
    ends_at: datetime
    is_carrier: bool = False


class OpenRequests:
    def __init__(self, engine: LaneEngine, clock: Clock, *, longest: timedelta, most: int) -> None:
        """`most`: lanes without a request of their own; further ones keep theirs open."""
        self._engine = engine
        self._clock = clock
        self._longest = longest
        self._most = most
        self._open: set[_Open] = set()
        self._running: set[asyncio.Task[Ran | NotHeld | Failed]] = set()
        self._relieved = asyncio.Event()
        """Set when a new carrier begins: the one before may be answered."""

    @property
    def open(self) -> int:
        return len(self._open)

    @property
    def running(self) -> int:
        return len(self._running)

    async def run(self, ref: LaneRef) -> Ran | NotHeld | Failed | Carried:
        """What a task for a lane asks for. Raises what `LaneEngine.run` raises, unless the lane is carried by then."""
        request = _Open(self._clock() + self._longest)
        self._open.add(request)
        try:
            held = asyncio.Event()
            task = asyncio.create_task(self._engine.run(ref, ends_at=self._end, on_held=held.set))
            self._running.add(task)
            task.add_done_callback(self._ended)
            await asyncio.wait({task}, timeout=ANSWER_AFTER.total_seconds())
            await _either(held, {task})  # a lane that waits for a slot keeps its request: another worker may have one
            if not task.done() and (self._is_crowded() or not self._carriers(beside=request)):
                await self._carry(request, task)
            return task.result() if task.done() else Carried()
        finally:
            self._open.discard(request)

    async def _carry(self, request: _Open, own: asyncio.Task[Ran | NotHeld | Failed]) -> None:
        """Until nothing runs any more, or another request carries."""
        request.is_carrier = True
        self._relieved.set()
        self._relieved = asyncio.Event()
        # Two lanes can end in one step of the event loop. One that has ended but is still in `_running` must not be
        # waited for: the wait would return at once, again and again, and the loop would never get to remove it.
        while running := {task for task in self._running if not task.done()}:
            await _either(self._relieved, running)
            others = self._carriers(beside=request)
            if others and own.done():
                return
            if not self._is_crowded() and any(one.ends_at > request.ends_at for one in others):
                return

    def _carriers(self, *, beside: _Open) -> list[_Open]:
        """The other carriers that a lane can be left to."""
        least = self._clock() + self._longest * LEAST_LEFT
        return [one for one in self._open if one.is_carrier and one is not beside and one.ends_at > least]

    def _is_crowded(self) -> bool:
        return len(self._running) - len(self._open) >= self._most

    def _end(self) -> datetime:
        """When the lanes of this process end: with the last of the open requests."""
        return max((one.ends_at for one in self._open), default=self._clock())

    def _ended(self, task: asyncio.Task[Ran | NotHeld | Failed]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # looked at: the engine has logged it, and the request may be answered already


async def _either(event: asyncio.Event, tasks: set[asyncio.Task[Ran | NotHeld | Failed]]) -> None:
    """Until the event is set, or one of the tasks has ended."""
    if event.is_set() or any(task.done() for task in tasks):
        return
    waiting = asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait({waiting, *tasks}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
