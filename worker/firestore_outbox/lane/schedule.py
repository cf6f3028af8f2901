"""Tasks for far times. Cloud Tasks holds a task for 30 days at most; we schedule up to 365 days ahead.

A far task hops: it is enqueued for an earlier time, finds that nothing is due, and is enqueued again. A hop that is
lost is found by the sweep, because `nextDueAt` of the lane says what the task was for.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

LONGEST_TASK = timedelta(days=29)
"""A day less than Cloud Tasks allows: its clock is not ours."""


@dataclass(frozen=True, slots=True)
class Arrive:
    """The task can be enqueued for the time itself."""

    at: datetime


@dataclass(frozen=True, slots=True)
class Hop:
    """Enqueue it for `at`, and ask again there."""

    at: datetime


def next_hop(target: datetime, now: datetime) -> Arrive | Hop:
    """A target in the past is due at once."""
    if target - now <= LONGEST_TASK:
        return Arrive(max(target, now))
    return Hop(now + LONGEST_TASK)
