"""An app-wide throttle: the provider tells one account, and all accounts of that provider wait.

`limits/app-{provider}.pausedUntil` is authoritative. Each worker keeps one copy for all its lanes. The copy is good for
two minutes after it was read, and as long after the provider accepted a call: an app that is throttled accepts none. So
while messages go out, no read is made at all. A crash leaves a pause that ends by itself.
"""

from __future__ import annotations

from datetime import datetime, timedelta

FRESH = timedelta(seconds=120)
"""How long a worker believes its copy. A change of an account goes unnoticed for as long (sending/turn.py)."""
ENOUGH = 0.75
"""A known pause that lasts for this share of the one asked for is long enough. Calls in flight at the same time are
all throttled, each with a slightly later end; only the first of them is worth a write."""
SPREAD = 0.25
"""Over this share of the wait, lanes come back one after the other: all at once they would be throttled again."""


def is_worth_a_write(known: datetime | None, until: datetime, now: datetime) -> bool:
    """Whether a pause until `until` changes anything about the one that is known."""
    if until <= now:
        return False
    return known is None or known - now < (until - now) * ENOUGH


def comes_back_at(until: datetime, now: datetime, *, jitter: float) -> datetime:
    """When a lane that was held back tries again. `jitter` is a uniform random number in [0, 1)."""
    return until + (until - now) * SPREAD * jitter
