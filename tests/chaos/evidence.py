"""What is stored and what the provider saw, gathered when everything has come to rest."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime, timedelta

from google.cloud.firestore import AsyncClient

from tests.chaos.clients import ACCOUNTS, Written
from tests.chaos.judge import Evidence
from tests.chaos.stack import ChaosStack
from worker.audit.auditor import audit
from worker.domain.lane import LaneState, due_time
from worker.errors import StoreUnavailable
from worker.settings import Settings
from worker.store import paths
from worker.store.accounts import AccountStore
from worker.store.find import Find
from worker.store.gateway import Gateway, Snapshot
from worker.store.lanes import LaneStore

PAGE = 300
LOOK_SECONDS = 0.5
ECHOING = frozenset(account.account_id for account in ACCOUNTS if account.echoes)
LONG_AFTER = timedelta(hours=1)
"""The auditor is shown a time at which nothing could still be on its way."""


async def at_rest(stack: ChaosStack, client: AsyncClient, say: Callable[[str], None]) -> bool:
    """Returns when nothing is left that anybody would do; False if that did not come in time."""
    gateway = Gateway(client)
    ends, said = time.monotonic() + stack.tempo.patience_seconds, ""
    while True:
        try:
            left = await _left(stack, gateway)
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


async def _left(stack: ChaosStack, gateway: Gateway) -> str:
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
    if settled := sum(one.data["accountId"] in ECHOING and one.id in accepted for one in in_doubt):
        return f"{settled} uncertain, whose receipts were taken and wait in Cloud Tasks"
    now = datetime.now(UTC)
    lanes = await LaneStore(gateway).all(limit=10_000)
    if busy := sum(lane.state is not LaneState.IDLE or due_time(lane, now) is not None for _, lane in lanes):
        return f"{busy} lanes"
    return ""


async def gathered(stack: ChaosStack, client: AsyncClient, written: Sequence[Written]) -> Evidence:
    gateway = Gateway(client)
    settings = Settings()
    accounts = AccountStore(gateway, per_minute=settings.per_minute, concurrency=settings.send_concurrency)
    findings = await audit(gateway, accounts, now=datetime.now(UTC) + LONG_AFTER)
    outbox = {one.id: one.data async for one in _all(gateway, Find(collection=paths.OUTBOX))}
    shown = {one.id: one.data async for one in _all(gateway, Find(collection=paths.MESSAGES, group=True))}
    return Evidence(
        accounts={account.account_id: account for account in ACCOUNTS},
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
