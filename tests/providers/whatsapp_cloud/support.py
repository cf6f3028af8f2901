"""An office that sends by WhatsApp Cloud: the production code, the simulator over sockets, and Firestore in process."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any

import httpx
from google.auth.credentials import AnonymousCredentials
from google.cloud.firestore import AsyncClient
from google.cloud.firestore_v1.services.firestore import FirestoreAsyncClient
from google.cloud.firestore_v1.services.firestore.transports import FirestoreGrpcAsyncIOTransport

from firestore_emulator.emulator import FirestoreEmulator
from firestore_emulator.outgoing import Answered, HttpCall
from firestore_emulator.rpc.inprocess import InProcessChannel
from firestore_outbox.clock import system_clock
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.writes import upsert
from firestore_outbox.inbound.webhook import Answer
from firestore_outbox.lane.ref import LaneRef
from firestore_outbox.local.simulators.simulator import DEFAULT_SECRET, ProviderSimulator
from firestore_outbox.media.directory import DirectoryStorage
from firestore_outbox.media.storage import FileRef
from firestore_outbox.messages.enqueue import Enqueued, NewMessage
from firestore_outbox.messages.model import MediaPart, OutboxMessage
from firestore_outbox.providers.built_in import ProviderSettings, providers
from firestore_outbox.providers.credentials import WEBHOOK_SECRET, Credentials, FixedCredentials
from firestore_outbox.providers.outcome import Outcome
from firestore_outbox.providers.pool import ConnectionPool
from firestore_outbox.providers.protocol import Checked
from firestore_outbox.providers.registry import Providers
from firestore_outbox.settings import Settings
from firestore_outbox.wiring import System, assemble, media_delivery
from tests.patience import PATIENCE_SECONDS
from tests.providers.support import LIMIT, NO_JITTER, WEBHOOK

NAME = "whatsapp_cloud"
TOKEN = "EAAGtoken0123456789abcdefghij"
SECRETS = {
    "token": TOKEN,
    "phoneNumberId": "{accountId}",
    "verifyToken": "chosen-word",
    WEBHOOK_SECRET: DEFAULT_SECRET,
}
PICTURE = b"\x89PNG\r\n\r\n--not-a-boundary\r\n" + bytes(range(256)) * 40


def media(media_id: str = "picture", mime_type: str = "image/png", **fields: str) -> MediaPart:
    return MediaPart(type="media", mediaId=media_id, mimeType=mime_type, **fields)


class Seen(httpx.AsyncBaseTransport):
    """The network, and a note of each request that leaves."""

    def __init__(self, network: httpx.AsyncBaseTransport) -> None:
        self._network = network
        self.requests: list[httpx.Request] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await request.aread()
        self.requests.append(request)
        return await self._network.handle_async_request(request)

    async def aclose(self) -> None:
        await self._network.aclose()


@dataclass
class Tasks:
    """What Cloud Tasks was asked for; it does not run by itself."""

    asked: list[tuple[str, dict[str, Any], datetime]] = field(default_factory=list)

    async def enqueue(self, path: str, body: dict[str, Any], at: datetime) -> None:
        self.asked.append((path, body, at))


@dataclass
class Office:
    simulator: ProviderSimulator
    providers: Providers
    system: System
    storage: DirectoryStorage
    seen: Seen
    control: httpx.AsyncClient
    webhooks: list[HttpCall] = field(default_factory=list)
    """As they were posted."""
    takes_webhooks: bool = True
    """Otherwise they are only noted."""
    answers: list[Answer] = field(default_factory=list)

    # --- the adapter alone

    async def order(self, **faults: Any) -> None:
        answer = await self.control.put("/_sim/faults", json=faults)
        assert answer.status_code == 200, answer.text

    async def call(self, message: OutboxMessage) -> Outcome:
        return await self.providers.send(NAME, message, limit=LIMIT)

    async def check(self, **secrets: str) -> Checked:
        credentials = Credentials({name: value for name, value in (SECRETS | secrets).items() if value})
        return await self.providers.check(NAME, "acme", credentials, limit=LIMIT)

    async def truth(self, path: str = "calls") -> list[dict[str, Any]]:
        answer: list[dict[str, Any]] = (await self.control.get(f"/_sim/{path}")).json()
        return answer

    @property
    def posted(self) -> list[dict[str, Any]]:
        """The messages that left, without those uploads that came before."""
        return [json.loads(it.content) for it in self.seen.requests if it.url.path.endswith("/messages")]

    async def add_file(self, media_id: str = "picture", content: bytes = PICTURE, account_id: str = "acme") -> None:
        await self.storage.add(
            FileRef(account_id, media_id), content, mime_type="application/octet-stream", filename=None
        )

    # --- the whole system

    async def account(self, account_id: str = "acme", **fields: Any) -> None:
        data = {"provider": NAME, "timezone": "UTC", "status": "active", "pace": {"perMinute": 0}, **fields}
        await self.system.gateway.commit([upsert(paths.account(account_id), data)])

    async def send(self, request_id: str, *, to: str = "4915112345", parts: list[dict[str, Any]] | None = None) -> None:
        parts = parts or [{"type": "text", "text": "hello"}]
        new = NewMessage(request_id=request_id, account_id="acme", to=to, parts=parts, created_by="u")
        assert isinstance(await self.system.enqueue(new), Enqueued)

    async def drain(self) -> None:
        """One run of the account's lane, and every webhook that follows from it."""
        lane = LaneRef("outbox", "acme")
        await self.system.waker.wake(lane)
        await self.system.engine.run(lane)
        await self.simulator.webhooks.drained()

    async def document(self, path: str) -> dict[str, Any]:
        snapshot = await self.system.gateway.get(path)
        assert snapshot is not None, f"there is no {path}"
        return snapshot.data

    async def message(self, request_id: str, *, to: str = "4915112345") -> dict[str, Any]:
        return await self.document(paths.message(f"acme__{to}", request_id))

    async def outbox(self, request_id: str) -> dict[str, Any]:
        return await self.document(paths.outbox(request_id))

    async def hear(self, call: HttpCall) -> Answer:
        return await self.system.webhook.take(NAME, "acme", call.headers, call.body)

    async def _webhook(self, call: HttpCall) -> Answered:
        self.webhooks.append(call)
        if not self.takes_webhooks:
            return Answered(200)
        answer = await self.hear(call)
        self.answers.append(answer)
        return Answered(answer.value)


