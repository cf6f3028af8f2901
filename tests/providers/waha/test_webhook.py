"""WAHA's webhooks: who signed them, what they say, and what becomes of a message whatever order they come in."""

from __future__ import annotations

import hashlib
import hmac
import itertools
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firestore_outbox.messages.limits import MAX_PARTS, MAX_TEXT
from firestore_outbox.messages.model import MediaPart, TextPart
from firestore_outbox.messages.states import MessageStatus
from firestore_outbox.providers.outcome import ErrorCode, Sent, Unknown
from firestore_outbox.providers.protocol import (
    InboundMessage,
    PartReceipt,
    SessionChanged,
    Unrecognised,
    WebhookEvent,
)
from firestore_outbox.providers.waha.webhook import ACK_NAMES, ACKS, events_in
from firestore_outbox.receipts.rules import Advance, Arrived, Bounced, Progress, ShownMessage, apply
from tests.providers.support import START, message, text
from tests.providers.waha.support import World, adapter, file, in_virtual_time

SECRET = "hmac-key"
AT = datetime(2026, 3, 1, 12, 0, 5, tzinfo=UTC)
AT_MS = int(AT.timestamp() * 1000)


def body(name: str, payload: Any, **fields: Any) -> bytes:
    envelope = {"id": "evt_1", "timestamp": AT_MS, "event": name, "session": "default", "payload": payload}
    return json.dumps(envelope | fields).encode()


def ack(level: Any, **fields: Any) -> bytes:
    payload = {"id": "true_111@c.us_4CC5", "from": "1@c.us", "to": "111@c.us", "fromMe": True, "ack": level}
    return body("message.ack", payload | fields)


def inbound(**fields: Any) -> bytes:
    payload = {"id": "false_111@c.us_AAAA", "timestamp": 1772366400, "from": "111@c.us", "fromMe": False, "body": "hi"}
    return body("message", payload | fields)


def only(raw: bytes) -> WebhookEvent:
    (event,) = events_in(raw)
    return event


def receipt(raw: bytes) -> Arrived | Bounced:
    event = only(raw)
    assert isinstance(event, PartReceipt)
    assert event.correlation is None
    assert event.tells_of_message
    return event.receipt


def received(raw: bytes) -> InboundMessage:
    event = only(raw)
    assert isinstance(event, InboundMessage)
    return event


# --- acknowledgements


@pytest.mark.parametrize(
    ("level", "name", "progress"),
    [
        (1, "SERVER", Progress.SENT),
        (2, "DEVICE", Progress.DELIVERED),
        (3, "READ", Progress.READ),
        (4, "PLAYED", Progress.READ),
    ],
)
def test_an_acknowledgement_is_progress(level: int, name: str, progress: Progress) -> None:
    expected = Arrived(progress=progress, at=AT, provider_message_id="4CC5")
    assert receipt(ack(level)) == expected
    assert receipt(ack(str(level))) == expected
    assert receipt(ack(None, ackName=name)) == expected
    assert receipt(ack(99, ackName=name)) == expected
    assert ACKS[level] is progress
    assert ACK_NAMES[name] == level


def test_an_error_is_a_bounce() -> None:
    bounced = receipt(ack(-1, ackName="ERROR"))
    assert isinstance(bounced, Bounced)
    assert (bounced.error.code, bounced.error.retryable, bounced.at) == (ErrorCode.REJECTED, False, AT)
    assert bounced.provider_message_id == "4CC5"


def test_pending_says_nothing() -> None:
    assert events_in(ack(0, ackName="PENDING")) == ()


def test_an_acknowledgement_of_a_foreign_message_is_not_ours() -> None:
    assert events_in(ack(3, id="false_111@c.us_4CC5", fromMe=False)) == ()
    assert events_in(ack(3, id="false_111@c.us_4CC5", fromMe=None)) == ()


def test_every_form_of_an_id_gives_the_same_id() -> None:
    for identity in ("true_111@c.us_4CC5", "true_999@g.us_4CC5_111@c.us", "true_55@lid_4CC5", "4CC5"):
        assert receipt(ack(1, id=identity)).provider_message_id == "4CC5"


def test_a_groups_acknowledgement_counts_too() -> None:
    payload = {"id": "true_999@g.us_4CC5_111@c.us", "fromMe": True, "ack": 2, "participant": "111@c.us"}
    arrived = receipt(body("message.ack.group", payload))
    assert isinstance(arrived, Arrived)
    assert arrived.progress is Progress.DELIVERED


