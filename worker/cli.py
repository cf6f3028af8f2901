"""The `outbox` command: words in, words or JSON out. What it does is elsewhere."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import sys
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    name="outbox",
    help="An outbox for chat messages on Firestore and Cloud Tasks.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.callback()
def outbox() -> None:
    """An outbox for chat messages on Firestore and Cloud Tasks."""


@app.command()
def emulator(
    firestore_port: Annotated[int, typer.Option(min=0, max=65535, help="Firestore's port; 0 takes a free one.")] = 8080,
    tasks_port: Annotated[int, typer.Option(min=0, max=65535, help="Cloud Tasks' port; 0 takes a free one.")] = 8123,
    data: Annotated[
        Path | None, typer.Option(file_okay=False, help="Keep everything in this directory. Without it: in memory.")
    ] = None,
    indexes: Annotated[
        Path | None,
        typer.Option(help="A firestore.indexes.json: queries that production would refuse are refused."),
    ] = None,
    functions: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Where Firestore events of registered triggers go.")
    ] = None,
    queue: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="A queue that shall exist: projects/P/locations/L/queues/Q. May be repeated."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the addresses as one JSON object.")] = False,
) -> None:
    """Firestore and Cloud Tasks on this machine, for any project, until Ctrl-C."""
    # Imported here: `outbox --help` should not load two emulators.
    from emulator.database import DatabaseUnusable
    from emulator.firestore.indexes import IndexFileError
    from emulator.rpc.errors import RpcError
    from emulator.stack import CannotStart, EmulatorSettings, EmulatorStack

    if functions is not None and not re.fullmatch(r"[^\s/:]+:\d{1,5}", functions):
        raise typer.BadParameter("must be HOST:PORT, such as 127.0.0.1:8081", param_hint="--functions")
    settings = EmulatorSettings(
        firestore_port=firestore_port,
        tasks_port=tasks_port,
        data=data,
        indexes=indexes,
        functions=functions,
        queues=queue or (),
    )

    async def run() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop.set)
        async with EmulatorStack(settings) as stack:
            if as_json:
                line = json.dumps({"firestore": stack.firestore_address, "tasks": stack.tasks_address})
            else:
                line = (
                    f"ready  FIRESTORE_EMULATOR_HOST={stack.firestore_address}"
                    f"  CLOUD_TASKS_EMULATOR_HOST={stack.tasks_address}"
                )
            print(line, flush=True)
            await stop.wait()

    try:
        asyncio.run(run())
    except (CannotStart, DatabaseUnusable, IndexFileError) as error:
        _fail(str(error))
    except RpcError as error:
        _fail(error.message)


def _fail(message: str) -> None:
    print(f"outbox: {message}", file=sys.stderr)
    raise typer.Exit(1)


def main() -> None:
    app()
