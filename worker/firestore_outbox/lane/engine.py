"""The lane engine: acquire, let the handler work until dry or its turn ends, release or go round again.

It knows nothing about messages. A handler is a kind of lane: the outbox is one, inbound debounce another. Losing a race
for a lane is a normal answer. If a handler raises an error, its lane is not released: what it had in flight is in
doubt, and the next holder settles that first, when the backoff has passed. If Firestore or Cloud Tasks cannot be used,
that is not the handler's failure: the lease ends by itself, and the caller of `run` gets the error.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from random import Random
from typing import Protocol, runtime_checkable
from weakref import WeakValueDictionary

from firestore_outbox import log, metrics
from firestore_outbox.clock import Clock
from firestore_outbox.errors import Unavailable
from firestore_outbox.firestore.compare_and_set import AGAIN, Again
from firestore_outbox.firestore.gateway import Snapshot
from firestore_outbox.lane.holder import Holder, LaneLost, Preparation
from firestore_outbox.lane.ref import LaneRef
from firestore_outbox.lane.releaser import Releaser
from firestore_outbox.lane.slots import Slots
from firestore_outbox.lane.state import (
    Acquired,
    Busy,
    Failing,
    Lane,
    Lost,
    NotDue,
    Work,
    acquire,
    fail,
)
from firestore_outbox.lane.store import LaneStore, StoredLane
from firestore_outbox.lane.wake import Waker
from firestore_outbox.sending.backoff import Backoff

LONGEST_EARLY_WAIT = timedelta(seconds=5)
"""How long the engine waits for a lane that is not due yet."""
NEAR = timedelta(seconds=60)
"""A task that arrives at most this early may come from a machine with another clock."""


class Handler(Protocol):
    """What a kind of lane does with its turn."""

    async def run(self, holder: Holder) -> Work:
        """Works until nothing is left that can be done now; says what is left. Raises `LaneLost` to drop everything.

        When it returns, nothing of it is in flight.
        """


@runtime_checkable
class PreparedHandler(Handler, Protocol):
    """A handler that needs another document, read in the same call as the lane's."""

    def beside(self, ref: LaneRef) -> str:
        """The document's path."""

    def prepare(self, ref: LaneRef, beside: Snapshot | None) -> Preparation:
        """`beside` is None if the document does not exist."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    stored: StoredLane
    acquired: Acquired
    asked: float
    """The loop's time just before the lane was asked for."""
    preparation: Preparation | None


@dataclass(frozen=True, slots=True)
class Ran:
    """The lane was held and released."""


@dataclass(frozen=True, slots=True)
class NotHeld:
    """Another worker holds it, or it has nothing to do now."""

    until: datetime | None


@dataclass(frozen=True, slots=True)
class Failed:
    """The handler raised an error, which is logged and counted. A task comes for the next try."""

    retry_at: datetime


