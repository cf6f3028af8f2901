"""What a receiver of signed webhooks posts back, in our own envelope."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firestore_outbox.local.simulators.signed_webhook import API
from firestore_outbox.local.simulators.signed_webhook import is_genuine as receiver_finds_genuine
from firestore_outbox.local.simulators.simulator import DEFAULT_SECRET
from firestore_outbox.messages.model import MediaPart
from firestore_outbox.providers.outcome import ErrorCode, Sent
from firestore_outbox.providers.protocol import InboundMessage, PartReceipt
from firestore_outbox.providers.registry import Received, Refused
from firestore_outbox.providers.signature import signed
from firestore_outbox.providers.signed_webhook.adapter import NAME, SIGNATURE_HEADER
from firestore_outbox.receipts.rules import Arrived, Bounced, Progress
from tests.providers.linked import Link, linked
from tests.providers.support import START, message, providers_at, text

EVENT = {"type": "receipt", "providerMessageId": "r-1", "status": "read", "at": START.isoformat()}
RAW = json.dumps({"events": [EVENT]}).encode()


@pytest.fixture
async def link() -> AsyncIterator[Link]:
    async with linked(NAME) as it:
        yield it


async def test_receipts_name_the_message_by_the_receivers_id_and_by_our_mark(link: Link) -> None:
    outcome = await link.send(message("request-7", parts=(text("one"), text("two"))))
    assert isinstance(outcome, Sent)
    events = [it for it in await link.events() if isinstance(it, PartReceipt)]
    told = [it.receipt.progress for it in events if it.tells_of_message and isinstance(it.receipt, Arrived)]
    assert told == [Progress.SENT, Progress.DELIVERED, Progress.READ]
    assert {it.request_id for it in events} == {"request-7"}
    last = {it.receipt.provider_message_id for it in events if it.tells_of_message}
    assert last == {outcome.provider_message_id}
    assert {call.url for call in link.inbox.heard} == {"http://functions.test/signed_webhook/acme"}


async def test_a_key_that_was_sent_twice_gives_receipts_once(link: Link) -> None:
    for _ in range(3):
        await link.send(message())
    assert len(await link.events()) == 3


async def test_a_failure_names_one_of_our_codes(link: Link) -> None:
    await link.order(receiptFailedRate=1)
    await link.send(message())
    last = (await link.events())[-1]
    assert isinstance(last, PartReceipt)
    assert isinstance(last.receipt, Bounced)
    assert last.receipt.error.code is ErrorCode.RECIPIENT_INVALID


async def test_inbound_text_and_media_arrive(link: Link) -> None:
    order = {"accountId": "acme", "from": "4915100", "provider": NAME}
    media = {"type": "media", "mediaId": "m-1", "mimeType": "image/png", "caption": "look"}
    await link.control.post("/_sim/inbound", json=order | {"parts": [{"type": "text", "text": "hi"}, media]})
    (it,) = await link.events()
    assert isinstance(it, InboundMessage)
    assert it.sender == "4915100"
    assert it.parts == (
        text("hi"),
        MediaPart(type="media", mediaId="m-1", mimeType="image/png", caption="look"),
    )


# --- genuine or not


async def taken(link: Link, headers: dict[str, str], raw: bytes = RAW, *, now: datetime | None = None) -> bool:
    received = await link.providers.receive(NAME, "acme", headers, raw, now=now or datetime.now(UTC))
    assert isinstance(received, Received | Refused)
    return isinstance(received, Received)


async def test_a_webhook_that_the_receiver_signed_is_taken_and_any_other_is_refused(link: Link) -> None:
    good = API.headers(DEFAULT_SECRET, RAW, datetime.now(UTC))[SIGNATURE_HEADER]
    assert await taken(link, {SIGNATURE_HEADER: good})
    assert await taken(link, {SIGNATURE_HEADER.lower(): good})
    assert not await taken(link, {})
    assert not await taken(link, {SIGNATURE_HEADER: good[:-1]})
    assert not await taken(link, {SIGNATURE_HEADER: good.partition(",")[2]})
    assert not await taken(link, {SIGNATURE_HEADER: good.replace("v1=", "v0=")})
    assert not await taken(link, {"X-Simulated-Signature": good})
    assert not await taken(link, {SIGNATURE_HEADER: good, SIGNATURE_HEADER.lower(): good})
    assert not await taken(link, {SIGNATURE_HEADER: good}, RAW + b"\n")
    assert not await taken(link, {SIGNATURE_HEADER: good}, now=datetime.now(UTC) + timedelta(seconds=302))


async def test_without_a_secret_of_its_own_an_account_takes_no_webhook() -> None:
    async with linked(NAME, webhookSecret="") as link:
        for secret in ("", DEFAULT_SECRET):
            assert not await taken(link, API.headers(secret, RAW, datetime.now(UTC)))


async def test_what_we_sent_cannot_be_played_back_to_us_where_the_two_secrets_differ() -> None:
    async with linked(NAME, webhookSecret="receiver's") as link:
        signature = signed(RAW, DEFAULT_SECRET, datetime.now(UTC))  # by our signingSecret
        assert not await taken(link, {SIGNATURE_HEADER: signature})


def verify(signature: str, raw: bytes) -> bool:
    adapter = providers_at("http://nowhere")[NAME]
    return adapter.verify({SIGNATURE_HEADER: signature}, raw, DEFAULT_SECRET, now=START)


@given(st.integers(0, 200), st.integers(0, 255))
def test_a_body_with_one_byte_changed_is_refused_on_either_side(position: int, value: int) -> None:
    position %= len(RAW)
    changed = RAW[:position] + bytes([value]) + RAW[position + 1 :]
    header = signed(RAW, DEFAULT_SECRET, START)
    assert verify(header, changed) is (changed == RAW)
    assert receiver_finds_genuine(header, DEFAULT_SECRET, changed, START) is (changed == RAW)


@given(st.dictionaries(st.text(max_size=20), st.text(max_size=80), max_size=3), st.binary(max_size=100))
def test_no_headers_and_no_body_whatever_are_taken_or_make_it_raise(headers: dict[str, str], raw: bytes) -> None:
    adapter = providers_at("http://nowhere")[NAME]
    assert not adapter.verify(headers, raw, DEFAULT_SECRET, now=START)
    assert isinstance(adapter.parse(raw), tuple)


_ANY: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
)


_OTHERS = {name: _ANY for name in EVENT if name != "type"}
_EVENTS = st.fixed_dictionaries({"type": st.sampled_from(["receipt", "inbound", "session"])}, optional=_OTHERS)


@given(st.lists(_EVENTS | _ANY, max_size=4))
def test_each_event_counts_for_itself(events: list[Any]) -> None:
    adapter = providers_at("http://nowhere")[NAME]
    found = adapter.parse(json.dumps({"events": [*events, EVENT]}).encode())
    assert len(found) == len(events) + 1
    assert isinstance(found[-1], PartReceipt)
