"""Release a thread that waited for an uncertain message, once a receipt or an operator has settled it."""

from __future__ import annotations

from firestore_outbox.accounts.account import Account
from firestore_outbox.accounts.store import AccountStore
from firestore_outbox.firestore.compare_and_set import AGAIN, Again
from firestore_outbox.lane.ref import outbox_lane
from firestore_outbox.lane.state import Lane, ThreadHold
from firestore_outbox.lane.store import LaneStore
from firestore_outbox.lane.wake import Waker
from firestore_outbox.messages.model import OutboxMessage
from firestore_outbox.messages.states import OutboxStatus


class ReleaseThread:
    def __init__(self, lanes: LaneStore, accounts: AccountStore, waker: Waker) -> None:
        self._lanes = lanes
        self._accounts = accounts
        self._waker = waker

    async def __call__(self, before: OutboxMessage) -> None:
        """`before` is the message as it was when it was settled. Nothing happens if its thread waits for another."""
        if before.status is OutboxStatus.SENDING:
            return  # its holder is at work, and will see it
        ref = outbox_lane(before.account_id)

        async def attempt() -> bool | Again:
            stored = await self._lanes.read(ref)
            hold = stored.lane.holds.get(before.thread_id)
            if hold is None or hold.request_id != before.request_id:
                return False
            freed = await self._without(hold, before, stored.lane)
            return AGAIN if await self._lanes.write(ref, freed, stored) is None else True

        if await self._lanes.compare_and_set(attempt):
            await self._waker.wake(ref)

    async def _without(self, hold: ThreadHold, before: OutboxMessage, lane: Lane) -> Lane:
        """The hold has two reasons in it: the message, which is settled, and the recipient's pace, which is not."""
        account = await self._accounts.read(before.account_id)
        if isinstance(account, Account) and account.per_recipient and before.last_error is not None:
            spared_until = min(hold.until, before.last_error.at + account.per_recipient)
            return lane.holding(before.thread_id, ThreadHold(until=spared_until))
        return lane.without_holds(frozenset({before.thread_id}))
