"""A small Secret Manager on a socket of this machine: it speaks Google's protocol to the real client library, and does
as ordered: answers late, refuses, or is not there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
from google.cloud import secretmanager_v1 as sm
from grpc import aio

PROJECT = "projects/demo-outbox"
_SERVICE = "google.cloud.secretmanager.v1.SecretManagerService"


@dataclass
class SecretManager:
    """`secrets` are versions by secret id, oldest first."""

    secrets: dict[str, list[bytes]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    refuses: grpc.StatusCode | None = None
    disabled: set[str] = field(default_factory=set)
    answers: asyncio.Event = field(default_factory=asyncio.Event)
    address: str = ""

    def __post_init__(self) -> None:
        self.answers.set()

    def put(self, account_id: str, text: str) -> None:
        self.secrets.setdefault(f"outbox-account-{account_id}", []).append(text.encode())

    async def access(self, request: sm.AccessSecretVersionRequest, context: Any) -> sm.AccessSecretVersionResponse:
        secret, _, version = request.name.removeprefix(f"{PROJECT}/secrets/").partition("/versions/")
        await self._begin(f"access {secret}", context)
        assert version == "latest", "no test asks for another"
        if secret not in self.secrets:
            await context.abort(grpc.StatusCode.NOT_FOUND, f"Secret [{request.name}] not found or has no versions.")
        if secret in self.disabled:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, "Secret Version is in DISABLED state.")
        payload = sm.SecretPayload(data=self.secrets[secret][-1])
        return sm.AccessSecretVersionResponse(name=request.name, payload=payload)

    async def create(self, request: sm.CreateSecretRequest, context: Any) -> sm.Secret:
        await self._begin(f"create {request.secret_id}", context)
        if request.parent != PROJECT:
            await context.abort(grpc.StatusCode.NOT_FOUND, f"{request.parent} not found.")
        if request.secret_id in self.secrets:
            await context.abort(grpc.StatusCode.ALREADY_EXISTS, "Secret already exists.")
        if "automatic" not in request.secret.replication:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "Secret must have a replication policy.")
        self.secrets[request.secret_id] = []
        return sm.Secret(name=f"{request.parent}/secrets/{request.secret_id}")

    async def add(self, request: sm.AddSecretVersionRequest, context: Any) -> sm.SecretVersion:
        secret = request.parent.removeprefix(f"{PROJECT}/secrets/")
        await self._begin(f"add {secret}", context)
        self.secrets[secret].append(request.payload.data)
        return sm.SecretVersion(name=f"{request.parent}/versions/{len(self.secrets[secret])}")

    async def _begin(self, what: str, context: Any) -> None:
        self.asked.append(what)
        await self.answers.wait()
        if self.refuses is not None:
            await context.abort(self.refuses, "as it was told")


Method = Callable[[Any, Any], Awaitable[Any]]


@asynccontextmanager
async def secret_manager(port: int = 0) -> AsyncIterator[SecretManager]:
    served = SecretManager()
    methods: dict[str, tuple[Method, Any, Any]] = {
        "AccessSecretVersion": (served.access, sm.AccessSecretVersionRequest, sm.AccessSecretVersionResponse),
        "CreateSecret": (served.create, sm.CreateSecretRequest, sm.Secret),
        "AddSecretVersion": (served.add, sm.AddSecretVersionRequest, sm.SecretVersion),
    }
    handlers = {
        name: grpc.unary_unary_rpc_method_handler(
            method, request_deserializer=request.deserialize, response_serializer=response.serialize
        )
        for name, (method, request, response) in methods.items()
    }
    server = aio.server()
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(_SERVICE, handlers),))
    served.address = f"127.0.0.1:{server.add_insecure_port(f'127.0.0.1:{port}')}"
    await server.start()
    try:
        yield served
    finally:
        served.answers.set()
        await server.stop(None)
