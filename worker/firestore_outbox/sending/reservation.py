"""The pace that the write which acquires a lane reserves with it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from firestore_outbox.lane.lease import Hold
from firestore_outbox.lane.pacing import Block, Cap, reserve_through
from firestore_outbox.lane.state import Lane


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserved:
    """A piece of the account's line that the acquiring write reserved."""

    cap: Cap
    block: Block


def reserved_through(cap: Cap | None, lane: Lane, hold: Hold, now: datetime) -> Reserved | None:
    """What an acquiring write reserves: through the end of the lease. The caller stores `block.until` as the lane's
    tat. None: there is no pace."""
    if cap is None:
        return None
    block = reserve_through(cap, lane.tat, now=now, through=hold.until, rate_factor=lane.rate_factor)
    return Reserved(cap=cap, block=block)
