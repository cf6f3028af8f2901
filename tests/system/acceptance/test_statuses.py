"""D: what people see of a message goes forward only, as a listener of the real client is shown it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from tests.system.acceptance.world import World, until

ORDER = ["queued", "sent", "delivered", "read"]


async def test_d_a_message_goes_from_queued_to_sent_to_delivered_to_read_and_never_back(world: World) -> None:
    account_id = await world.account()
    await world.faults({"receiptLossRate": 1.0})  # receipts are ours to give
    path = f"threads/{account_id}__+491701/messages/request-1-{account_id}"

    with world.watched(path) as seen:
        states = seen[path]

        async def shown() -> list[str]:
            return [state["status"] for state in states]

        soon = datetime.now(UTC) + timedelta(seconds=1.5)
        written = await world.send(account_id, request_id=f"request-1-{account_id}", nextAttemptAt=soon)
        await until(shown, lambda statuses: statuses == ["queued"], "queued")
        sent = await world.becomes(written.message, status="sent")
        await until(shown, lambda statuses: statuses[-1] == "sent", "sent, shown")
        for status in ("delivered", "delivered", "sent", "read", "delivered", "sent", "read"):
            await world.receipt(account_id, sent["providerMessageId"], status)
            if status == "delivered" and states[-1]["status"] == "sent":
                await until(shown, lambda statuses: statuses[-1] == "delivered", "delivered, shown")
        await until(shown, lambda statuses: statuses[-1] == "read", "read, shown")
        assert list(dict.fromkeys(await shown())) == ORDER
        assert [status for status, then in pairwise(await shown()) if ORDER.index(then) < ORDER.index(status)] == []

    message = await world.read(written.message)
    assert message["sentAt"] <= message["deliveredAt"] <= message["readAt"]
    assert (await world.read(written.outbox))["status"] == "sent"


async def test_d_receipts_late_twice_and_in_any_order_end_in_read(world: World) -> None:
    account_id = await world.account()
    await world.faults({"receiptDelayMs": 400, "receiptDuplicateRate": 0.7, "receiptShuffle": True, "latencyMs": 100})
    written = await world.send_many(account_id, 12, threads=6)
    with world.watched(*(one.message for one in written)) as seen:
        for one in written:
            await world.becomes(one.message, status="read")
        await world.webhooks_taken()
        for one in written:
            message = await world.read(one.message)
            assert message["status"] == "read"
            assert {"sentAt", "deliveredAt", "readAt", "providerMessageId"} <= message.keys()
            ranks = [ORDER.index(state["status"]) for state in seen[one.message]]
            assert ranks == sorted(ranks), f"{one.request_id} went back"
    assert set((await world.delivered(account_id)).values()) == {1}
