"""What the methods of timestamps and durations compute, and the functions that make them."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

from firestore_emulator.rules.arithmetic import duration
from firestore_emulator.rules.values import Duration, Failure, Timestamp

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY = 86_400 * 10**9
"""In nanoseconds."""
_UNITS = {"w": 7 * DAY, "d": DAY, "h": 3600 * 10**9, "m": 60 * 10**9, "s": 10**9, "ms": 10**6, "ns": 1}
"""In nanoseconds."""


def moment(own: Timestamp) -> datetime:
    return _EPOCH + timedelta(microseconds=own.nanos // 1000)


def date_of(year: int, month: int, day: int) -> Timestamp:
    try:
        days = (datetime(year, month, day, tzinfo=UTC) - _EPOCH).days
    except (ValueError, OverflowError):
        raise Failure("There is no such date.") from None
    return Timestamp(days * DAY)


def duration_of(amount: int, unit: str) -> Duration:
    if unit not in _UNITS:
        raise Failure(f"'{unit[:20]}' is no unit of time.")
    return duration(amount * _UNITS[unit])


def time_of(hours: int, minutes: int, seconds: int, nanos: int) -> Duration:
    return duration(((hours * 60 + minutes) * 60 + seconds) * 10**9 + nanos)


def whole_seconds(own: Duration) -> int:
    """Rounded toward zero."""
    return abs(own.nanos) // 10**9 * (1 if own.nanos >= 0 else -1)


def remaining_nanos(own: Duration) -> int:
    """The part of a second that `whole_seconds` leaves out, with the duration's sign."""
    return int(math.copysign(abs(own.nanos) % 10**9, own.nanos))
