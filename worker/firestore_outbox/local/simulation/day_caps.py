"""Accounts whose day has a cap: worlds that begin shortly before midnight, drawn from a sequence of their own.

The first day has room for a few messages, and the second for all: so a world rests soon after midnight, however many
units its crashes forfeit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

SHARE = 1 / 4
"""Of the worlds without reminders."""
BEFORE_MIDNIGHT = datetime(2026, 3, 1, 23, 58, tzinfo=UTC)
_MIDNIGHT = datetime(2026, 3, 2, tzinfo=UTC)


def draw_warm_up(seed: int) -> int | None:
    """Messages on the first day; None: the day has no cap."""
    random = Random(f"day caps {seed}")
    return random.choice((1, 3, 12)) if random.random() < SHARE else None


def warm_up_fields(first_day: int) -> dict[str, Any]:
    since = f"{BEFORE_MIDNIGHT:%Y-%m-%d}"
    return {"startPerDay": first_day, "factor": 10.0, "untilPerDay": 10 * first_day, "since": since}


def day_breaches(account_id: str, first_day: int, times: Sequence[datetime], skew: timedelta) -> Iterator[str]:
    """`times` are those of the attempts. A worker whose clock is ahead begins the next day early."""
    ends = _MIDNIGHT - skew
    sent = sum(1 for at in times if at < ends)
    if sent > first_day:
        yield f"day: account {account_id} made {sent} attempts on a day that allows {first_day}"
