"""The `outbox emulator` command as a process of its own, which a test may kill."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.patience import PATIENCE_SECONDS

COMMAND = Path(sys.executable).parent / "outbox"


@dataclass
class EmulatorProcess:
    process: asyncio.subprocess.Process
    firestore: str
    tasks: str

    async def kill(self) -> None:
        """kill -9: the process gets no chance to put anything in order."""
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()

    async def terminate(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await self.process.wait()


@asynccontextmanager
async def emulator_process(*options: str) -> AsyncIterator[EmulatorProcess]:
    """Runs until the block ends, or until the test ends it before."""
    process = await asyncio.create_subprocess_exec(
        str(COMMAND),
        "emulator",
        "--firestore-port=0",
        "--tasks-port=0",
        "--json",
        *options,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(PATIENCE_SECONDS):
            line = await process.stdout.readline()
        assert line, f"the emulator ended with {await process.wait()} before it was ready"
        addresses = json.loads(line)
        yield EmulatorProcess(process, addresses["FIRESTORE_EMULATOR_HOST"], addresses["CLOUD_TASKS_EMULATOR_HOST"])
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
