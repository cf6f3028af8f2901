"""What commands print: tables for people, JSON for machines, one sentence and status 1 for a failure.

Each output has one time zone and names it: UTC, unless the command passes the zone of the thing it shows.
"""

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
from zoneinfo import ZoneInfo

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from firestore_outbox.shown_time import shown_time

T = TypeVar("T")

WIDE = 400
"""Columns of an output that is not a terminal: lines in a pipe are neither wrapped nor cut."""
INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells define it."""
GAP = "  "
"""Between two columns of a table."""

console = Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else WIDE)
"""rich turns colours off by itself if the output is not a terminal."""

Json = Annotated[bool, typer.Option("--json", help="One JSON document, for machines.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before a change of many messages.")]


def fail(message: str) -> NoReturn:
    print(f"outbox: {message}", file=sys.stderr)
    raise typer.Exit(1)


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a command's work. An error of Google's, of the settings or of the network becomes a sentence."""
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
        raise typer.Exit(INTERRUPTED) from None


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


def confirm(what: str, *, yes: bool) -> None:
    """Ask before a change of many messages. Without a terminal, `--yes` is required."""
    if yes:
        return
    if not sys.stdin.isatty():
        fail(f"{what}. Nothing was changed: add --yes to do it without a question")
    if not typer.confirm(f"{what}. Go on?", err=True):
        fail("nothing was changed")


def show_table(columns: Sequence[str], rows: Sequence[Sequence[Any]], empty: str) -> None:
    """Rows below their headings. A cell is never cut: a narrow terminal wraps the line."""
    if not rows:
        console.print(empty, soft_wrap=True)
        return
    cells = [[" ".join(_text(cell).split()) for cell in row] for row in rows]
    widths = [max(cell_len(line[at]) for line in (columns, *cells)) for at in range(len(columns))]
    console.print(Text(_line(columns, widths), style="bold"), soft_wrap=True)
    for line in cells:
        console.print(Text(_line(line, widths)), soft_wrap=True)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell + " " * (width - cell_len(cell)) for cell, width in zip(cells, widths, strict=True))
    return GAP.join(padded).rstrip()


def show_fields(fields: Mapping[str, Any], zone: ZoneInfo | None = None) -> None:
    """One field on each line. `zone` is the zone of all times; None means UTC."""
    width = max((len(name) for name in fields), default=0)
    for name, value in fields.items():
        console.print(Text.assemble((name.ljust(width), "bold"), GAP, _text(value, zone)), soft_wrap=True)


@contextmanager
def progress(what: str, *, shown: bool) -> Iterator[Callable[[int], None]]:
    """A running count, for work whose end is not known. Shown only on a terminal."""
    from rich.progress import Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), TextColumn("{task.completed:,.0f}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not (shown and console.is_terminal)) as bar:
        task = bar.add_task(what, total=None)
        yield lambda count: bar.advance(task, count)


def _text(value: Any, zone: ZoneInfo | None = None) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return shown_time(value, zone)
    if isinstance(value, Mapping | list | tuple):
        return json.dumps(value, default=lambda one: _in_json(one, zone), ensure_ascii=False)
    return str(value)


def _in_json(value: Any, zone: ZoneInfo | None) -> str:
    return shown_time(value, zone) if isinstance(value, datetime) else str(value)


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else str(value)
