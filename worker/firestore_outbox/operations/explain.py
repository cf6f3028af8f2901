"""Why a message has not been sent, and why a run has not ended: reads for the pure answers of why.py and run_why.py."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from firestore_outbox.accounts.account import Account
from firestore_outbox.accounts.store import AccountStore
from firestore_outbox.clock import Clock
from firestore_outbox.lane.ref import outbox_lane
from firestore_outbox.lane.state import Lane
from firestore_outbox.lane.store import LaneStore
from firestore_outbox.messages.line import Line
from firestore_outbox.messages.model import OutboxMessage
from firestore_outbox.messages.states import OutboxStatus
from firestore_outbox.messages.store import MessageStore
from firestore_outbox.operations.run_why import RunWhy, run_why
from firestore_outbox.operations.why import Why, has_contact_room, why
from firestore_outbox.providers.registry import Providers
from firestore_outbox.reminders.store import RunStore
from firestore_outbox.reminders.summary import Summary
from firestore_outbox.sessions.store import SessionStore
from firestore_outbox.sessions.why import SessionWait, session_wait


class Explain:
    """Costs three to five reads."""

    def __init__(
        self,
        messages: MessageStore,
        line: Line,
        lanes: LaneStore,
        accounts: AccountStore,
        sessions: SessionStore,
        providers: Providers,
        clock: Clock,
    ) -> None:
        self._messages = messages
        self._line = line
        self._lanes = lanes
        self._accounts = accounts
        self._sessions = sessions
        self._providers = providers
        self._clock = clock

    async def __call__(self, request_id: str) -> Why | None:
        """None: there is no such message."""
        found = await self._messages.get([request_id])
        if not found:
            return None
        message = found[0].message
        if not isinstance(message, OutboxMessage):
            return Why(reasons=(), earliest=None, sentence=message.sentence)
        account = await self._accounts.read(message.account_id)
        if not isinstance(account, Account):
            return Why(reasons=(), earliest=None, sentence=account.sentence)
        lane = (await self._lanes.read(outbox_lane(message.account_id))).lane
        now = self._clock()
        session = await self._session(account, now) if message.status is OutboxStatus.QUEUED else None
        is_new = await self._is_new(message, lane, account, now)
        return why(message, lane, account, now, session=session, is_new_contact=is_new)

    async def _is_new(self, message: OutboxMessage, lane: Lane, account: Account, now: datetime) -> bool:
        """Read only if it matters: new contacts have a cap, and it is used up."""
        if message.status is not OutboxStatus.QUEUED or has_contact_room(lane, account, now):
            return False
        return not await self._line.has_spoken(message.thread_id)

    async def _session(self, account: Account, now: datetime) -> SessionWait | None:
        if self._providers[account.provider].sessions is None:
            return None
        stored = await self._sessions.read(account.account_id)
        return session_wait(stored.hot, stored.memory, account.account_id, now)


@dataclass(frozen=True, slots=True)
class ExplainRun:
    runs: RunStore
    summary: Summary
    accounts: AccountStore
    lanes: LaneStore
    clock: Clock

    async def __call__(self, run_id: str) -> RunWhy | None:
        """None: there is no such run."""
        stored = await self.runs.run(run_id)
        if stored is None:
            return None
        run = stored.run
        account = await self.accounts.read(run.account_id)
        if not isinstance(account, Account):
            return RunWhy(sentences=(account.sentence,), ends_at=None)
        summary = stored.data.get("errorSummary")
        return run_why(
            run,
            await self.summary.counts(run),
            account,
            (await self.lanes.read(outbox_lane(run.account_id))).lane,
            await self.summary.forecast(stored),
            summary if isinstance(summary, str) else None,
            self.clock(),
        )
