"""`provider_webhook` and the worker's service in this process: real code, the real client on our engine, and wires to
Firestore and Cloud Tasks that a test can cut."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random
from typing import Any

import functions_framework.aio
import grpc
import httpx
import pytest
from google.auth.credentials import AnonymousCredentials
from google.cloud.firestore import AsyncClient
from google.cloud.firestore_v1.services.firestore import FirestoreAsyncClient
from google.cloud.firestore_v1.services.firestore.transports import FirestoreGrpcAsyncIOTransport
from grpc import aio

import firestore_outbox.web.functions
from firestore_emulator.emulator import FirestoreEmulator
from firestore_emulator.rpc.inprocess import Carry, InProcessChannel
from firestore_outbox import metrics
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.gateway import Snapshot
from firestore_outbox.firestore.queries import Find
from firestore_outbox.firestore.writes import create
from firestore_outbox.handlers.context import Context
from firestore_outbox.handlers.registration import Registration
from firestore_outbox.lane.ref import INBOUND
from firestore_outbox.lane.tasks import RECEIPT_TASK
from firestore_outbox.local.simulators.app import FORMS
from firestore_outbox.local.simulators.own import OWN
from firestore_outbox.providers.built_in import ProviderSettings, providers
from firestore_outbox.providers.credentials import CredentialResolver, FixedCredentials
from firestore_outbox.settings import Settings
from firestore_outbox.web.tasks import TaskEndpoint
from firestore_outbox.wiring import System, assemble

ACCOUNT = "shop"
SECRET = "a webhook secret"
VERIFY_TOKEN = "a word"
CREDENTIALS = FixedCredentials(
    {
        "*": {
            "token": "t",
            "webhookSecret": SECRET,
            "verifyToken": VERIFY_TOKEN,
            "phoneNumberId": "{accountId}",
            "session": "{accountId}",
        }
    }
)
NAMES = providers(ProviderSettings(), credentials=CREDENTIALS).names
"""Every provider there is."""
_WRITES = ("Commit", "BatchWrite", "Write")

logging.getLogger("httpx").setLevel(logging.WARNING)  # a line for each of thousands of calls


async def handle_nothing(context: Context) -> None:
    """With a handler, inbound messages wake their lane."""


def now() -> datetime:
    return datetime.now(UTC)


@dataclass
class Tasks:
    """What Cloud Tasks was asked for."""

    asked: list[tuple[str, dict[str, Any], datetime]] = field(default_factory=list)
    is_down: bool = False

    async def enqueue(self, path: str, body: dict[str, Any], at: datetime) -> None:
        if self.is_down:
            raise aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, aio.Metadata(), aio.Metadata(), details="it is down")
        self.asked.append((path, json.loads(json.dumps(body)), at))

    @property
    def receipts(self) -> list[tuple[dict[str, Any], datetime]]:
        return [(body, at) for path, body, at in self.asked if path == RECEIPT_TASK]


@dataclass
class Wire:
    """To Firestore: it may be cut, or so slow that nothing comes, and it counts what is written."""

    is_down: bool = False
    hangs: bool = False
    writes: int = 0
    calls: int = 0

    async def __call__(self, path: str, carry: Carry) -> Any:
        if self.is_down:
            raise aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, aio.Metadata(), aio.Metadata(), details="it is down")
        if self.hangs:
            await asyncio.Event().wait()
        self.calls += 1
        self.writes += path.rsplit("/", 1)[-1] in _WRITES
        return await carry()


@dataclass
class Hooks:
    system: System
    tasks: Tasks
    wire: Wire
    http: httpx.AsyncClient
    """The function, behind functions-framework."""

    async def post(
        self, name: str, body: bytes, headers: Mapping[str, str] | None = None, account_id: str = ACCOUNT
    ) -> int:
        """Signed as the provider would, unless headers are given."""
        headers = signature_of(name, body) if headers is None else headers
        answer = await self.http.post(f"/{name}/{account_id}", content=body, headers=headers)
        return answer.status_code

    async def tell(self, *events: Mapping[str, Any]) -> int:
        """A body in our own form."""
        return await self.post("simulated", json.dumps({"events": events}).encode())

    async def run_tasks(self) -> int:
        """Everything that waits for a worker is done, whatever its time. How many tasks it took."""
        ran = 0
        while waiting := self.tasks.receipts:
            self.tasks.asked = [task for task in self.tasks.asked if task[0] != RECEIPT_TASK]
            for body, _ in waiting:
                answer = await TaskEndpoint.of(self.system).answer(RECEIPT_TASK, json.dumps(body).encode(), {})
                assert (answer.status, "unknown" in answer.body) == (200, True), answer
                ran += 1
        return ran

    # --- what is stored

    async def account(self, account_id: str = ACCOUNT, **fields: Any) -> None:
        """With the instance's own copy of it, as after its first webhook; the wire's counts begin anew."""
        data = {"provider": "simulated", "status": "active", "pace": {"perMinute": 0}, **fields}
        await self.system.gateway.commit([create(paths.account(account_id), data)])
        await self.system.webhook.handshake(data["provider"], account_id, {})
        self.wire.writes = self.wire.calls = 0

    async def sent(self, request_ids: Iterable[str], account_id: str = ACCOUNT) -> None:
        """Messages as they are after the provider accepted them: `provider-{requestId}` is its id."""
        writes = []
        for request_id in request_ids:
            identity: dict[str, Any] = {
                "requestId": request_id,
                "accountId": account_id,
                "threadId": f"{account_id}__+49{request_id}",
                "to": f"+49{request_id}",
                "parts": [{"type": "text", "text": "hello"}],
            }
            at = now()
            done = {"status": "sent", "createdAt": at, "sentAt": at, "providerMessageId": f"provider-{request_id}"}
            outbox = {**identity, **done, "nextAttemptAt": at, "attempts": 1}
            writes.append(create(paths.outbox(request_id), outbox))
            message = {**identity, **done, "direction": "outbound"}
            writes.append(create(paths.message(identity["threadId"], request_id), message))
        for start in range(0, len(writes), 200):
            await self.system.gateway.commit(writes[start : start + 200])

    async def statuses(self) -> dict[str, str]:
        """What people see, by requestId."""
        return {message.id: message.data["status"] for message in await self.outbound()}

    async def outbound(self) -> list[Snapshot]:
        found = await self.system.gateway.find(Find(collection=paths.MESSAGES, group=True))
        return [message for message in found if message.data["direction"] == "outbound"]

    async def inbound(self) -> list[Snapshot]:
        found = await self.system.gateway.find(Find(collection=paths.MESSAGES, group=True))
        return [message for message in found if message.data["direction"] == "inbound"]


def signature_of(name: str, body: bytes, secret: str = SECRET, at: datetime | None = None) -> dict[str, str]:
    return FORMS.get(name, OWN).headers(secret, body, at or now())


def receipt(request_id: str, status: str, *, echo: bool = False) -> dict[str, Any]:
    event: dict[str, Any] = {
        "type": "receipt",
        "providerMessageId": f"provider-{request_id}",
        "status": status,
        "at": now().isoformat(),
    }
    return {**event, "echo": f"{request_id}:0:1"} if echo else event


def inbound(identity: str = "in-1", sender: str = "4915112345", text: str = "hello") -> dict[str, Any]:
    parts = [{"type": "text", "text": text}]
    return {"type": "inbound", "providerMessageId": identity, "from": sender, "at": now().isoformat(), "parts": parts}


def counted(metric: str, label: str) -> float:
    """What this process counted so far."""
    lines = metrics.as_text().decode().splitlines()
    found = [line for line in lines if line.startswith(f"{metric}_total{{") and f'="{label}"' in line]
    return float(found[0].rpartition(" ")[2]) if found else 0.0


@asynccontextmanager
async def hooks(
    monkeypatch: pytest.MonkeyPatch,
    *,
    provider: str | None = "simulated",
    credentials: CredentialResolver = CREDENTIALS,
    **settings: Any,
) -> AsyncIterator[Hooks]:
    """With the account `shop` of this provider; None: with no account."""
    firestore, wire, tasks = FirestoreEmulator(), Wire(), Tasks()
    client = AsyncClient(project="demo-outbox", credentials=AnonymousCredentials())
    transport = FirestoreGrpcAsyncIOTransport(channel=InProcessChannel([firestore.service], wire=wire))
    client._firestore_api_internal = FirestoreAsyncClient(transport=transport)
    await firestore.start()
    registry = providers(ProviderSettings(), credentials=credentials)
    system = assemble(
        Settings(**settings),
        client=client,
        tasks=tasks,
        providers=registry,
        owner="this-worker",
        clock=now,
        random=Random(1),
        handlers={INBOUND: Registration(kind=INBOUND, function=handle_nothing)},
    )
    ready: asyncio.Future[System] = asyncio.get_running_loop().create_future()
    ready.set_result(system)
    monkeypatch.setattr(firestore_outbox.web.functions, "_ready", ready)
    app = functions_framework.aio.create_asgi_app_from_module(
        "provider_webhook", "main.py", None, firestore_outbox.web.functions, None
    )
    asgi = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=asgi, base_url="http://functions") as http:
        it = Hooks(system, tasks, wire, http)
        if provider is not None:
            await it.account(provider=provider)
        yield it
    await registry.close()
    await firestore.stop()
