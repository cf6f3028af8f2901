"""How far a handler has come with the events of its lane, and which it has not handled yet.

The lane keeps the time of the last event that a successful run handled. An event carries the time at which its write
arrived, and becomes visible a little later (docs/lane.md), so a time alone would pass over an event that appeared
behind it. Each run therefore reads from `overlap` before that time, and the lane keeps the ids of events from within
the overlap that were handled already.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Protocol, TypeVar

MOST_SEEN = 1_000
"""Ids that a lane keeps. More events of one key within the overlap would be handled twice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    at: datetime
    """The time of the latest event that was handled."""
    seen: Mapping[str, datetime] = field(default_factory=dict)
    """Handled events from within the overlap before `at`: id -> time."""
    replay: tuple[str, ...] = ()
    """Handled events that a person wants handled again."""


class Timed(Protocol):
    @property
    def id(self) -> str: ...

    @property
    def at(self) -> datetime: ...


T = TypeVar("T", bound=Timed)


def read_from(progress: Progress | None, overlap: timedelta) -> datetime | None:
    """The time that the next read begins at; None: at the beginning."""
    return None if progress is None else progress.at - overlap


def unhandled(found: Iterable[T], progress: Progress | None) -> list[T]:
    """What was read and not handled yet, oldest first."""
    new = {one.id: one for one in found if progress is None or one.id not in progress.seen or one.id in progress.replay}
    return sorted(new.values(), key=lambda one: (one.at, one.id))


def advanced(progress: Progress | None, handled: Sequence[Timed], overlap: timedelta) -> Progress | None:
    """The progress after a run that handled these."""
    if not handled:
        return progress if progress is None else replace(progress, replay=())
    seen = {} if progress is None else dict(progress.seen)
    seen.update((one.id, one.at) for one in handled)
    at = max(seen.values()) if progress is None else max(progress.at, *(one.at for one in handled))
    kept = sorted(((time, name) for name, time in seen.items() if time >= at - overlap), reverse=True)[:MOST_SEEN]
    return Progress(at=at, seen={name: time for time, name in sorted(kept)})


def replaying(progress: Progress | None, ids: Sequence[str], now: datetime) -> Progress:
    """The same with these events to be handled once more."""
    if progress is None:
        return Progress(at=now, replay=tuple(ids))
    return replace(progress, replay=tuple(dict.fromkeys((*progress.replay, *ids))))


def request_id(kind: str, key: str, progress: Progress | None, number: int) -> str:
    """The requestId of the run's message `number`: the same when the run is repeated, so nothing is sent twice.

    It depends on how far the lane has come, which changes only when a run succeeds."""
    return _digest("message", kind, key, progress, number)


def job_id(kind: str, key: str, progress: Progress | None) -> str:
    """The id of the dead letter of a run that began there."""
    return _digest("job", kind, key, progress, 0)


def _digest(what: str, kind: str, key: str, progress: Progress | None, number: int) -> str:
    place = [] if progress is None else [progress.at.isoformat(), sorted(progress.seen), list(progress.replay)]
    return sha256(json.dumps([what, kind, key, place, number]).encode()).hexdigest()[:32]
