"""The Firestore emulator as a process of its own, for the pytest plugin: one line with its address, then it serves.

It ends when its standard input ends. The plugin holds the other end, so that however pytest ends, kill -9 included, no
emulator is left behind.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

from firestore_emulator.emulator import FirestoreEmulator
from firestore_emulator.queries.indexes import IndexFileError
from firestore_emulator.rpc.server import Server
from firestore_emulator.rules.guard import RulesFileError


async def serve(indexes: Path | None, rules: Path | None) -> None:
    emulator = FirestoreEmulator(indexes=indexes, rules=rules)
    await emulator.start()
    server = await Server.start(emulator.service, http=emulator.http_app, port=0)
    print(server.address, flush=True)
    try:
        # In a thread, since standard input may be a pipe, a file or nothing at all.
        await asyncio.to_thread(sys.stdin.buffer.read)
    finally:
        await server.stop(grace_seconds=0)
        await emulator.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description="The Firestore emulator until standard input ends.")
    parser.add_argument("--indexes", type=Path, help="a firestore.indexes.json to hold queries to")
    parser.add_argument("--rules", type=Path, help="a firestore.rules to enforce")
    given = parser.parse_args()
    try:
        asyncio.run(serve(given.indexes, given.rules))
    except (IndexFileError, RulesFileError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
