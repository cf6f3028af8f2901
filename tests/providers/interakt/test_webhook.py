"""Interakt's webhooks: genuine or not, and what is in them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firestore_outbox.local.simulators.interakt import API
from firestore_outbox.local.simulators.simulator import DEFAULT_SECRET
from firestore_outbox.messages.correlation import Correlation
from firestore_outbox.messages.limits import MAX_PARTS, MAX_TEXT
from firestore_outbox.messages.model import MediaPart, TextPart
from firestore_outbox.providers.interakt.adapter import NAME, SIGNATURE_HEADER
from firestore_outbox.providers.interakt.webhook import MAX_EVENTS, events_in
from firestore_outbox.providers.outcome import ErrorCode, Sent, Unknown
from firestore_outbox.providers.protocol import InboundMessage, PartReceipt, Unrecognised, WebhookEvent
from firestore_outbox.providers.registry import Received, Refused
from firestore_outbox.receipts.rules import Arrived, Bounced, Progress
from tests.providers.linked import Link, linked
from tests.providers.support import message, providers_at, text

AT = datetime(2026, 6, 8, 9, 32, 45, tzinfo=UTC)
TO = "+919999999999"


@pytest.fixture
async def link() -> AsyncIterator[Link]:
    async with linked(NAME) as it:
        yield it


def body(kind: str, message: Any, *, customer: Any = None, timestamp: Any = "2026-06-08T09:32:45") -> bytes:
    data = {"customer": customer, "message": message}
    return json.dumps({"version": "1.0", "timestamp": timestamp, "type": kind, "data": data}).encode()


def sent_message(**changes: Any) -> dict[str, Any]:
    return {
        "id": "i-1",
        "message_status": "Delivered",
        "channel_failure_reason": None,
        "channel_error_code": None,
        "meta_data": {"source_data": {"callback_data": "request-1:0:1"}},
        **changes,
    }


def the_one(raw: bytes) -> WebhookEvent:
    (it,) = events_in(raw)
    return it


def receipt(raw: bytes) -> PartReceipt:
    it = the_one(raw)
    assert isinstance(it, PartReceipt), it
    return it


# --- receipts


@pytest.mark.parametrize(
    ("kind", "progress"),
    [
        ("message_api_sent", Progress.SENT),
        ("message_api_delivered", Progress.DELIVERED),
        ("message_api_read", Progress.READ),
    ],
)
def test_a_receipt_tells_how_far_the_message_came_and_echoes_our_mark(kind: str, progress: Progress) -> None:
    assert receipt(body(kind, sent_message())) == PartReceipt(
        receipt=Arrived(progress=progress, at=AT, provider_message_id="i-1"),
        correlation=Correlation(request_id="request-1", part=0, parts=1),
    )


def test_a_receipt_has_the_time_of_what_it_tells() -> None:
    times = {"delivered_at_utc": "2026-06-08T09:00:00", "seen_at_utc": "2026-06-08T09:30:00"}
    found = {
        kind: receipt(body(kind, sent_message(**times))).receipt.at
        for kind in ("message_api_sent", "message_api_delivered", "message_api_read")
    }
    assert found == {
        "message_api_sent": AT,
        "message_api_delivered": datetime(2026, 6, 8, 9, 0, tzinfo=UTC),
        "message_api_read": datetime(2026, 6, 8, 9, 30, tzinfo=UTC),
    }


@pytest.mark.parametrize(
    "timestamp",
    [
        "2026-06-08T09:32:45",
        "2026-06-08 09:32:45",
        "2026-06-08T09:32:45Z",
        "2026-06-08T15:02:45+05:30",
        " 2026-06-08T09:32:45.000000 ",
        int(AT.timestamp()),
        str(int(AT.timestamp())),
        int(AT.timestamp()) * 1000,
        str(int(AT.timestamp()) * 1000),
    ],
)
def test_a_time_may_be_written_in_many_ways(timestamp: Any) -> None:
    assert receipt(body("message_api_sent", sent_message(), timestamp=timestamp)).receipt.at == AT


@pytest.mark.parametrize(
    "timestamp", [None, "", "yesterday", True, [], {}, "9" * 30, 10**30, "0001-01-01T00:00:00+14:00"]
)
def test_a_receipt_without_a_readable_time_is_not_understood(timestamp: Any) -> None:
    assert isinstance(the_one(body("message_api_sent", sent_message(), timestamp=timestamp)), Unrecognised)


@pytest.mark.parametrize(
    ("code", "expected", "retryable"),
    [
        ("131026", ErrorCode.RECIPIENT_INVALID, False),
        (131026, ErrorCode.RECIPIENT_INVALID, False),
        ("131047", ErrorCode.WINDOW_CLOSED, False),
        ("132001", ErrorCode.INVALID_MESSAGE, False),
        ("131053", ErrorCode.MEDIA_MISSING, True),
        ("131049", ErrorCode.RATE_LIMITED, True),
        ("131042", ErrorCode.AUTH, True),
        ("131000", ErrorCode.PROVIDER_UNAVAILABLE, True),
        ("999999", ErrorCode.REJECTED, False),
        ("", ErrorCode.REJECTED, False),
        (None, ErrorCode.REJECTED, False),
        ([], ErrorCode.REJECTED, False),
        ("-1", ErrorCode.REJECTED, False),
        (True, ErrorCode.REJECTED, False),
    ],
)
def test_a_failure_is_understood_by_whatsapps_code(code: Any, expected: ErrorCode, retryable: bool) -> None:
    failed = sent_message(channel_error_code=code, channel_failure_reason="because")
    it = receipt(body("message_api_failed", failed)).receipt
    assert isinstance(it, Bounced)
    assert (it.error.code, it.error.retryable, it.at) == (expected, retryable, AT)
    if expected is ErrorCode.REJECTED:
        assert it.error.message.endswith("because")


def test_a_failure_without_a_reason_says_so() -> None:
    it = receipt(body("message_api_failed", sent_message())).receipt
    assert isinstance(it, Bounced)
    assert it.error.message == "Interakt gives no reason"


def test_a_receipt_without_an_echo_is_found_by_its_id() -> None:
    for meta_data in (None, {}, {"source_data": None}, {"source_data": {"callback_data": ""}}, "text"):
        assert receipt(body("message_api_sent", sent_message(meta_data=meta_data))).correlation is None


def test_a_receipt_of_a_foreign_message_is_left_alone() -> None:
    foreign = sent_message(meta_data={"source_data": {"callback_data": "otp_login"}})
    it = the_one(body("message_api_sent", foreign))
    assert isinstance(it, Unrecognised)
    assert "otp_login" not in it.detail


def test_only_the_last_parts_receipts_tell_of_the_message() -> None:
    first = sent_message(meta_data={"source_data": {"callback_data": "request-1:0:2"}})
    last = sent_message(meta_data={"source_data": {"callback_data": "request-1:1:2"}})
    assert not receipt(body("message_api_read", first)).tells_of_message
    assert receipt(body("message_api_failed", first)).tells_of_message
    assert receipt(body("message_api_read", last)).tells_of_message


async def test_the_simulators_receipts_tell_of_the_message_that_was_sent(link: Link) -> None:
    outcome = await link.send(message("request-7", to=TO))
    assert isinstance(outcome, Sent)
    events = await link.events()
    assert [
        it.receipt.progress for it in events if isinstance(it, PartReceipt) and isinstance(it.receipt, Arrived)
    ] == [
        Progress.SENT,
        Progress.DELIVERED,
        Progress.READ,
    ]
    assert {it.request_id for it in events if isinstance(it, PartReceipt)} == {"request-7"}
    assert {it.receipt.provider_message_id for it in events if isinstance(it, PartReceipt)} == {
        outcome.provider_message_id
    }
    assert {call.url for call in link.inbox.heard} == {"http://functions.test/interakt/acme"}


async def test_a_lost_response_is_settled_by_the_echo(link: Link) -> None:
    await link.order(lostResponseRate=1)
    assert isinstance(await link.send(message("request-7", to=TO)), Unknown)
    assert {it.request_id for it in await link.events() if isinstance(it, PartReceipt)} == {"request-7"}


async def test_a_message_may_be_accepted_and_fail_with_the_code_that_was_ordered(link: Link) -> None:
    await link.order(receiptFailedRate=1, receiptFailedApiCode="131047", receiptDuplicateRate=1)
    await link.send(message(to=TO))
    receipts = [it.receipt for it in await link.events() if isinstance(it, PartReceipt)]
    assert [type(it) for it in receipts] == [Arrived, Arrived, Bounced, Bounced]
    assert isinstance(receipts[-1], Bounced)
    assert receipts[-1].error.code is ErrorCode.WINDOW_CLOSED


# --- inbound

CUSTOMER = {"country_code": "+91", "phone_number": "9999999999", "channel_phone_number": "919999999999"}


def inbound(**fields: Any) -> bytes:
    received = {"id": "in-1", "chat_message_type": "CustomerMessage", "message_content_type": "Text", **fields}
    return body("message_received", received, customer=CUSTOMER)


def parts(raw: bytes) -> tuple[Any, ...]:
    it = the_one(raw)
    assert isinstance(it, InboundMessage), it
    return it.parts


def test_an_inbound_text_comes_from_a_number_that_can_be_answered() -> None:
    raw = inbound(message="hello", received_at_utc="2026-06-08T09:00:00")
    assert the_one(raw) == InboundMessage(
        provider_message_id="in-1",
        sender=TO,
        at=datetime(2026, 6, 8, 9, 0, tzinfo=UTC),
        parts=(text("hello"),),
    )


@pytest.mark.parametrize(
    ("customer", "sender"),
    [
        ({"country_code": "+91", "phone_number": "9999999999"}, TO),
        ({"country_code": "91", "phone_number": 9999999999}, TO),
        ({"channel_phone_number": "919999999999"}, TO),
        ({"channel_phone_number": "+91 99999 99999", "country_code": "+91"}, TO),
        ({"country_code": "+999", "phone_number": "123456789"}, "+999123456789"),  # new to us, but a person wrote
    ],
)
def test_the_senders_number_may_be_in_one_piece_or_two(customer: dict[str, Any], sender: str) -> None:
    it = the_one(body("message_received", {"id": "in-1", "message": "x"}, customer=customer))
    assert isinstance(it, InboundMessage)
    assert it.sender == sender


@pytest.mark.parametrize(
    "customer", [None, {}, [], {"phone_number": "9999999999"}, {"channel_phone_number": "unknown"}]
)
def test_a_message_without_a_sender_is_not_understood(customer: Any) -> None:
    it = the_one(body("message_received", {"id": "in-1", "message": "x"}, customer=customer))
    assert it == Unrecognised(detail="message_received without the sender's number")


URL = "https://media.interakt.example/a/b.pdf?x=1"


@pytest.mark.parametrize(
    ("kind", "url", "mime_type"),
    [
        ("Image", "https://m.example/a.png", "image/png"),
        ("Image", "https://m.example/a", "image/jpeg"),
        ("Video", "https://m.example/a", "video/mp4"),
        ("Audio", "https://m.example/a", "audio/ogg"),
        ("Voice", "https://m.example/a", "audio/ogg"),
        ("Sticker", "https://m.example/a", "image/webp"),
        ("Document", "https://m.example/a.pdf?x=1", "application/pdf"),
        ("Document", "https://m.example/a", "application/octet-stream"),
        ("SomethingNew", "https://m.example/a", "application/octet-stream"),
    ],
)
def test_inbound_media_has_a_type_by_its_name_or_else_by_its_kind(kind: str, url: str, mime_type: str) -> None:
    (part,) = parts(inbound(message_content_type=kind, media_url=url))
    assert isinstance(part, MediaPart)
    assert part.mimeType == mime_type


def test_inbound_media_is_named_by_its_address_and_has_its_caption() -> None:
    (part,) = parts(inbound(message_content_type="Document", media_url=URL, message="the contract"))
    assert part == MediaPart(
        type="media",
        mediaId="https%3A%2F%2Fmedia.interakt.example%2Fa%2Fb.pdf%3Fx%3D1",
        mimeType="application/pdf",
        caption="the contract",
    )


@pytest.mark.parametrize("url", ["https://m.example/" + "a" * 600, "javascript:alert(1)", "http://[", "nowhere"])
def test_a_file_whose_address_is_no_use_is_shown_as_text(url: str) -> None:
    assert parts(inbound(message_content_type="Image", media_url=url, message="look")) == (text(f"look\n{url}"),)


@pytest.mark.parametrize("kind", ["button_reply", "list_reply"])
def test_a_choice_is_shown_by_its_title(kind: str) -> None:
    chosen = json.dumps({"type": kind, kind: {"id": "1", "title": "Yes, please"}})
    assert parts(inbound(message_content_type="InteractiveButtonReply", message=chosen)) == (text("Yes, please"),)


def test_json_that_a_person_typed_stays_what_it_is() -> None:
    typed = '{"button_reply": {"title": "ha"}}'
    assert parts(inbound(message=typed)) == (text(typed),)


def test_a_very_long_text_becomes_several_parts_and_no_more_than_a_message_has() -> None:
    found = parts(inbound(message="x" * (MAX_TEXT + 1)))
    assert [len(part.text) for part in found] == [MAX_TEXT, 1]
    assert len(parts(inbound(message="x" * MAX_TEXT * (MAX_PARTS + 5)))) == MAX_PARTS


def test_half_of_a_surrogate_pair_does_not_cost_the_rest_of_the_text() -> None:
    raw = inbound(message="SPLIT").replace(b"SPLIT", b"good \\ud83d day")
    assert parts(raw) == (TextPart(type="text", text="good ? day"),)


async def test_the_simulator_sends_inbound_text_and_media(link: Link) -> None:
    order = {"accountId": "acme", "from": TO, "provider": NAME}
    media = {"type": "media", "mediaId": "m-1", "mimeType": "image/png", "caption": "look"}
    await link.control.post("/_sim/inbound", json=order | {"text": "hi"})
    await link.simulator.webhooks.drained()
    await link.control.post("/_sim/inbound", json=order | {"parts": [media], "providerMessageId": "in-2"})
    first, second = await link.events()
    assert isinstance(first, InboundMessage)
    assert isinstance(second, InboundMessage)
    assert (first.sender, first.parts) == (TO, (text("hi"),))
    assert second.provider_message_id == "in-2"
    (part,) = second.parts
    assert isinstance(part, MediaPart)
    assert (part.mimeType, part.caption) == ("image/png", "look")


async def test_a_number_outside_of_india_comes_in_one_piece(link: Link) -> None:
    await link.control.post(
        "/_sim/inbound", json={"accountId": "acme", "from": "+4915112345", "text": "hi", "provider": NAME}
    )
    (it,) = await link.events()
    assert isinstance(it, InboundMessage)
    assert it.sender == "+4915112345"


# --- bodies that are not as they should be


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"\xff",
        b"null",
        b"7",
        b"{}",
        b"[" * 200_000,
        json.dumps([{}] * (MAX_EVENTS + 1)).encode(),
        body("message_campaign_sent", sent_message()),
        body("Ada wrote this", sent_message()),
        body("message_api_sent", None),
        body("message_api_sent", {}),
        body("message_api_sent", sent_message(id="")),
        body("message_api_sent", sent_message(id=7)),
        body("message_api_sent", sent_message(id="x" * 513)),
        body("message_api_failed", sent_message(), timestamp=None),
        body("message_received", {"id": "in-1", "message": "hi"}, customer=CUSTOMER, timestamp=None),
        inbound(message=""),
        inbound(message="  "),
        inbound(message=None, media_url=None),
        inbound(message=["hi"]),
    ],
)
def test_what_cannot_be_read_is_unrecognised_and_quotes_nothing(raw: bytes) -> None:
    it = the_one(raw)
    assert isinstance(it, Unrecognised)
    assert "Ada" not in it.detail


def test_a_list_of_events_is_read_and_a_bad_one_does_not_hide_the_others() -> None:
    good = json.loads(body("message_api_read", sent_message()))
    found = events_in(json.dumps([good, {"type": "poll"}, 7, good]).encode())
    assert [type(it) for it in found] == [PartReceipt, Unrecognised, Unrecognised, PartReceipt]


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
_kinds = st.sampled_from(["message_api_sent", "message_api_read", "message_api_failed", "message_received"])
_message = st.fixed_dictionaries(
    {},
    optional={
        "id": _json | st.just("i-1"),
        "message": _json | st.text(),
        "media_url": _json | st.just(URL) | st.text().map("https://{}".format),
        "message_content_type": _json | st.sampled_from(["Text", "Image", "InteractiveListReply"]),
        "meta_data": _json | st.fixed_dictionaries({"source_data": st.fixed_dictionaries({"callback_data": _json})}),
        "channel_error_code": _json,
        "channel_failure_reason": _json,
        "received_at_utc": _json | st.datetimes().map(datetime.isoformat),
        "seen_at_utc": _json,
    },
)
_customer = st.fixed_dictionaries({}, optional={name: _json | st.from_regex(r"\+?[0-9]{1,12}") for name in CUSTOMER})


@given(_kinds, _message | _json, _customer | _json, _json | st.datetimes().map(datetime.isoformat))
def test_no_event_whatever_makes_the_parser_raise(kind: str, message: Any, customer: Any, timestamp: Any) -> None:
    it = the_one(body(kind, message, customer=customer, timestamp=timestamp))
    if isinstance(it, PartReceipt):
        assert it.receipt.at.tzinfo is UTC
    if isinstance(it, InboundMessage):
        assert it.parts
        assert it.at.tzinfo is UTC


@pytest.mark.parametrize("depth", [100, 900, 950, 970, 980, 985, 990, 995, 1_000])
@pytest.mark.parametrize("field", ["channel_error_code", "message", "media_url", "meta_data", "id"])
def test_no_depth_makes_the_parser_raise(depth: int, field: str) -> None:
    nested = b"[" * depth + b"]" * depth
    for kind in ("message_api_failed", "message_received"):
        raw = body(kind, sent_message(**{field: "NESTED"}), customer=CUSTOMER).replace(b'"NESTED"', nested)
        assert len(events_in(raw)) == 1


@given(st.binary(max_size=200))
def test_no_bytes_whatever_make_the_parser_raise(raw: bytes) -> None:
    assert isinstance(events_in(raw), tuple)


# --- genuine or not


async def test_a_webhook_that_interakt_signed_is_taken_and_any_other_is_refused(link: Link) -> None:
    raw = body("message_api_read", sent_message())
    good = link_signature(raw)

    async def taken(headers: dict[str, str], content: bytes = raw) -> bool:
        received = await link.providers.receive(NAME, "acme", headers, content, now=datetime.now(UTC))
        assert isinstance(received, Received | Refused)
        return isinstance(received, Received)

    assert await taken({SIGNATURE_HEADER: good})
    assert await taken({SIGNATURE_HEADER.lower(): good})
    assert not await taken({})
    assert not await taken({SIGNATURE_HEADER: good[:-1]})
    assert not await taken({SIGNATURE_HEADER: good.removeprefix("sha256=")})
    assert not await taken({SIGNATURE_HEADER: good.replace("sha256", "sha512")})
    assert not await taken({"X-Hub-Signature-256": good})
    assert not await taken({SIGNATURE_HEADER: good}, raw + b"\n")


@given(st.integers(0, 200), st.integers(0, 255))
def test_a_body_with_one_byte_changed_is_refused(position: int, value: int) -> None:
    raw = body("message_api_read", sent_message())
    position %= len(raw)
    changed = raw[:position] + bytes([value]) + raw[position + 1 :]
    assert verify(link_signature(raw), changed) is (changed == raw)


def link_signature(raw: bytes) -> str:
    return API.headers(DEFAULT_SECRET, raw, AT)[SIGNATURE_HEADER]


def verify(signature: str, raw: bytes) -> bool:
    adapter = providers_at("http://nowhere")[NAME]
    return adapter.verify({SIGNATURE_HEADER: signature}, raw, DEFAULT_SECRET, now=AT + timedelta(days=7))