class LaneEngine:
    def __init__(
        self,
        handlers: Mapping[str, Handler],
        *,
        lanes: LaneStore,
        waker: Waker,
        owner: str,
        clock: Clock,
        lease: timedelta,
        quantum: timedelta,
        longest: timedelta,
        concurrency: int,
        backoff: Backoff,
        random: Random,
    ) -> None:
        """`backoff` is between the turns of a lane whose handler raises errors."""
        self.handlers = handlers
        self._backoff = backoff
        self._random = random
        self._lanes = lanes
        self._waker = waker
        self._owner = owner
        self._clock = clock
        self._lease = lease
        self._quantum = quantum
        self._longest = longest
        self._slots = Slots(concurrency)
        self._releaser = Releaser(waker, clock)
        self._acquiring: WeakValueDictionary[LaneRef, asyncio.Lock] = WeakValueDictionary()
        self._holders: set[Holder] = set()
        self._stopping = False
        self._under_way = 0
        """Runs that hold a lane, or are asking for one: a stop that came in between would leave it held."""
        self._all_ended: asyncio.Future[None] | None = None

    async def run(
        self, ref: LaneRef, *, ends_at: Callable[[], datetime] | None = None, on_held: Callable[[], None] | None = None
    ) -> Ran | NotHeld | Failed:
        """Acquire the lane and let its handler work. Returns when the lane is released, or is not ours to run.

        `ends_at` says when a run must end, whenever it is asked; None: `longest` after the lane was acquired. `on_held`
        is called when it is acquired.

        Raises `Unavailable`, and whatever else keeps the engine itself from acquiring the lane.
        """
        async with self._slots.one():
            if self._stopping:
                return NotHeld(self._clock())
            self._under_way += 1
            try:
                return await self._run(ref, ends_at, on_held)
            finally:
                self._under_way -= 1
                if not self._under_way and self._all_ended is not None and not self._all_ended.done():
                    self._all_ended.set_result(None)

    async def _run(
        self, ref: LaneRef, ends_at: Callable[[], datetime] | None, on_held: Callable[[], None] | None
    ) -> Ran | NotHeld | Failed:
        acquired = await self._acquire_when_due(ref)
        if isinstance(acquired, NotHeld):
            return acquired
        held = acquired.acquired
        holder = Holder(
            ref,
            acquired.stored,
            held.hold,
            asked=acquired.asked,
            lanes=self._lanes,
            clock=self._clock,
            quantum=self._quantum,
            ends_at=ends_at or (lambda: held.hold.asked_at + self._longest),
            slots=self._slots,
            woken_at=held.woken_at,
            ready_at=held.ready_at,
            preparation=acquired.preparation,
        )
        self._holders.add(holder)
        if on_held is not None:
            on_held()
        try:
            return await self._work(holder, self.handlers[ref.kind])
        finally:
            self._holders.discard(holder)

    async def _acquire_when_due(self, ref: LaneRef) -> _Held | NotHeld:
        """What is due in a moment is waited for. The task's sender has another clock: sent back at once, we would come
        again at once."""
        acquired = await self._acquire(ref)
        if isinstance(acquired, NotDue) and acquired.at is not None:
            early = acquired.at - self._clock()
            if early <= NEAR:
                async with self._slots.without():
                    await asyncio.sleep(max(0.0, min(early, LONGEST_EARLY_WAIT).total_seconds()))
                if self._stopping:
                    return NotHeld(self._clock())
                acquired = await self._acquire(ref)
        match acquired:
            case Busy(until=until):
                return NotHeld(until)
            case NotDue(at=at):
                if at is not None:
                    await self._waker.enqueue(ref, at)  # it moved: a debounce, or a hop to a far time
                return NotHeld(at)
            case _:
                return acquired

    async def _acquire(self, ref: LaneRef) -> _Held | Busy | NotDue:
        """One at a time for a lane: what is found under our name after a lost answer is then ours, and of this call."""
        async with self._acquiring.setdefault(ref, asyncio.Lock()):
            tried: _Held | None = None

            async def attempt() -> _Held | Busy | NotDue | Again:
                nonlocal tried
                stored, preparation = await self._read(ref)
                if tried is not None and _is_held(stored.lane, tried.acquired):
                    return replace(tried, stored=stored)
                asked = asyncio.get_running_loop().time()
                decision = acquire(stored.lane, self._owner, self._clock(), self._lease)
                if not isinstance(decision, Acquired):
                    return decision
                if preparation is not None:
                    decision = replace(decision, lane=preparation.extended(decision.lane, decision.hold))
                tried = _Held(stored=stored, acquired=decision, asked=asked, preparation=preparation)
                written = await self._lanes.write(ref, decision.lane, stored)
                if written is None:
                    return AGAIN
                log.lane_acquired(ref, ref.account_id, decision.entry, decision.hold.fence)
                return replace(tried, stored=written)

            return await self._lanes.compare_and_set(attempt)

    async def _read(self, ref: LaneRef) -> tuple[StoredLane, Preparation | None]:
        handler = self.handlers[ref.kind]
        if not isinstance(handler, PreparedHandler):
            return await self._lanes.read(ref), None
        stored, beside = await self._lanes.read_beside(ref, handler.beside(ref))
        return stored, handler.prepare(ref, beside)

    async def _work(self, holder: Holder, handler: Handler) -> Ran | Failed:
        failure: Exception | None = None
        renewal = asyncio.create_task(holder.keep_alive())
        if self._stopping:
            holder.stopping.set()
        try:
            while not await self._releaser.release(
                holder, await handler.run(holder), may_go_round=lambda: self._may_go_round(holder)
            ):
                holder.rounds += 1
                holder.woken_at = holder.ready_at = holder.preparation = None
        except LaneLost:
            pass
        except Unavailable as error:
            log.lane_failed(holder.ref, holder.account_id, error, failures=None, retry_at=None)
            raise
        except Exception as error:  # noqa: BLE001 - the handler may be the user's code
            failure = error
        finally:
            renewal.cancel()
            await asyncio.gather(renewal, return_exceptions=True)
        return Ran() if failure is None else await self._failed(holder, failure)

    async def _failed(self, holder: Holder, error: Exception) -> Ran | Failed:
        """Keeps the failure on the lane, where every worker and a restarted one finds it."""
        metrics.lane_failure(holder.ref.kind)
        failing: Failing | None = None
        jitter = self._random.random()

        def change(lane: Lane) -> Lane:
            nonlocal failing
            if failing is not None and lane.is_failing:
                return lane  # by our own write, whose answer did not come
            decision = fail(lane, holder.hold, self._clock(), backoff=self._backoff, jitter=jitter)
            if isinstance(decision, Lost):
                raise LaneLost(holder.ref)
            failing = decision
            return decision.lane

        try:
            await holder.write(change)
        except (LaneLost, Unavailable):
            log.lane_failed(holder.ref, holder.account_id, error, failures=None, retry_at=None)
            return Ran()  # another worker has it, or the lease ends by itself: the sweep finds it
        assert failing is not None, "write calls change"
        log.lane_failed(holder.ref, holder.account_id, error, failures=failing.lane.failures, retry_at=failing.retry_at)
        await self._waker.enqueue(holder.ref, failing.retry_at)
        return Failed(failing.retry_at)

    def _may_go_round(self, holder: Holder) -> bool:
        return holder.may_start() and not holder.must_yield() and not self._slots.waiting

    async def stop(self) -> None:
        """No new claims; returns when what is in flight has been completed and every lane is released."""
        self._stopping = True
        for holder in self._holders:
            holder.stopping.set()
            holder.changed.set()
        if self._under_way:
            self._all_ended = asyncio.get_running_loop().create_future()
            await self._all_ended

    @property
    def is_stopping(self) -> bool:
        return self._stopping

    @property
    def held(self) -> int:
        return len(self._holders)

    @property
    def waiting(self) -> int:
        return self._slots.waiting


def _is_held(lane: Lane, asked_for: Acquired) -> bool:
    return lane.lease is not None and lane.lease.belongs_to(asked_for.hold)
