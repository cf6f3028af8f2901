"""From the simulator's receipts and inbound messages, over the signed webhook, to events."""

from __future__ import annotations

import itertools
import json
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firestore_emulator import virtual_time
from firestore_outbox.local.simulators.faults import Faults
from firestore_outbox.local.simulators.receipts import plan_receipts
from firestore_outbox.local.simulators.webhooks import TRIES, BadTemplate
from firestore_outbox.messages.correlation import Correlation
from firestore_outbox.messages.model import MediaPart
from firestore_outbox.messages.states import MessageStatus
from firestore_outbox.providers.event_envelope import MAX_EVENTS, events_in
from firestore_outbox.providers.outcome import ErrorCode, Sent, Unknown
from firestore_outbox.providers.protocol import (
    InboundMessage,
    PartReceipt,
    SessionChanged,
    Unrecognised,
    WebhookEvent,
)
from firestore_outbox.receipts.rules import Advance, Arrived, Bounced, Progress, ShownMessage, apply
from tests.providers.support import START, World, in_virtual_time, message, text


def receipts(events: list[WebhookEvent]) -> list[PartReceipt]:
    assert all(isinstance(event, PartReceipt) for event in events), events
    return [event for event in events if isinstance(event, PartReceipt)]


def progress(events: list[WebhookEvent]) -> list[Progress]:
    return [it.receipt.progress for it in receipts(events) if isinstance(it.receipt, Arrived)]


# --- receipts


@in_virtual_time()
async def test_a_sent_message_gives_sent_delivered_and_read_with_its_ids(world: World) -> None:
    outcome = await world.send(message("request-7"))
    assert isinstance(outcome, Sent)
    events = receipts(await world.events())
    assert progress(list(events)) == [Progress.SENT, Progress.DELIVERED, Progress.READ]
    assert {it.receipt.provider_message_id for it in events} == {outcome.provider_message_id}
    assert {it.request_id for it in events} == {"request-7"}
    assert all(it.tells_of_message for it in events)
    assert {call.url for call in world.inbox.heard} == {"http://functions.test/simulated/acme"}


@in_virtual_time()
async def test_a_mute_provider_echoes_nothing(world: World) -> None:
    outcome = await world.send(name="simulated-mute")
    assert isinstance(outcome, Sent)
    events = receipts(await world.events())
    assert [it.request_id for it in events] == [None] * 3
    assert {it.receipt.provider_message_id for it in events} == {outcome.provider_message_id}
    assert {call.url for call in world.inbox.heard} == {"http://functions.test/simulated-mute/acme"}


@in_virtual_time()
async def test_a_lost_response_is_settled_by_the_echo_in_the_receipt(world: World) -> None:
    world.order(lostResponseRate=1)
    assert isinstance(await world.send(message("request-7")), Unknown)
    assert {it.request_id for it in receipts(await world.events())} == {"request-7"}


@in_virtual_time()
async def test_only_the_last_parts_receipts_tell_of_the_message(world: World) -> None:
    await world.send(message(parts=(text("one"), text("two"))))
    events = receipts(await world.events())
    told = {(it.correlation.part, it.tells_of_message) for it in events if it.correlation}
    assert told == {(0, False), (1, True)}


def test_the_failure_of_any_part_tells_of_the_message() -> None:
    body = event("receipt", status="failed", echo="request-1:0:2", error={"code": "media_missing", "message": "gone"})
    (it,) = events_in(body)
    assert isinstance(it, PartReceipt)
    assert isinstance(it.receipt, Bounced)
    assert (it.receipt.error.code, it.receipt.error.message) == (ErrorCode.MEDIA_MISSING, "gone")
    assert it.tells_of_message


@in_virtual_time()
async def test_an_accepted_message_may_fail_later(world: World) -> None:
    world.order(receiptFailedRate=1)
    assert isinstance(await world.send(), Sent)
    kinds = [type(it.receipt) for it in receipts(await world.events())]
    assert kinds == [Arrived, Bounced]


@in_virtual_time()
async def test_receipts_come_as_late_as_ordered(world: World) -> None:
    world.order(receiptDelayMs=90_000)
    await world.send()
    assert world.inbox.heard == []
    await world.simulator.webhooks.drained()
    assert world.seconds() == 90.0
    assert world.inbox.statuses == ["sent", "delivered", "read"]


