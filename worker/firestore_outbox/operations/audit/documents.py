"""Outbox documents, each with what people see of it, its account and its lane."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from firestore_outbox.accounts.account import Account, Closed, sending
from firestore_outbox.accounts.store import AccountStore
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.gateway import Gateway, Snapshot
from firestore_outbox.lane.ref import LaneRef, outbox_lane
from firestore_outbox.lane.state import Lane
from firestore_outbox.lane.store import LaneStore
from firestore_outbox.lane.transitions import LaneState
from firestore_outbox.messages.model import KEEP_ENDED, OutboxMessage
from firestore_outbox.messages.states import ENDED, SHOWN_AS, MessageStatus, OutboxStatus
from firestore_outbox.messages.validation import InvalidMessage, parse_message
from firestore_outbox.operations.audit.finding import Finding

LATE = timedelta(minutes=3)
"""How long something may be overdue: two sweeps and the time they take."""
LOOKS = 3

Parsed = tuple[Snapshot, OutboxMessage | InvalidMessage]

_RECEIVED = frozenset({MessageStatus.DELIVERED.value, MessageStatus.READ.value})


class Documents:
    def __init__(self, gateway: Gateway, accounts: AccountStore, lanes: dict[LaneRef, Lane], now: datetime) -> None:
        """`lanes` as they were read; those of suspects are read again."""
        self._gateway = gateway
        self._accounts = accounts
        self._lanes = lanes
        self._now = now
        self._open: dict[str, bool] = {}
        """accountId -> whether it may send."""

    async def findings(self, page: Sequence[Parsed]) -> list[Finding]:
        """Those that last, with everything they rest on read again."""
        shown = await self._gateway.get_all([path for one, _ in page if (path := _shown_path(one)) is not None])
        findings: list[Finding] = []
        for one, message in page:
            if await self._of(one, message, shown.get(_shown_path(one) or "")):
                findings += await self._confirmed(one.id)
        return findings

    async def _confirmed(self, request_id: str) -> list[Finding]:
        findings: list[Finding] = []
        for _ in range(LOOKS):
            outbox = await self._gateway.get(paths.outbox(request_id))
            if outbox is None:
                return []
            path = _shown_path(outbox)
            found = await self._gateway.get_all([outbox.path, *([path] if path is not None else [])])
            outbox = found.get(outbox.path)
            if outbox is None:
                return []
            if (account_id := _account_id(outbox)) is not None:
                ref = outbox_lane(account_id)
                self._lanes[ref] = (await LaneStore(self._gateway).read(ref)).lane
            findings = await self._of(outbox, parse_message(outbox.id, outbox.data), found.get(path or ""))
            if not findings:
                return []
        return findings

    async def _of(
        self, outbox: Snapshot, message: OutboxMessage | InvalidMessage, shown: Snapshot | None
    ) -> list[Finding]:
        if isinstance(message, InvalidMessage):
            return _of_malformed(outbox, message, self._now)
        sentences = [
            ("shape", _misshapen(message)),
            ("agreement", await self._disagreement(message, shown)),
            ("lease", _stale_claim(message, self._now)),
            ("lost", await self._forgotten(message)),
        ]
        return [Finding(invariant, outbox.path, sentence) for invariant, sentence in sentences if sentence is not None]

    async def _disagreement(self, message: OutboxMessage, shown: Snapshot | None) -> str | None:
        if shown is not None:
            return _contradiction(message, shown)
        is_deleted = message.run_id is not None or await self._is_past_retention(message)
        return None if is_deleted else "there is no message document for it"

    async def _is_past_retention(self, message: OutboxMessage) -> bool:
        """Whether the account keeps its messages for a time, which has passed. The outbox document may stay longer."""
        if message.status not in ENDED or message.expire_at is None:
            return False
        account = await self._accounts.read(message.account_id)
        retention = account.retention if isinstance(account, Account) else None
        return retention is not None and message.expire_at - KEEP_ENDED + retention <= self._now

    async def _forgotten(self, message: OutboxMessage) -> str | None:
        """Due, allowed to go, and no lane that will look at it."""
        at = message.next_attempt_at
        waits = message.status in (OutboxStatus.QUEUED, OutboxStatus.UNCERTAIN)
        if not waits or at is None or at + LATE > self._now:
            return None
        lane = self._lanes.get(outbox_lane(message.account_id), Lane())
        if lane.state is not LaneState.IDLE or lane.next_due_at is not None:
            return None
        if not await self._may_send(message.account_id):
            return None
        return f"{message.status.value} and due since {at:%Y-%m-%d %H:%M:%S}, and no lane knows of it"

    async def _may_send(self, account_id: str) -> bool:
        if account_id not in self._open:
            account = await self._accounts.read(account_id)
            is_open = isinstance(account, Account) and not isinstance(sending(account, self._now), Closed)
            self._open[account_id] = is_open
        return self._open[account_id]


def _of_malformed(outbox: Snapshot, message: InvalidMessage, now: datetime) -> list[Finding]:
    status = outbox.data.get("status")
    if status in {ended.value for ended in ENDED} or outbox.created + LATE > now:
        return []
    return [Finding("lost", outbox.path, f"malformed and not refused: {message.sentence}")]


def _misshapen(message: OutboxMessage) -> str | None:
    status = message.status
    is_claimed = message.claimed_by is not None and message.lease_until is not None
    if (status is OutboxStatus.SENDING) != is_claimed:
        return f"{status.value}, claimed by {message.claimed_by or 'no worker'} until {message.lease_until}"
    if status in ENDED and message.expire_at is None:
        return f"{status.value}, and it will never be cleared away"
    if status is OutboxStatus.SENT and (message.attempts == 0 or message.sent_at is None):
        return f"sent at {message.sent_at} after {message.attempts} attempts"
    if status is OutboxStatus.QUEUED and message.next_attempt_at is None and message.run_id is None:
        return "queued, and for no time"  # except in a run that is paused
    return None


def _contradiction(message: OutboxMessage, shown: Snapshot) -> str | None:
    status = shown.data.get("status")
    is_received = message.status is OutboxStatus.SENT and status in _RECEIVED
    if status == SHOWN_AS[message.status].value or is_received:
        return None
    return f"{message.status.value}, but people see {status!r}"


def _stale_claim(message: OutboxMessage, now: datetime) -> str | None:
    until = message.lease_until
    if message.status is not OutboxStatus.SENDING or until is None or until + LATE > now:
        return None
    return f"claimed by {message.claimed_by}, whose lease ended at {until:%H:%M:%S}; no worker settled it"


def _shown_path(outbox: Snapshot) -> str | None:
    thread_id = outbox.data.get("threadId")
    if not isinstance(thread_id, str) or not thread_id or "/" in thread_id:
        return None
    return paths.message(thread_id, outbox.id)


def _account_id(outbox: Snapshot) -> str | None:
    account_id = outbox.data.get("accountId")
    return account_id if isinstance(account_id, str) and account_id and "/" not in account_id else None
