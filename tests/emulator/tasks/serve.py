"""A server process that a test can kill: `python serve.py DATA_DIRECTORY PORT`. It says `ready` when it answers."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from firestore_emulator.rpc.server import Server
from firestore_emulator.tasks.emulator import TasksEmulator
from tests.emulator.tasks.support import QUEUE


async def main(data: Path, port: int) -> None:
    emulator = TasksEmulator(data, queues=[QUEUE])
    await emulator.start()
    await Server.start(emulator.service, port=port)
    print("ready", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
