"""Commands about runs: list, show and follow, targets, why, forecast; pause, resume, cancel, retry what failed."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from zoneinfo import ZoneInfo

import typer

from firestore_outbox.cli.ids import RunId, document_id
from firestore_outbox.cli.output import Json, Yes, confirm, console, fail, show_fields, show_json, show_table
from firestore_outbox.cli.system import existing_account, with_system
from firestore_outbox.reminders.run import ENDED, Command, RunStatus

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from firestore_outbox.messages.states import OutboxStatus
    from firestore_outbox.reminders.control import NotTaken, Taken
    from firestore_outbox.reminders.store import StoredRun
    from firestore_outbox.wiring import System

    First = Callable[[System, StoredRun], Awaitable[None]]

LOOK_SECONDS = 1.0
DONE = ("sent", "failed", "skipped", "cancelled", "uncertain")


def register(app: typer.Typer) -> None:
    runs = typer.Typer(
        help="Runs of reminders: list, show, targets, why, forecast, pause, resume, cancel, retry-failed.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    runs.command("list")(list_)
    runs.command()(show)
    runs.command()(targets)
    runs.command()(why)
    runs.command()(forecast)
    runs.command()(pause)
    runs.command()(resume)
    runs.command()(cancel)
    runs.command("retry-failed")(retry_failed)
    app.add_typer(runs, name="runs")


# --- list


def list_(
    account: Annotated[str | None, typer.Option(help="Only runs of this account.", callback=document_id)] = None,
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="How many, the newest first.")] = 50,
    as_json: Json = False,
) -> None:
    """List runs, the newest first."""

    async def work(system: System) -> list[dict[str, Any]]:
        if account is not None:
            await existing_account(system, account)
        return [await _row(system, stored) for stored in await system.runs.runs(account, limit)]

    rows = with_system(work)
    if as_json:
        show_json(rows)
        return
    columns = ["runId", "accountId", "status", "total", "sent", "fireAt", "windowEndAt", "errorSummary"]
    show_table(columns, [[row[name] for name in columns] for row in rows], _no_runs(account))


def _no_runs(account: str | None) -> str:
    owner = "" if account is None else f" of {account}"
    return f"there are no runs{owner}; a reminder starts one: outbox reminders add --help"


async def _row(system: System, stored: StoredRun) -> dict[str, Any]:
    from firestore_outbox.messages.states import OutboxStatus

    run, kept = stored.run, stored.data.get("counts") or {}
    has_ended = run.status in ENDED
    return {
        "runId": run.run_id,
        "accountId": run.account_id,
        "status": run.status.value,
        "total": run.total,
        "sent": kept.get("sent") if has_ended else await system.messages.count_of_run(run.run_id, OutboxStatus.SENT),
        "fireAt": run.fire_at,
        "windowEndAt": run.window_end_at,
        "errorSummary": stored.data.get("errorSummary"),
    }


# --- show


def show(
    run_id: RunId,
    follow: Annotated[
        bool, typer.Option("--follow", help="Until it has ended; the exit status is then 0 only for success.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show a run: its counts now, and when it will end."""

    async def work(system: System) -> dict[str, Any]:
        from firestore_outbox.reminders.view import shown

        if not follow:
            return await shown(system.summary, await _stored(system, run_id))
        return await _followed(system, run_id, quiet=as_json)

    fields = with_system(work)
    if as_json:
        show_json(fields)
    else:
        show_fields(fields, _zone(fields))
    if follow and fields["status"] != RunStatus.SUCCESS:
        raise typer.Exit(1)


def _zone(fields: dict[str, Any]) -> ZoneInfo | None:
    """The zone of the run's window; None if the run names none."""
    return ZoneInfo(fields["timezone"]) if fields.get("timezone") else None


async def _stored(system: System, run_id: str) -> StoredRun:
    stored = await system.runs.run(run_id)
    if stored is None:
        fail(_no_run(run_id))
    return stored


def _no_run(run_id: str) -> str:
    return f"there is no run {run_id}; see: outbox runs list"


