"""Processes of this machine: started, waited for, killed and started again. Only ever those that were started here.

They do not outlive this process: each exits at once when its parent is gone (child.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import SystemRandom

READY_SECONDS = 120.0
"""Ends the wait for a process that hangs while it starts. A loaded machine takes a fraction of it."""
STOP_SECONDS = 60.0
"""Grace period between SIGTERM and SIGKILL. A process that is not stuck ends within seconds."""

SELDOM_GIVEN = range(20_000, 32_000)
"""Below the ports that systems choose themselves. One of those may be given away again before a process that is only
starting has taken it."""


class ProcessFailed(RuntimeError):
    """A process did not come up, or ended by itself; the message has the end of what it printed."""


class ManagedProcess:
    """One process. Its first line on standard output that begins with `ready` says that it answers."""

    def __init__(self, name: str, arguments: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        self.name = name
        self._arguments = [sys.executable, "-m", "firestore_emulator.child", *arguments]
        self._environment = {**os.environ, **environment}
        self._log = log
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None, "it was not started"
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def start(self) -> str:
        """The ready line."""
        with self._log.open("ab") as errors:
            self._process = await asyncio.create_subprocess_exec(
                *self._arguments,
                stdin=asyncio.subprocess.PIPE,  # its end tells the process that we are gone
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                env=self._environment,
                start_new_session=True,  # Ctrl-C is for the parent, which stops its children in order
            )
        try:
            async with asyncio.timeout(READY_SECONDS):
                line = await self._ready_line()
        except TimeoutError:
            await self.kill()
            raise ProcessFailed(f"{self.name} did not say that it is ready. {self._tail()}") from None
        self._reader = asyncio.create_task(self._drain())
        return line

    async def _ready_line(self) -> str:
        assert self._process is not None
        assert self._process.stdout is not None
        async for raw in self._process.stdout:
            line = raw.decode(errors="replace").strip()
            if line.startswith("ready"):
                return line
        code = await self._process.wait()
        raise ProcessFailed(f"{self.name} ended with status {code} before it was ready. {self._tail()}")

    async def _drain(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        with self._log.open("ab") as log:
            async for raw in self._process.stdout:
                log.write(raw)

    async def stop(self) -> int:
        """Asked politely, then not."""
        if self._process is None:
            return 0
        if self.is_running:
            self._process.send_signal(signal.SIGTERM)
            try:
                async with asyncio.timeout(STOP_SECONDS):
                    await self._process.wait()
            except TimeoutError:
                self._process.kill()
        return await self._ended()

    async def kill(self) -> int:
        """kill -9"""
        if self._process is None:
            return 0
        if self.is_running:
            self._process.kill()
        return await self._ended()

    def send_signal(self, number: int) -> None:
        assert self._process is not None, "it was not started"
        self._process.send_signal(number)

    async def _ended(self) -> int:
        assert self._process is not None
        code = await self._process.wait()
        if self._reader is not None:
            self._reader.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._reader
            self._reader = None
        return code

    def _tail(self) -> str:
        try:
            text = self._log.read_bytes()[-2000:].decode(errors="replace").strip()
        except OSError:
            text = ""
        return f"Its log ends with:\n{text}" if text else "It printed nothing."


def free_port() -> int:
    """For a process that will be started: the port is free now, and is likely to be until then."""
    for port in SystemRandom().sample(SELDOM_GIVEN, 100):
        with socket.socket() as listener, contextlib.suppress(OSError):
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("127.0.0.1", port))
            return port
    raise ProcessFailed("there is no free port")
