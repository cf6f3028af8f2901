"""What follows a failed attempt: another one, and when, or the end. Pure.

The wait starts at `min_backoff`, doubles `max_doublings` times, then grows by the last doubled wait, and
stays at `max_backoff`: with 10 s, 300 s and 3 doublings it is 10, 20, 40, 80, 160, 240, 300, 300 …

A task is given up when every limit that its policy sets is reached: `max_attempts` (unless -1) *and*
`max_retry_duration` since the first attempt (unless 0). With no limit at all it is retried until it is 31
days old. A retry that could only start after the duration has passed is not made.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

UNLIMITED = -1
RETENTION = timedelta(days=31)
"""How long a task may exist at all."""
_NEVER = RETENTION * 2
"""A wait that outlives every task."""
_MOST_DOUBLINGS = 62
"""Beyond this any wait is at its maximum, whatever it started from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    max_attempts: int
    max_retry_duration: timedelta
    min_backoff: timedelta
    max_backoff: timedelta
    max_doublings: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A failed attempt, and what came before it."""

    attempts: int
    """Made so far, this one included."""
    first_attempt_at: datetime
    created_at: datetime
    wait_from: datetime
    """The wait is counted from here: the end of the attempt, or the call of RunTask for a forced one."""
    retry_after: timedelta = timedelta(0)
    """What the worker asked for with a Retry-After header."""


class Reason(Enum):
    LIMITS_REACHED = "limits_reached"
    TOO_OLD = "too_old"


@dataclass(frozen=True, slots=True)
class RetryAt:
    at: datetime


@dataclass(frozen=True, slots=True)
class GiveUp:
    reason: Reason


def backoff(policy: Policy, failures: int) -> timedelta:
    """The wait after this many failures, counted from 1."""
    doublings = min(failures - 1, policy.max_doublings)
    if doublings > _MOST_DOUBLINGS:
        return policy.max_backoff
    steps = max(1, failures - policy.max_doublings)
    # In microseconds, since a timedelta cannot hold the larger products.
    wait_us = (policy.min_backoff // timedelta(microseconds=1)) * 2**doublings * steps
    return min(
        policy.max_backoff,
        timedelta(microseconds=min(wait_us, policy.max_backoff // timedelta(microseconds=1))),
    )


def after(failure: Failure, policy: Policy) -> RetryAt | GiveUp:
    wait = max(backoff(policy, failure.attempts), failure.retry_after)
    at = failure.wait_from + min(wait, _NEVER)
    limits = []
    if policy.max_attempts != UNLIMITED:
        limits.append(failure.attempts >= policy.max_attempts)
    if policy.max_retry_duration > timedelta(0):
        limits.append(at - failure.first_attempt_at > policy.max_retry_duration)
    if limits and all(limits):
        return GiveUp(Reason.LIMITS_REACHED)
    if at - failure.created_at > RETENTION:
        return GiveUp(Reason.TOO_OLD)
    return RetryAt(at)
