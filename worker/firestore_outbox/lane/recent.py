"""What an account sent lately, by the minute: counters that ride on writes of the lane that happen anyway. Pure.

They are for people who look, not for sums: what a holder counted since its last write is lost with it, and nothing is
read or written for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

MINUTES = 60
"""That are kept: the size of the field is bounded by them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Minute:
    sent: int = 0
    failed: int = 0
    throttled: int = 0
    """Attempts that the provider throttled."""

    def plus(self, other: Minute) -> Minute:
        return Minute(
            sent=self.sent + other.sent,
            failed=self.failed + other.failed,
            throttled=self.throttled + other.throttled,
        )


NONE = Minute()


@dataclass(frozen=True, slots=True, kw_only=True)
class Recent:
    minutes: Mapping[int, Minute] = field(default_factory=dict)
    """By minutes since 1970. Those in which nothing happened are absent."""
    day: int = 0
    """Days since 1970 in UTC, of `sent_today`."""
    sent_today: int = 0

    def plus(self, at: datetime, counted: Minute) -> Recent:
        """Without minutes that are older than the last hour before `at`."""
        if counted == NONE:
            return self
        minute, day = minute_of(at), minute_of(at) // 1_440
        minutes = {**self.minutes, minute: self.minutes.get(minute, NONE).plus(counted)}
        return Recent(
            minutes={one: counts for one, counts in minutes.items() if minute - MINUTES < one},
            day=max(day, self.day),
            sent_today=counted.sent + (self.sent_today if day == self.day else 0),
        )

    def last_hour(self, now: datetime) -> tuple[Minute, ...]:
        """The last sixty minutes, the present one last."""
        last = minute_of(now)
        return tuple(self.minutes.get(minute, NONE) for minute in range(last - MINUTES + 1, last + 1))

    def today(self, now: datetime) -> int:
        return self.sent_today if self.day == minute_of(now) // 1_440 else 0


NOTHING_RECENT = Recent()


def minute_of(at: datetime) -> int:
    return int(at.timestamp()) // 60


def recent_text(recent: Recent) -> str | None:
    """As the lane's document has it, one short value that costs little to write: the day and what was sent on it, then
    minute, sent, failed, throttled of each minute. None: nothing was ever counted."""
    if not recent.minutes:
        return None
    rows = [(minute, one.sent, one.failed, one.throttled) for minute, one in sorted(recent.minutes.items())]
    return "|".join(" ".join(map(str, row)) for row in ((recent.day, recent.sent_today), *rows))


def recent_of(text: str | None) -> Recent:
    if text is None:
        return NOTHING_RECENT
    (day, sent_today), *rows = ([int(number) for number in row.split()] for row in text.split("|"))
    minutes = {
        minute: Minute(sent=sent, failed=failed, throttled=throttled) for minute, sent, failed, throttled in rows
    }
    return Recent(minutes=minutes, day=day, sent_today=sent_today)


def together(hours: list[tuple[Minute, ...]]) -> tuple[Minute, ...]:
    """The sum of several accounts, minute by minute."""
    total = [NONE] * MINUTES
    for hour in hours:
        total = [one.plus(other) for one, other in zip(total, hour, strict=True)]
    return tuple(total)
