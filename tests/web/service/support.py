"""The worker's service and the functions in this process: real code on our engines, and one socket: certificates."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from random import Random
from typing import Any

import grpc
import httpx
import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from google.auth.credentials import AnonymousCredentials
from google.cloud.firestore import AsyncClient
from google.cloud.firestore_v1.services.firestore import FirestoreAsyncClient
from google.cloud.firestore_v1.services.firestore.transports import FirestoreGrpcAsyncIOTransport
from grpc import aio

from firestore_emulator.emulator import FirestoreEmulator
from firestore_emulator.rpc.inprocess import Carry, InProcessChannel
from firestore_emulator.rpc.service import Message
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.gateway import Conflict
from firestore_outbox.firestore.writes import upsert
from firestore_outbox.handlers.registration import Registration
from firestore_outbox.local.simulators.simulator import ProviderSimulator
from firestore_outbox.media.storage import Storage
from firestore_outbox.messages.enqueue import NewMessage, batch
from firestore_outbox.providers.built_in import ProviderSettings, providers
from firestore_outbox.providers.credentials import FixedCredentials
from firestore_outbox.settings import Settings
from firestore_outbox.web.app import app
from firestore_outbox.web.auth import CallerCheck
from firestore_outbox.wiring import NO_HANDLERS, System, assemble

AUDIENCE = "https://worker.example"
ACCOUNT = "tasks@example.iam.gserviceaccount.com"
ISSUER = "https://accounts.google.com"
SECRET = "a webhook secret"
HOST = "127.0.0.1"
CREDENTIALS = {
    "token": "t",
    "webhookSecret": SECRET,
    "apiKey": "k",
    "baseUrl": "http://provider/waha",
    "session": "{accountId}",
    "phoneNumberId": "{accountId}",
}
"""Of every account, whatever its provider."""


def now() -> datetime:
    return datetime.now(UTC)


# --- tokens


@cache
def signing_key(name: str) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def token(*, key: str = "first", kid: str | None = None, **changes: Any) -> str:
    """A genuine one of Cloud Tasks; `changes` are claims, and None takes one away."""
    claims: dict[str, Any] = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": "1",
        "email": ACCOUNT,
        "email_verified": True,
        "iat": int(now().timestamp()),
        "exp": int((now() + timedelta(hours=1)).timestamp()),
        **changes,
    }
    claims = {name: value for name, value in claims.items() if value is not None}
    return jwt.encode(claims, signing_key(key), algorithm="RS256", headers={"kid": key if kid is None else kid})


@dataclass
class Certificates:
    """Google's certificates, served here."""

    keys: list[str] = field(default_factory=lambda: ["first"])
    is_down: bool = False
    fetches: int = 0
    url: str = ""

    def body(self) -> bytes:
        found = []
        for name in self.keys:
            public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(signing_key(name).public_key()))
            found.append({**public, "kid": name, "use": "sig", "alg": "RS256"})
        return json.dumps({"keys": found}).encode()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        self.fetches += 1
        status, body = ("503 Down", b"") if self.is_down else ("200 OK", self.body())
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
        writer.close()


@asynccontextmanager
async def certificates() -> AsyncIterator[Certificates]:
    served = Certificates()
    server = await asyncio.start_server(served.serve, HOST, 0)
    served.url = f"http://{HOST}:{server.sockets[0].getsockname()[1]}/certs"
    try:
        yield served
    finally:
        server.close()


@dataclass
class AdjustableClock:
    ahead: timedelta = timedelta(0)

    def __call__(self) -> datetime:
        return now() + self.ahead


# --- the system


@dataclass
class RecordedTasks:
    """What Cloud Tasks was asked for; it never calls back."""

    asked: list[tuple[str, dict[str, Any], datetime]] = field(default_factory=list)
    failure: Exception | None = None
    """Raised instead, if there is one."""

    async def enqueue(self, path: str, body: dict[str, Any], at: datetime) -> None:
        if self.failure is not None:
            raise self.failure
        self.asked.append((path, body, at))


