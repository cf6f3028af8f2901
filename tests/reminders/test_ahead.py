"""Messages that go ahead of runs, in virtual time over the production code: urgent ones and people's."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from functools import partial

import pytest

from firestore_outbox.local.simulators.faults import Faults
from tests.calm import Calm, Meter, simulate
from tests.reminders.support import call_times, remind
from tests.sending.test_pace import most_in

INTERVAL = 1.5
"""Seconds, at 40 a minute."""
RENEWAL = 20.0
"""Seconds, of a lease of 60."""
TWO_RUNS = ("one", "two")


async def running(calm: Calm, *names: str, targets: int, seconds: float) -> None:
    """An account at 40 a minute, which sent an urgent message this morning, with these runs, after a while. Two runs
    have a long line after ten minutes."""
    await calm.account(pace={"perMinute": 40})
    await waited(calm, "earlier-code-9", priority="urgent")
    for name in names:
        await remind(calm, name, targets=targets)
    await asyncio.sleep(seconds)


async def waited(calm: Calm, request_id: str, **options: object) -> float:
    """Seconds from the message to its call."""
    asked = calm.seconds(calm.world.clock())
    await calm.send(request_id, **{"to": f"+4917{request_id[-1]}", **options})  # type: ignore[arg-type]
    await calm.until(lambda: calm.status(request_id) == "sent")
    return calm.sent_at(request_id) - asked


def test_with_4000_targets_running_an_urgent_message_goes_within_two_intervals() -> None:
    async def body(calm: Calm) -> None:
        await running(calm, "rem", targets=4000, seconds=300)
        for number in range(3):
            assert await waited(calm, f"one-time-code-{number}", priority="urgent") <= 2 * INTERVAL
            await asyncio.sleep(31.7)
        assert most_in(call_times(calm), timedelta(minutes=1)) <= 40
        assert most_in(call_times(calm), timedelta(seconds=INTERVAL)) == 1

    simulate(body, receipts=False)


def test_the_first_urgent_message_of_a_day_goes_after_a_renewal_at_most() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(pace={"perMinute": 40})
        await remind(calm, targets=400)
        await asyncio.sleep(100)
        assert await waited(calm, "first-code-1", priority="urgent") <= RENEWAL + 2 * INTERVAL
        await asyncio.sleep(20.3)
        assert await waited(calm, "second-code-2", priority="urgent") <= 2 * INTERVAL

    simulate(body, receipts=False)


@pytest.mark.parametrize("options", [{"priority": "urgent"}, {}], ids=["urgent", "normal"])
def test_behind_the_long_line_of_two_runs_a_message_goes_within_two_intervals(options: dict[str, str]) -> None:
    """Today's line is longer than a page. A message without the field is normal."""

    async def body(calm: Calm) -> None:
        await running(calm, *TWO_RUNS, targets=700, seconds=780)
        for number in range(3):
            assert await waited(calm, f"message-{number}", **options) <= 2 * INTERVAL
            await asyncio.sleep(20.3)
        assert most_in(call_times(calm), timedelta(minutes=1)) <= 40

    simulate(body, receipts=False)


def test_people_who_write_without_a_pause_leave_bulk_its_share() -> None:
    async def body(calm: Calm) -> list[str]:
        await running(calm, *TWO_RUNS, targets=300, seconds=120)
        since = len(calm.order_of_calls())
        for number in range(100):
            await calm.send(f"people-{number:03}", to=f"+49{number}")
            await asyncio.sleep(1.4)
        return calm.order_of_calls()[since:]

    order = simulate(body, receipts=False)

    of_people = [name.startswith("people-") for name in order]
    assert 0.6 <= sum(of_people[5:85]) / 80 <= 0.8, "three of four"
    for start in range(5, 80):
        assert not all(of_people[start : start + 5]), "bulk is never left out for long"


