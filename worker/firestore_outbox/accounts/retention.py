"""Retention: how old an account's messages become before they are deleted, and when the sweep looks. Pure.

    sent      `retentionDays` after it was sent; not while a plan still counts it
    received  `retentionDays` after it was stored
    ended     failed, skipped or cancelled: `retentionDays` after its last change
    waiting   queued, in flight or in doubt: never
    a thread  when its newest message is that old and it has no message left

docs/accounts.md tells it to users; operations/retain.py deletes.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from firestore_outbox.plans.plan import Plan

LEAST_DAYS, MOST_DAYS = 1, 3650
EVERY = timedelta(hours=6)
"""Between two passes. A pass that was missed leaves the next one on the same day."""
FIRST = timedelta(hours=1, minutes=17)
"""The first pass of a day in UTC, away from the full hours at which runs start."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def days_of(value: Any) -> int | None:
    """`retentionDays` of an account's document; None: its messages are kept for ever. So they are if a person wrote
    something else than a number of days into the document: what is deleted does not come back."""
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and LEAST_DAYS <= value <= MOST_DAYS else None


def cutoff(days: int, now: datetime) -> datetime:
    """What is older is deleted."""
    return now - timedelta(days=days)


def sent_cutoff(days: int, plan: Plan | None, now: datetime) -> datetime:
    """The same for messages that were sent. A plan's limits are checked by counting them, so a message stays until no
    limit counts it any more. `plan` is None for an account without a limit."""
    counted_since = () if plan is None else tuple(plan.windows(now))
    return min((cutoff(days, now), *counted_since))


def is_time(now: datetime, window: timedelta) -> bool:
    """Whether a pass begins with this sweep. `window` is the time between two sweeps, so one of them lies in it."""
    return (now - _EPOCH - FIRST) % EVERY < window
