"""A reminder as it is written on a command line: to whom, what, in which hours, when."""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from io import StringIO
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import typer

from firestore_outbox.cli.times import check_time, time_of

STDIN = "-"
_HOURS = re.compile(r"(\d{1,2})-(\d{1,2})")
_TARGET = re.compile(r"targets\[(\d+)\]")


@dataclass(frozen=True, slots=True)
class Targets:
    targets: Sequence[Any]
    origins: Sequence[str] = ()
    """File and line of each target, for error messages."""

    def in_words(self, fault: str) -> str:
        found = _TARGET.search(fault)
        if found is None or int(found[1]) >= len(self.origins):
            return fault
        return fault.replace(found[0], self.origins[int(found[1])], 1)


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
    if file is None:
        return Targets(to)
    try:
        content = sys.stdin.read() if file == STDIN else Path(file).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"{file} cannot be read ({type(error).__name__})", param_hint="--targets") from None
    try:
        return _rows(content, "standard input" if file == STDIN else file)
    except csv.Error as error:
        raise typer.BadParameter(f"{file} is neither lines nor CSV: {error}", param_hint="--targets") from None


def _rows(content: str, name: str) -> Targets:
    targets: list[Any] = []
    origins: list[str] = []
    rows = csv.reader(StringIO(content), skipinitialspace=True)
    for row in rows:
        cells = [cell.strip() for cell in row]
        is_header = not targets and cells == ["id", "to"]
        if not any(cells) or is_header:
            continue
        if len(cells) > 2:
            hint = f"line {rows.line_num} has {len(cells)} columns; write an address alone, or id,address"
            raise typer.BadParameter(hint, param_hint="--targets")
        targets.append(cells[0] if len(cells) == 1 else {"id": cells[0], "to": cells[1]})
        origins.append(f"{name}, line {rows.line_num}")
    return Targets(targets, origins)


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