@in_virtual_time()
async def test_receipts_overtake_a_late_answer(world: World) -> None:
    world.order(latencyMs=5_000)
    await world.send()
    assert world.inbox.statuses == ["sent", "delivered", "read"]


@in_virtual_time()
async def test_receipts_may_all_come_twice(world: World) -> None:
    world.order(receiptDuplicateRate=1)
    await world.send()
    assert progress(await world.events()) == [step for step in Progress for _ in range(2)]


@in_virtual_time()
async def test_receipts_may_never_come(world: World) -> None:
    world.order(receiptLossRate=1)
    await world.send()
    assert await world.events() == []


@in_virtual_time()
async def test_a_message_delivered_twice_has_two_ids_and_one_echo(world: World) -> None:
    world.order(deliverTwiceRate=1)
    await world.send()
    events = receipts(await world.events())
    assert len({it.receipt.provider_message_id for it in events}) == 2
    assert {it.request_id for it in events} == {"request-1"}


@in_virtual_time()
async def test_a_deduplicated_call_gives_no_further_receipts(world: World) -> None:
    for _ in range(3):
        await world.send(name="simulated-idempotent")
    assert len(await world.events()) == 3


def test_shuffled_receipts_come_in_every_order() -> None:
    orders = set()

    async def story() -> None:
        world = World(seed=3)
        world.order(receiptShuffle=True, receiptDelayMs=1_000)
        for number in range(60):
            before = len(world.inbox.heard)
            await world.send(message(f"request-{number}"))
            await world.simulator.webhooks.drained()
            orders.add(tuple(world.inbox.statuses[before:]))
        await world.close()

    virtual_time.run(story(), seed=1, start=START)
    assert orders == set(itertools.permutations(["sent", "delivered", "read"]))


@pytest.mark.parametrize("order", list(itertools.permutations(["sent", "delivered", "read", "delivered", "read"], 5)))
def test_receipts_in_any_order_and_twice_leave_the_message_read_with_all_its_times(order: tuple[str, ...]) -> None:
    shown = ShownMessage(status=MessageStatus.SENT, sent_at=START)
    for step, status in enumerate(order):
        (it,) = events_in(event("receipt", at=START + timedelta(seconds=step), status=status, echo="request-1:0:1"))
        assert isinstance(it, PartReceipt)
        match apply(shown, it.receipt):
            case Advance() as advance:
                shown = advance.shown
            case _:
                pass
    assert shown.status is MessageStatus.READ
    earliest = min(order.index("delivered"), order.index("read"))  # no later than the time at which it was read
    assert shown.delivered_at == START + timedelta(seconds=earliest)
    assert shown.read_at == START + timedelta(seconds=order.index("read"))


def test_the_same_seed_plans_the_same_receipts() -> None:
    faults = Faults(receiptShuffle=True, receiptDelayMs=500, receiptDuplicateRate=0.5, receiptLossRate=0.3)
    plans = [plan_receipts("id", None, faults, now=START, random=Random(5)) for _ in range(2)]
    assert plans[0] == plans[1]


# --- delivery of webhooks


@in_virtual_time()
async def test_a_webhook_that_is_not_taken_is_sent_again_with_growing_pauses_and_in_order(world: World) -> None:
    world.inbox.answers = [500, ConnectionError(), 401]
    await world.send()
    assert progress(await world.events()) == [Progress.SENT] * 4 + [Progress.DELIVERED, Progress.READ]
    assert world.seconds() == 0.5 + 1 + 2


@in_virtual_time()
async def test_each_try_is_signed_anew_so_that_a_late_one_is_not_stale(world: World) -> None:
    world.inbox.answers = [503, 503, 503]
    world.simulator.webhooks.post("simulated", "acme", {"type": "session", "status": "up", "at": START.isoformat()})
    await world.simulator.webhooks.drained()
    signed_at = [call.headers["X-Simulated-Signature"].partition(",")[0] for call in world.inbox.heard]
    start = int(START.timestamp())
    assert signed_at == [f"t={start}", f"t={start}", f"t={start + 1}", f"t={start + 3}"]
    assert len(await world.events()) == 4


@in_virtual_time()
async def test_a_webhook_that_is_never_taken_is_given_up(world: World) -> None:
    world.inbox.answers = [500] * TRIES
    world.simulator.webhooks.post("simulated", "acme", {"type": "session", "status": "up", "at": START.isoformat()})
    await world.simulator.webhooks.drained()
    assert len(world.inbox.heard) == TRIES


