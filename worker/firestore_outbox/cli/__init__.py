"""The `outbox` command: reads its arguments, calls what does the work, and prints text or JSON.

Exit status: 0 done, 1 not done and a sentence says why, 2 the command line was wrong, 130 stopped with Ctrl-C.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from itertools import takewhile
from typing import Annotated

import typer

from firestore_outbox import __version__

MODULES: Mapping[str, Mapping[str, str]] = {
    "local": {
        "emulator": "Run Firestore and Cloud Tasks alone, for any project.",
        "dev": "Run the whole product on this machine.",
        "demo": "Send messages through a faulty provider; ends by itself.",
        "worker": "Run the worker: the Cloud Run service, or with --pull.",
        "sim": "Run simulated worlds with crashes, and check each.",
    },
    "messages": {
        "send": "Write a message to the outbox, as a client would.",
        "status": "Show what is known of a message.",
        "why": "Show what a message waits for.",
        "list": "List messages of one status, the newest first.",
    },
    "corrections": {
        "cancel": "Cancel a message that has not been sent.",
        "settle": "Settle an uncertain message: it was sent, or it failed.",
        "redrive": "Put failed messages back into the queue.",
    },
    "operate": {
        "pause": "Stop sending for an account.",
        "resume": "Send again for an account that was paused or parked.",
        "lanes": "List all lanes: their holders, and what they wait for.",
        "audit": "Check the invariants on what is stored.",
    },
    "accounts": {"accounts": "Accounts: add, connect, change, check, remove."},
    "reminders": {"reminders": "Reminders, which fire runs: add, show, edit, pause."},
    "runs": {"runs": "Runs of reminders: list, show, why, forecast, pause."},
    "suppressed": {"suppressed": "Addresses that an account's runs leave out."},
    "jobs": {"jobs": "Runs of your handlers that failed for good."},
    "keys": {"keys": "The keys of sealed accounts (docs/privacy.md)."},
    "billing": {"billing": "What accounts pay for (docs/billing.md)."},
    "console": {
        "console": "Run the console: pages that show and control everything.",
        "operators": "Operators, who manage every account in the console.",
    },
    "page": {"page": "Serve the chat page for your Firebase project."},
    "media": {"media": "Files that messages send: add, adopt."},
    "migrate": {"migrate": "Change documents of an older release into today's form."},
    "erase": {"erase": "Delete what is stored of an account or an address."},
    "sessions": {"sessions": "Show which accounts' sessions are up, and which wait."},
    "providers": {"providers": "Providers: list what each can do."},
    "doctor": {"doctor": "Check a Google Cloud project, and say what it lacks."},
    "init": {"init": "Write a project of your own: handler, rules, deploy, test."},
}
"""Module of this package -> the commands that it registers, each with its line in the list of all commands. The list
needs no module, so it starts fast."""
COMPLETION_VARIABLE = "_OUTBOX_COMPLETE"
"""Set by the shell that completes a command line. Otherwise the options that install completion are not shown."""


def app(words: Sequence[str]) -> typer.Typer:
    """The commands that these words can need: those of one module if they name a command, otherwise the list of all."""
    if COMPLETION_VARIABLE in os.environ:
        return whole_app()
    options_first = list(takewhile(lambda word: word.startswith("-"), words))
    is_help = not {"-h", "--help"}.isdisjoint(options_first)
    first = "" if is_help else "".join(words[len(options_first) :][:1])
    needed = [module for module, names in MODULES.items() if first in names]
    if needed:
        return _with(needed)
    commands = _with(())
    for names in MODULES.values():
        for name, line in names.items():
            commands.command(name, help=line)(_listed)
    return commands


def whole_app() -> typer.Typer:
    """All commands, with everything below them."""
    return _with(MODULES)


def _with(modules: Iterable[str]) -> typer.Typer:
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
    for module in modules:
        import_module(f"firestore_outbox.cli.{module}").register(commands)
    return commands


def _listed() -> None:
    """In the place of a command that is listed and not called."""


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
