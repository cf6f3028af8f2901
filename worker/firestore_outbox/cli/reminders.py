"""Commands about reminders: add one and see what it will do, list them, pause, resume."""

from __future__ import annotations

import secrets
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any
from zoneinfo import ZoneInfo

import typer

from firestore_outbox.cli.ids import ReminderId
from firestore_outbox.cli.output import Json, Yes, confirm, console, fail, show_fields, show_json, show_table
from firestore_outbox.cli.reminder_files import check_files
from firestore_outbox.cli.reminder_options import When, confirm_targets, hours_of, parts_of, targets_in, targets_of
from firestore_outbox.cli.system import existing_account, with_system
from firestore_outbox.cli.times import zone_of, zone_of_account
from firestore_outbox.reminders.choices import Category, Missed, OnWindowEnd
from firestore_outbox.reminders.reminder_states import ReminderStatus
from firestore_outbox.shown_time import shown_time

if TYPE_CHECKING:
    from firestore_outbox.firestore.gateway import Snapshot
    from firestore_outbox.reminders.add import Added
    from firestore_outbox.reminders.change import Changed
    from firestore_outbox.reminders.reminder import InvalidReminder, Reminder
    from firestore_outbox.wiring import System

MOST = 1_000


def register(app: typer.Typer) -> None:
    reminders = typer.Typer(
        help="Reminders, which fire runs: add, list, show, edit, pause, resume, remove.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    reminders.command()(add)
    reminders.command("list")(list_)
    reminders.command()(show)
    reminders.command()(edit)
    reminders.command()(pause)
    reminders.command()(resume)
    reminders.command()(remove)
    app.add_typer(reminders, name="reminders")


# --- add


def add(
    account: Annotated[str, typer.Option(help="The account to send from.")],
    to: Annotated[list[str] | None, typer.Option(help="A recipient's address; may be repeated.")] = None,
    targets: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Addresses, or CSV with a header: to, id, timezone; other columns are variables. - is standard input.",
        ),
    ] = None,
    text: Annotated[str | None, typer.Option(help="The text of the message.")] = None,
    parts: Annotated[str | None, typer.Option(metavar="JSON", help="A list of parts, instead of --text.")] = None,
    timezone: Annotated[str | None, typer.Option(help="Such as Asia/Kuala_Lumpur; the account's by default.")] = None,
    window: Annotated[str, typer.Option(metavar="HOURS", help="Delivery hours; over midnight 22-6, all day 0-24.")] = (
        "6-18"
    ),
    at: Annotated[
        str | None, typer.Option(metavar="TIME", help="Once: 2030-01-31T09:00, in the time zone; or now.")
    ] = None,
    cron: Annotated[str | None, typer.Option(help="Minute, hour, day, month, weekday: '0 9 * * 1-5'.")] = None,
    rrule: Annotated[str | None, typer.Option(help="RFC 5545: 'FREQ=WEEKLY;BYDAY=MO', with --start.")] = None,
    start: Annotated[str | None, typer.Option(metavar="TIME", help="When --rrule begins.")] = None,
    on_window_end: Annotated[
        OnWindowEnd, typer.Option(help="What to do with targets that do not fit into the window.")
    ] = OnWindowEnd.STOP,
    missed: Annotated[
        Missed, typer.Option(help="What to do about a missed time: nothing ran, or the reminder was paused.")
    ] = Missed.SKIP,
    category: Annotated[
        Category, typer.Option(help="The account's frequency cap counts marketing alone.")
    ] = Category.UTILITY,
    reminder_id: Annotated[
        str | None, typer.Option("--id", metavar="ID", help="Random if not given. The same id again adds nothing.")
    ] = None,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Add a reminder, and show its next times and when its run will end."""
    read = targets_of(to or (), targets)
    confirm_targets(read, targets, yes=yes)
    said = parts_of(text, parts)
    hours = hours_of(window)
    when = When(at, cron, rrule, start)
    when.check()
    given = None if timezone is None else zone_of(timezone)

    async def work(system: System) -> tuple[Added, ZoneInfo]:
        from firestore_outbox.reminders.add import Differs
        from firestore_outbox.reminders.check import Faulty, NewReminder

        found = await existing_account(system, account)
        zone = given or zone_of_account(found)
        await check_files(system, account, said)
        new = NewReminder(
            reminder_id=reminder_id or f"reminder-{secrets.token_hex(6)}",
            fields={
                "accountId": account,
                "parts": said,
                "timezone": zone.key,
                "window": hours,
                "schedule": when.schedule(zone, system.clock()),
                "onWindowEnd": on_window_end.value,
                "missed": missed.value,
                "category": category.value,
            },
            targets=read.targets,
            created_by="outbox-cli",
        )
        result = await system.remind(new)
        if isinstance(result, Faulty):
            fail("the reminder was refused: " + "\n  ".join(read.in_words(fault) for fault in result.sentences))
        if isinstance(result, Differs):
            fail(f"another reminder has the id {new.reminder_id}; choose another --id")
        return result, zone

    added, zone = with_system(work)
    _show_added(added, zone, as_json)


def _show_added(added: Added, zone: ZoneInfo, as_json: bool) -> None:
    forecast = added.forecast
    if as_json:
        told = None if forecast is None else {"endsAt": forecast.ends_at, "warning": forecast.warning}
        show_json(
            {
                "reminderId": added.reminder_id,
                "isNew": added.is_new,
                "status": added.status.value,
                "targets": added.targets,
                "nextFires": list(added.fires),
                "forecast": told,
            }
        )
        return
    there = "" if added.is_new else "  (it existed already)"
    console.print(f"{added.reminder_id}  {added.status.value}  {added.targets:,} targets{there}")
    for fire in added.fires:
        console.print(f"  fires {shown_time(fire, zone)}")
    if forecast is not None and forecast.ends_at is not None:
        console.print(f"  ends  {shown_time(forecast.ends_at, zone)}, as things are now")
    if forecast is not None and forecast.warning is not None:
        console.print(f"  warning: {forecast.warning}", style="yellow", soft_wrap=True)


# --- list


def list_(as_json: Json = False) -> None:
    """List all reminders, with their next time and their last run."""

    async def work(system: System) -> list[dict[str, Any]]:
        return [_row(snapshot, system.clock()) for snapshot in await system.runs.reminders(MOST)]

    rows = with_system(work)
    if as_json:
        show_json(rows)
        return
    columns = ["reminderId", "accountId", "status", "schedule", "timezone", "targets", "nextFireAt", "lastRunId"]
    empty = "there are no reminders; add one with: outbox reminders add"
    show_table(columns, [[row[name] for name in columns] for row in rows], empty)


def _row(snapshot: Snapshot, now: datetime) -> dict[str, Any]:
    from firestore_outbox.reminders.reminder import parse_reminder
    from firestore_outbox.reminders.store import INCOMPLETE

    data, parsed = snapshot.data, parse_reminder(snapshot.id, snapshot.data)
    return {
        "reminderId": snapshot.id,
        "accountId": data.get("accountId"),
        "status": _status(parsed, incomplete=bool(data.get(INCOMPLETE))),
        "schedule": _schedule(data.get("schedule")),
        "timezone": data.get("timezone"),
        "targets": data.get("targetCount", len(data.get("targets") or ()) or None),
        "nextFireAt": _next(parsed, now),
        "lastRunId": data.get("lastRunId"),
    }


def _status(parsed: Reminder | InvalidReminder, *, incomplete: bool) -> str:
    from firestore_outbox.reminders.reminder import InvalidReminder

    if isinstance(parsed, InvalidReminder):
        return f"cannot fire: {parsed}"
    return "incomplete" if incomplete else parsed.status.value


def _schedule(schedule: Any) -> str:
    if not isinstance(schedule, dict):
        return ""
    said = schedule.get("cron") or schedule.get("rrule") or schedule.get("at")
    return f"at {shown_time(said)}" if isinstance(said, datetime) else str(said)


def _next(parsed: Reminder | InvalidReminder, now: datetime) -> datetime | None:
    from firestore_outbox.reminders.reminder import InvalidReminder

    if isinstance(parsed, InvalidReminder) or parsed.status is not ReminderStatus.ACTIVE:
        return None
    from firestore_outbox.reminders.calendar import InvalidSchedule
    from firestore_outbox.reminders.check import next_fires

    try:
        return next(iter(next_fires(parsed, now)), None)
    except InvalidSchedule:
        return None


# --- show, edit, remove


def show(reminder: ReminderId, as_json: Json = False) -> None:
    """Show what a reminder sends, when, and any fault."""

    async def work(system: System) -> dict[str, Any]:
        found = await system.runs.reminder_document(reminder)
        if found is None:
            fail(f"there is no reminder {reminder}; see: outbox reminders list")
        data = found.data
        fields = {name: data[name] for name in _SHOWN if data.get(name) is not None}
        return {**_row(found, system.clock()), **fields}

    fields = with_system(work)
    show_json(fields) if as_json else show_fields(fields)


_SHOWN = ("window", "parts", "onWindowEnd", "missed", "category", "problem", "createdBy", "createdAt", "lastFireAt")


def edit(
    reminder: ReminderId,
    targets: Annotated[str | None, typer.Option(metavar="FILE", help="Other recipients, as in add.")] = None,
    text: Annotated[str | None, typer.Option(help="Another text.")] = None,
    parts: Annotated[str | None, typer.Option(metavar="JSON", help="Other parts, instead of --text.")] = None,
    timezone: Annotated[str | None, typer.Option(help="Another time zone.")] = None,
    window: Annotated[str | None, typer.Option(metavar="HOURS", help="Other delivery hours, such as 8-20.")] = None,
    at: Annotated[str | None, typer.Option(metavar="TIME", help="Fire once, at this time.")] = None,
    cron: Annotated[str | None, typer.Option(help="Fire at these times.")] = None,
    on_window_end: Annotated[OnWindowEnd | None, typer.Option(help="As in add.")] = None,
    missed: Annotated[Missed | None, typer.Option(help="As in add.")] = None,
    category: Annotated[Category | None, typer.Option(help="As in add.")] = None,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Change a reminder. Runs that have begun go on as they were; a new schedule counts from now."""
    changes: dict[str, Any] = {}
    if text is not None or parts is not None:
        changes["parts"] = parts_of(text, parts)
    if window is not None:
        changes["window"] = hours_of(window)
    if timezone is not None:
        changes["timezone"] = zone_of(timezone).key
    if on_window_end is not None:
        changes["onWindowEnd"] = on_window_end.value
    if missed is not None:
        changes["missed"] = missed.value
    if category is not None:
        changes["category"] = category.value
    if targets is not None:
        read = targets_in(targets)
        confirm_targets(read, targets, yes=yes)
        changes["targets"] = list(read.targets)
    when = When(at, cron, None, None) if at is not None or cron is not None else None
    if when is not None:
        when.check()
    if not changes and when is None:
        raise typer.BadParameter("say what to change, for instance --window 8-20; see --help")

    async def work(system: System) -> Changed:
        from firestore_outbox.reminders.change import NotChanged

        if when is not None:
            found = await system.runs.reminder_document(reminder)
            zone = zone_of(changes.get("timezone") or ("UTC" if found is None else found.data.get("timezone", "UTC")))
            changes["schedule"] = when.schedule(zone, system.clock())
        result = await system.change_reminder.edit(reminder, changes)
        if isinstance(result, NotChanged):
            fail(f"the reminder stays as it was: {result.sentence}")
        return result

    _show_changed(reminder, with_system(work), as_json)


