"""The account whose lane a turn holds, read again now and then so that a pause takes effect while the turn runs."""

from __future__ import annotations

from datetime import datetime, timedelta

from firestore_outbox import log
from firestore_outbox.accounts.account import Account, InvalidAccount
from firestore_outbox.lane.state import Later, Work
from firestore_outbox.sending.judge import Judge
from firestore_outbox.sending.outbox import Outbox
from firestore_outbox.sending.pace import Pace

ACCOUNT_FRESH = timedelta(seconds=20)
"""How long a turn may miss a pause or another change of the account. At forty messages a minute, reading the account
this often costs 0.075 reads a message."""
UNUSABLE_RETRY = timedelta(minutes=10)
"""How long a lane rests whose account document cannot be used."""


class AccountInUse:
    def __init__(self, outbox: Outbox, account: Account) -> None:
        self._outbox = outbox
        self.now = account
        self.judge = self._judge_of(account)
        self._read_at: datetime | None = outbox.clock()
        """None: the account is to be read again."""

    async def refresh(self, pace: Pace) -> Work | None:
        """Read the account again if it is due. Returns what is left to do if the account cannot be used any more."""
        now = self._outbox.clock()
        if self._read_at is not None and now - self._read_at < ACCOUNT_FRESH:
            return None
        self._read_at = now
        account = await self._outbox.accounts.read(self.now.account_id)
        if isinstance(account, InvalidAccount):
            return unusable(account, now)
        self.now, self.judge = account, self._judge_of(account)
        await pace.follow(account.cap, account.caps)
        return None

    def expire(self) -> None:
        """Something may have changed the account: read it before the next plan."""
        self._read_at = None

    def _judge_of(self, account: Account) -> Judge:
        outbox = self._outbox
        return Judge(account, outbox.providers, outbox.settings, outbox.clock, outbox.random)


def unusable(account: InvalidAccount, now: datetime) -> Later:
    log.account_unusable(account.account_id, account.sentence)
    return Later(now + UNUSABLE_RETRY)
