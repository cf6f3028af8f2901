"""Commands about the console: run it, and name its operators."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from firestore_outbox.cli.output import Json, console, fail, run, show_json
from firestore_outbox.cli.serving import Host, Port, log_as_service, ready_line

if TYPE_CHECKING:
    from firestore_outbox.web.console.identity import Identity

Uid = Annotated[str, typer.Argument(metavar="UID", help="The user's id in Firebase Auth.")]


def register(app: typer.Typer) -> None:
    app.command("console")(serve)
    operators = typer.Typer(
        help="Operators, who see and steer every account in the console: add, remove.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    operators.command()(add)
    operators.command()(remove)
    app.add_typer(operators, name="operators")


def serve(
    port: Port = 8085,
    host: Host = "127.0.0.1",
    as_json: Json = False,
) -> None:
    """Run the console: pages in a browser that show and control everything. Ctrl-C stops it."""
    from firestore_outbox.cli.system import environment_from, settings_from
    from firestore_outbox.errors import OutboxError
    from firestore_outbox.web.console.serve import serve_console

    log_as_service()
    ready = ready_line("console", as_json=as_json)

    async def work() -> None:
        environment = environment_from(os.environ)
        simulator = environment.get("OUTBOX_SIMULATED_URL") if environment.get("FIRESTORE_EMULATOR_HOST") else None
        settings = settings_from(environment)
        await serve_console(settings, host, port, ready, simulator=simulator, environment=environment)

    try:
        run(work())
    except OutboxError as error:
        fail(str(error))


def add(uid: Uid, as_json: Json = False) -> None:
    """Let a user see and steer every account. It counts from their next sign-in on."""
    _set(uid, as_json, is_operator=True)


def remove(uid: Uid, as_json: Json = False) -> None:
    """Take that away again, and end the user's sessions."""
    _set(uid, as_json, is_operator=False)


def _set(uid: str, as_json: bool, *, is_operator: bool) -> None:
    async def work() -> bool:
        identity = _identity()
        try:
            return await identity.set_operator(uid, is_operator=is_operator)
        finally:
            await identity.close()

    if not run(work()):
        fail(f"there is no user {uid} in Firebase Auth; the user's id is in the Firebase console, under Authentication")
    if as_json:
        show_json({"uid": uid, "isOperator": is_operator})
    else:
        console.print(f"{uid}  {'operator' if is_operator else 'no operator any more'}")


def _identity() -> Identity:
    from firestore_outbox.cli.system import settings_from
    from firestore_outbox.clock import system_clock
    from firestore_outbox.web.console.identity import Identity

    settings = settings_from(os.environ)
    return Identity(settings.project, settings.firebase_api_key, system_clock)
