"""The `outbox` command: words in, words or JSON out. What it does is elsewhere.

Exit status: 0 done, 1 it could not be done and a sentence says why, 2 the command was wrong.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from firestore_outbox import __version__
from firestore_outbox.cli import local

RUNS_HERE = ("emulator", "dev", "demo", "worker", "sim")


def app(words: Sequence[str]) -> typer.Typer:
    """The commands, as far as these words can need them: the emulator is up before the worker's libraries are read."""
    commands = typer.Typer(
        name="outbox",
        help="An outbox for chat messages on Firestore and Cloud Tasks.",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
        pretty_exceptions_enable=False,
    )
    commands.callback()(options)
    local.register(commands)
    if not words or words[0] not in RUNS_HERE:
        from firestore_outbox.cli import accounts, jobs, media, messages, migrate, operate, providers, reminders, runs

        messages.register(commands)
        operate.register(commands)
        accounts.register(commands)
        jobs.register(commands)
        media.register(commands)
        migrate.register(commands)
        providers.register(commands)
        reminders.register(commands)
        runs.register(commands)
    return commands


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"outbox {__version__}")
        raise typer.Exit


def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """An outbox for chat messages on Firestore and Cloud Tasks."""


def main() -> None:
    app(sys.argv[1:])()
