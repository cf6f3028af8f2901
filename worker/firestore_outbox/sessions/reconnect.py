"""An account whose session came up: what waited for it goes at once, and not when the pause would have ended."""

from __future__ import annotations

from firestore_outbox.clock import Clock
from firestore_outbox.firestore.compare_and_set import AGAIN, Again
from firestore_outbox.lane.ref import outbox_lane
from firestore_outbox.lane.state import Lane
from firestore_outbox.lane.store import LaneStore
from firestore_outbox.lane.wake import Waker


class Reconnect:
    def __init__(self, lanes: LaneStore, waker: Waker, clock: Clock) -> None:
        self._lanes = lanes
        self._waker = waker
        self._clock = clock

    async def __call__(self, account_id: str) -> bool:
        """False: nothing waited for the session, and no lane was woken. A session that flaps costs a read each time."""
        ref, tried = outbox_lane(account_id), False

        async def attempt() -> Lane | Again | None:
            nonlocal tried
            stored = await self._lanes.read(ref)
            lane = stored.lane.reconnected(now=self._clock())
            if lane == stored.lane:
                return lane if tried else None  # if tried, it may be our own write, whose answer did not come
            tried = True
            return AGAIN if await self._lanes.write(ref, lane, stored) is None else lane

        lane = await self._lanes.compare_and_set(attempt)
        if lane is None:
            return False
        await self._waker.hasten(ref, lane)
        return True
