"""Commands about accounts and lanes: pause, resume, lanes, audit."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from firestore_outbox.accounts.account import AccountStatus
from firestore_outbox.cli.output import Json, console, fail, progress, show_json, show_table
from firestore_outbox.cli.system import with_system
from firestore_outbox.operations.audit.finding import Finding
from firestore_outbox.wiring import System

AccountId = Annotated[str, typer.Argument(metavar="ACCOUNT", help="The accountId.")]


def register(app: typer.Typer) -> None:
    app.command()(pause)
    app.command()(resume)
    app.command()(lanes)
    app.command()(audit)


def pause(account: AccountId, as_json: Json = False) -> None:
    """Stop sending for an account. Its messages stay queued."""
    _done(account, with_system(lambda system: system.pause(account)), AccountStatus.PAUSED, as_json)


def resume(account: AccountId, as_json: Json = False) -> None:
    """Send again for an account that was paused or parked."""
    _done(account, with_system(lambda system: system.resume(account)), AccountStatus.ACTIVE, as_json)


def _done(account: str, is_there: bool, status: AccountStatus, as_json: bool) -> None:
    if not is_there:
        fail(f"there is no account {account}")
    if as_json:
        show_json({"accountId": account, "status": status.value})
    else:
        console.print(f"{account}  {status.value}")


def lanes(as_json: Json = False) -> None:
    """List all lanes: their holders, what they wait for, and which keep failing."""

    async def work(system: System) -> list[dict[str, Any]]:
        return [
            {
                "lane": str(ref),
                "state": lane.state.value,
                "owner": lane.owner,
                "leaseUntil": lane.lease_until,
                "readyAt": lane.ready_at,
                "nextDueAt": lane.next_due_at,
                "pausedUntil": lane.paused_until,
                "rateFactor": round(lane.rate_factor, 3),
                "holds": len(lane.holds),
                "failures": lane.failures,
                "retryAt": lane.retry_at if lane.is_failing else None,
            }
            for ref, lane in await system.lanes.all()
        ]

    found = with_system(work)
    if as_json:
        show_json(found)
    else:
        columns = ["lane", "state", "owner", "leaseUntil", "readyAt", "nextDueAt", "pausedUntil", "rateFactor", "holds"]
        if any(row["failures"] for row in found):
            columns += ["failures", "retryAt"]
        show_table(columns, [[row[name] for name in columns] for row in found], "there are no lanes")


def audit(as_json: Json = False) -> None:
    """Check the invariants on what is stored. Exit status 1 if one is broken; a warning alone is 0."""
    from firestore_outbox.operations.audit.auditor import audit as check

    with progress("messages", shown=not as_json) as advance:

        async def work(system: System) -> list[Finding]:
            overlap = system.settings.overlap
            return await check(
                system.gateway, system.accounts, now=system.clock(), overlap=overlap, on_progress=advance
            )

        findings = with_system(work)
    broken = [str(finding) for finding in findings if not finding.is_warning]
    warnings = [str(finding) for finding in findings if finding.is_warning]
    if as_json:
        show_json({"broken": broken, "warnings": warnings})
    else:
        for line in (*warnings, *broken):
            console.print(line, soft_wrap=True)
        if not broken:
            console.print("every invariant holds")
    if broken:
        raise typer.Exit(1)
