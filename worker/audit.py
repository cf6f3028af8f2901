"""The invariants, checked on what is stored: `outbox audit` on a live project, and the simulation after each run.

What can be told from the documents as they are now:

    lost        nothing due waits without somebody who will look at it
    lease       no lease outlives its end by more than a few sweeps, of a lane or of a claim
    agreement   people see of a message what its outbox document says
    shape       a document in a state has what belongs to that state, and nothing of another

It reads everything once and writes nothing. While workers run, documents change between two reads; what looks wrong is
therefore looked at again before it is called a finding.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from worker.domain.account import Account, Closed, parse_account, sending
from worker.domain.lane import Lane, LaneState, due_time
from worker.domain.message import ENDED, OutboxMessage, OutboxStatus
from worker.domain.validation import InvalidMessage, parse_message
from worker.store import paths
from worker.store.gateway import Find, Gateway, Snapshot
from worker.store.lanes import LaneRef, LaneStore

PAGE = 300
LATE = timedelta(minutes=3)
"""How long something may be overdue: two sweeps and the time they take."""
LOOKS = 3

_SHOWN: dict[OutboxStatus, frozenset[str]] = {
    OutboxStatus.QUEUED: frozenset({"queued"}),
    OutboxStatus.SENDING: frozenset({"queued"}),
    OutboxStatus.UNCERTAIN: frozenset({"queued"}),
    OutboxStatus.SENT: frozenset({"sent", "delivered", "read"}),
    OutboxStatus.FAILED: frozenset({"failed"}),
    OutboxStatus.SKIPPED: frozenset({"skipped"}),
    OutboxStatus.CANCELLED: frozenset({"cancelled"}),
}
"""What people may see, by the outbox document's status."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A broken invariant."""

    invariant: str
    path: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.invariant}: {self.path}: {self.sentence}"


async def audit(gateway: Gateway, *, now: datetime) -> list[Finding]:
    lanes = await _lanes(gateway)
    findings = [finding for ref, lane in lanes.items() for finding in _of_lane(ref, lane, now)]
    accounts: dict[str, Account | None] = {}
    async for page in _pages(gateway):
        for suspect in await _suspects(gateway, page, lanes, accounts, now):
            findings += await _confirmed(gateway, suspect, lanes, accounts, now)
    return findings


# --- lanes


async def _lanes(gateway: Gateway) -> dict[LaneRef, Lane]:
    return dict(await LaneStore(gateway).all(limit=100_000))


def _of_lane(ref: LaneRef, lane: Lane, now: datetime) -> list[Finding]:
    due = due_time(lane, now)
    if due is None or due + LATE > now:
        return []
    words = {
        LaneState.RUNNING: f"held by {lane.owner}, whose lease ended at {due:%H:%M:%S}; nobody took over",
        LaneState.READY: f"ready since {due:%H:%M:%S}, and nobody came",
        LaneState.IDLE: f"due since {due:%H:%M:%S}, and nobody came",
    }
    return [Finding("lease" if lane.state is LaneState.RUNNING else "lost", ref.path, words[lane.state])]


# --- messages


async def _pages(gateway: Gateway) -> AsyncIterator[list[Snapshot]]:
    after: tuple[str] | None = None
    while True:
        page = await gateway.find(Find(collection=paths.OUTBOX, order_by=("__name__",), limit=PAGE, start_after=after))
        yield page
        if len(page) < PAGE:
            return
        after = (page[-1].path,)


async def _suspects(
    gateway: Gateway,
    page: list[Snapshot],
    lanes: dict[LaneRef, Lane],
    accounts: dict[str, Account | None],
    now: datetime,
) -> list[str]:
    """The ids of documents that look wrong."""
    shown = await gateway.get_all([path for one in page if (path := _shown_path(one)) is not None])
    suspects = []
    for one in page:
        await _learn_account(gateway, one, accounts)
        if _of_message(one, shown.get(_shown_path(one) or ""), lanes, accounts, now):
            suspects.append(one.id)
    return suspects


