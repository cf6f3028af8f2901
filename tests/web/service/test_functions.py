"""The functions, called as Eventarc, Google's emulator and a provider call them."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any

import functions_framework.aio
import httpx
import pytest
from google.events.cloud import firestore as firestore_events

import firestore_outbox.web.functions
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.queries import Find
from firestore_outbox.local.simulators.webhooks import SIGNATURE_HEADER, signed
from firestore_outbox.providers.registry import MAX_WEBHOOK_BYTES
from tests.web.service import support
from tests.web.service.support import SECRET, Certificates, Service, now

EVENT = {
    "ce-id": "1",
    "ce-source": "//firestore.googleapis.com/projects/demo-outbox/databases/(default)",
    "ce-specversion": "1.0",
    "ce-type": "google.cloud.firestore.document.v1.created",
    "content-type": "application/protobuf",
}
LANE_TASK = ("/tasks/lane", {"kind": "outbox", "key": "shop"})


@pytest.fixture
async def instance(served: Certificates, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Service]:
    """An instance of the functions that has built its system already, and leaves messages to the worker."""
    async with support.service(served, short_turns=False) as service:
        yield await built(service, monkeypatch)


@pytest.fixture
async def sending_instance(service: Service, monkeypatch: pytest.MonkeyPatch) -> Service:
    """One that sends messages that come alone."""
    return await built(service, monkeypatch)


async def built(service: Service, monkeypatch: pytest.MonkeyPatch) -> Service:
    ready: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    ready.set_result(service.system)
    monkeypatch.setattr(firestore_outbox.web.functions, "_ready", ready)
    await service.account()
    return service


async def call(target: str, path: str, **request: Any) -> httpx.Response:
    """Through functions-framework, as in production."""
    app = functions_framework.aio.create_asgi_app_from_module(
        target, "main.py", None, firestore_outbox.web.functions, None
    )
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://functions") as client:
        return await client.request(request.pop("method", "POST"), path, **request)


# --- on_outbox_created


def event_of(request_id: str, at: datetime | None = None, **changes: str) -> bytes:
    fields: dict[str, Any] = {
        "requestId": {"string_value": request_id},
        "accountId": {"string_value": "shop"},
        "threadId": {"string_value": "shop__+491701"},
        "to": {"string_value": "+491701"},
        "status": {"string_value": "queued"},
        "attempts": {"integer_value": 0},
        "createdAt": {"timestamp_value": now()},
        "nextAttemptAt": {"timestamp_value": at or now()},
        "parts": {
            "array_value": {
                "values": [
                    {"map_value": {"fields": {"type": {"string_value": "text"}, "text": {"string_value": "hello"}}}}
                ]
            }
        },
    }
    fields.update({name: {"string_value": value} for name, value in changes.items()})
    name = f"projects/demo-outbox/databases/(default)/documents/outbox/{request_id}"
    data = firestore_events.DocumentEventData(value=firestore_events.Document(name=name, fields=fields))
    return bytes(firestore_events.DocumentEventData.serialize(data))


async def created(body: bytes) -> int:
    return (await call("on_outbox_created", "/", content=body, headers=EVENT)).status_code


async def test_an_event_as_production_sends_it_wakes_the_lane(instance: Service) -> None:
    await instance.send("request-1")
    assert await created(event_of("request-1")) == 200
    assert [task[:2] for task in instance.tasks.asked] == [LANE_TASK]


async def test_an_event_of_a_message_that_comes_alone_sends_it_without_a_task(sending_instance: Service) -> None:
    await sending_instance.send("request-1")
    assert await created(event_of("request-1")) == 200
    (stored,) = await sending_instance.system.messages.get(["request-1"])
    assert stored.status == "sent"
    assert sending_instance.tasks.asked == []


async def test_an_event_that_finds_firestore_out_of_reach_is_sent_again_and_then_sends(
    sending_instance: Service,
) -> None:
    await sending_instance.send("request-1")
    sending_instance.store.is_down = True
    assert await created(event_of("request-1")) >= 500
    sending_instance.store.is_down = False
    assert await created(event_of("request-1")) == 200
    (stored,) = await sending_instance.system.messages.get(["request-1"])
    assert stored.status == "sent"


async def test_an_event_as_googles_emulator_sends_it_wakes_the_lane(instance: Service) -> None:
    for n in range(40):  # base64 text of many kinds, and none may be taken for protobuf
        await instance.send(f"request-{n}")
        assert await created(base64.b64encode(event_of(f"request-{n}", text="x" * n))) == 200
    assert [task[:2] for task in instance.tasks.asked] == [LANE_TASK], "the first woke it, the others were served"


async def test_an_event_for_a_later_time_asks_for_a_task_at_that_time(instance: Service) -> None:
    later = now() + timedelta(hours=3)
    await instance.send("request-1", at=later)
    assert await created(event_of("request-1", later)) == 200
    ((_, _, at),) = instance.tasks.asked
    assert abs(at - later) < timedelta(milliseconds=1)


GARBAGE = {
    "nothing": b"",
    "noise": b"\x00\xff\x17garbage",
    "text": b"hello, world",
    "JSON": b'{"value": {"name": "outbox/1"}}',
    "JSON null": b"null",
    "base64 of noise": base64.b64encode(b"\x00\xff\x17garbage"),
    "base64 of nothing": base64.b64encode(b"\x0a\x00"),
    "a document without a name": b"\x0a\x00",
    "an event cut short": event_of("request-1")[:-7],
}


@pytest.mark.parametrize("case", GARBAGE)
async def test_an_event_that_cannot_be_read_is_logged_and_not_sent_again(
    instance: Service, case: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert await created(GARBAGE[case]) == 200
    assert [record.__dict__["fields"]["action"] for record in caplog.records if record.name == "outbox"] == ["bad_task"]
    assert instance.tasks.asked == []


async def test_an_event_of_a_document_that_was_never_stored_does_no_harm(instance: Service) -> None:
    assert await created(event_of("request-1", accountId="no/such/account")) == 200
    assert instance.tasks.asked == []


async def test_an_event_is_sent_again_when_firestore_is_out_of_reach(instance: Service) -> None:
    await instance.send("request-1")
    instance.store.is_down = True
    assert await created(event_of("request-1")) >= 500
    instance.store.is_down = False
    assert await created(event_of("request-1")) == 200
    assert [task[:2] for task in instance.tasks.asked] == [LANE_TASK]


# --- provider_webhook


def inbound(text: str = "hello", **changes: Any) -> bytes:
    event = {
        "type": "inbound",
        "providerMessageId": "in-1",
        "from": "+491701",
        "at": now().isoformat(),
        "parts": [{"type": "text", "text": text}],
        **changes,
    }
    return json.dumps({"events": [event]}).encode()


async def webhook(
    body: bytes,
    *,
    path: str = "/simulated/shop",
    at: datetime | None = None,
    secret: str = SECRET,
    signature: str | None = None,
) -> int:
    headers = {SIGNATURE_HEADER: signed(secret, body, at or now()) if signature is None else signature}
    return (await call("provider_webhook", path, content=body, headers=headers)).status_code


async def stored(service: Service) -> list[str]:
    """Every thread and message."""
    threads = await service.system.gateway.find(Find(collection=paths.THREADS))
    messages = await service.system.gateway.find(Find(collection=paths.MESSAGES, group=True))
    return [snapshot.path for snapshot in (*threads, *messages)]


async def test_a_signed_webhook_is_taken(instance: Service) -> None:
    assert await webhook(inbound()) == 200
    assert await stored(instance) == ["threads/shop__+491701", "threads/shop__+491701/messages/in-1"]


async def test_a_signed_webhook_that_cannot_be_read_is_taken_and_changes_nothing(instance: Service) -> None:
    for body in (b"{", b"[]", inbound(type="gossip"), inbound(parts="none")):
        assert await webhook(body) == 200
    assert await stored(instance) == []


async def test_an_unsigned_webhook_is_refused_and_writes_nothing(instance: Service) -> None:
    body = inbound()
    assert (await call("provider_webhook", "/simulated/shop", content=body)).status_code == 401
    for signature in ("", "t=1", "garbage", f"t={int(now().timestamp())},v1=00"):
        assert await webhook(body, signature=signature) == 401
    assert await webhook(body, secret="a guess") == 401
    assert await stored(instance) == []


async def test_a_webhook_whose_body_was_changed_is_refused_and_writes_nothing(instance: Service) -> None:
    signature = signed(SECRET, inbound("pay me 10"), now())
    assert await webhook(inbound("pay me 1000"), signature=signature) == 401
    assert await stored(instance) == []


@pytest.mark.parametrize("age", [timedelta(minutes=6), timedelta(minutes=-6), timedelta(days=400)])
async def test_a_stale_webhook_is_refused_and_writes_nothing(instance: Service, age: timedelta) -> None:
    assert await webhook(inbound(), at=now() - age) == 401
    assert await stored(instance) == []


async def test_a_webhook_of_an_unknown_provider_is_refused_and_writes_nothing(instance: Service) -> None:
    assert await webhook(inbound(), path="/carrier-pigeon/shop") == 401
    assert await stored(instance) == []


async def test_a_webhook_that_is_too_large_is_refused_before_it_is_read_to_its_end(instance: Service) -> None:
    chunks = iter([b"x" * 100_000] * 40)

    async def endless() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    headers = {SIGNATURE_HEADER: signed(SECRET, b"another body", now())}
    answer = await call("provider_webhook", "/simulated/shop", content=endless(), headers=headers)
    assert answer.status_code == 413
    assert len(list(chunks)) > 20, "it was read on"
    assert await webhook(b"x" * (MAX_WEBHOOK_BYTES + 1)) == 413
    assert await stored(instance) == []


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/simulated/shop", 403),
        ("HEAD", "/simulated/shop", 405),
        ("PUT", "/simulated/shop", 405),
        ("POST", "/", 404),
        ("POST", "/simulated", 404),
        ("GET", "/favicon.ico", 404),
    ],
)
async def test_other_calls_of_the_webhook_are_refused(instance: Service, method: str, path: str, status: int) -> None:
    assert (await call("provider_webhook", path, method=method)).status_code == status


async def test_a_webhook_is_sent_again_when_firestore_is_out_of_reach(instance: Service) -> None:
    body = inbound()
    instance.store.is_down = True
    assert await webhook(body) >= 500
    instance.store.is_down = False
    assert await webhook(body) == 200
    assert len(await stored(instance)) == 2