@in_virtual_time(webhook=None)
async def test_without_a_webhook_nothing_is_posted(world: World) -> None:
    await world.send()
    await world.simulator.webhooks.drained()
    assert world.inbox.heard == []


def test_a_webhook_template_without_its_placeholders_is_refused() -> None:
    async def story() -> None:
        World(webhook="http://functions.test/{provider}")

    with pytest.raises(BadTemplate, match="accountId"):
        virtual_time.run(story(), seed=1, start=START)


# --- inbound and sessions


@in_virtual_time()
async def test_an_injected_text_arrives_as_an_inbound_message(world: World) -> None:
    answer = await world.http.post("/_sim/inbound", json={"accountId": "acme", "from": "4915100", "text": "hi"})
    assert answer.status_code == 202
    identity = answer.json()["providerMessageId"]
    assert await world.events() == [
        InboundMessage(provider_message_id=identity, sender="4915100", at=START, parts=(text("hi"),))
    ]


@in_virtual_time()
async def test_injected_media_keeps_its_id_and_may_come_twice_under_one_message_id(world: World) -> None:
    part = {"type": "media", "mediaId": "m-1", "mimeType": "image/png", "caption": "look"}
    order = {"accountId": "acme", "from": "4915100", "parts": [part], "providerMessageId": "in-1"}
    for _ in range(2):
        await world.http.post("/_sim/inbound", json=order | {"provider": "simulated-mute"})
    first, second = await world.events()
    assert first == second
    assert isinstance(first, InboundMessage)
    assert first.parts == (MediaPart(type="media", mediaId="m-1", mimeType="image/png", caption="look"),)
    assert first.provider_message_id == "in-1"
    assert world.inbox.heard[0].url == "http://functions.test/simulated-mute/acme"


@in_virtual_time()
async def test_a_session_that_changes_is_reported_once(world: World) -> None:
    for session in ("down", "down", "up"):
        await world.http.put("/_sim/accounts/acme", json={"session": session})
    changes = [it for it in await world.events() if isinstance(it, SessionChanged)]
    assert sorted(it.connected for it in changes) == [False, True]


# --- bodies that are not as they should be


def event(kind: str, *, at: Any = START, **fields: Any) -> bytes:
    base = {"type": kind, "at": at.isoformat(), "providerMessageId": "sim-1"}
    return json.dumps({"events": [base | fields]}).encode()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff",
        b"null",
        b"[]",
        b"{}",
        b'{"events": {}}',
        b"[" * 200_000,
        json.dumps({"events": [{}] * (MAX_EVENTS + 1)}).encode(),
        b'{"events": [7]}',
        b'{"events": [{}]}',
        event("poll"),
        event("receipt"),
        event("receipt", status="teleported"),
        event("receipt", status="sent", at=START.replace(tzinfo=None)),
        event("receipt", status="sent", echo="a foreign id"),
        event("inbound", parts=[]),
        event("inbound", parts=[{"type": "text", "text": "x"}], **{"from": "a/b"}),
        event("session", status="sideways"),
    ],
)
def test_what_cannot_be_read_is_unrecognised_and_quotes_nothing(body: bytes) -> None:
    (it,) = events_in(body)
    assert isinstance(it, Unrecognised)
    assert "foreign" not in it.detail
    assert "teleported" not in it.detail


def test_one_bad_event_does_not_hide_the_others() -> None:
    good = json.loads(event("receipt", status="read", echo="request-1:0:1"))["events"][0]
    events = events_in(json.dumps({"events": [good, {"type": "poll"}, good]}).encode())
    assert [type(it) for it in events] == [PartReceipt, Unrecognised, PartReceipt]
    assert isinstance(events[0], PartReceipt)
    assert events[0].correlation == Correlation(request_id="request-1", part=0, parts=1)


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
)
_fields = st.fixed_dictionaries(
    {},
    optional={
        name: _json | st.sampled_from(["receipt", "inbound", "session", "sent", "up", "2026-01-01T00:00:00Z"])
        for name in ("type", "at", "status", "providerMessageId", "echo", "error", "from", "parts")
    },
)


@given(st.lists(_fields | _json, max_size=5))
def test_no_body_whatever_makes_the_parser_raise(events: list[Any]) -> None:
    assert len(events_in(json.dumps({"events": events}).encode())) == len(events)


@given(st.binary(max_size=200))
def test_no_bytes_whatever_make_the_parser_raise(raw: bytes) -> None:
    events_in(raw)
