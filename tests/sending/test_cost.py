"""What a message costs in reads and writes, counted on the wire."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from firestore_outbox.local.simulators.faults import Faults
from firestore_outbox.settings import Settings
from tests.calm import Calm, Meter, simulate
from tests.sending.receipt_cost import cost_of_receipts

BY_WORKERS = Settings(short_turns=False)
NO_RECEIPTS = Faults(latencyMs=100, receiptLossRate=1.0)


@pytest.mark.parametrize(
    ("per_minute", "concurrency"),
    [(0, 3), (0, 50), (600, 3), (40, 3)],
    ids=["no pace, three at once", "no pace, fifty at once", "ten a second", "as accounts are by default"],
)
def test_in_bulk_a_message_costs_at_most_1_1_reads_and_3_1_writes(per_minute: int, concurrency: int) -> None:
    """At forty a minute, 500 take longer than a lane may be held: what was read by then is not read again."""

    async def body(calm: Calm) -> tuple[float, float]:
        count = 500
        calm.world.provider.faults = NO_RECEIPTS
        await calm.account(pace={"perMinute": per_minute}, concurrency=concurrency)
        await calm.change_account(status="paused")
        for number in range(count):
            await calm.send(f"shop-{number:05d}", to=f"+49{number}")
            await asyncio.sleep(0.002)  # not all within the same millisecond
        await asyncio.sleep(5)
        meter = Meter(calm)
        await calm.world.client.system.resume("shop")
        await calm.until(lambda: calm.statuses()["sent"] == count)
        return meter.reads / count, meter.writes / count

    reads, writes = simulate(body, sweeps=False)  # which cost the same, whatever is sent

    assert reads <= 1.1
    assert writes <= 3.1


def test_by_the_worker_a_message_alone_costs_five_reads_and_six_writes() -> None:
    async def body(calm: Calm) -> tuple[int, int]:
        calm.world.provider.faults = NO_RECEIPTS
        await calm.account(pace={"perMinute": 40})
        await calm.send("before-it", to="+481")
        await asyncio.sleep(30)
        meter = Meter(calm)
        await calm.send("request-0", to="+491")
        await asyncio.sleep(30)
        assert calm.status("request-0") == "sent"
        return meter.reads, meter.writes

    assert simulate(body, sweeps=False, workers=1, settings=BY_WORKERS) == (5, 6)


@pytest.mark.parametrize("settings", [BY_WORKERS, Settings()], ids=["by a worker", "by the short path"])
def test_an_urgent_message_alone_costs_what_any_other_does(settings: Settings) -> None:
    async def body(calm: Calm) -> list[tuple[int, int]]:
        calm.world.provider.faults = NO_RECEIPTS
        await calm.account(pace={"perMinute": 40})
        costs = []
        for number, options in enumerate(({}, {}, {"priority": "urgent"})):
            meter = Meter(calm)
            await calm.send(f"request-{number}", to=f"+49{number}", **options)
            await asyncio.sleep(30)
            costs.append((meter.reads, meter.writes))
        assert calm.statuses() == {"sent": 3}
        return costs

    _, normal, urgent = simulate(body, sweeps=False, workers=1, settings=settings)
    assert urgent == normal


def test_a_message_scheduled_ahead_does_not_cost_a_task_for_each_that_goes_before_it() -> None:
    async def body(calm: Calm) -> int:
        await calm.account()
        await calm.send("far-ahead", to="+481", send_at=calm.world.clock() + timedelta(hours=5))
        await asyncio.sleep(30)
        meter = Meter(calm)
        for number in range(3):
            await calm.send(f"request-{number}", to=f"+49{number}")
            await asyncio.sleep(30)
        assert calm.statuses() == {"queued": 1, "sent": 3}
        return meter.tasks

    # One for each wake, none for each release.
    assert simulate(body, sweeps=False, workers=1, settings=BY_WORKERS) == 3
    assert simulate(body, sweeps=False, workers=1) == 0


def test_a_receipt_costs_one_read_and_one_write() -> None:
    reads, writes = cost_of_receipts()
    assert (reads, writes) == (3, 2)  # three receipts; the first only says what the answer had said already


def test_when_nothing_is_to_be_done_a_sweep_costs_four_reads_and_nothing_else_happens() -> None:
    async def body(calm: Calm) -> tuple[tuple[int, int], tuple[int, int]]:
        await calm.account()
        await calm.send_many(20)
        await calm.until(lambda: calm.statuses()["sent"] == 20)
        await asyncio.sleep(60)
        meter = Meter(calm)
        await asyncio.sleep(3600)
        between = meter.reads, meter.writes
        await calm.world.sweep()
        return between, (meter.reads, meter.writes)

    between, sweep = simulate(body, sweeps=False)

    assert between == (0, 0)
    assert sweep == (4, 0)


def test_an_account_that_is_parked_with_messages_costs_three_reads_more_a_sweep() -> None:
    async def body(calm: Calm) -> tuple[int, int]:
        await calm.account(status="parked")
        await calm.send_many(20)
        await asyncio.sleep(60)
        meter = Meter(calm)
        await calm.world.sweep()
        return meter.reads, meter.writes

    assert simulate(body, sweeps=False) == (4 + 3, 0)


def test_the_first_event_of_an_account_costs_an_instance_one_read_more() -> None:
    """The account, read to route its events, and kept for a minute."""

    async def body(calm: Calm) -> tuple[int, int]:
        calm.world.provider.faults = Faults(receiptDelayMs=10_000)
        await calm.account()
        await calm.send("request-1")
        await calm.until(lambda: calm.status("request-1") == "sent")
        await asyncio.sleep(5)
        meter = Meter(calm)
        await calm.until(lambda: calm.document("threads/shop__+491/messages/request-1")["status"] == "read")
        return meter.reads, meter.writes

    assert simulate(body, sweeps=False) == (3 + 1, 2)


def test_a_worker_that_sent_nothing_for_minutes_reads_once_whether_the_app_is_throttled() -> None:
    async def body(calm: Calm) -> tuple[int, int]:
        calm.world.provider.faults = NO_RECEIPTS
        await calm.account()
        reads = []
        for number, pause in enumerate((0, 60, 600)):
            await asyncio.sleep(pause)
            meter = Meter(calm)
            await calm.send(f"request-{number}", to=f"+49{number}")
            await asyncio.sleep(30)
            reads.append(meter.reads)
        return reads[1], reads[2]

    soon, late = simulate(body, sweeps=False, workers=1)

    assert late == soon + 1
