"""How fast: caps, blocks reserved ahead, nested caps, and a rate that adapts. (GCRA.)

Picture a line of time on which each send occupies an interval of length T that no other send may touch. A send at
time t takes the next free one, [u, u+T) with u = max(t, tat); it may go if u - (burst-1)·T <= t; then tat = u + T.
The intervals do not overlap and each begins between t and t + (burst-1)·T. So any window of length W has at most
`burst - 1 + ceil(W/T)` sends.

The stored `tat` is authoritative. A holder reserves a `Block`, a piece of the line: it stores the block's end as the
new tat and then packs its sends into the block from memory. Two blocks never overlap, so the bound holds for any
number of holders. What falls behind the present is forfeited. A crash leaves an unused block: slower, never
faster, and nothing to repair.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from firestore_outbox.providers.outcome import Scope

MIN_RATE = 1 / 16
RECOVERY = timedelta(minutes=4)
"""How long the way from nothing back to the full rate takes, at the full rate."""
UNPACED_STEP = 0.01
"""What one accepted send restores where there is no pace to measure it by."""

_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cap:
    """A configured limit. Changes only with the configuration."""

    interval: timedelta
    """T: the share of time that one send takes."""
    burst: int = 1
    """How many may go at once after a rest."""

    @classmethod
    def per_minute(cls, sends: float, *, burst: int = 1) -> Cap | None:
        """None, no cap at all, for 0."""
        return cls.every(timedelta(minutes=1), sends, burst=burst)

    @classmethod
    def per_second(cls, sends: float, *, burst: int = 1) -> Cap | None:
        return cls.every(timedelta(seconds=1), sends, burst=burst)

    @classmethod
    def every(cls, period: timedelta, sends: float = 1, *, burst: int = 1) -> Cap | None:
        if sends <= 0 or not period:
            return None
        microseconds = math.ceil(period / _MICROSECOND / sends)  # rounded up: never faster than configured
        return cls(interval=timedelta(microseconds=microseconds), burst=max(1, burst))

    def stretched(self, rate_factor: float) -> timedelta:
        """The interval of one send at a reduced rate."""
        return self.interval if rate_factor >= 1 else self.interval / max(rate_factor, MIN_RATE)

    @property
    def tolerance(self) -> timedelta:
        return self.interval * (self.burst - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A holder's piece of the line."""

    tat: datetime
    """The first free point in it. Moves with each send."""
    until: datetime
    """Its end, and the stored tat at the time it was reserved. Moves when the block is extended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """One cap as its holder sees it now."""

    scope: Scope
    cap: Cap
    block: Block
    rate_factor: float = 1.0
    """Changes on a throttle (halved) and with accepted sends (a step up)."""

    def next_at(self, now: datetime) -> datetime:
        """The earliest time one more may go, the end of the block aside."""
        return max(now, self.block.tat - self.cap.tolerance)

    def room(self, now: datetime) -> int:
        """How many may go at this moment."""
        first = max(now, self.block.tat)
        open_until = now + self.cap.tolerance
        if first > open_until:
            return 0
        interval = self.cap.stretched(self.rate_factor)
        return min((open_until - first) // interval + 1, max(self.block.until - first, timedelta(0)) // interval)

    def spent(self, now: datetime) -> bool:
        """Whether the block has no room for one more interval, so that the next send needs a new reservation."""
        start = max(self.next_at(now), self.block.tat)
        return start + self.cap.stretched(self.rate_factor) > self.block.until

    def after_send(self, now: datetime) -> Gate:
        tat = max(now, self.block.tat) + self.cap.stretched(self.rate_factor)
        return replace(self, block=replace(self.block, tat=tat))


def reserve(
    cap: Cap, stored: datetime | None, *, now: datetime, sends: int, mine: Block | None = None, rate_factor: float = 1.0
) -> Block:
    """Reserve room for `sends` from now on; the caller stores `.until` as the new tat, by compare-and-set on `stored`.

    A block of mine that is the last one reserved is extended, and what is left of it counts.
    """
    start = _start(stored, mine, now)
    return _block(start, start + cap.stretched(rate_factor) * max(sends, 1), stored)


def reserve_through(
    cap: Cap,
    stored: datetime | None,
    *,
    now: datetime,
    through: datetime,
    mine: Block | None = None,
    rate_factor: float = 1.0,
) -> Block:
    """Reserve up to a point in time, the end of a lease: no other holder could send before it. At least one send, also
    when time has passed until the reservation is written: a block of one interval would then be short by that time."""
    start = _start(stored, mine, now)
    return _block(start, max(through, start + 2 * cap.stretched(rate_factor)), stored)


def given_back(stored: datetime | None, mine: Block) -> datetime | None:
    """The tat to store on a clean release: without the unused end, if no other holder has reserved behind it."""
    return mine.tat if stored == mine.until else stored


def pushed(cap: Cap, stored: datetime | None, *, until: datetime) -> datetime:
    """The tat that lets nothing go before `until`: how a whole scope is paused."""
    tat = until + cap.tolerance
    return tat if stored is None else max(stored, tat)


def _start(stored: datetime | None, mine: Block | None, now: datetime) -> datetime:
    if stored is None:
        return now
    return max(now, mine.tat if mine is not None and mine.until == stored else stored)


def _block(start: datetime, end: datetime, stored: datetime | None) -> Block:
    return Block(tat=start, until=end if stored is None else max(end, stored))


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """What all caps together allow."""

    sends: int | None
    """How many may start now. None: as many as you like."""
    next_at: datetime
    """The earliest time one can start: now, if any may."""
    reserve: tuple[Scope, ...] = ()
    """Caps whose block is used up: reserve for these first, then ask again."""


@dataclass(frozen=True, slots=True)
class Taken:
    gates: tuple[Gate, ...]
    """Each of them with the send spent."""


def allowance(gates: Iterable[Gate], now: datetime, *, waiting: int = 0) -> Allowance:
    """One decision over all caps. `waiting` are claimed already, and not started yet."""
    sends: int | None = None
    next_at = now
    short: list[Scope] = []
    for gate in gates:
        room = gate.room(now)
        sends = room if sends is None else min(sends, room)
        if room == 0:
            next_at = max(next_at, gate.next_at(now))
        if gate.spent(now):
            short.append(gate.scope)
    return Allowance(sends=None if sends is None else max(0, sends - waiting), next_at=next_at, reserve=tuple(short))


def take(gates: Iterable[Gate], now: datetime) -> Taken | Allowance:
    """Spend one send on every cap, or on none of them. To be called at the moment the call starts."""
    gates = tuple(gates)
    allowed = allowance(gates, now)
    if allowed.sends == 0:
        return allowed
    return Taken(tuple(gate.after_send(now) for gate in gates))


def halved(rate_factor: float) -> float:
    """After a throttle."""
    return max(MIN_RATE, rate_factor / 2)


def recovered(rate_factor: float, cap: Cap | None, *, sends: int = 1) -> float:
    """After accepted sends: a step up for each, never above the configured pace."""
    step = UNPACED_STEP if cap is None else cap.interval / RECOVERY
    return min(1.0, rate_factor + step * sends)
