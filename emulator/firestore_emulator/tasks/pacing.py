"""How fast a queue may dispatch: a token bucket, and the slow-down after 429 and 503. Pure.

The bucket holds at most `burst` tokens, gains `rate` of them a second, and each dispatch takes one. So in any
window of W seconds a queue dispatches at most `burst + rate * W` times. Rates below one a second are ordinary
numbers here.

The slow-down (production has one, and does not publish its rule; this one is ours): an answer of 429 or 503
empties the bucket and halves the rate, at most once in `STEP_EVERY` and at most `MAX_LEVEL` times (1/64 of
the rate). After each `RECOVER_EVERY` with no such answer the rate doubles, up to what the queue is configured
for. The configured limits never change. Both states are values of time, so nothing has to tick.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

MAX_LEVEL = 6
STEP_EVERY = timedelta(seconds=1)
RECOVER_EVERY = timedelta(seconds=5)

_ENOUGH = 1 - 1e-9
"""One token, less what floating point loses on the way."""
_FAR_SECONDS = 366 * 86_400.0
"""No task waits for longer: it lives for 31 days."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    per_second: float
    burst: int
    concurrent: int


@dataclass(frozen=True, slots=True)
class Slowdown:
    """Halvings of the rate, `level` of them at `since`, one fewer after each RECOVER_EVERY."""

    level: int
    since: datetime

    def level_at(self, moment: datetime) -> int:
        return max(0, self.level - max(0, (moment - self.since) // RECOVER_EVERY))

    def eased(self, limits: Limits, start: datetime) -> Iterator[tuple[float, datetime | None]]:
        """The rates from `start` on, each with its end; the last has none."""
        level = self.level_at(start)
        while level > 0:
            yield limits.per_second / 2**level, self.since + RECOVER_EVERY * (self.level - level + 1)
            level -= 1
        yield limits.per_second, None


@dataclass(frozen=True, slots=True)
class Bucket:
    tokens: float
    at: datetime
    """When `tokens` was true."""


def burst_for(per_second: float) -> int:
    """What production picks, as far as it shows: 10 for slow queues, 100 for the fastest."""
    return max(10, math.ceil(per_second / 5))


def full(limits: Limits, now: datetime) -> Bucket:
    return Bucket(float(limits.burst), now)


def refilled(bucket: Bucket, limits: Limits, slowdown: Slowdown, now: datetime) -> Bucket:
    """The bucket as it is at `now`. A clock that went back gains nothing and loses nothing."""
    if now <= bucket.at:
        return Bucket(min(bucket.tokens, float(limits.burst)), bucket.at)
    tokens, start = bucket.tokens, bucket.at
    for rate, end in slowdown.eased(limits, start):
        stop = now if end is None else min(end, now)
        tokens += rate * (stop - start).total_seconds()
        start = stop
        if start == now:
            break
    return Bucket(min(tokens, float(limits.burst)), now)


def available(bucket: Bucket) -> int:
    """How many dispatches a refilled bucket allows at this moment."""
    return max(0, math.floor(bucket.tokens + (1 - _ENOUGH)))


def spent(bucket: Bucket, count: int) -> Bucket:
    return Bucket(bucket.tokens - count, bucket.at)


def next_token_at(bucket: Bucket, limits: Limits, slowdown: Slowdown) -> datetime:
    """The first moment at which the bucket allows a dispatch."""
    missing, start = _ENOUGH - bucket.tokens, bucket.at
    if missing <= 0:
        return start
    for rate, end in slowdown.eased(limits, start):
        gain = math.inf if end is None else rate * (end - start).total_seconds()
        if missing <= gain:
            return start + timedelta(microseconds=math.ceil(min(missing / rate, _FAR_SECONDS) * 1e6))
        assert end is not None
        missing -= gain
        start = end
    raise AssertionError("the last rate has no end")


def slowed(slowdown: Slowdown, now: datetime) -> Slowdown:
    """After a 429 or 503 at `now`."""
    if slowdown.level > 0 and now - slowdown.since < STEP_EVERY:
        return slowdown
    return Slowdown(min(MAX_LEVEL, slowdown.level_at(now) + 1), now)


def emptied(bucket: Bucket) -> Bucket:
    return Bucket(min(bucket.tokens, 0.0), bucket.at)
