"""A reminder as it is written on a command line: to whom, what, in which hours, when."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import typer

from firestore_outbox.cli.output import confirm, console, show_table
from firestore_outbox.cli.times import check_time, time_of
from firestore_outbox.reminders.target_file import BadFile, TargetFile, located, parse_target_file

STDIN = "-"
PREVIEW = 5
"""Targets of a file that are shown before the question."""
_HOURS = re.compile(r"(\d{1,2})-(\d{1,2})")


@dataclass(frozen=True, slots=True)
class Targets:
    targets: Sequence[Any]
    origins: Sequence[str] = ()
    """File and line of each target, for error messages."""
    file: TargetFile | None = None
    """What was understood of the file; None: the targets come from options."""

    def in_words(self, fault: str) -> str:
        return located(fault, self.origins)


@dataclass(frozen=True, slots=True)
class When:
    """The schedule as the command line has it."""

    at: str | None
    cron: str | None
    rrule: str | None
    start: str | None

    def check(self) -> None:
        if sum(value is not None for value in (self.at, self.cron, self.rrule)) != 1:
            raise typer.BadParameter("give the schedule with exactly one of --at, --cron and --rrule")
        if (self.rrule is None) != (self.start is None):
            raise typer.BadParameter("--rrule and --start belong together: the rule, and when it begins")
        check_time("--at", self.at)
        check_time("--start", self.start)

    def schedule(self, zone: ZoneInfo, now: datetime) -> dict[str, Any]:
        if self.cron is not None:
            return {"type": "cron", "cron": self.cron}
        if self.rrule is not None:
            return {"type": "rrule", "rrule": self.rrule, "start": time_of("--start", self.start or "", zone, now)}
        return {"type": "once", "at": time_of("--at", self.at or "", zone, now)}


def targets_of(to: Sequence[str], file: str | None) -> Targets:
    if bool(to) == (file is not None):
        raise typer.BadParameter("give the recipients either with --to, which may be repeated, or with --targets FILE")
    return Targets(to) if file is None else targets_in(file)


def targets_in(file: str) -> Targets:
    try:
        content = sys.stdin.read() if file == STDIN else Path(file).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"{file} cannot be read ({type(error).__name__})", param_hint="--targets") from None
    name = "standard input" if file == STDIN else file
    found = parse_target_file(content)
    if isinstance(found, BadFile):
        raise typer.BadParameter(f"{name}, {found}", param_hint="--targets")
    return Targets(found.targets, tuple(f"{name}, line {line}" for line in found.lines), found)


def confirm_targets(read: Targets, file: str | None, *, yes: bool) -> None:
    """On a terminal, show what was understood of a file, and ask. A script is not asked."""
    if read.file is None or yes or file == STDIN or not sys.stdin.isatty():
        return
    found = read.file
    columns = ["id", "to", *found.variables]
    rows = [
        [one["id"], one["to"], *(one.get("variables", {}).get(name, "") for name in found.variables)]
        for one in found.targets
    ]
    show_table(columns, rows[:PREVIEW], "")
    more = f"  … and {len(rows) - PREVIEW:,} more" if len(rows) > PREVIEW else ""
    twice = f"  ({found.repeated:,} repeated rows count once)" if found.repeated else ""
    console.print(f"{len(rows):,} targets{twice}{more}")
    confirm("The reminder sends to these targets", yes=False)


def parts_of(text: str | None, parts: str | None) -> list[Any]:
    if (text is None) == (parts is None):
        raise typer.BadParameter("give the content either with --text or with --parts")
    if parts is None:
        return [{"type": "text", "text": text}]
    try:
        given: Any = json.loads(parts)
    except (ValueError, RecursionError):
        raise typer.BadParameter("the content is not JSON", param_hint="--parts") from None
    if not isinstance(given, list):
        raise typer.BadParameter('it must be a list, such as [{"type": "text", "text": "x"}]', param_hint="--parts")
    return given


def hours_of(window: str) -> dict[str, int]:
    found = _HOURS.fullmatch(window.strip())
    if found is None:
        raise typer.BadParameter(f"{window!r} must be two hours, such as 6-18", param_hint="--window")
    return {"startHour": int(found[1]), "endHour": int(found[2])}
