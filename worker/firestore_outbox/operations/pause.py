"""An account paused and resumed by a person. Resuming also ends what the lane itself was waiting for."""

from __future__ import annotations

from datetime import datetime

from firestore_outbox.accounts.store import AccountStore
from firestore_outbox.clock import Clock
from firestore_outbox.firestore.compare_and_set import AGAIN, Again
from firestore_outbox.lane.ref import outbox_lane
from firestore_outbox.lane.state import Lane
from firestore_outbox.lane.store import LaneStore
from firestore_outbox.lane.wake import Waker


class Pause:
    def __init__(self, accounts: AccountStore) -> None:
        self._accounts = accounts

    async def __call__(self, account_id: str, until: datetime | None = None) -> bool:
        """Pause until that time; None means until an operator resumes it. False: there is no such account."""
        return await self._accounts.pause(account_id, until)


class Resume:
    def __init__(self, accounts: AccountStore, lanes: LaneStore, waker: Waker, clock: Clock) -> None:
        self._accounts = accounts
        self._lanes = lanes
        self._waker = waker
        self._clock = clock

    async def __call__(self, account_id: str) -> bool:
        """False: there is no such account."""
        if not await self._accounts.resume(account_id):
            return False
        ref = outbox_lane(account_id)

        async def attempt() -> Lane | Again:
            stored = await self._lanes.read(ref)
            lane = stored.lane.resumed(now=self._clock())
            return AGAIN if await self._lanes.write(ref, lane, stored) is None else lane

        await self._waker.hasten(ref, await self._lanes.compare_and_set(attempt))
        return True
