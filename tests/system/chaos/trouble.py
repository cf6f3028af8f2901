"""The plan, carried out on the processes and links of a stack; and in the end everything is set right again.

One process at a time is down: where starting one takes longer than the time between two kills, nothing would ever run.
On such a machine some kills come late, and those that come much too late, or to a worker that is paused by now, are
left out, unless they are the first of their kind. What was really done is counted.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import assert_never

from tests.system.chaos.parts import Part
from tests.system.chaos.plan import WORKERS, Cut, Fault, Jump, Kill, Pause
from tests.system.chaos.stack import ChaosStack

TOO_LATE_SECONDS = 3.0


@dataclass
class Done:
    """What was really done."""

    kills: Counter[str] = field(default_factory=Counter)
    """By part, with the workers as one."""
    kills_left_out: int = 0
    """The machine was too slow for them."""
    pauses: int = 0
    cuts: Counter[str] = field(default_factory=Counter)
    """By manner."""
    jumps: Counter[str] = field(default_factory=Counter)
    died: list[str] = field(default_factory=list)
    """Parts that ended without being killed: none should."""
    restart_seconds: list[float] = field(default_factory=list)
    """From each kill until the part answered again."""

    def kinds(self) -> set[str]:
        """Of faults that have happened at least once."""
        return {
            *(f"kill {name}" for name in self.kills),
            *(f"cut {manner}" for manner in self.cuts),
            *(f"clock {direction}" for direction in self.jumps),
            *(["pause"] if self.pauses else []),
        }


class Trouble:
    def __init__(self, stack: ChaosStack, say: Callable[[str], None]) -> None:
        self.done = Done()
        self._stack = stack
        self._say = say
        self._began = 0.0
        self._one_down = asyncio.Lock()

    async def make(self, faults: Sequence[Fault]) -> None:
        """Returns when the last fault has been repaired: everything runs, every link is whole, every clock is right."""
        self._began = time.monotonic()
        async with asyncio.TaskGroup() as under_way:
            for fault in faults:
                await asyncio.sleep(max(0.0, self._began + fault.at - time.monotonic()))
                under_way.create_task(self._one(fault))
        for part in self._stack.parts.values():
            self._expect_alive(part)
        for worker in WORKERS:
            await self._set_clock(worker, 0.0)

    async def _one(self, fault: Fault) -> None:
        match fault:
            case Kill():
                await self._kill(fault)
            case Pause():
                await self._pause(fault)
            case Cut():
                await self._cut(fault)
            case Jump():
                self._tell(f"clock of {fault.part}: {fault.ahead_seconds:+g} s")
                await self._set_clock(fault.part, fault.ahead_seconds)
                if fault.ahead_seconds:
                    self.done.jumps["ahead" if fault.ahead_seconds > 0 else "behind"] += 1
            case _:
                assert_never(fault)

    async def _kill(self, fault: Kill) -> None:
        part = self._stack.parts[fault.part]
        kind = "worker" if fault.part in WORKERS else fault.part
        async with self._one_down:
            is_too_late = time.monotonic() - self._began - fault.at > TOO_LATE_SECONDS
            if self.done.kills[kind] and (is_too_late or part.changing.locked()):
                self.done.kills_left_out += 1
                return
            async with part.changing:
                await self._killed(part, kind)

    def _expect_alive(self, part: Part) -> None:
        if not part.is_running:
            self.done.died.append(part.name)

    async def _killed(self, part: Part, kind: str) -> None:
        self._tell(f"kill -9 {part.name}")
        self._expect_alive(part)
        began = time.monotonic()
        await part.kill()
        self._stack.spread_tasks()
        await part.start()
        self._stack.spread_tasks()
        self.done.restart_seconds.append(time.monotonic() - began)
        self.done.kills[kind] += 1

    async def _pause(self, fault: Pause) -> None:
        part = self._stack.parts[fault.part]
        async with part.changing:
            self._tell(f"SIGSTOP {fault.part} for {fault.seconds:.1f} s")
            part.send_signal(signal.SIGSTOP)
            try:
                await asyncio.sleep(fault.seconds)
            finally:
                part.send_signal(signal.SIGCONT)
            self.done.pauses += 1

    async def _cut(self, fault: Cut) -> None:
        link = self._stack.links[fault.link]
        self._tell(f"cut {fault.link} for {fault.seconds:.1f} s: {fault.manner}")
        await link.cut(fault.manner)
        try:
            await asyncio.sleep(fault.seconds)
        finally:
            await link.restore()
        self.done.cuts[fault.manner.value] += 1

    async def _set_clock(self, worker: str, ahead_seconds: float) -> None:
        """A worker that is down finds it when it comes up."""
        part, file = self._stack.parts[worker], self._stack.clock_file(worker)
        _write_whole(file, f"{ahead_seconds:g}")
        async with part.changing:  # before it is ready the signal would end it
            part.send_signal(signal.SIGUSR1)

    def _tell(self, what: str) -> None:
        self._say(f"{time.monotonic() - self._began:6.1f} s  {what}")


def _write_whole(file: Path, text: str) -> None:
    """Never to be read half written."""
    beside = file.with_suffix(".new")
    beside.write_text(text, encoding="ascii")
    os.replace(beside, file)
