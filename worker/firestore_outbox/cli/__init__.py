"""The `outbox` command: reads its arguments, calls what does the work, and prints text or JSON.

Exit status: 0 done, 1 not done and a sentence says why, 2 the command line was wrong, 130 stopped with Ctrl-C.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Annotated

import typer

from firestore_outbox import __version__

MODULES: Mapping[str, tuple[str, ...]] = {
    "local": ("emulator", "dev", "demo", "worker", "sim"),
    "messages": ("send", "status", "why", "list"),
    "corrections": ("cancel", "settle", "redrive"),
    "operate": ("pause", "resume", "lanes", "audit"),
    "accounts": ("accounts",),
    "reminders": ("reminders",),
    "runs": ("runs",),
    "jobs": ("jobs",),
    "media": ("media",),
    "migrate": ("migrate",),
    "providers": ("providers",),
    "doctor": ("doctor",),
    "init": ("init",),
}
"""Module of this package -> the commands that it registers."""
COMPLETION_VARIABLE = "_OUTBOX_COMPLETE"
"""Set by the shell that completes a command line. Otherwise the options that install completion are not shown."""


def app(words: Sequence[str]) -> typer.Typer:
    """The commands that these words can need: one module if the first word is a command, otherwise all of them."""
    commands = typer.Typer(
        name="outbox",
        help="An outbox for chat messages on Firestore and Cloud Tasks.",
        no_args_is_help=True,
        add_completion=COMPLETION_VARIABLE in os.environ,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
        pretty_exceptions_enable=False,
    )
    commands.callback()(options)
    first = words[0] if words else ""
    needed = [module for module, names in MODULES.items() if first in names]
    for module in needed or ([] if first == "--version" else MODULES):
        import_module(f"firestore_outbox.cli.{module}").register(commands)
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
