"""How many messages an account may send on a day, and to how many new contacts. Pure.

A day is a date on the account's own clock, of 23, 24 or 25 hours. The warm-up is a table that grows by a factor each
day, counted from its first day, and ends when it reaches `until`:

    startPerDay 50, factor 2, untilPerDay 500        50  100  200  400  no limit

The smaller of warm-up and daily cap counts. A contact is new while no message of its conversation was ever sent or
received: a person who wrote first is no new contact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from firestore_outbox.accounts.window import start_of_day


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmUp:
    start: int
    """Messages on the first day."""
    factor: float
    """Above 1: each day allows this many times the messages of the day before."""
    until: int
    """The warm-up ends on the day that would reach it."""
    since: date | None = None
    """The first day. None: it has not begun, and every day is a first day."""

    def limit(self, day: date) -> int | None:
        """None: the warm-up has ended."""
        passed = 0 if self.since is None else max(0, (day - self.since).days)
        if self.start >= self.until or passed > math.log(self.until / self.start, self.factor) + 1:
            return None
        limit = math.floor(self.start * self.factor**passed + 1e-9)
        return limit if limit < self.until else None


@dataclass(frozen=True, slots=True, kw_only=True)
class DayCaps:
    """Changes only when a person changes the account."""

    zone: ZoneInfo
    daily: int | None = None
    warm_up: WarmUp | None = None
    new_contacts: int | None = None
    """None of the three: no limit."""

    def sends_on(self, day: date) -> int | None:
        """None: as many as the pace allows."""
        limits = (self.daily, None if self.warm_up is None else self.warm_up.limit(day))
        return min((limit for limit in limits if limit is not None), default=None)

    def day_of(self, at: datetime) -> date:
        return at.astimezone(self.zone).date()

    def start_of(self, day: date) -> datetime:
        return start_of_day(self.zone, day)

    def after(self, day: date, days: int = 1) -> datetime:
        """When the day begins that comes `days` later."""
        return self.start_of(day + timedelta(days=days))

    def sentence(self, day: date) -> str:
        """What the limit of that day is, for a person."""
        limit, warming = self.sends_on(day), None if self.warm_up is None else self.warm_up.limit(day)
        name = "its warm-up" if warming is not None and warming == limit else "its daily cap"
        return f"{name} of {limit or 0:,} messages"
