"""The whole product around an adapter: Firestore in this process, lanes run by hand, webhooks at the real entry."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random
from typing import Any

from google.auth.credentials import AnonymousCredentials
from google.cloud.firestore import AsyncClient
from google.cloud.firestore_v1.services.firestore import FirestoreAsyncClient
from google.cloud.firestore_v1.services.firestore.transports import FirestoreGrpcAsyncIOTransport

from firestore_emulator.emulator import FirestoreEmulator
from firestore_emulator.rpc.inprocess import InProcessChannel
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.writes import upsert
from firestore_outbox.inbound.webhook import Answer
from firestore_outbox.lane.ref import LaneRef
from firestore_outbox.local.simulators.api import WebhookForm
from firestore_outbox.local.simulators.app import FORMS
from firestore_outbox.local.simulators.simulator import DEFAULT_SECRET
from firestore_outbox.messages.enqueue import Enqueued, NewMessage
from firestore_outbox.messages.ids import thread_id_of
from firestore_outbox.settings import Settings
from firestore_outbox.wiring import System, assemble
from tests.providers.linked import Link, linked
from tests.web.service.support import RecordedTasks

ACCOUNT = "acme"


@dataclass
class Whole:
    link: Link
    system: System
    form: WebhookForm

    async def enqueue(self, request_id: str, to: str, **fields: Any) -> None:
        parts = fields.pop("parts", [{"type": "text", "text": "hello"}])
        new = NewMessage(request_id=request_id, account_id=ACCOUNT, to=to, parts=parts, created_by="u", **fields)
        assert isinstance(await self.system.enqueue(new), Enqueued)

    async def run(self) -> None:
        """What becomes of a new message's event: the lane is woken, and a worker runs it."""
        await self.system.waker.wake(LaneRef("outbox", ACCOUNT))
        await self.system.engine.run(LaneRef("outbox", ACCOUNT))

    async def hear(self, event: Mapping[str, Any]) -> Answer:
        """An event as the provider posts it: in its form, signed."""
        body = self.form.body(ACCOUNT, event)
        headers = self.form.headers(DEFAULT_SECRET, body, datetime.now(UTC))
        return await self.system.webhook.take(self.link.name, ACCOUNT, headers, body)

    async def outbox(self, request_id: str) -> Mapping[str, Any]:
        return await self._document(paths.outbox(request_id))

    async def shown(self, request_id: str, to: str) -> Mapping[str, Any]:
        return await self._document(paths.message(thread_id_of(ACCOUNT, to), request_id))

    async def _document(self, path: str) -> Mapping[str, Any]:
        snapshot = await self.system.gateway.get(path)
        assert snapshot is not None, path
        return snapshot.data


@asynccontextmanager
async def whole(name: str) -> AsyncIterator[Whole]:
    firestore = FirestoreEmulator()
    client = AsyncClient(project="demo-outbox", credentials=AnonymousCredentials())
    transport = FirestoreGrpcAsyncIOTransport(channel=InProcessChannel([firestore.service]))
    client._firestore_api_internal = FirestoreAsyncClient(transport=transport)
    await firestore.start()
    async with linked(name) as link:
        system = assemble(
            Settings(),
            client=client,
            tasks=RecordedTasks(),
            providers=link.providers,
            owner="this-worker",
            clock=lambda: datetime.now(UTC),
            random=Random(1),
        )
        account = {"provider": name, "timezone": "UTC", "status": "active", "pace": {"perMinute": 0}}
        await system.gateway.commit([upsert(paths.account(ACCOUNT), account)])
        yield Whole(link, system, FORMS[name])
    await firestore.stop()
