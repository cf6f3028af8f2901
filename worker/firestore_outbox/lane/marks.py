"""What a wake tells a holder of the messages that it is for.

The holder of a lane with bulk work reads its lane now and then, and looks for such messages (sending/ahead.py). Without
bulk work nothing is read for it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Messages that go ahead of bulk were written for the lane."""

    urgent_at: datetime | None = None
    """When the first urgent one is due; None: there is none."""
    normal_at: datetime | None = None
    """The same of normal ones."""


def both(one: Mark | None, other: Mark | None) -> Mark | None:
    if one is None or other is None:
        return one or other
    return Mark(urgent_at=_earlier(one.urgent_at, other.urgent_at), normal_at=_earlier(one.normal_at, other.normal_at))


def _earlier(one: datetime | None, other: datetime | None) -> datetime | None:
    return min((at for at in (one, other) if at is not None), default=None)
