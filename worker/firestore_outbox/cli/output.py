"""How commands speak: tables and colours for people, JSON for machines, one sentence and status 1 when it fails."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Annotated, Any, NoReturn, TypeVar

import typer
from rich.console import Console
from rich.progress import Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

T = TypeVar("T")

WIDE = 400
"""In a pipe nothing is wrapped or cut: lines there are for grep."""

console = Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else WIDE)
"""Colours are off by themselves where the output is no terminal."""

Json = Annotated[bool, typer.Option("--json", help="One JSON document, for machines.")]


def fail(message: str) -> NoReturn:
    print(f"outbox: {message}", file=sys.stderr)
    raise typer.Exit(1)


def run(work: Coroutine[Any, Any, T]) -> T:
    """Runs a command's work; what went wrong outside of us becomes a sentence."""
    from google.api_core.exceptions import GoogleAPICallError
    from google.auth.exceptions import DefaultCredentialsError, GoogleAuthError
    from grpc.aio import AioRpcError

    from firestore_outbox.errors import OutboxError, StoreUnavailable
    from firestore_outbox.settings import BadSettings

    try:
        return asyncio.run(work)
    except StoreUnavailable as error:
        fail(f"{error}{_no_stack()}")
    except (OutboxError, BadSettings) as error:
        fail(str(error))
    except DefaultCredentialsError:
        fail(
            "there is no FIRESTORE_EMULATOR_HOST and there are no Google Cloud credentials. On a laptop, start `outbox"
            " dev` and run the export line that it prints; for Google Cloud, `gcloud auth application-default login`"
        )
    except (GoogleAPICallError, GoogleAuthError) as error:
        fail(f"Google refused the call: {error}")
    except AioRpcError as error:
        fail(f"Firestore refused the call: {error.code().name} {error.details()}")
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def _no_stack() -> str:
    """What to do if the emulator that the environment names does not answer; empty on Google Cloud."""
    host = os.environ.get("FIRESTORE_EMULATOR_HOST")
    if not host:
        return ""
    start = "start `outbox dev`, and run the export line that it prints"
    return f"\nNothing answers at FIRESTORE_EMULATOR_HOST={host}: {start}"


def stop_on_signals(stop: asyncio.Event) -> None:
    """Ctrl-C and SIGTERM ask for a clean end."""
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)


def show_json(value: Any) -> None:
    print(json.dumps(value, indent=2, default=_plain, ensure_ascii=False))


def show_table(columns: Sequence[str], rows: Sequence[Sequence[Any]], empty: str) -> None:
    if not rows:
        console.print(empty)
        return
    table = Table(*columns, box=None, header_style="bold", pad_edge=False)
    for row in rows:
        table.add_row(*(Text(_text(cell)) for cell in row))
    console.print(table)


def show_fields(fields: Mapping[str, Any]) -> None:
    width = max((len(name) for name in fields), default=0)
    for name, value in fields.items():
        console.print(Text.assemble((name.ljust(width), "bold"), "  ", _text(value)), soft_wrap=True)


@contextmanager
def progress(what: str, *, shown: bool) -> Iterator[Callable[[int], None]]:
    """A running count, for work whose end is not known. Shown only on a terminal."""
    columns = (TextColumn("{task.description}"), TextColumn("{task.completed:,.0f}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not (shown and console.is_terminal)) as bar:
        task = bar.add_task(what, total=None)
        yield lambda count: bar.advance(task, count)


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.astimezone().strftime("%Y-%m-%d %H:%M:%S")
    if isinstance(value, Mapping | list | tuple):
        return json.dumps(value, default=_plain, ensure_ascii=False)
    return str(value)


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else str(value)
