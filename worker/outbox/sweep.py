"""The sweep, once a minute for the whole system: whatever was dropped is picked up.

It finds lanes whose time has passed (a lease that ended, a task that was lost), accounts with messages due that no lane
is going to look at (an event that was lost), and claims that outlived their lease; it wakes their lanes. What they need
is done by the lane's holder, under its lease.

One thing it does itself: a message whose author cancelled it is ended, also if its lane would come to it in a hundred
days only. That needs no lease, since nothing is sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import assert_never

from worker import log
from worker.clock import Clock
from worker.domain.account import Account, Closed, sending
from worker.domain.claim import Cancel, Defer, Refuse, Skip, ending_of
from worker.domain.lane import LaneState, due_time, overdue
from worker.lane.waking import Waker
from worker.outbox.refuse import refuse
from worker.outbox.trigger import lane_of
from worker.store.accounts import AccountStore
from worker.store.lanes import LaneStore
from worker.store.messages import MessageStore

GRACE = timedelta(seconds=10)
"""How late something must be before the sweep takes it for dropped."""
PATIENCE = timedelta(minutes=3)
"""A lane that is due within this is left to its own task: it waits for a retry, a receipt or its pace."""
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
        now = self._clock()
        await self._cancel(now)
        lanes = await self._dropped_lanes(now) + await self._abandoned_claims(now)
        swept = Swept(lanes, await self._forgotten_accounts(now))
        log.sweep_found(swept.lanes, swept.accounts)
        return swept

    async def _cancel(self, now: datetime) -> None:
        for stored in await self._messages.cancel_requested():
            ending = ending_of(stored.message, now)
            match ending:
                case Cancel(message=message) | Skip(message=message) | Defer(message=message):
                    await self._messages.end(stored, message)
                case Refuse(error=error):
                    await refuse(self._messages, stored, error)
                case None:
                    pass
                case _:
                    assert_never(ending)

    async def _dropped_lanes(self, now: datetime) -> int:
        late = [ref for ref, lane in await self._lanes.overdue(now - GRACE, MOST_LANES) if overdue(lane, now, GRACE)]
        for ref in late:
            await self._waker.enqueue(ref, now)
        return len(late)

    async def _abandoned_claims(self, now: datetime) -> int:
        """Claims that came late, when their lane was in other hands: no lease of a lane tells of them."""
        found = 0
        for account_id in sorted(await self._messages.accounts_with_abandoned(now - GRACE)):
            lease = (await self._lanes.read(lane_of(account_id))).lane.lease
            if lease is None or lease.alive(now):  # otherwise a takeover is due, and was just seen to
                await self._waker.wake(lane_of(account_id))
                found += 1
        return found

    async def _forgotten_accounts(self, now: datetime) -> int:
        found = 0
        account_id: str | None = ""
        while (account_id := await self._messages.next_account_due(now - GRACE, after=account_id or "")) is not None:
            if await self._is_forgotten(account_id, now):
                await self._waker.wake(lane_of(account_id))
                found += 1
        return found

    async def _is_forgotten(self, account_id: str, now: datetime) -> bool:
        lane = (await self._lanes.read(lane_of(account_id))).lane
        if lane.state is not LaneState.IDLE:
            return False  # somebody is at it, or will be
        due = due_time(lane, now)
        if (due is not None and due <= now + PATIENCE) or (lane.paused_until is not None and lane.paused_until > now):
            return False  # it waits, and knows for what
        account = await self._accounts.read(account_id)
        return isinstance(account, Account) and not isinstance(sending(account, now), Closed)