@dataclass
class Store:
    """The wire to Firestore, which may be cut."""

    is_down: bool = False

    async def wire(self, path: str, carry: Carry) -> Message:
        if self.is_down:
            raise aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, aio.Metadata(), aio.Metadata(), details="it is down")
        return await carry()


@dataclass
class Service:
    system: System
    provider: ProviderSimulator
    tasks: RecordedTasks
    store: Store
    stop: asyncio.Event
    certificates: Certificates
    http: httpx.AsyncClient
    """The worker's service, called as Cloud Tasks would."""

    async def account(self, account_id: str = "shop", **changes: Any) -> None:
        fields = {"provider": "simulated", "status": "active", "pace": {"perMinute": 0}, **changes}
        await self.system.gateway.commit([upsert(paths.account(account_id), fields)])

    async def send(self, request_id: str, account_id: str = "shop", *, at: datetime | None = None) -> None:
        parts = [{"type": "text", "text": "hello"}]
        new = NewMessage(
            request_id=request_id, account_id=account_id, to="+491701", parts=parts, created_by="u", send_at=at
        )
        # As it stands in Firestore: the time may have passed since.
        assert not isinstance(await self.system.gateway.commit(batch(new)), Conflict)

    async def forget(self, request_id: str, account_id: str = "shop") -> None:
        """A message that was due a minute ago and whose event was lost."""
        await self.send(request_id, account_id)
        fields = {"nextAttemptAt": now() - timedelta(minutes=1)}
        await self.system.gateway.commit([upsert(paths.outbox(request_id), fields)])

    async def poison_lane(self) -> None:
        """A lane that is due for a takeover, in a document that no version of the worker wrote."""
        ended = now() - timedelta(minutes=1)
        fields = {"state": "running", "owner": "w", "fence": 1, "leaseUntil": ended, "holds": 5}
        fields |= {"shard": 0, "acquirableAt": ended}
        await self.system.gateway.commit([upsert(paths.lane("outbox", "poison"), fields)])

    async def post(self, path: str, body: Any = None, **headers: str) -> httpx.Response:
        content = body if isinstance(body, bytes) else json.dumps({} if body is None else body).encode()
        return await self.http.post(path, content=content, headers={"authorization": f"Bearer {token()}", **headers})

    async def status(self, request_id: str) -> str | None:
        snapshot = await self.system.gateway.get(paths.outbox(request_id))
        return None if snapshot is None else snapshot.data["status"]

    @property
    def called(self) -> list[str]:
        return [call.request_id for call in self.provider.core.record.calls()]


@asynccontextmanager
async def service(
    served: Certificates,
    *,
    handlers: Mapping[str, Registration] = NO_HANDLERS,
    storage: Storage | None = None,
    **settings: Any,
) -> AsyncIterator[Service]:
    firestore, store, tasks, stop = FirestoreEmulator(), Store(), RecordedTasks(), asyncio.Event()
    client = AsyncClient(project="demo-outbox", credentials=AnonymousCredentials())
    transport = FirestoreGrpcAsyncIOTransport(channel=InProcessChannel([firestore.service], wire=store.wire))
    client._firestore_api_internal = FirestoreAsyncClient(transport=transport)
    await firestore.start()
    async with ProviderSimulator() as provider:
        registry = providers(
            ProviderSettings(
                simulated_url="http://provider", whatsapp_cloud_url="http://provider/whatsapp_cloud/v25.0"
            ),
            credentials=FixedCredentials({"*": CREDENTIALS}),
            transport=provider.transport,
        )
        system = assemble(
            Settings(**{"webhook_url": "http://functions", **settings}),
            client=client,
            tasks=tasks,
            providers=registry,
            owner="this-worker",
            clock=now,
            random=Random(1),
            handlers=handlers,
            storage=storage,
        )
        check = CallerCheck(audience=AUDIENCE, email=ACCOUNT, clock=now, certs_url=served.url)
        asgi = httpx.ASGITransport(app(system, check, stop))
        async with httpx.AsyncClient(transport=asgi, base_url=AUDIENCE) as http:
            yield Service(system, provider, tasks, store, stop, served, http)
        await registry.close()
    await firestore.stop()
