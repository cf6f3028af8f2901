"""A lane in a holder's hands: its copy of the document, its lease, and the ways to write under it.

The copy is exact at `version`. Every write demands that version; when it is refused, the document is read again, and
if the lane is still ours the change is made on what was read. A holder that finds the lane gone stops (`lost`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Protocol

from firestore_outbox import log, metrics
from firestore_outbox.clock import Clock
from firestore_outbox.errors import StoreUnavailable
from firestore_outbox.firestore.compare_and_set import AGAIN, Again
from firestore_outbox.lane.lease import Hold
from firestore_outbox.lane.ref import LaneRef
from firestore_outbox.lane.slots import Slots
from firestore_outbox.lane.state import Lane, Lost, Renewed, Turn, renew, turn
from firestore_outbox.lane.store import LaneStore, StoredLane

Extend = Callable[[Lane, Hold], Lane]
"""What a handler changes of the lane whenever its lease moves: it reserves pace through the new end."""


class LaneLost(Exception):
    """Another holder has the lane, or may have."""


class Preparation(Protocol):
    """What a handler knows of its lane before it is held, from a document read beside the lane's."""

    def extended(self, lane: Lane, hold: Hold) -> Lane:
        """The lane as the acquiring write is to make it. May be asked for more than once; the last one counts."""


