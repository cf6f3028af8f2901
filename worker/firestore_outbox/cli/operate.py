"""Commands about accounts and lanes: pause, resume, lanes, audit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any
from zoneinfo import ZoneInfo

import typer

from firestore_outbox.cli.ids import AccountId
from firestore_outbox.cli.output import Json, console, progress, show_json, show_table
from firestore_outbox.cli.system import existing_account, with_system
from firestore_outbox.cli.times import check_time, future_time_of, zone_of_account
from firestore_outbox.shown_time import shown_time

if TYPE_CHECKING:
    from firestore_outbox.operations.audit.finding import Finding
    from firestore_outbox.wiring import System


def register(app: typer.Typer) -> None:
    app.command()(pause)
    app.command()(resume)
    app.command()(lanes)
    app.command()(audit)


def pause(
    account: AccountId,
    until: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="When it ends by itself: 2030-01-31T09:00, in the account's time zone."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Stop sending for an account. Its messages stay queued."""
    check_time("--until", until)

    async def work(system: System) -> tuple[dict[str, Any], ZoneInfo]:
        found = await existing_account(system, account)
        zone = zone_of_account(found)
        end = None if until is None else future_time_of("--until", until, zone, system.clock())
        await system.pause(account, end)
        return {"accountId": account, "status": "paused", **({} if end is None else {"pausedUntil": end})}, zone

    result, zone = with_system(work)
    end = f"  until {shown_time(result['pausedUntil'], zone)}" if "pausedUntil" in result else ""
    _show(result, as_json, end)


def resume(account: AccountId, as_json: Json = False) -> None:
    """Send again for an account that was paused or parked."""

    async def work(system: System) -> None:
        await existing_account(system, account)
        await system.resume(account)

    with_system(work)
    _show({"accountId": account, "status": "active"}, as_json)


def _show(result: dict[str, Any], as_json: bool, end: str = "") -> None:
    if as_json:
        show_json(result)
    else:
        console.print(f"{result['accountId']}  {result['status']}{end}")


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