@asynccontextmanager
async def office(directory: Path, **options: Any) -> AsyncIterator[Office]:
    firestore = FirestoreEmulator()
    client = AsyncClient(project="demo-outbox", credentials=AnonymousCredentials())
    transport = FirestoreGrpcAsyncIOTransport(channel=InProcessChannel([firestore.service]))
    client._firestore_api_internal = FirestoreAsyncClient(transport=transport)
    await firestore.start()
    holder: list[Office] = []
    settings, random, storage = Settings(), Random(1), DirectoryStorage(directory)
    delivery = media_delivery(settings, storage, client=client, owner="worker", clock=system_clock, random=random)
    assert delivery is not None

    async def deliver(call: HttpCall) -> Answered:
        return await holder[0]._webhook(call)

    async with ProviderSimulator(webhook=WEBHOOK, random=Random(1), send=deliver) as simulator:
        await simulator.start()
        seen = Seen(ConnectionPool(max_connections=20, keepalive_seconds=4.0))
        registry = providers(
            ProviderSettings(whatsapp_cloud_url=f"{simulator.url}/whatsapp_cloud/v23.0", part_jitter=NO_JITTER),
            credentials=FixedCredentials({"*": SECRETS}),
            media=delivery,
            transport=seen,
            random=random,
        )
        system = assemble(
            settings,
            client=client,
            tasks=Tasks(),
            providers=registry,
            owner="worker",
            clock=system_clock,
            random=random,
        )
        async with httpx.AsyncClient(base_url=simulator.url, trust_env=False, timeout=PATIENCE_SECONDS) as control:
            it = Office(simulator, registry, system, storage, seen, control, **options)
            holder.append(it)
            yield it
        await delivery.close()
        await registry.close()
    await firestore.stop()