def remove(reminder: ReminderId, yes: Yes = False, as_json: Json = False) -> None:
    """Delete a reminder and its targets. Its runs stay, and go on."""
    confirm(f"The reminder {reminder} and its targets will be deleted", yes=yes)

    async def work(system: System) -> None:
        from firestore_outbox.reminders.change import NotChanged

        result = await system.change_reminder.remove(reminder)
        if isinstance(result, NotChanged):
            fail(f"{result.sentence}; see: outbox reminders list")

    with_system(work)
    show_json({"reminderId": reminder, "removed": True}) if as_json else console.print(f"{reminder}  removed")


# --- pause, resume


def pause(reminder: ReminderId, as_json: Json = False) -> None:
    """Stop a reminder from firing. To pause a run that is under way: outbox runs pause."""
    _set(reminder, ReminderStatus.PAUSED, as_json)


def resume(reminder: ReminderId, as_json: Json = False) -> None:
    """Let a paused reminder fire again. Missed times are handled as its --missed says."""
    _set(reminder, ReminderStatus.ACTIVE, as_json)


def _set(reminder_id: str, status: ReminderStatus, as_json: bool) -> None:
    async def work(system: System) -> Changed:
        from firestore_outbox.reminders.change import NotChanged

        result = await system.change_reminder.set_status(reminder_id, status)
        if isinstance(result, NotChanged):
            fail(f"{result.sentence}; see: outbox reminders list")
        return result

    _show_changed(reminder_id, with_system(work), as_json)


def _show_changed(reminder_id: str, changed: Changed, as_json: bool) -> None:
    next_fire = changed.fires[0] if changed.fires else None
    if as_json:
        show_json({"reminderId": reminder_id, "status": changed.status.value, "nextFireAt": next_fire})
    else:
        console.print(
            f"{reminder_id}  {changed.status.value}" + (f"  fires {shown_time(next_fire)}" if next_fire else "")
        )
