"""Plans at the HTTP API: 402 before anything is stored, and no owner changes the plan."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import httpx
import pytest

import firestore_outbox.web.functions
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.writes import update
from firestore_outbox.plans.plan import plans
from firestore_outbox.plans.usage import PlanCheck
from tests.web.functions.calling import call, prepared
from tests.web.service.support import Service, now


@pytest.fixture
async def instance(service: Service, monkeypatch: pytest.MonkeyPatch) -> Service:
    await prepared(service, monkeypatch)
    check = PlanCheck(service.system.gateway, plans("free=total:3"), now)
    ready: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    ready.set_result(replace(service.system, plan_check=check))
    monkeypatch.setattr(firestore_outbox.web.functions, "_ready", ready)
    return service


async def put(service: Service, **fields: Any) -> None:
    await service.system.gateway.commit([update(paths.account("shop"), fields, version=None)])


async def post(number: int) -> httpx.Response:
    body = {
        "requestId": f"request-{number}",
        "accountId": "shop",
        "to": f"+4917{number}",
        "parts": [{"type": "text", "text": "Hello!"}],
    }
    return await call("enqueue", "POST", "/v1/messages", body)


async def test_the_fourth_message_of_a_free_account_is_answered_with_402(instance: Service) -> None:
    await put(instance, plan="free")
    assert [(await post(number)).status_code for number in range(3)] == [201, 201, 201]
    answer = await post(3)
    assert (answer.status_code, answer.json()["code"]) == (402, "FREE_LIMIT_REACHED")
    assert "the plan free allows 3 messages" in answer.json()["error"]
    assert await instance.system.gateway.get("outbox/request-3") is None
    assert (await post(1)).status_code == 200, "a repeated call is no new message"


async def test_an_account_without_a_plan_is_not_limited(instance: Service) -> None:
    assert [(await post(number)).status_code for number in range(5)] == [201] * 5


async def test_an_owner_cannot_change_the_plan(instance: Service) -> None:
    answer = await call("accounts", "PATCH", "/v1/accounts/shop", {"plan": "pro"}, uid="olga")
    assert (answer.status_code, answer.json()["error"]) == (403, "plan cannot be changed by an owner")
