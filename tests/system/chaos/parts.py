"""The parts of the product as processes that die and come back, each behind links that keep its address.

A part that comes back has its data and the address by which others know it, and another port behind that: while it was
down, another process on this machine may have got the old one.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from firestore_emulator.processes import ManagedProcess, ProcessFailed, free_port
from tests.system.chaos.link import Link

TRIES = 3
"""A free port may be taken before the process has it."""


class Part:
    def __init__(
        self,
        name: str,
        arguments: Callable[[int], list[str]],
        environment: Mapping[str, str],
        log: Path,
        links: Sequence[Link],
    ) -> None:
        """`arguments` are made for the port it shall listen on; `links` are those that lead to it."""
        self.name = name
        self.changing = asyncio.Lock()
        """Held by the fault that kills or pauses it, until it runs again."""
        self._arguments = arguments
        self._environment = environment
        self._log = log
        self._links = links
        self._process: ManagedProcess | None = None

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.is_running

    @property
    def pid(self) -> int:
        assert self._process is not None, "it was not started"
        return self._process.pid

    def give(self, environment: Mapping[str, str]) -> None:
        """The environment of the next start."""
        self._environment = environment

    async def start(self) -> float:
        """How many seconds it took until it answered."""
        began = time.monotonic()
        for left in range(TRIES - 1, -1, -1):
            port = free_port()
            self._process = ManagedProcess(self.name, self._arguments(port), self._environment, self._log)
            try:
                await self._process.start()
            except ProcessFailed:
                if not left:
                    raise
                continue
            for link in self._links:
                link.behind = port
            break
        return time.monotonic() - began

    async def kill(self) -> None:
        """kill -9"""
        assert self._process is not None, "it was not started"
        for link in self._links:
            link.behind = None
        await self._process.kill()

    def send_signal(self, number: int) -> None:
        """To one that has ended by itself, nothing is sent."""
        if self.is_running:
            assert self._process is not None
            self._process.send_signal(number)

    async def stop(self) -> None:
        if self._process is not None:
            if self._process.is_running:
                self._process.send_signal(signal.SIGCONT)
            await self._process.stop()