async def _followed(system: System, run_id: str, *, quiet: bool) -> dict[str, Any]:
    """A bar for a person at a terminal, a line for each change otherwise."""
    if quiet:
        return await _watch(system, run_id, lambda _: None)
    if not console.is_terminal:
        return await _watch(system, run_id, _Lines())
    with _progress() as progress:
        return await _watch(system, run_id, _Bar(progress, progress.add_task(run_id, total=None, told="")))


def _progress() -> Progress:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, TextColumn("{task.fields[told]}"), console=console)


async def _watch(system: System, run_id: str, tell: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    from firestore_outbox.reminders.view import shown

    while True:
        fields = await shown(system.summary, await _stored(system, run_id))
        tell(fields)
        if fields["status"] in ENDED:
            return fields
        await asyncio.sleep(LOOK_SECONDS)


class _Lines:
    def __init__(self) -> None:
        self._last = ""

    def __call__(self, fields: dict[str, Any]) -> None:
        line = _in_words(fields)
        if line != self._last:
            console.print(line, soft_wrap=True)
            console.file.flush()
            self._last = line


class _Bar:
    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress = progress
        self._task = task

    def __call__(self, fields: dict[str, Any]) -> None:
        counts = fields["counts"]
        self._progress.update(
            self._task,
            description=f"{fields['runId']}  {fields['status']}",
            total=counts["total"] or None,
            completed=_done(counts),
            told=_told(fields),
        )


def _in_words(fields: dict[str, Any]) -> str:
    counts = fields["counts"]
    others = ", ".join(f"{counts[name]:,} {name}" for name in DONE if counts[name])
    done = f"{_done(counts):,} of {counts['total']:,} done"
    return "  ".join(filter(None, (fields["status"], f"{done}: {others}" if others else done, _told(fields))))


def _done(counts: dict[str, int]) -> int:
    return sum(counts[name] for name in DONE)


def _told(fields: dict[str, Any]) -> str:
    told, zone = fields.get("forecast") or {}, _zone(fields)
    if told.get("warning"):
        return str(told["warning"])
    return f"ends {told['endsAt'].astimezone(zone or UTC):%H:%M} {zone or 'UTC'}" if told.get("endsAt") else ""


# --- targets


def targets(
    run_id: RunId,
    status: Annotated[str | None, typer.Option(help="Only targets of this status, such as failed.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="How many, by requestId.")] = 50,
    after: Annotated[str | None, typer.Option(help="Behind this requestId: the last one shown.")] = None,
    csv: Annotated[
        Path | None, typer.Option(help="Write all targets to this file as CSV; - is the standard output.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List each target: address, status, times, error."""
    if csv is not None:
        written = with_system(lambda system: _write_csv(system, run_id, csv))
        if as_json and str(csv) != "-":
            show_json({"runId": run_id, "file": str(csv), "bytes": written})
        elif str(csv) != "-":
            console.print(f"{csv}  {written:,} bytes", soft_wrap=True)
        return
    chosen = _status(status)

    async def work(system: System) -> list[dict[str, Any]]:
        from firestore_outbox.reminders.report import Report

        await _stored(system, run_id)
        return (await Report(system.gateway, system.messages).page(run_id, limit, after, chosen)).targets

    rows = with_system(work)
    if as_json:
        show_json(rows)
        return
    columns = ["to", "status", "sentAt", "deliveredAt", "secondsToSend", "errorCode", "requestId"]
    show_table(columns, [[row.get(name) for name in columns] for row in rows], "there are no such targets")


def _status(name: str | None) -> OutboxStatus | None:
    from firestore_outbox.messages.states import OutboxStatus

    if name is not None and name not in list(OutboxStatus):
        raise typer.BadParameter(f"{name} is none of {', '.join(OutboxStatus)}", param_hint="--status")
    return None if name is None else OutboxStatus(name)


async def _write_csv(system: System, run_id: str, file: Path) -> int:
    """A page at a time, however many targets there are. The number of bytes."""
    from firestore_outbox.reminders.report import Report

    await _stored(system, run_id)
    written = 0
    try:
        with contextlib.nullcontext(sys.stdout) if str(file) == "-" else file.open("w", newline="") as out:
            async for lines in Report(system.gateway, system.messages).as_csv(run_id):
                written += len(lines.encode())
                out.write(lines)
    except OSError as error:
        fail(f"{file} cannot be written: {error.strerror or error}")
    return written


def why(run_id: RunId, as_json: Json = False) -> None:
    """Show what a run waits for."""

    async def work(system: System) -> dict[str, Any]:
        answer = await system.explain_run(run_id)
        if answer is None:
            fail(_no_run(run_id))
        return {"runId": run_id, "sentences": list(answer.sentences), "endsAt": answer.ends_at}

    answer = with_system(work)
    if as_json:
        show_json(answer)
    else:
        console.print("\n".join(answer["sentences"]), soft_wrap=True)


def forecast(run_id: RunId, as_json: Json = False) -> None:
    """Show when a run will end at its account's pace.

    It warns if the run's window is too short."""

    async def work(system: System) -> dict[str, Any]:
        stored = await _stored(system, run_id)
        if stored.run.status in ENDED:
            fail(f"the run has ended ({stored.run.status}); see: outbox runs show {run_id}")
        told = await system.summary.forecast(stored)
        return {
            "runId": run_id,
            "status": stored.run.status.value,
            "endsAt": told.ends_at,
            "windowEndAt": stored.run.window_end_at,
            "timezone": stored.run.window.zone.key,
            "warning": told.warning,
        }

    fields = with_system(work)
    if as_json:
        show_json(fields)
    else:
        show_fields({name: value for name, value in fields.items() if value is not None}, _zone(fields))


# --- pause, resume, cancel, retry-failed


def pause(run_id: RunId, as_json: Json = False) -> None:
    """Stop sending a run's messages until it is resumed. Messages that are being sent are sent."""
    _ask(run_id, Command.PAUSE, as_json)


def resume(run_id: RunId, as_json: Json = False) -> None:
    """Resume a paused run."""
    _ask(run_id, Command.RESUME, as_json)


def cancel(run_id: RunId, yes: Yes = False, as_json: Json = False) -> None:
    """End a run: cancel what has not been sent."""
    _ask(run_id, Command.CANCEL, as_json, first=lambda system, stored: _agree_to_cancel(system, stored, yes))


async def _agree_to_cancel(system: System, stored: StoredRun, yes: bool) -> None:
    from firestore_outbox.messages.states import OutboxStatus

    run = stored.run
    waiting = await system.messages.count_of_run(run.run_id, OutboxStatus.QUEUED)
    if run.status not in ENDED and (waiting > 1 or not run.is_expanded):
        rest = f"{waiting:,} messages" if run.is_expanded else "all messages"
        confirm(f"{rest} of {run.run_id} that have not been sent are cancelled for good", yes=yes)


async def _agree_to_retry(system: System, stored: StoredRun, yes: bool) -> None:
    from firestore_outbox.messages.states import OutboxStatus

    failed = await system.messages.count_of_run(stored.run.run_id, OutboxStatus.FAILED)
    if failed > 1:
        confirm(f"a new run sends {failed:,} failed messages of {stored.run.run_id} again", yes=yes)


def _ask(run_id: str, command: Command, as_json: bool, first: First | None = None) -> None:
    _taken(run_id, lambda system: system.control.ask(run_id, command), first)
    if as_json:
        show_json({"runId": run_id, "requested": command.value})
    else:
        console.print(f"{run_id}  {command.value} requested")


def retry_failed(run_id: RunId, yes: Yes = False, as_json: Json = False) -> None:
    """Start a new run of the targets that failed."""
    again = _taken(
        run_id,
        lambda system: system.control.retry_failed(run_id),
        lambda system, stored: _agree_to_retry(system, stored, yes),
    )
    if as_json:
        show_json({"runId": again, "retryOf": run_id})
    else:
        console.print(again)


def _taken(run_id: str, ask: Callable[[System], Awaitable[Taken | NotTaken]], first: First | None) -> str:
    """The id of the run that the request is about. `first` may ask the operator, and end the command."""

    async def work(system: System) -> str:
        from firestore_outbox.reminders.control import NotTaken

        stored = await _stored(system, run_id)
        if first is not None:
            await first(system, stored)
        result = await ask(system)
        if isinstance(result, NotTaken):
            fail(f"{run_id}: {result.sentence}; see: outbox runs show {run_id}")
        return result.run_id

    return with_system(work)
