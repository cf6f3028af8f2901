"""Delivery windows: hours on the wall clock of a zone, on days of 23, 24 and 25 hours.

A window is `[startHour, endHour)` in local time: 6 to 18, or over midnight 22 to 6, or the whole day 0 to 24. It is
open when the clock on the wall shows an hour inside it. An hour that the clock jumps over begins at the jump; one that
comes twice begins the first time; so a window opens and closes once a day, at the hours people expect.

All arithmetic goes through local dates, never through "24 hours later".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

_DAYS_TO_SEARCH = 5
"""More than any gap between two openings: a zone may skip a whole day, and a window may fall into a jump."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Changes only when somebody changes the account or the reminder."""

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
    hour = at.astimezone(window.zone).hour
    if window.over_midnight:
        return hour >= window.start_hour or hour < window.end_hour
    return window.start_hour <= hour < window.end_hour


def window_end_at(window: Window, at: datetime) -> datetime:
    """The end of the window that `at` is in; else of the one that starts on the local day of `at`, even if past."""
    today = at.astimezone(window.zone).date()
    if window.over_midnight:
        yesterdays_end = _instant(window, today, window.end_hour)
        if at < yesterdays_end:
            return yesterdays_end
        return _instant(window, today + timedelta(days=1), window.end_hour)
    return _instant(window, today, window.end_hour)


def next_open(window: Window, at: datetime) -> datetime:
    """The first moment from `at` on at which the window is open: `at` itself, if it is."""
    if is_open(window, at):
        return at
    return next(start for start in _starts(window, at) if start > at)


def _starts(window: Window, at: datetime) -> Iterator[datetime]:
    """Openings around `at`, in order; without those of days on which the window falls into a jump."""
    today = at.astimezone(window.zone).date()
    for days in range(-1, _DAYS_TO_SEARCH):
        start = _instant(window, today + timedelta(days=days), window.start_hour)
        if is_open(window, start):
            yield start


def _instant(window: Window, day: date, hour: int) -> datetime:
    """A local hour as an instant. By `fold=0` a skipped hour begins at the jump, a doubled one the first time."""
    if hour == 24:
        day, hour = day + timedelta(days=1), 0
    return datetime.combine(day, time(hour), tzinfo=window.zone).astimezone(UTC)
