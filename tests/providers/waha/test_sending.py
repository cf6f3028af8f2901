"""What WAHA is sent, and what is made of its answers: over sockets to the simulator."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import Any

import httpx
import pytest

from firestore_outbox.local.simulators.simulator import ProviderSimulator
from firestore_outbox.messages.correlation import Correlation
from firestore_outbox.messages.model import OutboxMessage, Part, TemplatePart
from firestore_outbox.providers.media import MediaContent, MediaLink
from firestore_outbox.providers.outcome import (
    AuthFailed,
    ErrorCode,
    NotConnected,
    Outcome,
    Rejected,
    Sent,
    Unknown,
)
from firestore_outbox.providers.protocol import MediaMode
from firestore_outbox.providers.registry import Providers
from firestore_outbox.providers.waha.adapter import MAX_FILE_BYTES
from firestore_outbox.providers.waha.answers import PAIRING_PAUSE
from firestore_outbox.providers.waha.ids import chosen_id
from tests.patience import PATIENCE_SECONDS
from tests.providers.support import LIMIT, START, message, text
from tests.providers.waha.support import (
    FILES,
    KEY,
    Answering,
    FileDelivery,
    World,
    adapter,
    credentials,
    file,
    in_virtual_time,
    providers_with,
)


@dataclass
class Link:
    simulator: ProviderSimulator
    providers: Providers
    control: httpx.AsyncClient

    async def order(self, **faults: Any) -> None:
        answer = await self.control.put("/_sim/faults", json=faults)
        assert answer.status_code == 200, answer.text

    async def order_session(self, name: str = "acme", **order: Any) -> None:
        answer = await self.control.put(f"/_sim/waha/sessions/{name}", json=order)
        assert answer.status_code == 200, answer.text

    async def send(self, it: OutboxMessage) -> Outcome:
        return await self.providers.send("waha", it, limit=LIMIT)

    async def calls(self) -> list[dict[str, Any]]:
        calls: list[dict[str, Any]] = (await self.control.get("/_sim/calls")).json()
        return calls


@pytest.fixture
async def link() -> AsyncIterator[Link]:
    async with ProviderSimulator(random=Random(1)) as simulator:
        await simulator.start()
        adapters = providers_with(f"{simulator.url}/waha")
        async with httpx.AsyncClient(base_url=simulator.url, trust_env=False, timeout=PATIENCE_SECONDS) as control:
            yield Link(simulator, adapters, control)
        await adapters.close()


# --- the happy path


async def test_a_text_is_sent_under_the_id_that_we_chose(link: Link) -> None:
    outcome = await link.send(message("request-1"))
    assert outcome == Sent(provider_message_id=chosen_id(Correlation(request_id="request-1", part=0, parts=1)))
    (call,) = await link.calls()
    assert (call["requestId"], call["accountId"], call["to"], call["accepted"]) == (
        "request-1",
        "acme",
        "4915112345",
        True,
    )


@pytest.mark.parametrize(("media_id", "path"), [("picture", "sendImage"), ("scan", "sendImage"), ("bill", "sendFile")])
async def test_a_file_is_sent_and_its_id_is_the_gateways(link: Link, media_id: str, path: str) -> None:
    outcome = await link.send(message(parts=(file(media_id, caption="look"),)))
    assert isinstance(outcome, Sent)
    assert outcome.provider_message_id.startswith("3EB0")
    assert [call["accepted"] for call in await link.calls()] == [True]


async def test_parts_go_one_by_one_and_the_last_ones_id_is_the_messages(link: Link) -> None:
    outcome = await link.send(message("request-1", parts=(file("picture"), text("two"), text("three"))))
    assert outcome == Sent(provider_message_id=chosen_id(Correlation(request_id="request-1", part=2, parts=3)))
    assert [call["part"] for call in await link.calls()] == [0, 1, 2]


# --- what is sent, to the letter


async def sent_bodies(*parts: Part, to: str = "4915112345", delivery: FileDelivery | None = None) -> Answering:
    gateway = Answering(201, {"id": "true_4915112345@c.us_ABC"})
    await adapter(gateway, delivery).send(message(parts=parts, to=to), credentials(), limit=LIMIT)
    return gateway


async def test_the_key_and_the_request_travel_in_headers_and_nothing_but_the_message_in_the_body() -> None:
    gateway = await sent_bodies(text("hi \N{PARTY POPPER} \"'"))
    (request,) = gateway.asked
    assert str(request.url) == "http://provider.test/waha/api/sendText"
    assert request.headers["x-api-key"] == KEY
    assert request.headers["x-request-id"] == "request-1:0:1"
    assert gateway.sent == [
        {
            "session": "acme",
            "chatId": "4915112345@c.us",
            "text": "hi \N{PARTY POPPER} \"'",
            "id": chosen_id(Correlation(request_id="request-1", part=0, parts=1)),
            "linkPreview": False,
        }
    ]


@pytest.mark.parametrize(
    ("media_id", "path"),
    [("picture", "sendImage"), ("scan", "sendImage"), ("sticker", "sendFile"), ("bill", "sendFile")],
)
async def test_a_file_travels_whole_in_base64(media_id: str, path: str) -> None:
    gateway = await sent_bodies(file(media_id, caption='a "caption"'))
    assert gateway.asked[0].url.path == f"/waha/api/{path}"
    (body,) = gateway.sent
    assert base64.b64decode(body["file"].pop("data"), validate=True) == FILES[media_id].content
    assert body == {
        "session": "acme",
        "chatId": "4915112345@c.us",
        "caption": 'a "caption"',
        "file": {"mimetype": FILES[media_id].mime_type, "filename": f"{media_id}.bin"},
    }


async def test_a_file_that_has_an_address_is_named_by_it_and_not_sent() -> None:
    link = MediaLink(url="https://storage.test/media/acme/m?signature=s", mime_type="image/png", filename="cat.png")
    gateway = await sent_bodies(file("m", caption="look"), delivery=FileDelivery({"m": link}))
    assert gateway.asked[0].url.path == "/waha/api/sendImage"
    assert gateway.sent == [
        {
            "session": "acme",
            "chatId": "4915112345@c.us",
            "caption": "look",
            "file": {"mimetype": "image/png", "filename": "cat.png", "url": link.url},
        }
    ]


async def test_an_account_whose_gateway_reaches_no_bucket_sends_files_inside_the_call() -> None:
    gateway, delivery = Answering(201, {"id": "true_4915112345@c.us_ABC"}), FileDelivery()
    await adapter(gateway, delivery).send(message(parts=(file("bill"),)), credentials(media="inline"), limit=LIMIT)
    assert delivery.modes == [MediaMode.INLINE]
    assert "data" in gateway.sent[0]["file"]


async def test_without_a_caption_none_is_sent() -> None:
    (body,) = (await sent_bodies(file("bill"))).sent
    assert "caption" not in body


@pytest.mark.parametrize(
    ("to", "chat"),
    [
        ("4915112345", "4915112345@c.us"),
        ("+4915112345", "4915112345@c.us"),
        ("4915112345@c.us", "4915112345@c.us"),
        ("4915112345@s.whatsapp.net", "4915112345@c.us"),
        ("120363012345678901@g.us", "120363012345678901@g.us"),
        ("4915-1600000000@g.us", "4915-1600000000@g.us"),
        ("22334455667788@lid", "22334455667788@lid"),
    ],
)
async def test_a_recipient_is_a_number_or_a_chat(to: str, chat: str) -> None:
    (body,) = (await sent_bodies(text(), to=to)).sent
    assert body["chatId"] == chat


@pytest.mark.parametrize("to", ["maria", "+49-151", "1@evil.test", "1@c.us@g.us", "@c.us", "1234", "１２３４５６７"])
async def test_any_other_recipient_is_refused_before_anything_is_called(to: str) -> None:
    gateway = Answering(201, {"id": "x"})
    outcome = await adapter(gateway).send(message(to=to), credentials(), limit=LIMIT)
    assert isinstance(outcome, Rejected)
    assert outcome.code is ErrorCode.RECIPIENT_INVALID
    assert gateway.asked == []


async def test_a_template_is_refused_because_whatsapp_sessions_have_none() -> None:
    gateway = Answering(201, {"id": "x"})
    part = TemplatePart(type="template", name="t", language="en", params=())
    outcome = await adapter(gateway).send(message(parts=(part,)), credentials(), limit=LIMIT)
    assert isinstance(outcome, Rejected)
    assert outcome.code is ErrorCode.INVALID_MESSAGE
    assert gateway.asked == []


async def test_a_file_that_is_too_large_to_travel_inside_a_call_is_refused() -> None:
    large = MediaContent(media_id="l", mime_type="video/mp4", filename="l.mp4", content=bytes(MAX_FILE_BYTES + 1))
    gateway = Answering(201, {"id": "x"})
    outcome = await adapter(gateway, FileDelivery({"large": large})).send(
        message(parts=(file("large"),)), credentials(), limit=LIMIT
    )
    assert isinstance(outcome, Rejected)
    assert "33,554,433 bytes" in outcome.detail
    assert gateway.asked == []


async def test_a_file_that_is_missing_is_the_refusal_of_its_delivery() -> None:
    outcome = await adapter(Answering(201)).send(message(parts=(file("nothing"),)), credentials(), limit=LIMIT)
    assert isinstance(outcome, Rejected)
    assert outcome.code is ErrorCode.MEDIA_MISSING


# --- the answer's id


@pytest.mark.parametrize(
    "body",
    [
        {"id": "true_4915112345@c.us_ABC123"},
        {"id": "true_120363@g.us_ABC123_4915112345@c.us"},
        {"id": "ABC123"},
        {"id": {"fromMe": True, "remote": "4915112345@c.us", "id": "ABC123", "_serialized": "true_4915112345@c.us_A"}},
        {"key": {"remoteJid": "4915112345@s.whatsapp.net", "fromMe": True, "id": "ABC123"}},
    ],
)
async def test_every_engines_form_of_an_id_gives_the_same_id(body: Any) -> None:
    outcome = await adapter(Answering(201, body)).send(message(), credentials(), limit=LIMIT)
    assert outcome == Sent(provider_message_id="ABC123")


@pytest.mark.parametrize(
    "body", [{}, [], None, {"id": 7}, {"id": ""}, {"id": "a b"}, {"key": 1}, b"<html>", b"[" * 9999]
)
async def test_an_acceptance_without_an_id_is_unknown(body: Any) -> None:
    assert isinstance(await adapter(Answering(201, body)).send(message(), credentials(), limit=LIMIT), Unknown)


# --- faults of the simulator, over sockets


async def test_a_reach_out_lock_is_never_tried_again_and_its_answer_quotes_nothing(link: Link) -> None:
    await link.order(errorRate=1, apiCode="463")
    outcome = await link.send(message(parts=(text("our secret plan"),)))
    assert isinstance(outcome, Rejected)
    assert outcome.code is ErrorCode.REJECTED
    assert "secret" not in outcome.detail


async def test_a_failure_of_the_gateway_is_unknown_and_its_answer_quotes_nothing(link: Link) -> None:
    await link.order(errorRate=1, errorCode="internal")
    outcome = await link.send(message(parts=(text("server returned error 463, our secret plan"),)))
    assert isinstance(outcome, Unknown)
    assert "secret" not in outcome.detail
    assert "4915112345" not in outcome.detail


async def test_an_accepted_message_whose_answer_is_an_error_is_unknown(link: Link) -> None:
    await link.order(acceptedErrorRate=1)
    assert isinstance(await link.send(message()), Unknown)
    assert [call["accepted"] for call in await link.calls()] == [True]


async def test_an_answer_that_ends_in_the_middle_is_unknown() -> None:
    async def half(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b'HTTP/1.1 201 Created\r\nContent-Length: 100\r\n\r\n{"id": "true_')
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(half, "127.0.0.1", 0)
    adapters = providers_with(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    try:
        assert isinstance(await adapters.send("waha", message(), limit=LIMIT), Unknown)
    finally:
        await adapters.close()
        server.close()


@pytest.mark.parametrize("status", ["STARTING", "FAILED", "STOPPED"])
async def test_a_session_that_is_not_up_is_not_connected(link: Link, status: str) -> None:
    await link.order_session(status=status, waitMs=0)
    outcome = await link.send(message())
    assert isinstance(outcome, NotConnected)
    assert outcome.retry_after is None
    assert [call["accepted"] for call in await link.calls()] == [False]


@pytest.mark.parametrize("status", ["SCAN_QR_CODE", "PASSKEY_REQUIRED", "PASSKEY_CONFIRMATION_REQUIRED"])
async def test_a_session_that_a_person_must_pair_is_not_asked_again_at_once(link: Link, status: str) -> None:
    await link.order_session(status=status, waitMs=0)
    outcome = await link.send(message())
    assert isinstance(outcome, NotConnected)
    assert outcome.retry_after == PAIRING_PAUSE


@in_virtual_time
async def test_a_send_that_waits_for_a_starting_session_is_sent_when_it_is_up(world: World) -> None:
    await world.order_session(status="STOPPED", startMs=3000)
    await world.session("start")
    assert isinstance(await world.send(), Sent)
    assert (world.clock() - world.simulator.core.record.calls()[0].at) < timedelta(seconds=1)


@in_virtual_time
async def test_a_send_that_waits_in_vain_gets_an_error_and_does_not_hang_up_before(world: World) -> None:
    await world.order_session(status="FAILED")
    assert isinstance(await world.send(), NotConnected)
    assert world.clock() - START == timedelta(seconds=10)


# --- credentials


@pytest.mark.parametrize(
    "changes",
    [
        {"baseUrl": ""},
        {"baseUrl": "waha.example.com"},
        {"baseUrl": "ftp://waha.example.com"},
        {"baseUrl": "http://"},
        {"baseUrl": "http://[bad"},
        {"baseUrl": "http://h?x=1"},
        {"apiKey": ""},
        {"session": "a/b"},
        {"session": "x" * 55},
    ],
)
async def test_unusable_credentials_park_the_account_without_a_call(changes: dict[str, str]) -> None:
    gateway = Answering(201, {"id": "x"})
    outcome = await adapter(gateway).send(message(), credentials(**changes), limit=LIMIT)
    assert isinstance(outcome, AuthFailed)
    assert KEY not in outcome.detail
    assert gateway.asked == []


@pytest.mark.parametrize(("given", "name"), [("", "default"), ("sales", "sales"), ("w-{accountId}", "w-acme")])
async def test_the_session_is_the_named_one_or_the_default(given: str, name: str) -> None:
    gateway = Answering(201, {"id": "ABC"})
    await adapter(gateway).send(message(), credentials(session=given), limit=LIMIT)
    assert gateway.sent[0]["session"] == name


# --- the foretold id


def test_the_id_of_a_message_that_ends_in_text_can_be_foretold() -> None:
    waha = adapter()
    parts = (file("picture"), text("two"))
    foretold = waha.foretold_id(message("request-1", parts=parts))
    assert foretold == chosen_id(Correlation(request_id="request-1", part=1, parts=2))
    assert waha.foretold_id(message("request-1", parts=(text(), file("picture")))) is None


def test_chosen_ids_look_like_whatsapps_own_and_differ() -> None:
    ids = {
        chosen_id(Correlation(request_id=f"request-{number}", part=part, parts=3))
        for number in range(200)
        for part in range(3)
    }
    assert len(ids) == 600
    assert all(len(one) == 22 and one.startswith("3EB0") and one == one.upper() for one in ids)
