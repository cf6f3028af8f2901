"""The instants that a schedule means.

Cron and RRULE speak of the clock on the wall. They are followed there, without a zone, and each time on the wall is
then put into the zone: an hour that the clock jumps over comes at the jump's far side, one that comes twice counts the
first time. So "every day at 02:30" is once a day also on the two odd days of the year.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import MAXYEAR, UTC, datetime, timedelta
from itertools import islice
from typing import assert_never
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError
from dateutil.rrule import rrule, rruleset, rrulestr

from firestore_outbox.reminders.reminder import Calendar, Cron, Once, Recurrence, Schedule

_ONE_RULE = re.compile(r"[A-Z]+=[A-Z0-9,+-]+(;[A-Z]+=[A-Z0-9,+-]+)*")
_BY = ("BYMONTH", "BYMONTHDAY", "BYYEARDAY", "BYWEEKNO", "BYDAY", "BYHOUR", "BYMINUTE", "BYSETPOS")
_KNOWN = frozenset({"FREQ", "INTERVAL", "COUNT", "UNTIL", "WKST", *_BY})
_TOO_OFTEN = frozenset({"SECONDLY", "MINUTELY"})
_NUMBERS = {"INTERVAL": range(1, 1_001), "COUNT": range(1, 100_001)}
_LATER = 19 * 400
"""Years. The search for a day that never comes, such as the 30th of February, ends with the year 9999, and from our
days that takes half a minute. The calendar repeats itself every 400 years, weekdays and all: rules are followed there.
"""
_LARGEST_JUMP = timedelta(days=1, hours=1)
"""No zone ever changed its clock by more; the search on the wall begins that much earlier."""


class InvalidSchedule(ValueError):
    """Says what is wrong with it."""


def calendar_of(schedule: Schedule, zone: ZoneInfo) -> Calendar:
    match schedule:
        case Once(at=at):
            return lambda after: at.astimezone(UTC) if at > after else None
        case Cron(cron=cron):
            _checked_cron(cron)
            return lambda after: _first(_wall_times_of_cron(cron, _wall(after, zone)), after, zone)
        case Recurrence():
            rule = _rule(schedule, zone)
            return lambda after: rule.kept(_first(_wall_times_of_rule(rule, _wall(after, zone)), after, zone))
        case _:
            assert_never(schedule)


def _first(wall_times: Iterator[datetime], after: datetime, zone: ZoneInfo) -> datetime | None:
    """Times come in the order of the wall. One that the clock jumps over comes later than it is there, perhaps later
    than the next one: 02:10 at 02:40, and then 02:35. Behind one that the clock does show, all are later than it."""
    jumped: datetime | None = None
    for wall in wall_times:
        at = _instant(wall, zone)
        if at <= after:
            continue
        if _is_shown(wall, at, zone):
            return at if jumped is None else min(at, jumped)
        jumped = at if jumped is None else min(at, jumped)
    return jumped


def _wall(at: datetime, zone: ZoneInfo) -> datetime:
    """What the clock on the wall shows; where the clock is changed, enough before it to miss nothing."""
    local = at.astimezone(zone)
    offsets = {(at + _LARGEST_JUMP * side).astimezone(zone).utcoffset() for side in (-1, 0, 1)}
    return local.replace(tzinfo=None) - (timedelta(0) if len(offsets) == 1 else _LARGEST_JUMP)


def _instant(wall: datetime, zone: ZoneInfo) -> datetime:
    return wall.replace(tzinfo=zone, fold=0).astimezone(UTC)


def _is_shown(wall: datetime, at: datetime, zone: ZoneInfo) -> bool:
    """Whether the clock ever shows this time, or jumps over it."""
    return at.astimezone(zone).replace(tzinfo=None) == wall


# --- cron


def _checked_cron(cron: str) -> None:
    if len(cron.split()) != 5:
        raise InvalidSchedule(
            f"{cron!r} has {len(cron.split())} fields; cron here has 5: minute hour day month weekday"
        )
    try:
        CronSim(cron, datetime(2026, 1, 1))  # noqa: DTZ001 - the clock on a wall has no zone
    except CronSimError as error:
        raise InvalidSchedule(f"{cron!r} is no cron schedule: {str(error).lower()}") from error


def _wall_times_of_cron(cron: str, wall: datetime) -> Iterator[datetime]:
    yield from CronSim(cron, wall)


# --- RRULE


@dataclass(frozen=True, slots=True)
class _Rule:
    times: rrule | rruleset
    """In order, `_LATER` than they are, and more of them than `count` says."""
    count: int | None
    until: datetime | None = None
    """An instant, and not a time on the wall, which may come twice or never."""

    def kept(self, at: datetime | None) -> datetime | None:
        return None if at is None or (self.until is not None and at > self.until) else at


def _rule(schedule: Recurrence, zone: ZoneInfo) -> _Rule:
    text = schedule.rrule.strip().upper().removeprefix("RRULE:")
    if not _ONE_RULE.fullmatch(text):
        raise InvalidSchedule(f"{schedule.rrule!r} must be one rule of RFC 5545, such as FREQ=WEEKLY;BYDAY=MO")
    said = dict(pair.split("=") for pair in text.split(";"))
    _check_words(said)
    start = _later(schedule.start.astimezone(zone).replace(tzinfo=None))
    try:
        count = int(said.pop("COUNT")) if "COUNT" in said else None
        until = _instant_until(said["UNTIL"]) if "UNTIL" in said else None
        if "UNTIL" in said:
            said["UNTIL"] = _until(said["UNTIL"], zone)
        times = rrulestr(";".join(f"{name}={value}" for name, value in said.items()), dtstart=start, cache=True)
    except (ValueError, TypeError, KeyError, OverflowError) as error:
        raise InvalidSchedule(f"{schedule.rrule!r} is no recurrence rule of RFC 5545: {error}") from error
    return _Rule(times, count, until)


def _check_words(said: Mapping[str, str]) -> None:
    if "FREQ" not in said:
        raise InvalidSchedule("FREQ is missing: YEARLY, MONTHLY, WEEKLY, DAILY or HOURLY")
    if said["FREQ"] in _TOO_OFTEN or "," in said.get("BYMINUTE", ""):
        raise InvalidSchedule("by RRULE a reminder fires once an hour at most; for minutes there is cron")
    if unknown := sorted(said.keys() - _KNOWN):
        raise InvalidSchedule(f"{unknown[0]} is not known here; known are {', '.join(sorted(_KNOWN))}")
    if {"COUNT", "UNTIL"} <= said.keys():
        raise InvalidSchedule("COUNT and UNTIL exclude each other")
    for name, allowed in _NUMBERS.items():
        if name in said and not (said[name].isdigit() and int(said[name]) in allowed):
            raise InvalidSchedule(f"{name} is {said[name]}; it must be from {allowed[0]} to {allowed[-1]:,}")


def _instant_until(text: str) -> datetime | None:
    return datetime.strptime(text, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC) if text.endswith("Z") else None


def _until(text: str, zone: ZoneInfo) -> str:
    """On the wall, as the rule is followed there. Without a time it is the whole of that day. Behind an instant, which
    is looked at as such, some are left over."""
    if (instant := _instant_until(text)) is not None:
        until = instant.astimezone(zone).replace(tzinfo=None)
        until += _LARGEST_JUMP if until.year < MAXYEAR else timedelta(0)
    else:
        until = datetime.strptime(text if "T" in text else f"{text}T235959", "%Y%m%dT%H%M%S")  # noqa: DTZ007 - on the wall
    return f"{min(until.year + _LATER, MAXYEAR)}{until:%m%dT%H%M%S}"


def _later(wall: datetime) -> datetime:
    return wall.replace(year=wall.year + _LATER)


def _wall_times_of_rule(rule: _Rule, wall: datetime) -> Iterator[datetime]:
    first = _later(wall)
    return (at.replace(year=at.year - _LATER) for at in islice(rule.times, rule.count) if at >= first)