class Holder:
    def __init__(
        self,
        ref: LaneRef,
        stored: StoredLane,
        hold: Hold,
        *,
        asked: float,
        lanes: LaneStore,
        clock: Clock,
        quantum: timedelta,
        ends_at: Callable[[], datetime],
        slots: Slots,
        woken_at: datetime | None = None,
        ready_at: datetime | None = None,
        preparation: Preparation | None = None,
    ) -> None:
        """`asked` is the loop's time just before the lane was asked for."""
        self.woken_at = woken_at
        """When the first wake of the burst came that this run serves; None: a takeover, or another round."""
        self.ready_at = ready_at
        """When the lane became ready; None as above."""
        self.preparation = preparation
        """What the handler prepared before the lane was acquired; None: nothing, or another round."""
        self.rounds = 0
        """How often the lane went for another round, because a wake came while it ran."""
        self.ref = ref
        self.hold = hold
        self.started_at = hold.asked_at
        self._asked = asked
        self.stopping = asyncio.Event()
        """The worker is shutting down: start nothing new."""
        self.changed = asyncio.Event()
        """Set whenever something happened that a waiting handler should look at."""
        self._stored = stored
        self._heard = _Heard(stored)
        self._lanes = lanes
        self._clock = clock
        self._quantum = quantum
        self._ends_at = ends_at
        self._slots = slots
        self._writing = asyncio.Lock()
        self._lost = False
        self._extend: Extend | None = None
        self.tidied: Callable[[Lane], Lane] = lambda lane: lane
        self.counted: Callable[[Lane], Lane] = lambda lane: lane
        self.account_id = ref.account_id
        """For log lines. If the lane's key names no account, the handler sets it when it has read whose lane it is."""

    @property
    def lane(self) -> Lane:
        return self._stored.lane

    @property
    def stored(self) -> StoredLane:
        """The lane as it was last read or written, with its version."""
        return self._stored

    @property
    def lanes_waiting(self) -> int:
        """Lanes that wait for a place on this worker."""
        return self._slots.waiting

    def extend_with(self, extend: Extend | None) -> None:
        self._extend = extend

    def tidy_with(self, tidied: Callable[[Lane], Lane]) -> None:
        """The handler's last change to the lane when it is released. May be asked for more than once."""
        self.tidied = tidied

    def count_with(self, counted: Callable[[Lane], Lane]) -> None:
        """What the handler adds to every write that changes the lane, and never writes for its own sake."""
        self.counted = counted

    def may_start(self) -> bool:
        """Whether a provider call begun now would end under this lease.

        Both the clock on the wall and the time that went by must agree: the former may be set back, the latter may
        stand still while a machine is suspended.
        """
        if self._lost or self.stopping.is_set() or not self.hold.may_start(self._clock()):
            return False
        return _loop_time() - self._asked < (self.hold.stop_at - self.hold.asked_at).total_seconds()

    def must_yield(self) -> bool:
        """The quantum is used up and another lane waits, or the run has lasted as long as a run may."""
        now = self._clock()
        if now >= self.ends_at:
            return True
        waiting = self._slots.waiting
        return turn(started_at=self.started_at, now=now, quantum=self._quantum, lanes_waiting=waiting) is Turn.YIELD

    @property
    def ends_at(self) -> datetime:
        """When this run ends, whether another lane waits or not."""
        return self._ends_at()

    # --- writes under the lease

    async def write(self, change: Callable[[Lane], Lane]) -> None:
        """Changes the lane document. Raises `LaneLost`, and `Contended` if other writers are faster each time."""

        async def attempt() -> Again | None:
            if self._lost:
                raise LaneLost(self.ref)
            new = change(self.lane)
            written = await self._lanes.write(self.ref, new if new == self.lane else self.counted(new), self._stored)
            if written is None:
                await self._read_again()
                return AGAIN
            self._store(written)
            return None

        async with self._writing:
            await self._lanes.compare_and_set(attempt)

    async def look(self) -> None:
        """Read the lane again, to see what wakes have marked. Raises `LaneLost`."""
        async with self._writing:
            if not self._lost:
                await self._read_again()

    async def _read_again(self) -> None:
        stored = await self._lanes.read(self.ref)
        lease = stored.lane.lease
        if lease is None or not lease.belongs_to(self.hold):
            self._lost = True
            self.changed.set()
            log.lane_lost(self.ref, self.account_id, self.hold.fence)
            metrics.lease_lost()
            raise LaneLost(self.ref)
        self._store(stored)

    def _store(self, stored: StoredLane) -> None:
        self._stored = stored
        self._heard = max(self._heard, _Heard(stored), key=_Heard.time)

    def database_time(self) -> datetime:
        """Lower bound on the database's current time, whatever our clock says."""
        return self._heard.time()

    # --- renewal

    async def keep_alive(self) -> None:
        """Renews until cancelled. When it cannot, the lease runs out, and `may_start` says so in time."""
        while not self._lost:
            renew_after = (self.hold.renew_at() - self.hold.asked_at).total_seconds()
            await asyncio.sleep(max(0.0, self._asked + renew_after - _loop_time()))
            with suppress(StoreUnavailable):
                await self._renew()

    async def _renew(self) -> None:
        asked_at, asked = self._clock(), _loop_time()
        renewed: Renewed | None = None

        def change(lane: Lane) -> Lane:
            nonlocal renewed
            decision = renew(lane, self.hold, asked_at)
            if isinstance(decision, Lost):
                raise LaneLost(self.ref)
            renewed = decision
            return decision.lane if self._extend is None else self._extend(decision.lane, decision.hold)

        try:
            await self.write(change)
        except LaneLost:
            self._lost = True
            self.changed.set()
            return
        assert renewed is not None, "write calls change"
        self.hold, self._asked = renewed.hold, asked
        self.changed.set()

    def next_wait(self, until: datetime | None) -> float | None:
        """Seconds until `until`; None for no such time."""
        return None if until is None else max(0.0, (until - self._clock()).total_seconds())

    async def wait(self, until: datetime | None) -> None:
        """Until something changed, or that time has come."""
        if not self.changed.is_set():
            async with self._slots.without():
                with suppress(TimeoutError):
                    async with asyncio.timeout(self.next_wait(until)):
                        await self.changed.wait()
        self.changed.clear()


class _Heard:
    """A time that the database told, and when we heard it."""

    def __init__(self, stored: StoredLane) -> None:
        self._told = stored.written_at
        self._at = _loop_time()

    def time(self) -> datetime:
        return self._told + timedelta(seconds=_loop_time() - self._at)


def _loop_time() -> float:
    return asyncio.get_running_loop().time()
