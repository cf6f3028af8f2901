"""How fast one turn may send: the account's own cap, what is left of its day, and the cap that all lanes share.

The account's piece of the line reaches to the end of the lease and moves with every renewal, so it costs no write of
its own. The shared cap is reserved in small blocks, and only when something could be sent at once: what is reserved and
not used is lost to everybody. A lane whose block lies ahead waits for it with the lane in hand; were it to come back
later, it would find the line as long as before.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from firestore_outbox.accounts.store import SharedLimit
from firestore_outbox.clock import Clock
from firestore_outbox.health.caps import DayCaps
from firestore_outbox.lane.holder import Holder
from firestore_outbox.lane.lease import Hold
from firestore_outbox.lane.pacing import (
    Allowance,
    Block,
    Cap,
    Gate,
    Taken,
    allowance,
    given_back,
    recovered,
    reserve_through,
    take,
)
from firestore_outbox.lane.state import Lane
from firestore_outbox.providers.outcome import Scope
from firestore_outbox.sending.day_budget import DayBudget
from firestore_outbox.sending.reservation import Reserved

SHARED_BLOCK = 3
"""How many sends of a shared cap are reserved at a time, at most."""
LONGEST_LINE = timedelta(seconds=60)
"""How far ahead a block of a shared cap may lie. Beyond that, come back later."""


class Pace:
    def __init__(
        self,
        holder: Holder,
        shared: SharedLimit | None,
        clock: Clock,
        reserved: Reserved | None = None,
        day: DayBudget | None = None,
    ) -> None:
        """`reserved` is written already; None: `follow` reserves. `day` is None for an account without caps."""
        self.rate_factor = holder.lane.rate_factor
        """Halved with the lane's on a throttle, a step up with accepted sends."""
        self.unstarted = 0
        """Claimed, and the call has not begun: they count against what may be claimed."""
        self._holder = holder
        self._shared_limit = shared
        self._clock = clock
        self._cap = None if reserved is None else reserved.cap
        self._own = None if reserved is None else reserved.block
        self._own_after_write: Block | None = None
        self._shared: Block | None = None
        self.day = day or DayBudget(holder, clock, None, None)
        if reserved is not None or self.day.caps is not None:
            holder.extend_with(self._extended)

    async def follow(self, cap: Cap | None, caps: DayCaps | None) -> None:
        """The account's pace and the caps of its day, at the beginning and whenever they were changed."""
        has_changed = cap != self._cap
        self._cap = cap
        self.day.follow(caps)
        self._holder.extend_with(None if cap is None and caps is None else self._extended)
        if has_changed and cap is not None:
            await self._extend()

    async def allowed(self, now: datetime) -> Allowance:
        """What the account's own cap allows."""
        allowed = allowance(self._own_gates(), now, waiting=self.unstarted)
        if Scope.ACCOUNT in allowed.reserve and allowed.sends == 0:
            await self._extend()
            allowed = allowance(self._own_gates(), now, waiting=self.unstarted)
        await self.day.fill_up(now, self.unstarted)
        return self.day.within(allowed, now, self.unstarted)  # meanwhile some have started

    async def allowed_by_all(self, sends: int, own: Allowance, now: datetime) -> Allowance:
        """The same with the shared cap, now that it is known how many could be sent."""
        if self._shared_limit is None:
            return own
        if self._shared is None or not self._shared_gate(self._shared).room(now):
            if self._is_ahead(now):
                return self._together(now)
            wanted = min(sends, SHARED_BLOCK)
            reserved = await self._shared_limit.reserve(wanted, now, self._shared, longest=LONGEST_LINE)
            if isinstance(reserved, datetime):
                return Allowance(sends=0, next_at=max(own.next_at, reserved))
            self._shared = reserved
        return self._together(now)

    def is_in_line(self, now: datetime) -> bool:
        """Whether a block of the shared cap is reserved for us and not yet come."""
        return self._shared_limit is not None and self._is_ahead(now)

    def spend(self) -> bool:
        """Takes one send from every cap at the moment it starts; False if one of them has none left."""
        now = self._clock()
        taken = take(self._gates(), now)
        if not isinstance(taken, Taken) or not self.day.spend(now):
            return False
        for gate in taken.gates:
            if gate.scope is Scope.ACCOUNT:
                self._own = gate.block
            else:
                self._shared = gate.block
        return True

    def accepted(self) -> None:
        if self.rate_factor < 1:
            self.rate_factor = recovered(self.rate_factor, self._cap)

    def throttled(self) -> None:
        self.rate_factor = min(self.rate_factor, self._holder.lane.rate_factor)

    def on(self, lane: Lane) -> Lane:
        """The lane with the present rate."""
        return replace(lane, rate_factor=self.rate_factor)

    def tidied(self, lane: Lane) -> Lane:
        """The lane as it is released: unused pace given back, the rate as it is now."""
        lane = self.day.tidied(replace(lane, rate_factor=min(1.0, self.rate_factor)))
        block = self._own_block()
        return lane if block is None else lane.reserved(given_back(lane.tat, block))

    # --- the account's

    async def _extend(self) -> None:
        await self._holder.write(lambda lane: self._extended(lane, self._holder.hold))

    def _extended(self, lane: Lane, hold: Hold) -> Lane:
        lane = self.day.extended(lane, self._clock())
        if self._cap is None:
            return lane
        self._own_after_write = reserve_through(
            self._cap,
            lane.tat,
            now=self._clock(),
            through=hold.until,
            mine=self._own_block(),
            rate_factor=self.rate_factor,
        )
        return lane.reserved(self._own_after_write.until)

    def _own_block(self) -> Block | None:
        """Ours, with what the last write of the lane added, once that is written."""
        added = self._own_after_write
        if added is not None and self._holder.lane.tat == added.until:
            tat = added.tat if self._own is None else max(self._own.tat, added.tat)
            self._own, self._own_after_write = Block(tat=tat, until=added.until), None
        return self._own

    def _own_gates(self) -> tuple[Gate, ...]:
        block = self._own_block()
        if self._cap is None or block is None:
            return ()
        return (Gate(scope=Scope.ACCOUNT, cap=self._cap, block=block, rate_factor=self.rate_factor),)

    # --- the shared one

    def _gates(self) -> tuple[Gate, ...]:
        own = self._own_gates()
        return own if self._shared is None else (*own, self._shared_gate(self._shared))

    def _shared_gate(self, block: Block) -> Gate:
        assert self._shared_limit is not None, "there is a block of it"
        return Gate(scope=Scope.APP, cap=self._shared_limit.cap, block=block)

    def _is_ahead(self, now: datetime) -> bool:
        return self._shared is not None and not self._shared_gate(self._shared).spent(now)

    def _together(self, now: datetime) -> Allowance:
        return self.day.within(allowance(self._gates(), now, waiting=self.unstarted), now, self.unstarted)
