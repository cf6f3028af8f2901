"""The sweep as a function: the worker's own endpoint, served elsewhere, and an instance that failed to begin."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import functions_framework.aio
import httpx
import pytest

import firestore_outbox.web.functions
from firestore_outbox.settings import Settings
from firestore_outbox.web.auth import CallerCheck
from firestore_outbox.wiring import System
from tests.web.service.support import ACCOUNT, AUDIENCE, Service, now, token


@pytest.fixture
async def instance(service: Service, monkeypatch: pytest.MonkeyPatch) -> Service:
    ready: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    ready.set_result(service.system)
    monkeypatch.setattr(firestore_outbox.web.functions, "_ready", ready)
    callers = CallerCheck(audience=AUDIENCE, email=ACCOUNT, clock=now, certs_url=service.certificates.url)
    monkeypatch.setattr(firestore_outbox.web.functions, "_callers", lambda: callers)
    await service.account()
    await service.send("request-1", at=now() - timedelta(minutes=1))
    return service


async def swept(method: str = "POST", **request: Any) -> httpx.Response:
    app = functions_framework.aio.create_asgi_app_from_module(
        "sweep", "main.py", None, firestore_outbox.web.functions, None
    )
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://functions") as client:
        return await client.request(method, "/", headers={"authorization": f"Bearer {token()}"}, **request)


async def test_it_wakes_what_was_dropped(instance: Service) -> None:
    answer = await swept(json={})
    assert (answer.status_code, answer.json()) == (200, {"lanes": 0, "accounts": 1})
    assert [body for _, body, _ in instance.tasks.asked] == [{"kind": "outbox", "key": "shop"}]


async def test_cloud_scheduler_may_send_no_body(instance: Service) -> None:
    assert (await swept()).json() == {"lanes": 0, "accounts": 1}


async def test_it_is_called_again_when_firestore_is_out_of_reach(instance: Service) -> None:
    instance.store.is_down = True
    assert (await swept()).status_code == 503


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
async def test_a_look_is_no_sweep(instance: Service, method: str) -> None:
    assert (await swept(method)).status_code == 405
    assert instance.tasks.asked == []


async def test_a_token_without_its_signature_is_refused(instance: Service) -> None:
    """As Cloud Run hands it on if it has checked it itself; so it is deployed not to."""
    head, claims, _ = token().split(".")
    stripped = {"authorization": f"Bearer {head}.{claims}.SIGNATURE_REMOVED_BY_GOOGLE"}
    app = functions_framework.aio.create_asgi_app_from_module(
        "sweep", "main.py", None, firestore_outbox.web.functions, None
    )
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://functions") as client:
        assert (await client.post("/", headers=stripped)).status_code == 401
    assert instance.tasks.asked == []


async def test_an_instance_that_could_not_begin_tries_again_with_the_next_call(
    instance: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = 0

    @asynccontextmanager
    async def flaky(settings: Settings) -> AsyncIterator[System]:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise OSError("the metadata server does not answer")
        yield instance.system

    monkeypatch.setattr(firestore_outbox.web.functions, "system_from_environment", flaky)
    monkeypatch.setattr(firestore_outbox.web.functions, "_ready", None)
    assert [(await swept()).status_code for _ in range(3)] == [500, 200, 200]
    assert tries == 2
