"""What is stored and what the provider saw, gathered when everything has come to rest."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime, timedelta

from google.cloud.firestore import AsyncClient

from firestore_outbox.accounts.store import AccountStore
from firestore_outbox.errors import StoreUnavailable
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.gateway import Gateway, Snapshot
from firestore_outbox.firestore.queries import Find
from firestore_outbox.lane.state import due_time
from firestore_outbox.lane.store import LaneStore
from firestore_outbox.lane.transitions import LaneState
from firestore_outbox.operations.audit.auditor import audit
from firestore_outbox.settings import Settings
from tests.system.chaos.clients import ACCOUNTS, Account, Written
from tests.system.chaos.judge import Evidence
from tests.system.chaos.stack import ChaosStack

PAGE = 300
LOOK_SECONDS = 0.5
LONG_AFTER = timedelta(hours=1)
"""The auditor is shown a time at which nothing could still be on its way."""


async def at_rest(
    stack: ChaosStack, client: AsyncClient, say: Callable[[str], None], accounts: Sequence[Account] = ACCOUNTS
) -> bool:
    """Returns when no part has anything left to do; False if that did not come in time."""
    echoing = frozenset(account.account_id for account in accounts if account.echoes)
    gateway = Gateway(client)
    ends, said = time.monotonic() + stack.tempo.patience_seconds, ""
    while True:
        try:
            left = await _left(stack, gateway, echoing)
        except StoreUnavailable:
            left = "an answer from Firestore"
        if not left:
            return True
        if left != said:
            say(f"waiting for {left}")
            said = left
        if time.monotonic() > ends:
            return False
        await asyncio.sleep(LOOK_SECONDS)


async def _left(stack: ChaosStack, gateway: Gateway, echoing: frozenset[str]) -> str:
    """In words; nothing if nothing is."""
    for status in ("queued", "sending"):
        if count := await gateway.count(Find(collection=paths.OUTBOX, where=(("status", "==", status),))):
            return f"{count} {status}"
    in_doubt = await gateway.find(Find(collection=paths.OUTBOX, where=(("status", "==", "uncertain"),)))
    if waiting := sum(one.data.get("nextAttemptAt") is not None for one in in_doubt):
        return f"{waiting} uncertain, whose receipts may come"
    if pending := await stack.webhooks_pending():
        return f"{pending} webhooks"
    accepted = stack.accepted()
    if settled := sum(one.data["accountId"] in echoing and one.id in accepted for one in in_doubt):
        return f"{settled} uncertain, whose receipts were taken and wait in Cloud Tasks"
    now = datetime.now(UTC)
    lanes = await LaneStore(gateway).all(limit=10_000)
    if busy := sum(lane.state is not LaneState.IDLE or due_time(lane, now) is not None for _, lane in lanes):
        return f"{busy} lanes"
    return ""


async def gathered(
    stack: ChaosStack, client: AsyncClient, written: Sequence[Written], accounts: Sequence[Account] = ACCOUNTS
) -> Evidence:
    gateway = Gateway(client)
    settings = Settings()
    store = AccountStore(gateway, per_minute=settings.per_minute, concurrency=settings.send_concurrency)
    findings = await audit(gateway, store, now=datetime.now(UTC) + LONG_AFTER, overlap=settings.overlap)
    outbox = {one.id: one.data async for one in _all(gateway, Find(collection=paths.OUTBOX))}
    shown = {one.id: one.data async for one in _all(gateway, Find(collection=paths.MESSAGES, group=True))}
    return Evidence(
        accounts={account.account_id: account for account in accounts},
        written=written,
        outbox=outbox,
        shown=shown,
        calls=await stack.calls(),
        audited=[str(finding) for finding in findings],
    )


async def _all(gateway: Gateway, query: Find) -> AsyncIterator[Snapshot]:
    after: tuple[str] | None = None
    while True:
        page = await gateway.find(
            Find(collection=query.collection, group=query.group, order_by=("__name__",), limit=PAGE, start_after=after)
        )
        for one in page:
            yield one
        if len(page) < PAGE:
            return
        after = (page[-1].path,)
