"""The `firestore-emulator` command: Firestore and Cloud Tasks on this machine, until Ctrl-C.

Exit status: 0 stopped, 1 it could not start and a sentence says why, 2 the command was wrong. `outbox emulator` is the
same with the outbox's own spelling of the options.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import re
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from firestore_emulator import __version__
from firestore_emulator.parent import exit_with_parent

ADDRESS = re.compile(r"[^\s/:]+:\d{1,5}")
LOCALHOST = "127.0.0.1"
DURABLE = ("process", "full")
NOT_AN_ADDRESS = "must be HOST:PORT, such as 127.0.0.1:8081"


class Refused(RuntimeError):
    """The emulator cannot start. The message says why and what to do."""


def serve(
    *,
    port: int,
    tasks_port: int,
    data: Path | None,
    indexes: Path | None,
    rules: Path | None,
    functions: str | None,
    databases: Sequence[str],
    queues: Sequence[str],
    optimistic: bool,
    tasks_only: bool,
    as_json: bool,
    with_parent: bool = False,
    host: str = LOCALHOST,
    durable: str = "process",
    port_option: str = "--port",
) -> None:
    """Serve until SIGINT or SIGTERM. Raises `Refused` if the emulator cannot start."""
    if with_parent:
        exit_with_parent()
    # Imported here: `--help` and a mistyped option should not load two emulators.
    from firestore_emulator.database import DatabaseUnusable
    from firestore_emulator.queries.indexes import IndexFileError
    from firestore_emulator.rpc.errors import RpcError
    from firestore_emulator.rules.guard import RulesFileError
    from firestore_emulator.stack import CannotStart, EmulatorSettings
    from firestore_emulator.storage.databases import ID_RULE, is_database_id
    from firestore_emulator.transactions.transaction import Concurrency

    for database in databases:
        if not is_database_id(database):
            raise Refused(f"--database: {database!r} is no database id. It must have {ID_RULE}.")
    settings = EmulatorSettings(
        firestore_port=port,
        firestore_port_option=port_option,
        tasks_port=tasks_port,
        data=data,
        indexes=indexes,
        rules=rules,
        functions=functions,
        databases=databases,
        queues=queues,
        tasks_only=tasks_only,
        host=host,
        survives_power_cuts=durable == "full",
        concurrency=Concurrency.OPTIMISTIC if optimistic else Concurrency.PESSIMISTIC,
    )
    print_rules_log()
    try:
        asyncio.run(_serve(settings, as_json))
    except (CannotStart, DatabaseUnusable, IndexFileError, RulesFileError) as error:
        raise Refused(str(error)) from error
    except RpcError as error:
        raise Refused(f"--queue: {error.message}") from error


def print_rules_log() -> None:
    """Print refusals and reloads of the security rules on standard error, for the developer who runs the command."""
    log = logging.getLogger("firestore_emulator.rules")
    log.setLevel(logging.INFO)
    log.propagate = False
    log.handlers = [logging.StreamHandler()]


async def _serve(settings: object, as_json: bool) -> None:
    from firestore_emulator.stack import EmulatorSettings, EmulatorStack

    assert isinstance(settings, EmulatorSettings)
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with EmulatorStack(settings) as stack:
        addresses = {
            "FIRESTORE_EMULATOR_HOST": stack.firestore_address,
            "CLOUD_TASKS_EMULATOR_HOST": stack.tasks_address,
        }
        print(announced({name: address for name, address in addresses.items() if address}, as_json), flush=True)
        await stop.wait()


def announced(addresses: dict[str, str], as_json: bool) -> str:
    """The line that says the emulator answers, and where."""
    if as_json:
        return json.dumps(addresses)
    return "ready  " + "  ".join(f"{name}={address}" for name, address in addresses.items())


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError("must be a port from 0 to 65535")
    return int(text)


def _address(text: str) -> str:
    if not ADDRESS.fullmatch(text):
        raise argparse.ArgumentTypeError(NOT_AN_ADDRESS)
    return text


def _directory(text: str) -> Path:
    path = Path(text)
    if path.exists() and not path.is_dir():
        raise argparse.ArgumentTypeError(f"{text} is a file; name a directory")
    return path


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(
        prog="firestore-emulator",
        description="Firestore and Cloud Tasks on this machine, for any project, until Ctrl-C.",
        allow_abbrev=False,
    )
    add = options.add_argument
    add("--port", type=_port, default=8080, metavar="N", help="Firestore's port; 0 takes a free one (default 8080)")
    add("--tasks-port", type=_port, default=8123, metavar="N", help="Cloud Tasks' port; 0 takes a free one (8123)")
    add("--data", type=_directory, metavar="DIR", help="keep everything in this directory; without it: in memory")
    add("--indexes", type=Path, metavar="FILE", help="a firestore.indexes.json: refuse the queries production refuses")
    add("--rules", type=Path, metavar="FILE", help="a firestore.rules to enforce, loaded again when it changes")
    add("--functions", type=_address, metavar="HOST:PORT", help="where Firestore events of registered triggers go")
    add(
        "--database",
        action="append",
        default=[],
        metavar="ID",
        help="a database that every project has besides (default); may be repeated",
    )
    add(
        "--queue",
        action="append",
        default=[],
        metavar="NAME",
        help="create this queue: projects/P/locations/L/queues/Q",
    )
    add("--optimistic", action="store_true", help="transactions take no locks; a commit that comes too late is aborted")
    add("--tasks-only", action="store_true", help="serve Cloud Tasks alone")
    add("--host", default=LOCALHOST, help="the address to listen on (default 127.0.0.1); every caller is believed")
    add(
        "--durable",
        choices=DURABLE,
        default=DURABLE[0],
        help="with --data: `process` survives kill -9, `full` a power cut too, and syncs each commit to the disk",
    )
    add("--with-parent", action="store_true", help="exit at once when the process that started it is gone")
    add("--json", action="store_true", help="print the addresses as one JSON document")
    add("--version", action="version", version=f"firestore-emulator {__version__}")
    return options


def main(words: Sequence[str] | None = None) -> None:
    given = parser().parse_args(words)
    try:
        serve(
            port=given.port,
            tasks_port=given.tasks_port,
            data=given.data,
            indexes=given.indexes,
            rules=given.rules,
            functions=given.functions,
            databases=given.database,
            queues=given.queue,
            optimistic=given.optimistic,
            tasks_only=given.tasks_only,
            as_json=given.json,
            with_parent=given.with_parent,
            host=given.host,
            durable=given.durable,
        )
    except Refused as refused:
        print(refused, file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
