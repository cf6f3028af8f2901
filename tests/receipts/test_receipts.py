"""Receipts on their way through the whole system: before our own `sent`, twice, in any order, for unknown messages."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from itertools import permutations
from typing import Any

import pytest

from firestore_outbox import metrics
from firestore_outbox.local.simulation.checks import _regress
from firestore_outbox.local.simulators.faults import parse_faults
from firestore_outbox.settings import Settings
from tests.calm import Calm, simulate

STATUSES = ("sent", "delivered", "read")


def counted(what: str) -> float:
    """How often receipts came to this, in this process."""
    lines = metrics.as_text().decode().splitlines()
    found = [line for line in lines if line.startswith(f'outbox_receipts_total{{changed="{what}",')]
    return float(found[0].rpartition(" ")[2]) if found else 0.0


def receipt(calm: Calm, status: str, identity: str, echo: str | None = None) -> dict[str, Any]:
    event = {"type": "receipt", "providerMessageId": identity, "status": status, "at": calm.world.clock().isoformat()}
    return event if echo is None else {**event, "echo": echo}


def shown(calm: Calm, request_id: str, to: str = "+491") -> dict[str, Any]:
    return calm.document(f"threads/shop__{to}/messages/{request_id}")


def look_times(calm: Calm) -> list[float]:
    """When a worker asked Firestore for a message by what a receipt says."""
    times: list[float] = []

    def note(path: str, answer: Any) -> None:
        if path.endswith("RunQuery"):
            times.append(calm.seconds(calm.world.clock()))

    calm.world.network.on_answer = note
    return times


# --- before our own `sent`


def test_a_receipt_with_our_id_settles_a_send_that_was_not_answered_yet() -> None:
    async def body(calm: Calm) -> None:
        calm.world.provider.faults = parse_faults({"latencyMs": 6000})
        await calm.account()
        await calm.send("request-1")
        await calm.until(lambda: calm.status("request-1") == "sent")
        assert calm.seconds(calm.world.clock()) < 5, "it did not wait for the answer"
        await calm.until(lambda: shown(calm, "request-1")["status"] == "read")
        await asyncio.sleep(60)
        assert (calm.status("request-1"), calm.outbox("request-1")["attempts"]) == ("sent", 1)
        assert len(calm.order_of_calls()) == 1

    simulate(body)


def test_a_receipt_with_the_providers_id_alone_waits_until_the_id_is_known() -> None:
    dropped = counted("dropped")

    async def body(calm: Calm) -> None:
        calm.world.provider.faults = parse_faults({"latencyMs": 6000})
        await calm.account(provider="simulated-mute")
        await calm.send("request-1")
        await calm.until(lambda: calm.world.webhooks.pending == 0 and calm.seconds(calm.world.clock()) > 2)
        assert shown(calm, "request-1")["status"] == "queued"
        await calm.until(lambda: shown(calm, "request-1")["status"] == "read")
        assert calm.seconds(calm.world.clock()) < 20
        message = shown(calm, "request-1")
        assert message["sentAt"] <= message["readAt"] + timedelta(seconds=10)
        assert {"sentAt", "deliveredAt", "readAt"} <= message.keys()

    simulate(body)
    assert counted("dropped") == dropped


# --- for unknown messages


def test_an_unknown_receipt_is_looked_at_again_four_times_and_then_dropped_and_counted() -> None:
    before = counted("dropped")

    async def body(calm: Calm) -> None:
        await calm.account()
        looks = look_times(calm)
        calm.world.webhooks.post("simulated", "shop", receipt(calm, "read", "a-foreign-id"))
        await asyncio.sleep(3600)
        assert looks == pytest.approx([0, 2, 12, 72, 672], abs=1)

    simulate(body, sweeps=False)
    assert counted("dropped") == before + 1


def test_the_waits_between_looks_are_a_setting() -> None:
    before = counted("dropped")

    async def body(calm: Calm) -> None:
        await calm.account()
        looks = look_times(calm)
        calm.world.webhooks.post("simulated", "shop", receipt(calm, "read", "a-foreign-id", "unknown-request:0:1"))
        await asyncio.sleep(3600)
        assert looks == pytest.approx([0, 7], abs=1)

    simulate(body, sweeps=False, settings=Settings(receipt_retry_seconds="7"))
    assert counted("dropped") == before + 1


def test_a_receipt_of_another_account_changes_nothing_of_ours() -> None:
    async def body(calm: Calm) -> None:
        calm.world.provider.faults = parse_faults({"receiptLossRate": 1.0})
        await calm.account()
        await calm.account("other")
        await calm.send("request-1")
        await calm.until(lambda: calm.status("request-1") == "sent")
        identity = calm.outbox("request-1")["providerMessageId"]
        calm.world.webhooks.post("simulated", "other", receipt(calm, "read", identity, "request-1:0:1"))
        calm.world.webhooks.post("simulated", "other", receipt(calm, "read", identity))
        await asyncio.sleep(3600)
        assert shown(calm, "request-1")["status"] == "sent"

    simulate(body)


# --- in any order, twice


ORDERS = sorted(set(permutations((*STATUSES, "read", "sent"))))


def test_receipts_in_every_order_and_twice_end_as_read_with_each_time_set_once() -> None:
    """Every order of sent, delivered and read with two of them doubled: each as a message of its own."""

    async def body(calm: Calm) -> None:
        calm.world.provider.faults = parse_faults({"receiptLossRate": 1.0})
        await calm.account(concurrency=50)
        for number in range(len(ORDERS)):
            await calm.send(f"request-{number:03d}", to=f"+49{number}")
        await calm.until(lambda: calm.statuses() == {"sent": len(ORDERS)})
        for number, order in enumerate(ORDERS):
            identity = calm.outbox(f"request-{number:03d}")["providerMessageId"]
            for status in order:
                calm.world.webhooks.post("simulated", "shop", receipt(calm, status, identity))
                await calm.until(lambda: calm.world.webhooks.pending == 0)
        for number in range(len(ORDERS)):
            message = shown(calm, f"request-{number:03d}", f"+49{number}")
            assert message["status"] == "read"
            assert {"sentAt", "deliveredAt", "readAt"} <= message.keys()
        assert list(_regress(calm.world.truth)) == []

    simulate(body)


@pytest.mark.parametrize("order", [("delivered", "read"), ("read", "delivered"), ("read", "sent", "delivered")])
def test_receipts_of_a_provider_whose_clock_is_behind_are_not_shown_before_the_send(order: tuple[str, ...]) -> None:
    async def body(calm: Calm) -> None:
        calm.world.provider.faults = parse_faults({"receiptLossRate": 1.0})
        await calm.account()
        await calm.send("request-1")
        await calm.until(lambda: calm.status("request-1") == "sent")
        sent = calm.outbox("request-1")
        for status in order:
            behind = {"at": (sent["sentAt"] - timedelta(milliseconds=3)).isoformat()}
            event = receipt(calm, status, sent["providerMessageId"]) | behind
            calm.world.webhooks.post("simulated", "shop", event)
            await calm.until(lambda: calm.world.webhooks.pending == 0)
        message = shown(calm, "request-1")
        assert message["status"] == "read"
        assert calm.outbox("request-1")["sentAt"] == message["sentAt"] <= message["deliveredAt"] <= message["readAt"]
        assert list(_regress(calm.world.truth)) == []

    simulate(body)
