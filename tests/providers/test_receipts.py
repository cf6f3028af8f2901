"""Receipts in every order, twice, and before anybody knows that the message was sent: through the whole product."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from firestore_outbox.inbound.webhook import Answer
from tests.providers.whole import Whole, whole

ORDERS = sorted(set(itertools.permutations(["sent", "delivered", "read"] * 2)))
"""All orders of the three, each of them coming twice: 90."""
FIRST = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
"""After every send of these tests: what is delivered before it was sent gets the time of the send."""


@pytest.fixture(params=["interakt", "signed_webhook"])
async def product(request: pytest.FixtureRequest) -> AsyncIterator[Whole]:
    async with whole(request.param) as it:
        yield it


def number(index: int) -> str:
    return f"+9190000{index:05d}"


async def send(product: Whole, count: int, **faults: Any) -> None:
    await product.link.order(receiptLossRate=1, **faults)
    for index in range(count):
        await product.enqueue(f"request-{index:03d}", number(index))
    await product.run()


async def statuses(product: Whole, count: int) -> set[str]:
    return {(await product.outbox(f"request-{index:03d}"))["status"] for index in range(count)}


def receipt(product: Whole, index: int, status: str, step: int) -> dict[str, Any]:
    """As the simulator tells it, whose record has the truth about the id."""
    calls = product.link.simulator.core.record.calls()
    identity = next(call.provider_message_id for call in calls if call.request_id == f"request-{index:03d}")
    at = FIRST + timedelta(seconds=step)
    return {
        "type": "receipt",
        "providerMessageId": identity,
        "status": status,
        "at": at.isoformat(),
        "echo": f"request-{index:03d}:0:1",
        "to": number(index),
    }


async def hear(product: Whole, orders: list[tuple[str, ...]]) -> None:
    for index, order in enumerate(orders):
        for step, status in enumerate(order):
            assert await product.hear(receipt(product, index, status, step)) is Answer.TAKEN


async def assert_read(product: Whole, orders: list[tuple[str, ...]]) -> None:
    for index, order in enumerate(orders):
        shown = await product.shown(f"request-{index:03d}", number(index))
        assert shown["status"] == "read", order
        assert shown["readAt"] == FIRST + timedelta(seconds=order.index("read")), order
        earliest = min(order.index("delivered"), order.index("read"))  # no later than the time at which it was read
        assert shown["deliveredAt"] == FIRST + timedelta(seconds=earliest), order
        assert (await product.outbox(f"request-{index:03d}"))["status"] == "sent"


async def test_receipts_in_any_order_and_twice_leave_a_sent_message_read_with_all_its_times(product: Whole) -> None:
    await send(product, len(ORDERS))
    assert await statuses(product, len(ORDERS)) == {"sent"}
    await hear(product, ORDERS)
    await assert_read(product, ORDERS)


async def test_receipts_in_any_order_settle_messages_whose_answers_were_lost() -> None:
    orders = list(itertools.permutations(["sent", "delivered", "read"]))
    async with whole("interakt") as product:
        await send(product, len(orders), lostResponseRate=1)
        assert await statuses(product, len(orders)) == {"uncertain"}
        await product.link.order()
        await hear(product, orders)
        await product.run()
        await assert_read(product, orders)
        calls = product.link.simulator.core.record.calls()
        assert [call.delivered for call in calls] == [1] * len(orders)  # settled, and not sent again


async def test_a_receiver_of_signed_webhooks_is_called_again_and_delivers_once() -> None:
    async with whole("signed_webhook") as product:
        await send(product, 3, lostResponseRate=1, forCalls=3)
        assert await statuses(product, 3) == {"sent"}
        calls = product.link.simulator.core.record.calls()
        assert len(calls) == 6
        assert sorted((call.request_id, call.delivered) for call in calls) == [
            (f"request-{index:03d}", delivered) for index in range(3) for delivered in (0, 1)
        ]
        keys = {call.idempotency_key for call in calls}
        assert keys == {f"request-{index:03d}:0" for index in range(3)}


async def test_a_message_that_fails_later_is_failed_and_says_why(product: Whole) -> None:
    await send(product, 1)
    failed = receipt(product, 0, "failed", 0) | {"error": {"code": "recipient_invalid", "message": "not there"}}
    assert await product.hear(failed) is Answer.TAKEN
    shown = await product.shown("request-000", number(0))
    assert (shown["status"], shown["error"]["code"]) == ("failed", "recipient_invalid")


def inbound_text() -> dict[str, Any]:
    parts = [{"type": "text", "text": "hi"}]
    return {"type": "inbound", "providerMessageId": "in-1", "from": number(0), "at": FIRST.isoformat(), "parts": parts}


async def test_an_answer_to_an_inbound_message_goes_to_the_thread_it_came_in(product: Whole) -> None:
    inbound = inbound_text()
    for _ in range(2):
        assert await product.hear(inbound) is Answer.TAKEN
    shown = await product.shown("in-1", number(0))
    assert (shown["direction"], shown["parts"]) == ("inbound", inbound["parts"])
    await product.enqueue("answer-1", str(shown["to"]))
    await product.run()
    assert (await product.shown("answer-1", number(0)))["status"] == "sent"


async def test_an_unsigned_webhook_writes_nothing(product: Whole) -> None:
    inbound = inbound_text()
    body = product.form.body("acme", inbound)
    assert await product.system.webhook.take(product.link.name, "acme", {}, body) is Answer.REFUSED
    with pytest.raises(AssertionError):
        await product.shown("in-1", number(0))
