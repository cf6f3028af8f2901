"""The account's session, where its provider has sessions to look after: asked for before anything is claimed.

For other providers there is none, and nothing here costs anything (docs/sessions.md).
"""

from __future__ import annotations

from datetime import datetime

from firestore_outbox.accounts.account import Account
from firestore_outbox.clock import Clock
from firestore_outbox.lane.state import Later, More, Work
from firestore_outbox.providers.registry import Providers
from firestore_outbox.sessions.hotset import HotSet
from firestore_outbox.sessions.requests import NotYet


class LiveSession:
    """Of one turn of one account's lane."""

    def __init__(self, hot: HotSet, providers: Providers, clock: Clock) -> None:
        self._hot = hot
        self._providers = providers
        self._clock = clock
        self._until: datetime | None = None
        """Until when the session is ours; None: not asked for, or not up."""

    async def not_before(self, account: Account) -> datetime | None:
        """None: it is up for long enough to call the provider, or there is none to wait for."""
        if not self._is_needed(account):
            return None
        if self._until is not None and self._until - self._clock() > self._hot.rules.use / 2:
            return None
        answer = await self._hot.want(account.account_id, account.provider)
        if isinstance(answer, NotYet):
            return answer.retry_at
        self._until = answer.until
        return None

    async def was_down(self, account: Account) -> None:
        """A call was not connected, whatever the set believes."""
        if self._is_needed(account):
            self._until = None
            await self._hot.doubt(account.account_id, account.provider)

    async def done(self, account: Account, work: Work) -> None:
        """The turn has ended; `work` says when the session is wanted next."""
        if self._until is not None:
            next_at = work.at if isinstance(work, Later) else self._clock() if isinstance(work, More) else None
            await self._hot.done(account.account_id, account.provider, next_at)

    def _is_needed(self, account: Account) -> bool:
        return self._providers[account.provider].sessions is not None
