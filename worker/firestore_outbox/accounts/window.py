"""Delivery windows: hours on the wall clock of a zone, on days of 23, 24 and 25 hours.

A window is `[startHour, endHour)` in local time: 6 to 18, or over midnight 22 to 6, or the whole day 0 to 24. It opens
when the clock on the wall first shows its first hour, and closes when it first shows its last. An hour that the clock
jumps over begins at the jump, also in the midst of it; one that comes twice begins the first time; on a date that a
zone left out, the next one counts. So a window opens and closes once a day, at the hours people expect.

All arithmetic goes through local dates, never through "24 hours later".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

_DAY = timedelta(days=1)
_DAYS_TO_SEARCH = 5
"""More than any gap between two openings: a zone may skip a whole day, and a window may fall into a jump."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Changes only when a person changes the account or the reminder."""

    start_hour: int
    end_hour: int
    zone: ZoneInfo

    def __post_init__(self) -> None:
        if not (0 <= self.start_hour <= 23 and 1 <= self.end_hour <= 24) or self.start_hour == self.end_hour:
            raise ValueError(f"no window from {self.start_hour} to {self.end_hour}")

    @property
    def over_midnight(self) -> bool:
        return self.end_hour < self.start_hour


def is_open(window: Window, at: datetime) -> bool:
    today = at.astimezone(window.zone).date()
    if _instant(window, today, window.start_hour) <= at < _end_of(window, today):
        return True
    return window.over_midnight and at < _end_of(window, today - _DAY)


def window_end_at(window: Window, at: datetime) -> datetime:
    """The end of the window that `at` is in; else of the one that starts on the local day of `at`, even if past."""
    today = at.astimezone(window.zone).date()
    if window.over_midnight and at < (yesterdays := _end_of(window, today - _DAY)):
        return yesterdays
    return _end_of(window, today)


def next_open(window: Window, at: datetime) -> datetime:
    """The first moment from `at` on at which the window is open: `at` itself, if it is."""
    if is_open(window, at):
        return at
    return next(start for start in _starts(window, at) if start > at)


def opening_before(window: Window, end: datetime, at: datetime) -> datetime:
    """The first moment from `at` on in the window that ends at `end`, which is not over yet. To a clock that is behind
    the one that moved something to the next window, the last one may still be open."""
    opening = next_open(window, at)
    while (earlier := window_end_at(window, opening)) < end:
        opening = next_open(window, earlier)
    return opening


def are_open(windows: Sequence[Window], at: datetime) -> bool:
    """Whether all of them are."""
    return all(is_open(window, at) for window in windows)


def opening_of_all(windows: Sequence[Window], at: datetime, *, until: datetime) -> datetime | None:
    """The first moment from `at` on at which all of them are open; None: there is none until `until`."""
    while at <= until:
        opening = max((next_open(window, at) for window in windows), default=at)
        if opening == at:
            return at
        at = opening
    return None


def start_of_day(zone: ZoneInfo, day: date) -> datetime:
    """The first moment of that date on the zone's clock; of the next one, if the zone left the date out."""
    return _instant(Window(start_hour=0, end_hour=24, zone=zone), day, 0)


def _starts(window: Window, at: datetime) -> Iterator[datetime]:
    """Openings around `at`, in order; without those of days on which the window falls into a jump."""
    today = at.astimezone(window.zone).date()
    for days in range(-1, _DAYS_TO_SEARCH):
        start = _instant(window, today + days * _DAY, window.start_hour)
        if is_open(window, start):
            yield start


def _end_of(window: Window, day: date) -> datetime:
    """The end of the window that starts on that day."""
    return _instant(window, day + _DAY if window.over_midnight else day, window.end_hour)


def _instant(window: Window, day: date, hour: int) -> datetime:
    """When the clock first shows that hour, or jumps over it."""
    if hour == 24:
        day, hour = day + _DAY, 0
    zone, wall = window.zone, datetime.combine(day, time(hour))
    at = wall.replace(tzinfo=zone).astimezone(UTC)
    if _shows(zone, at) == wall:
        return at
    noon = datetime.combine(day, time(12))
    if _shows(zone, noon.replace(tzinfo=zone).astimezone(UTC)) != noon:
        return _instant(window, day + _DAY, hour)  # a date that was left out
    return _jump(zone, before=wall.replace(tzinfo=zone, fold=1).astimezone(UTC), after=at)


def _shows(zone: ZoneInfo, at: datetime) -> datetime:
    return at.astimezone(zone).replace(tzinfo=None)


def _jump(zone: ZoneInfo, *, before: datetime, after: datetime) -> datetime:
    """The second in between at which the clock changes, by halves."""
    changed = after.astimezone(zone).utcoffset()
    while after - before > timedelta(seconds=1):
        middle = before + timedelta(seconds=(after - before) // timedelta(seconds=2))
        if middle.astimezone(zone).utcoffset() == changed:
            after = middle
        else:
            before = middle
    return after
