"""When a run will be done: what is left, at the pace of its account, through the hours of its window."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from firestore_outbox.accounts.window import Window, next_open, window_end_at
from firestore_outbox.reminders.run import OnWindowEnd

LONGEST = timedelta(days=366)
"""Beyond this nobody plans, and the walk through the days ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    ends_at: datetime | None
    """None: not within a year."""
    warning: str | None
    """For a person; None if everything goes out in its window."""


def forecast(
    *,
    targets: int,
    ahead: int,
    interval: timedelta | None,
    window: Window,
    window_end: datetime,
    on_window_end: OnWindowEnd,
    now: datetime,
) -> Forecast:
    """`targets` are left of the run, `ahead` are others of the account that go before them; `interval` is one send's
    share of time, and without a pace nothing takes any."""
    closes = window_end.astimezone(window.zone)
    if now >= window_end and on_window_end is OnWindowEnd.STOP:
        return Forecast(
            ends_at=now, warning=f"none of {targets:,} targets can be sent: the window closes {closes:%H:%M}"
        )
    needed = min((targets + ahead) * interval, LONGEST) if interval else timedelta(0)
    start = next_open(window, now)
    plain_end = start + needed
    local = plain_end.astimezone(window.zone)
    if plain_end <= window_end:
        return Forecast(ends_at=plain_end, warning=None)
    day = "" if local.date() == closes.date() else f" on {local:%Y-%m-%d}"
    pace = f" at {timedelta(minutes=1) / interval:g}/min" if interval else ""
    sentence = f"{targets:,} targets{pace} ends {local:%H:%M}{day}; the window closes {closes:%H:%M}"
    if on_window_end is OnWindowEnd.STOP:
        return Forecast(ends_at=plain_end, warning=sentence)
    ends_at = through_windows(window, start, needed)
    if ends_at is None:
        return Forecast(ends_at=None, warning=f"{sentence}, and it would go on for more than a year")
    shown = ends_at.astimezone(window.zone)
    return Forecast(ends_at=ends_at, warning=f"{sentence}, and it goes on until {shown:%Y-%m-%d %H:%M}")


def through_windows(window: Window, start: datetime, needed: timedelta) -> datetime | None:
    """When so much time has passed inside the window, counted from `start`."""
    at, last = next_open(window, start), start + LONGEST
    while at < last:
        end = window_end_at(window, at)
        if needed <= end - at:
            return at + needed
        needed -= end - at
        at = next_open(window, end)
    return None
