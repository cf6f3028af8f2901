"""How busy a kind of handler is, from 0 to 1, and what that does to its debounce.

Under pressure an adaptive handler waits longer for its keys to go quiet, so that one run serves more events: up to its
`at_most`. Pressure comes from 429 answers and from runs that wait for a place. It halves every 30 seconds by itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from firestore_outbox.lane.state import Debounce

HALF_LIFE = timedelta(seconds=30)
FULL_THROTTLES = 4
"""429 answers within a minute that are full pressure."""
FULL_WAITING = 4
"""Runs waiting for each place of a worker that are full pressure."""
WORTH_A_WRITE = 0.25
"""Pressure that grew by less is not written."""


@dataclass(frozen=True, slots=True)
class Pressure:
    """`pressure/{kind}`."""

    level: float
    at: datetime


def level_at(pressure: Pressure | None, now: datetime) -> float:
    if pressure is None:
        return 0.0
    passed = max(timedelta(0), now - pressure.at)
    return float(pressure.level * 0.5 ** (passed / HALF_LIFE))


def measured(*, throttles: int, waiting: int, places: int) -> float:
    """What one worker sees: 429 answers within a minute, and runs that wait for one of its places."""
    return min(1.0, throttles / FULL_THROTTLES + waiting / (FULL_WAITING * places))


def is_worth_a_write(known: Pressure | None, level: float, now: datetime) -> bool:
    return level - level_at(known, now) >= WORTH_A_WRITE


def stretched(debounce: Debounce, level: float) -> Debounce:
    """The debounce under this pressure: between `quiet` and `most`."""
    longest = max(debounce.quiet, debounce.most)
    return replace(debounce, quiet=debounce.quiet + (longest - debounce.quiet) * level)