def test_two_runs_on_one_account_go_on_beside_each_other() -> None:
    async def body(calm: Calm) -> list[str]:
        await running(calm, *TWO_RUNS, targets=200, seconds=240)
        made_by = [calm.outbox(request_id).get("runId") for request_id in calm.order_of_calls()]
        return [run_id for run_id in made_by if run_id is not None]

    runs = simulate(body, receipts=False)

    shares = [runs.count(run_id) for run_id in set(runs)]
    assert len(shares) == 2
    assert min(shares) >= 0.4 * len(runs)


def test_an_urgent_message_brings_the_earlier_ones_of_its_thread_out_of_the_long_line() -> None:
    async def body(calm: Calm) -> list[str]:
        await running(calm, *TWO_RUNS, targets=700, seconds=780)
        waiting = [one for one in calm.world.truth.collection("outbox").values() if one["status"] == "queued"]
        earlier = max((one for one in waiting if one["nextAttemptAt"] < calm.world.clock()), key=_time)
        assert await waited(calm, "one-time-code-1", to=earlier["to"], priority="urgent") <= 3 * INTERVAL + 0.5
        return [name for name in calm.order_of_calls() if calm.outbox(name)["to"] == earlier["to"]]

    assert simulate(body, receipts=False)[-1] == "one-time-code-1"


def _time(data: dict[str, object]) -> str:
    return str(data["nextAttemptAt"])


def test_an_urgent_message_whose_event_is_lost_is_found_with_the_next_page() -> None:
    async def body(calm: Calm) -> float:
        await running(calm, "rem", targets=150, seconds=90)
        calm.world.functions[0].process.die()
        await calm.send("one-time-code-1", to="+491", priority="urgent")
        asked = calm.seconds(calm.world.clock())
        await calm.until(lambda: calm.status("one-time-code-1") == "sent")
        return calm.sent_at("one-time-code-1") - asked

    assert simulate(body, receipts=False, functions=1) <= 75


def test_an_urgent_message_for_later_goes_ahead_at_its_time() -> None:
    async def body(calm: Calm) -> float:
        await running(calm, *TWO_RUNS, targets=700, seconds=780)
        at = calm.world.clock() + timedelta(seconds=40)
        await calm.send("one-time-code-1", to="+491", priority="urgent", send_at=at)
        await calm.until(lambda: calm.status("one-time-code-1") == "sent")
        return calm.sent_at("one-time-code-1") - calm.seconds(at)

    assert 0 <= simulate(body, receipts=False) <= 2 * INTERVAL


def test_looking_for_urgent_messages_costs_a_target_one_read_more_and_nothing_without_them() -> None:
    async def body(calm: Calm, *, sends_urgent: bool) -> tuple[float, float]:
        await calm.account(pace={"perMinute": 40})
        await waited(calm, "earlier-code-9", priority="urgent" if sends_urgent else "normal")
        await remind(calm, targets=200)
        await asyncio.sleep(60)
        meter, before = Meter(calm), calm.statuses()["sent"]
        await calm.until(lambda: calm.statuses()["sent"] >= 160)
        sent = calm.statuses()["sent"] - before
        return meter.reads / sent, meter.writes / sent

    reads, writes = simulate(partial(body, sends_urgent=True), receipts=False, sweeps=False)
    reads_without, writes_without = simulate(partial(body, sends_urgent=False), receipts=False, sweeps=False)
    assert 0.5 < reads - reads_without <= 1.05
    assert writes == writes_without
    assert reads_without < 1.9, "the message, and its share of the pages and of the refreshes"


def test_after_an_outage_an_urgent_message_goes_before_the_retries_of_a_run() -> None:
    async def body(calm: Calm) -> list[str]:
        await calm.account(pace={"perMinute": 40}, concurrency=1)
        calm.world.transport.refuses_connections = True
        await remind(calm, targets=30)
        await asyncio.sleep(70)
        calm.world.crash(calm.world.workers, 0)
        before = len(calm.order_of_calls())
        calm.world.transport.refuses_connections = False
        calm.world.provider.faults = Faults(latencyMs=3_000)
        await calm.send("one-time-code-1", to="+491", priority="urgent")
        await calm.until(lambda: calm.status("one-time-code-1") == "sent")
        return calm.order_of_calls()[before:]

    assert simulate(body, receipts=False, workers=1) == ["one-time-code-1"]
