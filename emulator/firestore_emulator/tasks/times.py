"""Moments and durations as three worlds write them: aware datetimes here, microseconds in the file, protobufs
outside.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from firestore_emulator.rpc.service import Message

Clock = Callable[[], datetime]
"""Tells an aware UTC moment."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
_MAX_TIMESTAMP_SECONDS = 253_402_300_799  # the end of the year 9999, where protobuf and datetime both stop
_MIN_TIMESTAMP_SECONDS = -62_135_596_800
_MAX_DURATION_SECONDS = 315_576_000_000


def utc_now() -> datetime:
    return datetime.now(UTC)


def to_us(moment: datetime) -> int:
    return (moment - EPOCH) // MICROSECOND


def from_us(us: int) -> datetime:
    return EPOCH + timedelta(microseconds=us)


def set_timestamp(field: Message, us: int) -> None:
    field.seconds, rest = divmod(us, 1_000_000)
    field.nanos = rest * 1000


def timestamp_us(message: Message) -> int | None:
    """None when it is outside what a Timestamp may hold."""
    if not _MIN_TIMESTAMP_SECONDS <= message.seconds <= _MAX_TIMESTAMP_SECONDS:
        return None
    if not 0 <= message.nanos < 1_000_000_000:
        return None
    return int(message.seconds) * 1_000_000 + int(message.nanos) // 1000


def set_duration(field: Message, duration: timedelta) -> None:
    us = duration // MICROSECOND
    field.seconds, rest = divmod(us, 1_000_000)
    field.nanos = rest * 1000


def duration_of(message: Message) -> timedelta | None:
    """None when it is outside what a Duration may hold."""
    if abs(message.seconds) > _MAX_DURATION_SECONDS or abs(message.nanos) >= 1_000_000_000:
        return None
    return timedelta(seconds=message.seconds, microseconds=message.nanos // 1000)