@pytest.mark.parametrize("stamp", [AT_MS, str(AT_MS), AT_MS / 1000, str(AT_MS // 1000)])
def test_a_time_may_be_a_text_and_in_seconds_or_milliseconds(stamp: Any) -> None:
    event = only(body("message.ack", {"id": "true_1@c.us_A", "fromMe": True, "ack": 1}, timestamp=stamp))
    assert isinstance(event, PartReceipt)
    assert event.receipt.at == AT


@pytest.mark.parametrize(
    "raw",
    [
        ack(7),
        ack(1.5),
        ack(True),
        ack([1]),
        ack(1, id=None),
        ack(1, id="no id at all"),
        body("message.ack", {"id": "true_1@c.us_A", "fromMe": True, "ack": 1}, timestamp=None),
        body("message.ack", {"id": "true_1@c.us_A", "fromMe": True, "ack": 1}, timestamp="1e999"),
        body("message.ack", {"id": "true_1@c.us_A", "fromMe": True, "ack": 1}, timestamp=10**30),
        body("message.ack", []),
        body("brand.new", {}),
        body("session.status", {"status": "NEW"}),
        inbound(id=7),
        inbound(**{"from": "status@broadcast"}),
        inbound(body=""),
        inbound(body=None),
        b"[]",
        b"null",
        b"",
        b"\xff",
        b"[" * 100_000,
    ],
)
def test_what_cannot_be_read_is_unrecognised_and_not_quoted(raw: bytes) -> None:
    event = only(raw)
    assert isinstance(event, Unrecognised)
    assert "no id at all" not in event.detail


@pytest.mark.parametrize("name", ["presence.update", "poll.vote", "group.v2.join", "call.received", "message.reaction"])
def test_events_that_are_nothing_to_us_give_nothing(name: str) -> None:
    assert events_in(body(name, {"anything": 1})) == ()


# --- whatever order they come in


def test_every_order_of_the_receipts_with_duplicates_ends_the_same() -> None:
    told = [only(ack(level)) for level in (1, 2, 3)]
    for order in itertools.permutations([*told, *told]):
        shown = ShownMessage(status=MessageStatus.SENT, provider_message_id="4CC5", sent_at=AT)
        seen = [shown.status]
        for event in order:
            assert isinstance(event, PartReceipt)
            decision = apply(shown, event.receipt)
            shown = decision.shown if isinstance(decision, Advance) else shown
            seen.append(shown.status)
        assert shown.status is MessageStatus.READ
        assert (shown.sent_at, shown.delivered_at, shown.read_at) == (AT, AT, AT)
        ranks = [list(MessageStatus).index(status) for status in seen]
        assert ranks == sorted(ranks)


@in_virtual_time
async def test_a_sent_message_gives_its_receipts_under_the_id_that_it_was_sent_with(world: World) -> None:
    outcome = await world.send(message(parts=(text(),)))
    assert isinstance(outcome, Sent)
    events = await world.events()
    receipts = [event.receipt for event in events if isinstance(event, PartReceipt)]
    assert [it.progress for it in receipts if isinstance(it, Arrived)] == list(Progress)
    assert {it.provider_message_id for it in receipts} == {outcome.provider_message_id}
    assert len(events) == 3


@in_virtual_time
async def test_a_message_to_a_group_and_one_with_a_file_give_receipts_too(world: World) -> None:
    to_group = await world.send(message("request-1", to="120363012345678901@g.us"))
    a_file = await world.send(message("request-2", parts=(file("picture"),)))
    assert isinstance(to_group, Sent)
    assert isinstance(a_file, Sent)
    events = await world.events()
    ids = [event.receipt.provider_message_id for event in events if isinstance(event, PartReceipt)]
    assert sorted(ids, key=str) == sorted([to_group.provider_message_id] * 3 + [a_file.provider_message_id] * 3)
    assert {body["event"] for body in world.bodies} == {"message.ack", "message.ack.group"}


@in_virtual_time
async def test_receipts_of_a_send_that_was_never_answered_carry_the_foretold_id(world: World) -> None:
    world.order(lostResponseRate=1)
    unanswered = message("request-1")
    assert isinstance(await world.send(unanswered), Unknown)
    foretold = adapter().foretold_id(unanswered)
    events = await world.events()
    assert {event.receipt.provider_message_id for event in events if isinstance(event, PartReceipt)} == {foretold}


@in_virtual_time
async def test_late_doubled_and_shuffled_receipts_are_all_genuine(world: World) -> None:
    world.order(receiptDuplicateRate=1, receiptShuffle=True, receiptDelayMs=60_000)
    await world.send()
    events = await world.events()
    assert len(events) == 6
    assert all(isinstance(event, PartReceipt) for event in events)


@in_virtual_time
async def test_a_message_that_fails_later_bounces(world: World) -> None:
    world.order(receiptFailedRate=1)
    await world.send()
    last = (await world.events())[-1]
    assert isinstance(last, PartReceipt)
    assert isinstance(last.receipt, Bounced)


# --- inbound


def test_a_text_comes_from_the_digits_that_an_answer_would_go_to() -> None:
    got = received(inbound())
    assert got.sender == "111"
    assert got.provider_message_id == "false_111@c.us_AAAA"
    assert got.at == datetime.fromtimestamp(1772366400, UTC)
    assert got.parts == (TextPart(type="text", text="hi"),)


@pytest.mark.parametrize(
    ("chat", "sender"),
    [("111@s.whatsapp.net", "111"), ("12-34@g.us", "12-34@g.us"), ("77@lid", "77@lid"), ("111:5@c.us", "111:5@c.us")],
)
def test_a_group_or_a_hidden_person_is_named_by_the_chat(chat: str, sender: str) -> None:
    assert received(inbound(**{"from": chat})).sender == sender


def test_the_same_message_under_both_events_is_the_same_message() -> None:
    again = json.loads(inbound()) | {"event": "message.any"}
    assert received(json.dumps(again).encode()) == received(inbound())


def test_our_own_messages_are_not_inbound() -> None:
    mine = {"id": "true_111@c.us_AAAA", "from": "111@c.us", "fromMe": True, "body": "hi", "timestamp": 1}
    assert events_in(body("message.any", mine)) == ()


def test_a_file_with_a_caption_is_one_part() -> None:
    media = {
        "url": "http://waha:3000/api/files/default/false_111%40c.us_AAAA.jpeg?x=1",
        "mimetype": "image/jpeg",
        "filename": None,
    }
    got = received(inbound(hasMedia=True, media=media, body="look"))
    assert got.parts == (
        MediaPart(type="media", mediaId="false_111@c.us_AAAA.jpeg", mimeType="image/jpeg", caption="look"),
    )


@pytest.mark.parametrize("url", [None, 7, "", "http://[bad", "http://h/"])
def test_a_file_that_the_gateway_did_not_keep_is_named_by_its_message(url: Any) -> None:
    (part,) = received(inbound(hasMedia=True, media={"url": url, "mimetype": "audio/ogg"}, body="")).parts
    assert isinstance(part, MediaPart)
    assert (part.mediaId, part.mimeType) == ("false_111@c.us_AAAA", "audio/ogg")


def test_a_file_of_a_strange_kind_leaves_the_text() -> None:
    got = received(inbound(hasMedia=True, media={"url": "http://h/x", "mimetype": "???"}, body="look"))
    assert got.parts == (TextPart(type="text", text="look"),)


def test_a_text_that_is_longer_than_a_part_becomes_several() -> None:
    long = "x" * (MAX_TEXT * 2 + 5)
    parts = received(inbound(body=long)).parts
    assert [len(part.text) for part in parts if isinstance(part, TextPart)] == [MAX_TEXT, MAX_TEXT, 5]
    assert len(received(inbound(body="x" * MAX_TEXT * 20)).parts) == MAX_PARTS


@in_virtual_time
async def test_an_inbound_text_and_file_to_order_come_over_the_webhook(world: World) -> None:
    for fields in (
        {"text": "hello"},
        {"parts": [{"type": "media", "mediaId": "f.pdf", "mimeType": "application/pdf", "caption": "c"}]},
    ):
        order = {"accountId": "acme", "from": "4915112345", "provider": "waha", "providerMessageId": "ABC", **fields}
        assert (await world.control.post("/_sim/inbound", json=order)).status_code == 202
        await world.simulator.webhooks.drained()
    one, two = await world.events()
    assert isinstance(one, InboundMessage)
    assert isinstance(two, InboundMessage)
    assert one.parts == (TextPart(type="text", text="hello"),)
    assert two.parts == (MediaPart(type="media", mediaId="f.pdf", mimeType="application/pdf", caption="c"),)
    assert one.sender == two.sender == "4915112345"


# --- sessions


@pytest.mark.parametrize(
    ("status", "connected"), [("WORKING", True), ("FAILED", False), ("STOPPED", False), ("SCAN_QR_CODE", False)]
)
def test_news_of_a_session_say_whether_it_is_up(status: str, connected: bool) -> None:
    event = only(body("session.status", {"name": "default", "status": status}))
    assert event == SessionChanged(connected=connected, at=AT, detail=status, number="default")


# --- signatures


def signed(raw: bytes, secret: str = SECRET, algorithm: str = "sha512") -> dict[str, str]:
    mac = hmac.new(secret.encode(), raw, getattr(hashlib, algorithm)).hexdigest()
    return {"X-Webhook-Hmac": mac, "X-Webhook-Hmac-Algorithm": algorithm, "X-Webhook-Timestamp": str(AT_MS)}


def verified(headers: dict[str, str], raw: bytes, secret: str = SECRET) -> bool:
    return adapter().verify(headers, raw, secret, now=START)


def test_a_right_signature_is_taken_in_any_case_of_the_header_and_at_any_time() -> None:
    raw = ack(1)
    assert verified(signed(raw), raw)
    assert verified({name.lower(): value for name, value in signed(raw).items()}, raw)
    assert verified({"X-Webhook-Hmac": signed(raw)["X-Webhook-Hmac"]}, raw)
    assert adapter().verify(signed(raw), raw, SECRET, now=START + timedelta(days=30))


@pytest.mark.parametrize(
    "change",
    [
        lambda headers: {},
        lambda headers: headers | {"X-Webhook-Hmac": ""},
        lambda headers: headers | {"X-Webhook-Hmac": headers["X-Webhook-Hmac"][:-1]},
        lambda headers: headers | {"X-Webhook-Hmac": headers["X-Webhook-Hmac"][:64]},
        lambda headers: headers | {"X-Webhook-Hmac": "0" * 128},
        lambda headers: headers | {"X-Webhook-Hmac": "\udcff" + headers["X-Webhook-Hmac"]},
        lambda headers: headers | {"x-webhook-hmac": headers["X-Webhook-Hmac"]},
        lambda headers: headers | {"X-Webhook-Hmac-Algorithm": "sha256"},
        lambda headers: headers | {"X-Webhook-Hmac-Algorithm": ""},
    ],
)
def test_a_signature_that_is_missing_wrong_or_truncated_is_refused(change: Any) -> None:
    raw = ack(1)
    assert not verified(change(signed(raw)), raw)


def test_another_algorithm_key_or_body_is_refused() -> None:
    raw = ack(1)
    assert not verified(signed(raw, algorithm="sha256"), raw)
    assert not verified(signed(raw, algorithm="sha256") | {"X-Webhook-Hmac-Algorithm": "sha512"}, raw)
    assert not verified(signed(raw, secret="another"), raw)
    assert not verified(signed(raw), raw + b" ")
    assert not verified(signed(raw, secret=""), raw, secret="")


# --- mutations

_EXAMPLES = [ack(1), inbound(), body("session.status", {"name": "d", "status": "WORKING"})]
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
_NAMES = [
    *("id", "timestamp", "event", "session", "payload"),
    *("from", "to", "fromMe", "ack", "ackName", "body", "media", "hasMedia", "status", "participant"),
]


@settings(max_examples=400, deadline=None)
@given(
    st.sampled_from(_EXAMPLES),
    st.lists(st.tuples(st.sampled_from(_NAMES), st.booleans(), _json), min_size=1, max_size=4),
)
def test_a_body_with_other_values_never_raises(raw: bytes, changes: list[tuple[str, bool, Any]]) -> None:
    envelope = json.loads(raw)
    for name, inside, value in changes:
        target = envelope.get("payload") if inside else envelope
        if isinstance(target, dict):
            target[name] = value
    events = events_in(json.dumps(envelope).encode())
    assert len(events) <= 1


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(_EXAMPLES), st.data())
def test_a_body_with_other_bytes_never_raises_and_is_never_genuine(raw: bytes, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(raw) - 1))
    changed = raw[:place] + data.draw(st.binary(max_size=3)) + raw[place + 1 :]
    events_in(changed)
    assert verified(signed(raw), changed) is (changed == raw)