async def _confirmed(
    gateway: Gateway,
    request_id: str,
    lanes: dict[LaneRef, Lane],
    accounts: dict[str, Account | None],
    now: datetime,
) -> list[Finding]:
    """The findings that last, with everything they rest on read again."""
    findings: list[Finding] = []
    for _ in range(LOOKS):
        outbox = await gateway.get(paths.outbox(request_id))
        if outbox is None:
            return []
        path = _shown_path(outbox)
        found = await gateway.get_all([outbox.path, *([path] if path is not None else [])])
        outbox = found.get(outbox.path)
        if outbox is None:
            return []
        account_id = outbox.data.get("accountId")
        if isinstance(account_id, str) and "/" not in account_id:
            ref = LaneRef("outbox", account_id)
            lanes[ref] = (await LaneStore(gateway).read(ref)).lane
        findings = _of_message(outbox, found.get(path or ""), lanes, accounts, now)
        if not findings:
            return []
    return findings


async def _learn_account(gateway: Gateway, one: Snapshot, accounts: dict[str, Account | None]) -> None:
    account_id = one.data.get("accountId")
    if one.data.get("status") != "queued" or not isinstance(account_id, str) or account_id in accounts:
        return
    snapshot = await gateway.get(paths.account(account_id)) if account_id and "/" not in account_id else None
    parsed = None if snapshot is None else parse_account(account_id, snapshot.data)
    accounts[account_id] = parsed if isinstance(parsed, Account) else None


def _of_message(
    outbox: Snapshot,
    shown: Snapshot | None,
    lanes: dict[LaneRef, Lane],
    accounts: dict[str, Account | None],
    now: datetime,
) -> list[Finding]:
    message = parse_message(outbox.id, outbox.data)
    if isinstance(message, InvalidMessage):
        return _of_malformed(outbox, message, now)
    sentences = [
        ("shape", _misshapen(message)),
        ("agreement", _disagreement(message, outbox.data, shown)),
        ("lease", _stale_claim(message, now)),
        ("lost", _forgotten(message, lanes, accounts, now)),
    ]
    return [Finding(invariant, outbox.path, sentence) for invariant, sentence in sentences if sentence is not None]


def _of_malformed(outbox: Snapshot, message: InvalidMessage, now: datetime) -> list[Finding]:
    status = outbox.data.get("status")
    if status in {ended.value for ended in ENDED} or outbox.created + LATE > now:
        return []
    return [Finding("lost", outbox.path, f"malformed and not refused: {message.sentence}")]


def _misshapen(message: OutboxMessage) -> str | None:
    status = message.status
    is_claimed = message.claimed_by is not None and message.lease_until is not None
    if (status is OutboxStatus.SENDING) != is_claimed:
        return f"{status.value}, claimed by {message.claimed_by or 'nobody'} until {message.lease_until}"
    if status in ENDED and message.expire_at is None:
        return f"{status.value}, and it will never be cleared away"
    if status is OutboxStatus.SENT and (message.attempts == 0 or message.sent_at is None):
        return f"sent at {message.sent_at} after {message.attempts} attempts"
    if status is OutboxStatus.QUEUED and message.next_attempt_at is None and message.run_id is None:
        return "queued, and for no time"  # but for a run that is paused
    return None


def _disagreement(message: OutboxMessage, data: dict[str, Any], shown: Snapshot | None) -> str | None:
    if shown is None:
        return None if data.get("runId") is not None else "there is no message document for it"
    status = shown.data.get("status")
    if status in _SHOWN[message.status]:
        return None
    return f"{message.status.value}, but people see {status!r}"


def _stale_claim(message: OutboxMessage, now: datetime) -> str | None:
    until = message.lease_until
    if message.status is not OutboxStatus.SENDING or until is None or until + LATE > now:
        return None
    return f"claimed by {message.claimed_by}, whose lease ended at {until:%H:%M:%S}; nobody settled it"


def _forgotten(
    message: OutboxMessage, lanes: dict[LaneRef, Lane], accounts: dict[str, Account | None], now: datetime
) -> str | None:
    """Due, allowed to go, and no lane that will look at it."""
    at = message.next_attempt_at
    waits = message.status in (OutboxStatus.QUEUED, OutboxStatus.UNCERTAIN)
    if not waits or at is None or at + LATE > now:
        return None
    lane = lanes.get(LaneRef("outbox", message.account_id), Lane())
    if lane.state is not LaneState.IDLE or lane.next_due_at is not None:
        return None
    account = accounts.get(message.account_id)
    if account is None or isinstance(sending(account, now), Closed):
        return None
    return f"{message.status.value} and due since {at:%Y-%m-%d %H:%M:%S}, and no lane knows of it"


def _shown_path(outbox: Snapshot) -> str | None:
    thread_id = outbox.data.get("threadId")
    if not isinstance(thread_id, str) or not thread_id or "/" in thread_id:
        return None
    return paths.message(thread_id, outbox.id)
