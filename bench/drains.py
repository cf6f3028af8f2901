"""An account's backlog, the provider that takes it, and our way to empty it, on any Firestore.

Ours is the production code, assembled as the worker assembles it; only the provider is a stub that takes a fixed time
and accepts everything. How others do it is in `bench/patterns`; they wait for the same stub.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from random import Random
from typing import Any

from google.cloud.firestore import AsyncClient
from google.cloud.firestore_v1.base_query import FieldFilter

from firestore_outbox.clock import system_clock
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.gateway import Conflict, Gateway
from firestore_outbox.firestore.queries import Find
from firestore_outbox.firestore.writes import WriteOp, upsert
from firestore_outbox.lane.engine import Ran
from firestore_outbox.lane.ref import outbox_lane
from firestore_outbox.lane.tasks import Tasks
from firestore_outbox.messages.enqueue import NewMessage, batch
from firestore_outbox.messages.model import OutboxMessage
from firestore_outbox.providers.credentials import Credentials, FixedCredentials
from firestore_outbox.providers.http import Http
from firestore_outbox.providers.outcome import Capability, Outcome, Sent
from firestore_outbox.providers.protocol import Checked, Profile, Provider, WebhookEvent
from firestore_outbox.providers.registry import Providers
from firestore_outbox.settings import Settings
from firestore_outbox.wiring import System, assemble

ACCOUNT = "acc"
CONCURRENCY = 50
LOAD_AT_A_TIME = 100

Send = Callable[[str], Awaitable[str]]
"""Takes a requestId, gives the provider's own id."""


class ProviderCalls:
    """What all ways wait for: the provider's own time, and an id. It remembers what was sent how often."""

    def __init__(self, latency_seconds: float) -> None:
        self._latency_seconds = latency_seconds
        self.of: Counter[str] = Counter()

    async def send(self, request_id: str) -> str:
        self.of[request_id] += 1
        await asyncio.sleep(self._latency_seconds)
        return f"wamid-{request_id}"

    def check(self, messages: int) -> None:
        """How many were sent, each once."""
        if len(self.of) != messages or self.of.total() != messages:
            raise RuntimeError(f"{len(self.of)} of {messages} messages were sent, with {self.of.total()} calls")


# --- the backlog


async def load(client: AsyncClient, messages: int) -> None:
    """One account with no pace and 50 sends at a time, and a backlog of messages to as many recipients."""
    gateway = Gateway(client)
    await gateway.commit([account()])
    for first in range(0, messages, LOAD_AT_A_TIME):
        writes = []
        for number in range(first, min(first + LOAD_AT_A_TIME, messages)):
            writes += batch(new_message(number))
        if isinstance(await gateway.commit(writes), Conflict):
            raise RuntimeError("the database is not empty")


def account(account_id: str = ACCOUNT) -> WriteOp:
    return upsert(
        paths.account(account_id), {"provider": Stub.name, "concurrency": CONCURRENCY, "pace": {"perMinute": 0}}
    )


def new_message(number: int, account_id: str = ACCOUNT) -> NewMessage:
    text = "Your parcel is on its way. " * 4
    return NewMessage(
        request_id=request_id_of(number),
        account_id=account_id,
        to=f"+4917{number:08}",
        parts=[{"type": "text", "text": text}],
        created_by="bench",
    )


def request_id_of(number: int) -> str:
    return f"{number * 2_654_435_761 % 2**32:08x}-{number:06}"  # spread, as ids should be


async def sent(client: AsyncClient) -> int:
    """How many messages are `sent` in both of their documents, as people would see it."""
    outbox = await stored_as(client, "status", "sent")
    where = (("accountId", "==", ACCOUNT), ("status", "==", "sent"))
    shown = await Gateway(client).count(Find(collection=paths.MESSAGES, group=True, where=where))
    if outbox != shown:
        raise RuntimeError(f"{outbox} outbox documents are sent, and {shown} messages")
    return outbox


async def stored_as(client: AsyncClient, field: str, value: str) -> int:
    """How many outbox documents have that value there."""
    query = client.collection(paths.OUTBOX).where(filter=FieldFilter(field, "==", value))
    [[found]] = await query.count().get()
    return int(found.value)


# --- ours


def our_worker(client: AsyncClient, queries: Any, send: Send, tasks: Tasks | None = None) -> System:
    """As the worker builds it at its start."""
    return assemble(
        Settings(),
        client=client,
        tasks=tasks or NoTasks(),
        providers=Providers([Stub(send)], FixedCredentials({"*": {"token": "bench"}}), Http()),
        owner="bench",
        clock=system_clock,
        random=Random(1),
        queries=queries,
    )


async def drain_ours(client: AsyncClient, queries: Any, send: Send) -> None:
    """One lane, from the task that wakes it to its release."""
    system = our_worker(client, queries, send)
    await system.waker.wake(outbox_lane(ACCOUNT))
    ran = await system.engine.run(outbox_lane(ACCOUNT))
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
        throttle_scopes=frozenset(),
    )

    def __init__(self, send: Send) -> None:
        self._send = send

    async def send(self, message: OutboxMessage, credentials: Credentials, *, limit: timedelta) -> Outcome:
        return Sent(provider_message_id=await self._send(message.request_id))

    async def check(self, account_id: str, credentials: Credentials, *, limit: timedelta) -> Checked:
        return Checked(works=True, detail="it takes everything")

    def verify(self, headers: Mapping[str, str], raw_body: bytes, secret: str, *, now: datetime) -> bool:
        return False

    def parse(self, raw_body: bytes) -> tuple[WebhookEvent, ...]:
        return ()


class NoTasks:
    async def enqueue(self, path: str, body: dict[str, Any], at: datetime) -> None:
        """The measurement runs the lane itself."""
