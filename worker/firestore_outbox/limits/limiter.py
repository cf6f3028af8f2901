"""One process's part in a shared limit: calls wait in a line of their own until a reserved block has room for them."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from datetime import datetime, timedelta
from random import Random

from firestore_outbox import log, metrics
from firestore_outbox.clock import Clock
from firestore_outbox.lane.pacing import Cap, Gate
from firestore_outbox.limits.line import DEFAULT_PAUSE, LONGEST_PAUSE, NotYet, Rate, next_line
from firestore_outbox.limits.store import BadLimit, LimitStore
from firestore_outbox.providers.outcome import Scope

CONFIGURATION_KEPT = timedelta(minutes=1)
"""How long a process goes by a configuration that it has read."""
_SECOND = timedelta(seconds=1)
_MINUTE = timedelta(minutes=1)
_SPREAD_SECONDS = 0.05
"""Instances that wait for the same moment ask at moments up to this far apart."""


class Limiter:
    def __init__(self, name: str, store: LimitStore, *, default: Rate | None, clock: Clock, random: Random) -> None:
        self.name = name
        self._store = store
        self._default = default
        self._clock = clock
        self._random = random
        self._caps: tuple[Cap, ...] = ()
        self._caps_until: datetime | None = None
        self._gates: dict[int, list[Gate]] = {}
        self._known: dict[int, datetime] = {}
        """Up to where each line was reserved when this process last looked."""
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._granted: deque[datetime] = deque()
        """The grants of the last second: what the next seconds may need."""
        self._throttles: deque[datetime] = deque()
        self._paused_until: datetime | None = None
        self._granting: asyncio.Task[None] | None = None
        self._reserving: asyncio.Task[None] | None = None

    async def acquire(self) -> None:
        """Return when one call may go. First come, first served within this process."""
        began = self._clock()
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        if self._granting is None or self._granting.done():
            self._granting = asyncio.create_task(self._grant_all())
        try:
            await turn
        finally:
            with suppress(ValueError):
                self._waiting.remove(turn)  # a caller that gave up
        metrics.limit_wait(self.name, (self._clock() - began).total_seconds())

    async def throttled(self, retry_after: timedelta | None = None) -> None:
        """The other side answered 429: nothing goes for that time, on any instance, and then at half of the rate."""
        now, pause = self._clock(), min(retry_after or DEFAULT_PAUSE, LONGEST_PAUSE)
        self._paused_until = max(self._paused_until or now, now + pause)
        self._throttles.append(now)
        caps = await self._lines(now)
        found = [
            await self._store.throttle(self.name, number, cap, now=now, pause=pause) for number, cap in enumerate(caps)
        ]
        factors = [factor for factor in found if factor is not None]
        self._gates.clear()  # with what a reservation brought that was under way
        metrics.limit_throttled(self.name)
        log.limit_throttled(self.name, pause.total_seconds(), min(factors, default=1.0))

    @property
    def throttles_of_the_last_minute(self) -> int:
        now = self._clock()
        while self._throttles and now - self._throttles[0] >= _MINUTE:
            self._throttles.popleft()
        return len(self._throttles)

    async def close(self) -> None:
        for task in (self._granting, self._reserving):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    # --- granting

    async def _grant_all(self) -> None:
        while self._waiting:
            try:
                await self._grant_one()
            except Exception as error:  # noqa: BLE001 - whatever it is, the callers that wait must hear of it
                while self._waiting:
                    turn = self._waiting.popleft()
                    if not turn.done():
                        turn.set_exception(error)

    async def _grant_one(self) -> None:
        now = self._clock()
        if self._paused_until is not None and now < self._paused_until:
            await asyncio.sleep((self._paused_until - now).total_seconds())
            return
        self._forget_spent(now)
        self._reserve_if_short(now)
        number, gate = min(
            ((number, gate) for number, gates in self._gates.items() for gate in gates[:1]),
            key=lambda one: one[1].next_at(now),
            default=(0, None),
        )
        if gate is None:
            assert self._reserving is not None, "without a block there is a reservation under way"
            await asyncio.shield(self._reserving)
        elif (wait := gate.next_at(now) - now) > timedelta(0):
            await self._wait(wait)
        else:
            self._gates[number][0] = gate.after_send(now)
            self._granted.append(now)
            while self._waiting:
                turn = self._waiting.popleft()
                if not turn.done():  # its caller may have given up
                    turn.set_result(None)
                    break
            self._reserve_if_short(now)

    async def _wait(self, time: timedelta) -> None:
        """Until then, or until there is another block, which may begin sooner."""
        if self._reserving is None or self._reserving.done():
            await asyncio.sleep(time.total_seconds())
        else:
            await asyncio.wait({self._reserving}, timeout=time.total_seconds())

    def _forget_spent(self, now: datetime) -> None:
        for number, gates in list(self._gates.items()):
            while gates and gates[0].spent(now):
                del gates[0]
            if not gates:
                del self._gates[number]

    # --- reserving

    def _reserve_if_short(self, now: datetime) -> None:
        if self._reserving is not None:
            if not self._reserving.done():
                return
            done, self._reserving = self._reserving, None
            if not done.cancelled():
                done.exception()  # looked at: without a block, the next reservation is waited for and raises its own
        while self._granted and now - self._granted[0] >= _SECOND:
            self._granted.popleft()
        held = sum(_calls_left(gate, now) for gates in self._gates.values() for gate in gates)
        if held < max(len(self._waiting), len(self._granted) / 2):
            calls = max(len(self._waiting) - held, 2 * len(self._granted), 1)
            self._reserving = asyncio.create_task(self._reserve(calls))

    async def _reserve(self, calls: int) -> None:
        """One block of the line that is free first. Waits for it if all are reserved too far ahead."""
        while True:
            now = self._clock()
            caps = await self._lines(now)
            ask_at = now + _SECOND
            numbers = list(range(len(caps)))
            self._random.shuffle(numbers)
            for number in next_line(self._known, numbers, now):
                now = self._clock()
                is_queued = any(gate.next_at(now) > now for gates in self._gates.values() for gate in gates[-1:])
                result = await self._store.reserve(
                    self.name, number, caps[number], now=now, calls=calls, is_queued=is_queued
                )
                if not isinstance(result, NotYet):
                    self._known[number] = result.block.until
                    metrics.limit_rate(self.name, result.factor * sum(1 / cap.interval.total_seconds() for cap in caps))
                    gate = Gate(
                        scope=Scope.APP, cap=caps[number], block=result.block, rate_factor=min(1.0, result.factor)
                    )
                    self._gates.setdefault(number, []).append(gate)
                    return
                self._known[number] = result.ask_at
                ask_at = min(ask_at, result.ask_at)
            wait = max(timedelta(0), ask_at - self._clock()).total_seconds()
            await asyncio.sleep(wait + self._random.random() * _SPREAD_SECONDS)

    async def _lines(self, now: datetime) -> tuple[Cap, ...]:
        if self._caps_until is None or now >= self._caps_until:
            rate = await self._store.rate(self.name) or self._default
            if rate is None:
                raise BadLimit(
                    f"the limit {self.name!r} has no rate: write limits/{self.name} with perSecond and burst, "
                    f"or set OUTBOX_LIMITS={self.name}=3/3"
                )
            self._caps, self._caps_until = rate.lines, now + CONFIGURATION_KEPT
        return self._caps


def _calls_left(gate: Gate, now: datetime) -> int:
    left = gate.block.until - max(now, gate.block.tat)
    return max(timedelta(0), left) // gate.cap.stretched(gate.rate_factor)
