"""Our emulator with a data directory, killed and started again on its port while clients are connected.

Cases in JavaScript ask for it over a socket: a connection sends `kill` or `start` and is answered when that is done.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from firestore_emulator.processes import free_port
from tests.emulator.process import EmulatorProcess, emulator_process


class Mortal:
    def __init__(self, data: Path, processes: AsyncExitStack) -> None:
        self._data = data
        self._processes = processes
        self._running: EmulatorProcess | None = None
        self._port = free_port()
        """One that no other process gets meanwhile, when it is dead."""
        self.address = f"127.0.0.1:{self._port}"

    async def start(self) -> None:
        options = ("--data", str(self._data), f"--firestore-port={self._port}")
        self._running = await self._processes.enter_async_context(emulator_process(*options))

    async def kill(self) -> None:
        """kill -9"""
        assert self._running is not None, "it was not started"
        await self._running.kill()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One wish of a case."""
        wishes = {b"kill\n": self.kill, b"start\n": self.start}
        await wishes[await reader.readline()]()
        writer.write(b"done\n")
        await writer.drain()
        writer.close()


@asynccontextmanager
async def mortal_emulator(data: Path) -> AsyncIterator[Mortal]:
    async with AsyncExitStack() as processes:
        mortal = Mortal(data, processes)
        await mortal.start()
        yield mortal


@asynccontextmanager
async def obeying(mortal: Mortal) -> AsyncIterator[int]:
    """The port that takes the wishes."""
    async with await asyncio.start_server(mortal.answer, "127.0.0.1", 0) as server:
        port: int = server.sockets[0].getsockname()[1]
        yield port
