"""The `outbox` command: words in, words or JSON out. What it does is elsewhere.

Exit status: 0 done, 1 it could not be done and a sentence says why, 2 the command was wrong.
"""

from __future__ import annotations

import typer

from worker.cli import local, messages, operate

app = typer.Typer(
    name="outbox",
    help="An outbox for chat messages on Firestore and Cloud Tasks.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for commands in (local, messages, operate):
    commands.register(app)


def main() -> None:
    app()
