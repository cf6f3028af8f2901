"""`outbox doctor`: whether a Google Cloud project is ready for the outbox, and what to do if it is not."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from firestore_outbox.cli.output import Json, console, fail, run, show_json

if TYPE_CHECKING:
    from firestore_outbox.operations.doctor_facts import Check

EMULATOR = "OUTBOX_DOCTOR_EMULATOR_HOST"
"""HOST:PORT of a server that answers in the place of Google's APIs, for tests."""
SCOPE = "https://www.googleapis.com/auth/cloud-platform"
QUEUE_VARIABLES = ("OUTBOX_QUEUE", "OUTBOX_QUEUES", "OUTBOX_RECEIPT_QUEUE")
MARKS = {"ok": "ok", "wait": "wait", "warning": "!", "broken": "FAIL", "unknown": "?"}
NO_PROJECT = "which project? Give --project ID, or set OUTBOX_PROJECT"
NO_CREDENTIALS = (
    "there are no Google Cloud credentials: run `gcloud auth application-default login` as an owner of the project,"
    " then outbox doctor again. On a laptop's stack (outbox dev) there is nothing to check"
)


def register(app: typer.Typer) -> None:
    app.command()(doctor)


def doctor(
    project: Annotated[str | None, typer.Option(metavar="ID", help="The project; OUTBOX_PROJECT by default.")] = None,
    location: Annotated[
        str | None, typer.Option(metavar="REGION", help="Of queues, worker and scheduler; OUTBOX_LOCATION by default.")
    ] = None,
    export: Annotated[
        bool,
        typer.Option(
            "--export",
            help="Print the deployed worker's settings as export lines, for the other commands:"
            ' eval "$(outbox doctor --project ID --export)"',
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Check a Google Cloud project: indexes, TTL, rules, queues, scheduler, worker, functions,
    service accounts, secrets.

    It changes nothing. Exit status 1 if something is broken."""
    chosen = project or os.environ.get("OUTBOX_PROJECT")
    if not chosen:
        raise typer.BadParameter(NO_PROJECT, param_hint="--project")
    if export:
        _export(run(_deployed_settings(chosen, location)), as_json=as_json)
        return
    checks = run(_examined(chosen, location))
    if as_json:
        show_json([asdict(check) for check in checks])
    else:
        _show(checks)
    if any(check.verdict == "broken" for check in checks):
        raise typer.Exit(1)


async def _examined(project: str, location: str | None) -> list[Check]:
    import json

    import httpx

    from firestore_outbox.local.product import INDEXES, RULES
    from firestore_outbox.operations.ask_google import AskGoogle
    from firestore_outbox.operations.doctor import examine
    from firestore_outbox.settings import Settings

    settings = Settings.from_environment(os.environ)

    def queues(deployed: Mapping[str, str]) -> list[str]:
        """As the worker's own settings say; where it is not deployed yet, as those of this terminal do."""
        named = {name: deployed[name] for name in QUEUE_VARIABLES if name in deployed}
        in_force = Settings.from_environment({**os.environ, **named})
        return [name.rpartition("/")[2] for name in in_force.queue_names]

    emulator = os.environ.get(EMULATOR, "")
    async with httpx.AsyncClient(trust_env=not emulator) as http:
        facts = await AskGoogle(http, "" if emulator else _token(), emulator).facts(
            project=project,
            location=location or settings.location,
            queues=queues,
            database_id=settings.database,
            worker_url=settings.worker_url if os.environ.get("OUTBOX_WORKER_URL") else "",
        )
    wanted = json.loads(INDEXES.read_text(encoding="utf-8"))
    return examine(facts, wanted, RULES.read_text(encoding="utf-8"))


async def _deployed_settings(project: str, location: str | None) -> dict[str, str]:
    import httpx

    from firestore_outbox.operations.ask_google import AskGoogle
    from firestore_outbox.operations.doctor_facts import WORKER, Refused, settings_of
    from firestore_outbox.settings import Settings

    region = location or Settings.from_environment(os.environ).location
    emulator = os.environ.get(EMULATOR, "")
    async with httpx.AsyncClient(trust_env=not emulator) as http:
        worker = await AskGoogle(http, "" if emulator else _token(), emulator).worker(project, region)
    found = {name: value for name, value in settings_of(worker).items() if name.startswith("OUTBOX_")}
    if isinstance(worker, Refused):
        fail(f"the settings of the worker of {project} could not be read: {worker.reason}")
    if not found:
        fail(
            f"there is no service {WORKER} in {region} of {project}. Deploy it first (docs/deploy.md), or name its"
            " region with --location"
        )
    return {"OUTBOX_PROJECT": project, **found}


def _export(settings: Mapping[str, str], *, as_json: bool) -> None:
    if as_json:
        show_json(settings)
        return
    for name in sorted(settings):
        print(f"export {name}={shlex.quote(settings[name])}")


def _token() -> str:
    import google.auth
    from google.auth.exceptions import DefaultCredentialsError, RefreshError
    from google.auth.transport.requests import Request

    try:
        credentials, _ = google.auth.default(scopes=[SCOPE])
        credentials.refresh(Request())
    except DefaultCredentialsError:
        fail(NO_CREDENTIALS)
    except RefreshError:
        fail("the Google Cloud credentials have expired: run `gcloud auth application-default login`")
    return str(credentials.token)


def _show(checks: list[Check]) -> None:
    width = max(len(check.name) for check in checks)
    for check in checks:
        console.print(f"{MARKS[check.verdict.value]:4}  {check.name:{width}}  {check.sentence}", soft_wrap=True)
        if check.fix is not None:
            console.print(f"{'':4}  {'':{width}}  -> {check.fix}", soft_wrap=True)
    broken = sum(check.verdict == "broken" for check in checks)
    console.print(
        "everything that could be checked is in order" if not broken else f"{broken} to fix, from top to bottom"
    )
