"""Instances that share a limit, in virtual time on the emulator, each with its own connection to Firestore."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from random import Random

from firestore_outbox.limits.limiter import Limiter
from firestore_outbox.limits.line import Rate
from firestore_outbox.limits.store import LimitStore
from tests.calm import Calm


class Instance:
    """A process with callers that take from the limit again and again."""

    def __init__(self, calm: Calm, rate: Rate | None, name: str = "api") -> None:
        machine = calm.world.machine("client")
        self.calls: list[datetime] = []
        self._clock = machine.clock
        self.limiter = Limiter(
            name,
            LimitStore(machine.system.gateway),
            default=rate,
            clock=self._clock,
            random=Random(machine.process.name),
        )
        self._callers: list[asyncio.Task[None]] = []

    def work(self, callers: int, *, pause: float = 0.0) -> None:
        self._callers += [asyncio.create_task(self._call_again_and_again(pause)) for _ in range(callers)]

    async def call(self) -> None:
        await self.limiter.acquire()
        self.calls.append(self._clock())

    async def _call_again_and_again(self, pause: float) -> None:
        while True:
            await self.call()
            await asyncio.sleep(pause)

    async def die(self) -> None:
        """As a killed process: its callers stop, and what it has reserved stays reserved."""
        for task in self._callers:
            task.cancel()
        await asyncio.gather(*self._callers, return_exceptions=True)
        await self.limiter.close()


def most_in_a_window(calls: Sequence[datetime], window: timedelta) -> int:
    """The largest number of calls in any window of this length."""
    ordered = sorted(calls)
    most = first = 0
    for last, at in enumerate(ordered):
        while at - ordered[first] >= window:
            first += 1
        most = max(most, last - first + 1)
    return most


def never_above(calls: Sequence[datetime], rate: Rate) -> bool:
    """Whether every window keeps to rate * window + burst."""
    windows = (0.01, 0.1, 0.5, 1, 2, 5, 10, 60)
    return all(
        most_in_a_window(calls, timedelta(seconds=seconds)) <= rate.per_second * seconds + rate.burst
        for seconds in windows
    )
