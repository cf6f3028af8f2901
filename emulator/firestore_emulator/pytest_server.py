"""The Firestore emulator as a process of its own, for the pytest plugin: one line with its address, then it serves.

It ends when its standard input ends. The plugin holds the other end, so that however pytest ends, kill -9 included, no
emulator is left behind. If pytest is killed, it ends at once, even in the middle of a long query.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from firestore_emulator.emulator import FirestoreEmulator
from firestore_emulator.parent import exit_with_parent
from firestore_emulator.queries.indexes import IndexFileError
from firestore_emulator.rpc.server import Server
from firestore_emulator.rules.guard import RulesFileError
from firestore_emulator.storage.databases import DEFAULT, ID_RULE, is_database_id


async def serve(indexes: Path | None, rules: Path | None, databases: Sequence[str]) -> None:
    emulator = FirestoreEmulator(indexes=indexes, rules=rules, databases=(DEFAULT, *databases))
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
    parser.add_argument("--database", action="append", default=[], help="a database besides (default)")
    given = parser.parse_args()
    exit_with_parent()
    for database in given.database:
        if not is_database_id(database):
            sys.exit(f"firestore_emulator_databases: {database!r} is no database id. It must have {ID_RULE}.")
    try:
        asyncio.run(serve(given.indexes, given.rules, given.database))
    except (IndexFileError, RulesFileError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
