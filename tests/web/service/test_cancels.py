"""`cancels/{requestId}`: an author takes a message back, and the function ends it at once."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from google.events.cloud import firestore as firestore_events

import firestore_outbox.web.functions
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.writes import SERVER_TIME, create, update
from tests.web.service.support import Service, now
from tests.web.service.test_functions import EVENT, call


@pytest.fixture
async def instance(service: Service, monkeypatch: pytest.MonkeyPatch) -> Service:
    """An instance of the functions, and a message that is to go out in an hour."""
    ready: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    ready.set_result(service.system)
    monkeypatch.setattr(firestore_outbox.web.functions, "_ready", ready)
    await service.account()
    await service.send("request-1", at=now() + timedelta(hours=1))
    return service


async def ask(instance: Service, *, with_wish: bool = True) -> None:
    writes = [create(paths.cancel("request-1"), {"createdAt": SERVER_TIME})]
    if with_wish:
        writes.append(update(paths.outbox("request-1"), {"cancelRequested": True}, version=None))
    await instance.system.gateway.commit(writes)


async def created() -> int:
    name = f"projects/demo-outbox/databases/(default)/documents/{paths.cancel('request-1')}"
    data = firestore_events.DocumentEventData(value=firestore_events.Document(name=name))
    body = bytes(firestore_events.DocumentEventData.serialize(data))
    return (await call("on_cancel_created", "/", content=body, headers=EVENT)).status_code


async def is_kept(instance: Service) -> bool:
    return await instance.system.gateway.get(paths.cancel("request-1")) is not None


async def test_a_cancel_ends_a_scheduled_message_at_once(instance: Service) -> None:
    await ask(instance)
    assert await created() == 200
    assert await instance.status("request-1") == "cancelled"
    assert not await is_kept(instance)


async def test_a_cancel_that_eventarc_delivers_twice_changes_nothing_more(instance: Service) -> None:
    await ask(instance)
    assert [await created(), await created()] == [200, 200]
    assert await instance.status("request-1") == "cancelled"


async def test_a_cancel_without_the_wish_cancels_nothing(instance: Service) -> None:
    await ask(instance, with_wish=False)
    assert await created() == 200
    assert await instance.status("request-1") == "queued"
    assert not await is_kept(instance)


async def test_a_cancel_is_delivered_again_while_firestore_is_down(instance: Service) -> None:
    await ask(instance)
    instance.store.is_down = True
    assert await created() >= 500
    instance.store.is_down = False
    assert await created() == 200
    assert await instance.status("request-1") == "cancelled"


async def test_a_cancel_that_cannot_be_read_is_not_delivered_again(instance: Service) -> None:
    answer = await call("on_cancel_created", "/", content=b"\x00\xff\x17garbage", headers=EVENT)
    assert answer.status_code == 200
    assert await instance.status("request-1") == "queued"
