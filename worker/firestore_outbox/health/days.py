"""What the days to come allow, for forecasts: the caps of the account and the provider's messaging tier. Pure.

The tier counts people in 24 hours, and a forecast counts messages in a day: for runs that is the same, because a run
writes to each target once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from firestore_outbox.accounts.window import Window, next_open, window_end_at
from firestore_outbox.health.caps import DayCaps
from firestore_outbox.health.day_use import DayUse


@dataclass(frozen=True, slots=True, kw_only=True)
class Days:
    caps: DayCaps
    tier: int | None = None
    used: dict[date, int] = field(default_factory=dict)
    """What was used of days before the forecast."""

    def room(self, day: date) -> int | None:
        """None: any number."""
        limits = [limit for limit in (self.caps.sends_on(day), self.tier) if limit is not None]
        return max(0, min(limits) - self.used.get(day, 0)) if limits else None

    def sentence(self, day: date) -> str:
        """What limits that day, for a person."""
        limit = self.caps.sends_on(day)
        if self.tier is not None and (limit is None or self.tier < limit):
            return f"the provider's tier of {self.tier:,} people a day"
        return self.caps.sentence(day)

    def walk(
        self, start: datetime, count: int, interval: timedelta, *, window: Window | None = None, longest: timedelta
    ) -> datetime | None:
        """When that many are sent, at the pace and within the days; None: not within `longest`."""
        at, opens = start, _always if window is None else window_opening(window)
        used = dict(self.used)
        while (at := opens(at)) < start + longest:
            day = self.caps.day_of(at)
            end = self.caps.after(day) if window is None else min(self.caps.after(day), window_end_at(window, at))
            room = Days(caps=self.caps, tier=self.tier, used=used).room(day)
            fits = (end - at) // interval if interval else count
            sends = min(count, fits, count if room is None else room)
            count -= sends
            if count <= 0:
                return at + sends * interval
            used[day] = used.get(day, 0) + sends
            at = end
        return None


def window_opening(window: Window) -> Callable[[datetime], datetime]:
    return lambda at: next_open(window, at)


def _always(at: datetime) -> datetime:
    return at


def days_of(caps: DayCaps | None, tier: int | None, zone: ZoneInfo, use: DayUse | None = None) -> Days | None:
    """None: the days allow any number. `zone` is that of an account without caps; `use` is the lane's."""
    if tier is None and (caps is None or (caps.daily is None and caps.warm_up is None)):
        return None
    return Days(caps=caps or DayCaps(zone=zone), tier=tier, used={} if use is None else {use.day: use.sends})


def new_contacts_warning(caps: DayCaps | None, targets: int) -> str | None:
    """For a person; None: there is no cap, or all targets may be new. Who is new is known only when it is sent."""
    if caps is None or caps.new_contacts is None or targets <= caps.new_contacts:
        return None
    days = -(-targets // caps.new_contacts)
    return (
        f"the account writes to {caps.new_contacts:,} new contacts a day: if all targets are new, it takes {days} days"
    )
