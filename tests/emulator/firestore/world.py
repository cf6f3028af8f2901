"""The whole emulator on virtual time, called over its in-process channel: an hour of waiting takes a millisecond."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from firestore_emulator import virtual_time
from firestore_emulator.emulator import FirestoreEmulator
from firestore_emulator.rpc.inprocess import InProcessChannel
from tests.conformance.backends import Backend, Place, Refused
from tests.emulator.firestore.support import START


class World:
    def __init__(self, **options: Any) -> None:
        self.clock = virtual_time.VirtualClock()
        self.emulator = FirestoreEmulator(**({"clock": self.clock} | options))
        self.backend = Backend(Place("inprocess", InProcessChannel([self.emulator.service]), None), project="p")
        self.log: list[str] = []
        """What happened, with the second in which it did."""

    def now(self) -> float:
        return round(asyncio.get_running_loop().time(), 3)

    def start(self, label: str, work: Coroutine[Any, Any, Any]) -> asyncio.Task[None]:
        """Runs the call beside the test; its end is a line of the log."""

        async def logged() -> None:
            try:
                await work
                ending = "done"
            except Refused as refusal:
                ending = refusal.code
            self.log.append(f"{label} {ending} at {self.now():g}")

        return asyncio.create_task(logged())

    async def turn(self) -> None:
        """Lets everything run that can run without time passing: less than a microsecond goes by."""
        await asyncio.sleep(1e-7)


def in_virtual_time(**options: Any) -> Callable[[Callable[[World], Awaitable[None]]], Callable[[], None]]:
    """The test in a world of its own, under three orders of callbacks."""

    def decorate(story: Callable[[World], Awaitable[None]]) -> Callable[[], None]:
        async def main() -> None:
            world = World(**options)
            await world.emulator.start()
            try:
                await story(world)
            finally:
                await world.emulator.stop()

        def test() -> None:
            for seed in range(3):
                virtual_time.run(main(), seed=seed, start=START)

        functools.update_wrapper(test, story)
        del test.__wrapped__  # type: ignore[attr-defined]  # pytest would ask for a fixture called "world"
        return test

    return decorate
