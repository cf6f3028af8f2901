"""All of it: lanes, messages, what was sent and to whom, runs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from firestore_outbox.accounts.account import Account
from firestore_outbox.accounts.store import AccountStore
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.gateway import Gateway
from firestore_outbox.lane.ref import LaneRef
from firestore_outbox.lane.state import Lane, due_time
from firestore_outbox.lane.store import LaneStore
from firestore_outbox.lane.transitions import LaneState
from firestore_outbox.messages.model import OutboxMessage
from firestore_outbox.messages.validation import parse_message
from firestore_outbox.operations.audit.consent import Consent
from firestore_outbox.operations.audit.documents import LATE, Documents
from firestore_outbox.operations.audit.finding import Finding
from firestore_outbox.operations.audit.gaps import Gaps
from firestore_outbox.operations.audit.history import History, KnownAccount
from firestore_outbox.operations.audit.pages import pages
from firestore_outbox.operations.audit.runs import of_runs

MOST_LANES = 100_000


async def audit(
    gateway: Gateway,
    accounts: AccountStore,
    *,
    now: datetime,
    overlap: timedelta,
    on_progress: Callable[[int], None] = lambda messages: None,
) -> list[Finding]:
    """`overlap` is that of pages of queued documents; `on_progress` gets the number of messages of each page."""
    lanes = dict(await LaneStore(gateway).all(limit=MOST_LANES))
    findings = [finding for ref, lane in lanes.items() for finding in _of_lane(ref, lane, now)]
    documents, history, gaps = Documents(gateway, accounts, lanes, now), History(), Gaps(overlap)
    consent = Consent()
    async for page in pages(gateway, paths.OUTBOX):
        parsed = [(snapshot, parse_message(snapshot.id, snapshot.data)) for snapshot in page]
        findings += await documents.findings(parsed)
        for snapshot, message in parsed:
            if isinstance(message, OutboxMessage):
                history.add(snapshot, message)
                gaps.add(snapshot, message)
                findings += consent.add(snapshot, message)
        on_progress(len(page))
    findings += history.out_of_order()
    findings += gaps.findings()
    findings += [finding async for finding in consent.opted_out(gateway, accounts, now)]
    for account_id in history.accounts():
        account, changed_at = await accounts.read_dated(account_id)
        if isinstance(account, Account) and changed_at is not None:
            findings += history.too_fast(KnownAccount(account, changed_at))
    return findings + [finding async for finding in of_runs(gateway)]


def _of_lane(ref: LaneRef, lane: Lane, now: datetime) -> list[Finding]:
    due = due_time(lane, now)
    if due is None or due + LATE > now:
        return []
    words = {
        LaneState.RUNNING: f"held by {lane.owner}, whose lease ended at {due:%H:%M:%S}; no worker took over",
        LaneState.READY: f"ready since {due:%H:%M:%S}, and no worker came",
        LaneState.IDLE: f"due since {due:%H:%M:%S}, and no worker came",
    }
    return [Finding("lease" if lane.state is LaneState.RUNNING else "lost", ref.path, words[lane.state])]
