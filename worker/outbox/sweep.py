"""The sweep, once a minute for the whole system: whatever was dropped is picked up.

It finds lanes whose time has passed (a lease that ended, a task that was lost) and accounts with messages due that no
lane is going to look at (an event that was lost), and wakes them. It repairs nothing itself: the lane's holder does,
under its lease.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from worker import log
from worker.clock import Clock
from worker.domain.account import Account, Closed, sending
from worker.domain.lane import LaneState, overdue
from worker.lane.waking import Waker
from worker.outbox.trigger import lane_of
from worker.store.accounts import AccountStore
from worker.store.lanes import LaneStore
from worker.store.messages import MessageStore

GRACE = timedelta(seconds=10)
"""How late something must be before the sweep takes it for dropped."""
MOST_LANES = 300


@dataclass(frozen=True, slots=True)
class Swept:
    lanes: int
    """Lanes that nobody came for."""
    accounts: int
    """Accounts with due messages that no lane knew of."""


class Sweep:
    def __init__(
        self, messages: MessageStore, lanes: LaneStore, accounts: AccountStore, waker: Waker, clock: Clock
    ) -> None:
        self._messages = messages
        self._lanes = lanes
        self._accounts = accounts
        self._waker = waker
        self._clock = clock

    async def run(self) -> Swept:
        swept = Swept(await self._dropped_lanes(), await self._forgotten_accounts())
        log.sweep_found(swept.lanes, swept.accounts)
        return swept

    async def _dropped_lanes(self) -> int:
        now = self._clock()
        late = [ref for ref, lane in await self._lanes.overdue(now - GRACE, MOST_LANES) if overdue(lane, now, GRACE)]
        for ref in late:
            await self._waker.enqueue(ref, now)
        return len(late)

    async def _forgotten_accounts(self) -> int:
        now = self._clock()
        found = 0
        account_id: str | None = ""
        while (account_id := await self._messages.next_account_due(now - GRACE, after=account_id or "")) is not None:
            stored = await self._lanes.read(lane_of(account_id))
            if stored.lane.state is not LaneState.IDLE or stored.lane.next_due_at is not None:
                continue  # somebody is at it, or will be
            account = await self._accounts.read(account_id)
            hindrance = sending(account, now) if isinstance(account, Account) else None
            if isinstance(hindrance, Closed) and hindrance.until is None:
                continue  # it waits for a person
            await self._waker.wake(lane_of(account_id))
            found += 1
        return found
