"""Two ways to empty an account's outbox, on any Firestore: ours, and the pattern that many projects begin with.

Ours is the production code, assembled as the worker assembles it; only the provider is a stub that takes a fixed time
and accepts everything. The other is the worker of a well-known kind of WhatsApp backend: every 500 ms it asks for
queued documents that are due, and for one after the other it claims the document in a transaction (still queued, and
nobody's lease on it), sends, and writes the outcome to the outbox document and to the message.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from google.cloud import firestore
from google.cloud.firestore import AsyncClient, AsyncDocumentReference, AsyncTransaction
from google.cloud.firestore_v1.base_query import FieldFilter

from worker.clock import system_clock
from worker.domain.message import OutboxMessage
from worker.domain.outcome import Capability, Outcome, Sent
from worker.lane.engine import Ran
from worker.outbox.enqueue import NewMessage, batch
from worker.outbox.trigger import KIND
from worker.providers.credentials import Credentials, FixedCredentials
from worker.providers.http import Http
from worker.providers.protocol import Checked, Profile, Provider, WebhookEvent
from worker.providers.registry import Providers
from worker.settings import Settings
from worker.store import paths
from worker.store.gateway import Conflict, Find, Gateway, upsert
from worker.store.lanes import LaneRef
from worker.wiring import assemble

ACCOUNT = "acc"
CONCURRENCY = 50
POLL_SECONDS = 0.5
POLL_LIMIT = 50
LEASE = timedelta(seconds=60)
LOAD_AT_A_TIME = 100

Send = Callable[[], Awaitable[str]]


def provider_call(latency_seconds: float) -> Send:
    """What both ways wait for: the provider's own time, and an id."""
    numbers = itertools.count()

    async def send() -> str:
        await asyncio.sleep(latency_seconds)
        return f"wamid-{next(numbers)}"

    return send


# --- the backlog


async def load(client: AsyncClient, messages: int) -> None:
    """One account with no pace and 50 sends at a time, and a backlog of messages to as many recipients."""
    gateway = Gateway(client)
    account = {"provider": Stub.name, "concurrency": CONCURRENCY, "pace": {"perMinute": 0}}
    await gateway.commit([upsert(paths.account(ACCOUNT), account)])
    for first in range(0, messages, LOAD_AT_A_TIME):
        writes = []
        for number in range(first, min(first + LOAD_AT_A_TIME, messages)):
            writes += batch(_new(number))
        if isinstance(await gateway.commit(writes), Conflict):
            raise RuntimeError("the database is not empty")


def _new(number: int) -> NewMessage:
    text = "Your parcel is on its way. " * 4
    return NewMessage(
        request_id=f"{number * 2_654_435_761 % 2**32:08x}-{number:06}",  # spread, as ids should be
        account_id=ACCOUNT,
        to=f"+4917{number:08}",
        parts=[{"type": "text", "text": text}],
        created_by="bench",
    )


async def sent(client: AsyncClient) -> int:
    """How many messages are `sent` in both of their documents, as people would see it."""
    gateway = Gateway(client)
    where = (("accountId", "==", ACCOUNT), ("status", "==", "sent"))
    outbox = await gateway.count(Find(collection=paths.OUTBOX, where=where))
    shown = await gateway.count(Find(collection=paths.MESSAGES, group=True, where=where))
    if outbox != shown:
        raise RuntimeError(f"{outbox} outbox documents are sent, and {shown} messages")
    return outbox


# --- ours


async def drain_ours(client: AsyncClient, queries: Any, send: Send) -> None:
    """One lane, from the task that wakes it to its release."""
    system = assemble(
        Settings(),
        client=client,
        tasks=_NoTasks(),
        providers=Providers([Stub(send)], FixedCredentials({"*": {"token": "bench"}}), Http()),
        owner="bench",
        clock=system_clock,
        random=Random(1),
        queries=queries,
    )
    lane = LaneRef(KIND, ACCOUNT)
    await system.waker.wake(lane)
    ran = await system.engine.run(lane)
    await system.providers.close()
    if not isinstance(ran, Ran):
        raise RuntimeError(f"the lane did not run: {ran}")


class Stub(Provider):
    """A provider that accepts everything."""

    name = "stub"
    profile = Profile(
        capability=Capability(resend_safe=True, echoes_request_id=True),
        part_types=frozenset({"text"}),
        media=None,
        needs_session=False,
        throttle_scopes=frozenset(),
    )

    def __init__(self, send: Send) -> None:
        self._send = send

    async def send(self, message: OutboxMessage, credentials: Credentials, *, limit: timedelta) -> Outcome:
        return Sent(provider_message_id=await self._send())

    async def check(self, account_id: str, credentials: Credentials, *, limit: timedelta) -> Checked:
        return Checked(works=True, detail="it takes everything")

    def verify(self, headers: Mapping[str, str], raw_body: bytes, secret: str, *, now: datetime) -> bool:
        return False

    def parse(self, raw_body: bytes) -> tuple[WebhookEvent, ...]:
        return ()


class _NoTasks:
    async def enqueue(self, path: str, body: dict[str, Any], at: datetime) -> None:
        """The measurement runs the lane itself."""


# --- the pattern


async def drain_by_polling(client: AsyncClient, send: Send, messages: int) -> float:
    """Until that many are sent. Returns the seconds spent waiting for the next poll."""
    done, waited = 0, 0.0
    loop = asyncio.get_running_loop()
    while done < messages:
        began = loop.time()
        query = (
            client.collection("outbox")
            .where(filter=FieldFilter("accountId", "==", ACCOUNT))
            .where(filter=FieldFilter("status", "==", "queued"))
            .where(filter=FieldFilter("nextAttemptAt", "<=", datetime.now(UTC)))
            .order_by("nextAttemptAt")
            .limit(min(POLL_LIMIT, messages - done))
        )
        for snapshot in await query.get():
            # The decorated function keeps state between calls: it must be made anew for each.
            if not await firestore.async_transactional(_claimed)(client.transaction(), snapshot.reference):
                continue
            await _sent_one(client, snapshot.reference, snapshot.get("threadId"), await send())
            done += 1
        pause = began + POLL_SECONDS - loop.time()
        if done < messages and pause > 0:
            await asyncio.sleep(pause)
            waited += pause
    return waited


async def _claimed(transaction: AsyncTransaction, reference: AsyncDocumentReference) -> bool:
    snapshot = await reference.get(transaction=transaction)
    data, now = snapshot.to_dict() or {}, datetime.now(UTC)
    lease_until = data.get("leaseUntil")
    if data.get("status") != "queued" or (lease_until is not None and lease_until > now):
        return False
    claim = {"status": "sending", "claimedBy": "worker-1", "leaseUntil": now + LEASE, "attempts": data["attempts"] + 1}
    transaction.update(reference, claim)
    return True


async def _sent_one(client: AsyncClient, outbox: AsyncDocumentReference, thread_id: str, provider_id: str) -> None:
    at = firestore.SERVER_TIMESTAMP
    await outbox.update({"status": "sent", "providerMessageId": provider_id, "sentAt": at, "leaseUntil": None})
    message = client.document("threads", thread_id, "messages", outbox.id)
    await message.update({"status": "sent", "providerMessageId": provider_id, "sentAt": at})
