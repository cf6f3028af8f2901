"""Times as the engine counts them: whole microseconds since 1970, Firestore's own precision."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from google.protobuf.timestamp_pb2 import Timestamp

from firestore_emulator.documents.protos import Proto

Clock = Callable[[], datetime]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def system_clock() -> datetime:
    return datetime.now(UTC)


def micros_at(moment: datetime) -> int:
    since = moment - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def micros_of(stamp: Proto) -> int:
    return int(stamp.seconds) * 1_000_000 + int(stamp.nanos) // 1000


def stamp_of(micros: int) -> Proto:
    seconds, rest = divmod(micros, 1_000_000)
    return Timestamp(seconds=seconds, nanos=rest * 1000)


def set_stamp(stamp: Proto, micros: int) -> None:
    stamp.seconds, rest = divmod(micros, 1_000_000)
    stamp.nanos = rest * 1000
