"""Our functions called by apps: an instance that has built its system, an account with members, tokens for them."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import functions_framework.aio
import httpx
import pytest

import firestore_outbox.web.functions
from firestore_outbox.firestore.writes import upsert
from tests.web.functions.firebase import unsigned_token
from tests.web.service.support import Service


async def prepared(service: Service, monkeypatch: pytest.MonkeyPatch) -> Service:
    """The same with unsigned tokens, as in `outbox dev`; those that are signed have tests of their own."""
    monkeypatch.setenv("FIREBASE_AUTH_EMULATOR_HOST", "127.0.0.1:9099")
    return await built(service, monkeypatch)


async def built(service: Service, monkeypatch: pytest.MonkeyPatch) -> Service:
    """An instance of the function that has built its system already, and an account with three members."""
    ready: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    ready.set_result(service.system)
    monkeypatch.setattr(firestore_outbox.web.functions, "_ready", ready)
    firestore_outbox.web.functions._users.cache_clear()
    await service.account()
    for uid, role in (("olga", "owner"), ("ann", "agent"), ("vic", "viewer")):
        await member(service, uid, role)
    return service


async def member(service: Service, uid: str, role: Any, account: str = "shop") -> None:
    await service.system.gateway.commit([upsert(f"accounts/{account}/members/{uid}", {"role": role})])


async def call(target: str, method: str, path: str, content: Any = b"", *, uid: str | None = "ann") -> httpx.Response:
    """Through functions-framework, as in production."""
    app = functions_framework.aio.create_asgi_app_from_module(
        target, "main.py", None, firestore_outbox.web.functions, None
    )
    raw = content if isinstance(content, bytes) else json.dumps(content).encode()
    headers = {} if uid is None else {"authorization": f"Bearer {unsigned_token(uid)}"}
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://functions") as client:
        return await client.request(method, path, content=raw, headers=headers)
