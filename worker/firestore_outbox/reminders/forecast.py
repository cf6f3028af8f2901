"""When a run will be done: what is left, at the pace of its account, through the hours of its window, and within what
the account's days allow."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from firestore_outbox.accounts.account import Closed, Hindrance, Open
from firestore_outbox.accounts.window import Window, next_open, window_end_at
from firestore_outbox.health.days import Days
from firestore_outbox.reminders.choices import OnWindowEnd
from firestore_outbox.shown_time import shown_time

LONGEST = timedelta(days=366)
"""The walk through the days ends here: no plan reaches further."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    ends_at: datetime | None
    """None: not within a year, or not before an operator resumes the account."""
    warning: str | None
    """For a person; None if everything goes out in its window."""
    look_at: datetime | None = None
    """When all would be sent if the account were open: the run looks again then, also while no end is known. None: at
    `ends_at`."""


def forecast(
    *,
    targets: int,
    ahead: int,
    interval: timedelta | None,
    window: Window,
    window_end: datetime,
    on_window_end: OnWindowEnd,
    now: datetime,
    days: Days | None = None,
) -> Forecast:
    """`targets` are left of the run, `ahead` are others of the account that go before them; `interval` is one send's
    share of time, and without a pace nothing takes any. `days`: what they allow; None: any number."""
    closes = window_end.astimezone(window.zone)
    if now >= window_end and on_window_end is OnWindowEnd.STOP:
        return Forecast(
            ends_at=now,
            warning=f"none of {targets:,} targets can be sent: the window closed at {closes:%H:%M};"
            " choose a later time, or a longer window",
        )
    needed = min((targets + ahead) * interval, LONGEST) if interval else timedelta(0)
    start = next_open(window, now)
    plain_end = start + needed
    within = ""
    if days is not None and (capped := _capped(days, start, targets + ahead, interval)) != plain_end:
        within = f" within {days.sentence(days.caps.day_of(start))}"
        if capped is None:
            return Forecast(ends_at=None, warning=f"{targets:,} targets{within} would take more than a year")
        plain_end = capped
    local = plain_end.astimezone(window.zone)
    if plain_end <= window_end:
        return Forecast(ends_at=plain_end, warning=None)
    day = "" if local.date() == closes.date() else f" on {local:%Y-%m-%d}"
    pace = f" at {timedelta(minutes=1) / interval:.3g}/min" if interval else ""
    sentence = f"{targets:,} targets{pace}{within} ends {local:%H:%M}{day}; the window closes {closes:%H:%M}"
    if on_window_end is OnWindowEnd.STOP:
        return Forecast(ends_at=plain_end, warning=sentence)
    if days is None:
        ends_at = through_windows(window, start, needed)
    else:
        ends_at = days.walk(start, targets + ahead, interval or timedelta(0), window=window, longest=LONGEST)
    if ends_at is None:
        return Forecast(ends_at=None, warning=f"{sentence}, and it would go on for more than a year")
    shown = ends_at.astimezone(window.zone)
    return Forecast(ends_at=ends_at, warning=f"{sentence}, and it goes on until {shown:%Y-%m-%d %H:%M}")


def _capped(days: Days, start: datetime, count: int, interval: timedelta | None) -> datetime | None:
    return days.walk(start, count, interval or timedelta(0), longest=LONGEST)


def starts_at(now: datetime, closed: Open | Closed) -> datetime:
    """When the account sends again, if that is known; otherwise now."""
    if not isinstance(closed, Closed) or closed.because is Hindrance.WINDOW or closed.until is None:
        return now
    return max(now, closed.until)


def held_up(told: Forecast, closed: Open | Closed) -> Forecast:
    """The forecast with what the account's own state means for it. Without a known end of a pause there is no end."""
    if not isinstance(closed, Closed) or closed.because is Hindrance.WINDOW:
        return told
    if closed.until is None:
        sentence = f"the account is {closed.because}, and sends nothing before it is resumed"
    else:
        sentence = f"the account is {closed.because} until {shown_time(closed.until)}"
    warning = "; ".join(filter(None, (told.warning, sentence)))
    ends_at = None if closed.until is None else told.ends_at
    return Forecast(ends_at=ends_at, warning=warning, look_at=told.ends_at)


def warned(told: Forecast, sentence: str | None) -> Forecast:
    """The forecast with one more warning; the same with None."""
    if sentence is None:
        return told
    return replace(told, warning="; ".join(filter(None, (told.warning, sentence))))


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
