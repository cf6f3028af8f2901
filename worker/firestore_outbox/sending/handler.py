"""The handler of `outbox` lanes: one turn for each run of the lane.

The account is read in the same call as the lane, and its pace is reserved by the write that acquires the lane.
"""

from __future__ import annotations

from dataclasses import replace

from firestore_outbox.accounts.account import Account, InvalidAccount
from firestore_outbox.clock import Clock
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.gateway import Snapshot
from firestore_outbox.health.day_use import DayUse
from firestore_outbox.health.day_use import reserved as reserved_of_day
from firestore_outbox.lane.holder import Holder
from firestore_outbox.lane.lease import Hold
from firestore_outbox.lane.ref import LaneRef
from firestore_outbox.lane.state import Lane, Work
from firestore_outbox.sending.account_in_use import unusable
from firestore_outbox.sending.outbox import Outbox
from firestore_outbox.sending.reservation import Reserved, reserved_through
from firestore_outbox.sending.turn import Turn


class OutboxPreparation:
    def __init__(self, account: Account | InvalidAccount, clock: Clock) -> None:
        self.account = account
        self.reserved: Reserved | None = None
        """What the acquiring write reserves; None: the account has no pace."""
        self.day_before: DayUse | None = None
        """The lane's use of the day before that write."""
        self._clock = clock

    def extended(self, lane: Lane, hold: Hold) -> Lane:
        if isinstance(self.account, InvalidAccount):
            return lane
        now, caps = self._clock(), self.account.caps
        self.reserved, self.day_before = reserved_through(self.account.cap, lane, hold, now), lane.day_use
        if self.reserved is not None:
            lane = lane.reserved(self.reserved.block.until)
        return lane if caps is None else replace(lane, day_use=reserved_of_day(lane.day_use, None, caps, now))


class OutboxHandler:
    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox

    def beside(self, ref: LaneRef) -> str:
        return paths.account(ref.key)

    def prepare(self, ref: LaneRef, beside: Snapshot | None) -> OutboxPreparation:
        return OutboxPreparation(self._outbox.accounts.parsed(ref.key, beside), self._outbox.clock)

    async def run(self, holder: Holder) -> Work:
        prepared = holder.preparation
        if isinstance(prepared, OutboxPreparation):
            account, reserved, day_before = prepared.account, prepared.reserved, prepared.day_before
        else:  # another round: the account may have changed, and what was reserved is given back
            account, reserved = await self._outbox.accounts.read(holder.ref.key), None
            day_before = holder.lane.day_use
        if isinstance(account, InvalidAccount):
            return unusable(account, self._outbox.clock())
        return await Turn(self._outbox, holder, account, reserved, day_before).run()
