"""`outbox migrate`: list and make the changes that documents of an older release need."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from firestore_outbox.cli.output import Json, console, progress, show_json
from firestore_outbox.cli.system import with_system

if TYPE_CHECKING:
    from firestore_outbox.operations.migrations.apply import Report
    from firestore_outbox.operations.migrations.decision import Migration
    from firestore_outbox.wiring import System


def register(app: typer.Typer) -> None:
    app.command()(migrate)


def migrate(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="One migration; without it, all of them.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the changes and write nothing.")] = False,
    back: Annotated[bool, typer.Option("--back", help="Undo the migration NAME, before a rollback.")] = False,
    as_json: Json = False,
) -> None:
    """Change documents of an older release into the form of this one. A run that broke off goes on where it stopped.

    Exit status 1 if a document is left that a person has to look at.
    """
    chosen = _chosen(name, back=back)
    with progress("documents", shown=not as_json) as advance:

        async def work(system: System) -> list[Report]:
            from firestore_outbox.operations.migrations.apply import Applying
            from firestore_outbox.providers.credentials import credentials_from

            resolver = credentials_from(os.environ)
            applying = Applying(gateway=system.gateway, credentials=resolver, clock=system.clock)
            try:
                return [
                    await applying.apply(migration, back=back, dry_run=dry_run, on_progress=advance)
                    for migration in chosen
                ]
            finally:
                await resolver.close()

        reports = with_system(work)
    if as_json:
        show_json([asdict(report) for report in reports])
    else:
        for migration, report in zip(chosen, reports, strict=True):
            _show(migration, report)
    if any(report.undecided for report in reports):
        raise typer.Exit(1)


def _chosen(name: str | None, *, back: bool) -> tuple[Migration, ...]:
    from firestore_outbox.operations.migrations.all import MIGRATIONS

    if name is None:
        if back:
            raise typer.BadParameter("--back needs the name of one migration", param_hint="NAME")
        return MIGRATIONS
    found = tuple(migration for migration in MIGRATIONS if migration.name == name)
    if not found:
        names = ", ".join(migration.name for migration in MIGRATIONS)
        raise typer.BadParameter(f"there is no migration {name}; there are: {names}", param_hint="NAME")
    if back and found[0].back is None:
        raise typer.BadParameter(f"the migration {name} has no way back", param_hint="--back")
    return found


def _show(migration: Migration, report: Report) -> None:
    verb = "would change" if report.dry_run else "changed"
    console.print(f"{migration.name} ({report.direction}): {migration.what}", soft_wrap=True)
    if report.resumed_after is not None:
        console.print(f"  goes on after {report.resumed_after}, where the last run stopped", soft_wrap=True)
    for change in report.changes:
        fields = ", ".join(
            f"{field} removed" if value is None else f"{field} = {value}" for field, value in change["fields"].items()
        )
        console.print(f"  {change['path']}  {fields}", soft_wrap=True)
    for left in report.undecided:
        console.print(f"  {left['path']}  not changed: {left['because']}", soft_wrap=True)
    console.print(f"  {verb} {report.changed} of {report.seen} documents; {len(report.undecided)} need a person")
