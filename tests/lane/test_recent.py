"""Counters of the last hour: bounded, exact for a holder that lives, and free of reads and writes."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from firestore_outbox.lane.recent import (
    MINUTES,
    NOTHING_RECENT,
    Minute,
    Recent,
    minute_of,
    recent_of,
    recent_text,
    together,
)
from firestore_outbox.local.simulators.faults import Faults
from firestore_outbox.settings import Settings
from tests.calm import Calm, Meter, simulate

NOW = datetime(2026, 3, 1, 12, 30, 15, tzinfo=UTC)
SENT = Minute(sent=1)


def counted(*ages_in_minutes: float) -> Recent:
    recent = NOTHING_RECENT
    for age in sorted(ages_in_minutes, reverse=True):
        recent = recent.plus(NOW - timedelta(minutes=age), SENT)
    return recent


def test_minutes_of_the_last_hour_are_kept_and_older_ones_are_dropped() -> None:
    recent = counted(200, 61, 60, 59, 3, 3, 0)
    assert [minute_of(NOW) - minute for minute in sorted(recent.minutes)] == [59, 3, 0]
    assert [minute.sent for minute in recent.last_hour(NOW)][-4:] == [2, 0, 0, 1]
    assert len(recent.last_hour(NOW)) == MINUTES


def test_a_lane_that_rests_shows_nothing_after_an_hour_and_no_message_of_yesterday() -> None:
    recent = counted(0, 1)
    assert sum(minute.sent for minute in recent.last_hour(NOW + timedelta(hours=2))) == 0
    assert (recent.today(NOW), recent.today(NOW + timedelta(days=1))) == (2, 0)
    assert recent.plus(NOW + timedelta(days=1), SENT).today(NOW + timedelta(days=1)) == 1


def test_the_field_is_read_as_it_was_written_and_stays_small() -> None:
    recent = NOTHING_RECENT
    for minute in range(500):
        many = Minute(sent=99_999, failed=99_999, throttled=99_999)
        recent = recent.plus(NOW + timedelta(minutes=minute), many)
    text = recent_text(recent)
    assert text is not None
    assert recent_of(text) == recent
    assert len(text) < 2_000
    assert recent_of(None) == NOTHING_RECENT
    assert recent_text(NOTHING_RECENT) is None


def test_what_counts_nothing_changes_nothing() -> None:
    assert counted(3).plus(NOW, Minute()) == counted(3)


def test_accounts_are_added_minute_by_minute() -> None:
    total = together([counted(0, 3).last_hour(NOW), counted(0).last_hour(NOW)])
    assert (total[-1].sent, total[-4].sent, sum(minute.sent for minute in total)) == (2, 1, 3)
    assert sum(minute.sent for minute in together([])) == 0


@pytest.mark.parametrize("short_turns", [True, False])
def test_each_message_is_counted_once_and_pays_nothing_for_it(short_turns: bool) -> None:
    """The writes are those of tests/sending/test_cost.py and test_short_turns.py."""

    async def body(calm: Calm) -> tuple[list[tuple[int, int]], Recent, datetime]:
        calm.world.provider.faults = Faults(latencyMs=100, receiptLossRate=1.0)
        await calm.account(pace={"perMinute": 40})
        await calm.send("before-it", to="+481")
        await asyncio.sleep(60)
        paid = []
        for number in range(3):
            meter = Meter(calm)
            await calm.send(f"request-{number}", to=f"+49{number}")
            await asyncio.sleep(60)
            paid.append((meter.reads, meter.writes))
        return paid, recent_of(calm.lane()["recent"]), calm.world.clock()

    options = {"workers": 1, "settings": Settings(short_turns=short_turns)}
    paid, recent, now = simulate(body, sweeps=False, **options)
    assert paid == [(3, 5) if short_turns else (5, 6)] * 3
    assert [minute.sent for minute in recent.last_hour(now) if minute.sent] == [1, 1, 1, 1]
    assert recent.today(now) == 4


def test_failures_and_throttles_are_counted_beside_what_was_sent() -> None:
    async def body(calm: Calm) -> tuple[Recent, datetime]:
        await calm.account(pace={"perMinute": 0})
        calm.world.provider.faults = Faults(throttleRate=1.0, retryAfterSeconds=120, receiptLossRate=1.0)
        await calm.send("slowed-once", to="+491")
        await calm.until(lambda: bool(calm.order_of_calls()) and calm.lane().get("throttledUntil") is not None)
        calm.world.provider.faults = Faults(receiptLossRate=1.0)
        await calm.until(lambda: calm.statuses()["sent"] == 1)
        calm.world.provider.faults = Faults(invalidRecipients=("+492",), receiptLossRate=1.0)
        await calm.send("refused-one", to="+492")
        await calm.until(lambda: calm.statuses()["failed"] == 1)
        await asyncio.sleep(60)
        return recent_of(calm.lane()["recent"]), calm.world.clock()

    recent, now = simulate(body, sweeps=False)
    total = together([recent.last_hour(now)])
    assert sum(minute.sent for minute in total) == 1
    assert sum(minute.failed for minute in total) == 1
    assert sum(minute.throttled for minute in total) == 1


def test_a_burst_is_counted_in_full_when_its_lane_is_released() -> None:
    async def body(calm: Calm) -> tuple[int, int]:
        calm.world.provider.faults = Faults(latencyMs=100, receiptLossRate=1.0)
        await calm.account(pace={"perMinute": 600})
        await calm.send_many(200)
        await calm.until(lambda: calm.statuses()["sent"] == 200)
        await calm.until(lambda: calm.lane()["state"] == "idle")
        recent = recent_of(calm.lane()["recent"])
        return sum(minute.sent for minute in recent.last_hour(calm.world.clock())), recent.sent_today

    assert simulate(body) == (200, 200)
