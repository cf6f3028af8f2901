"""The handler of `outbox` lanes: one turn for each run of the lane."""

from __future__ import annotations

from firestore_outbox.accounts.account import InvalidAccount
from firestore_outbox.lane.holder import Holder
from firestore_outbox.lane.state import Work
from firestore_outbox.sending.account_in_use import unusable
from firestore_outbox.sending.outbox import Outbox
from firestore_outbox.sending.turn import Turn


class OutboxHandler:
    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox

    async def run(self, holder: Holder) -> Work:
        account = await self._outbox.accounts.read(holder.ref.key)
        if isinstance(account, InvalidAccount):
            return unusable(account, self._outbox.clock())
        return await Turn(self._outbox, holder, account).run()
