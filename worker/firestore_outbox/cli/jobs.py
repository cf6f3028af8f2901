"""`outbox jobs`: runs of your handlers that failed for good."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from firestore_outbox.cli.ids import JobId
from firestore_outbox.cli.output import Json, console, show_json, show_table
from firestore_outbox.cli.system import with_system

if TYPE_CHECKING:
    from firestore_outbox.handlers.dead_letters import Job
    from firestore_outbox.wiring import System


def register(app: typer.Typer) -> None:
    jobs = typer.Typer(name="jobs", help="Runs of your handlers that failed for good.", no_args_is_help=True)
    jobs.command("list")(list_)
    jobs.command("show")(show)
    jobs.command("retry")(retry)
    jobs.command("drop")(drop)
    app.add_typer(jobs)


def list_(
    limit: Annotated[int, typer.Option(min=1, max=1000, help="At most this many.")] = 50, as_json: Json = False
) -> None:
    """The newest first."""

    async def work(system: System) -> list[Job]:
        return await system.dead_letters.list(limit)

    jobs = with_system(work)
    if as_json:
        show_json([asdict(job) for job in jobs])
        return
    rows = [[job.id, job.kind, job.key, len(job.events), job.at, job.error] for job in jobs]
    show_table(["job", "kind", "key", "events", "failed at", "error"], rows, "No run of a handler has failed for good.")


def show(job: JobId, as_json: Json = False) -> None:
    """One of them, with the ids of its events."""

    async def work(system: System) -> Job:
        return await system.dead_letters.get(job)

    found = with_system(work)
    if as_json:
        show_json(asdict(found))
        return
    for name, value in asdict(found).items():
        console.print(f"{name:8} {', '.join(value) if isinstance(value, tuple) else value}")


def retry(job: JobId, as_json: Json = False) -> None:
    """Run the handler again with the events of this job."""

    async def work(system: System) -> Job:
        return await system.dead_letters.retry(job)

    found = with_system(work)
    if as_json:
        show_json(asdict(found))
        return
    console.print(f"{found.kind} runs again for {found.key}; `outbox jobs list` shows it if it fails once more")


def drop(job: JobId, as_json: Json = False) -> None:
    """Forget it. Its events stay handled."""

    async def work(system: System) -> Job:
        found = await system.dead_letters.get(job)
        await system.dead_letters.drop(job)
        return found

    found = with_system(work)
    if as_json:
        show_json(asdict(found))
        return
    console.print(f"dropped: {found.kind} for {found.key}")
