"""Plans at the claim: never more than the plan, and all of it, whatever goes wrong."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest

from firestore_emulator.virtual_time import run
from firestore_outbox.local.simulation.network import Luck
from firestore_outbox.local.simulators.faults import NO_FAULTS, Faults
from firestore_outbox.sending.account_in_use import ACCOUNT_FRESH
from firestore_outbox.settings import Settings
from tests.calm import Calm, Meter, simulate

FREE = Settings(plans="free=total:3 daily=day:2")
SEEDS = int(os.environ.get("OUTBOX_QUOTA_SEEDS", "40"))


def test_a_free_account_sends_three_and_the_others_say_why_not() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(plan="free", concurrency=10)
        await calm.send_many(8)
        await calm.until(lambda: calm.statuses() == {"sent": 3, "skipped": 5})
        skipped = calm.outbox("shop-00007")
        assert skipped["lastError"]["code"] == "quota_exceeded"
        assert "the plan free allows 3 messages" in skipped["lastError"]["message"]
        assert calm.document("threads/shop__+497/messages/shop-00007")["error"]["code"] == "quota_exceeded"

    simulate(body, settings=FREE)


def test_a_failed_message_gives_its_unit_back() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(plan="free")
        await calm.send("request-0", to="invalid", parts=[{"type": "media", "mediaId": "x", "mimeType": "a/b"}])
        await calm.until(lambda: calm.status("request-0") == "failed")
        await calm.send_many(4)
        await calm.until(lambda: calm.statuses() == {"failed": 1, "sent": 3, "skipped": 1})

    simulate(body, settings=FREE)


def test_a_day_later_the_daily_plan_goes_on() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(plan="daily")
        await calm.send_many(3)
        await calm.until(lambda: calm.statuses() == {"sent": 2, "skipped": 1})
        await asyncio.sleep(timedelta(hours=12, minutes=1).total_seconds())
        await calm.send("tomorrow-1")
        await calm.until(lambda: calm.status("tomorrow-1") == "sent")

    simulate(body, settings=FREE)


def test_a_larger_plan_counts_from_the_next_look_at_the_account() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(plan="free")
        await calm.send_many(3)
        await calm.until(lambda: calm.statuses() == {"sent": 3})
        await calm.change_account(plan="pro")
        await asyncio.sleep(2 * ACCOUNT_FRESH.total_seconds())  # until then a worker may use the account as it was
        await calm.send("request-9")
        await calm.until(lambda: calm.status("request-9") == "sent")

    simulate(body, settings=FREE)


def test_a_plan_that_was_raised_a_moment_ago_counts_before_a_message_is_skipped() -> None:
    """The turn that runs has the account as it was, and would skip the message for good."""

    async def body(calm: Calm) -> None:
        await calm.account(plan="free", concurrency=10)
        calm.world.provider.faults = Faults(latencyMs=4000)
        await calm.send_many(3)
        await calm.until(lambda: calm.statuses() == {"sending": 3})
        await calm.change_account(plan="pro")
        await calm.send("request-9")
        await calm.until(lambda: calm.statuses() == {"sent": 4}, within=ACCOUNT_FRESH / 2)

    simulate(body, settings=FREE)


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_turn_that_begins_with_a_waiting_message_settles_what_was_in_flight(concurrency: int) -> None:
    """A message whose retry is due is read by its name, before any page. If a message that a dead worker left in flight
    holds the last unit, only a page shows it: a turn that went to rest before reading one would wait for ever. With
    one message at a time, the one in doubt stands behind the other, for which there is no room."""

    async def body(calm: Calm) -> None:
        await calm.account(plan="one", onUncertain="resend", concurrency=concurrency)
        calm.world.provider.faults = Faults(errorRate=1.0)
        await calm.send("request-a", to="+491")
        await calm.until(lambda: calm.outbox("request-a").get("failures") == 1)
        calm.world.provider.faults = Faults(latencyMs=18_000)
        await calm.send("request-b", to="+492")
        await calm.until(lambda: calm.status("request-b") == "sending")
        for number in range(len(calm.world.workers)):
            calm.world.crash(calm.world.workers, number)
        calm.world.provider.faults = NO_FAULTS
        await calm.until(lambda: calm.statuses() == {"sent": 1, "skipped": 1}, within=timedelta(minutes=30))
        assert calm.status("request-b") == "sent"

    # The retry is due before the lease of the dead worker ends.
    simulate(body, settings=Settings(plans="one=total:1", backoff_seconds=15, backoff_max_seconds=15))


def test_the_plan_of_a_grace_period_ends_without_an_event() -> None:
    async def body(calm: Calm) -> None:
        until = calm.world.clock() + timedelta(minutes=10)
        await calm.account(plan="pro", planUntil=until, planAfter="free")
        await calm.send_many(5)
        await calm.until(lambda: calm.statuses() == {"sent": 5})
        await asyncio.sleep(600)
        await calm.send("request-9")
        await calm.until(lambda: calm.status("request-9") == "skipped")

    simulate(body, settings=FREE)


@pytest.mark.parametrize("fields", [{}, {"plan": "unknown"}])
def test_an_account_without_a_limit_pays_nothing(fields: dict[str, Any]) -> None:
    costs = []
    for settings, account in ((Settings(), {}), (FREE, fields)):

        async def body(calm: Calm, account: dict[str, Any] = account) -> tuple[int, int, int]:
            await calm.account(**account)
            meter = Meter(calm)
            await calm.send_many(5)
            await calm.until(lambda: calm.statuses() == {"sent": 5})
            await asyncio.sleep(10)
            return meter.reads, meter.writes, meter.tasks

        costs.append(simulate(body, settings=settings, receipts=False))
    assert costs[0] == costs[1]


# --- trouble


@contextmanager
def _silence() -> Iterator[None]:
    logging.disable(logging.ERROR)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


async def troubled(seed: int) -> None:
    """Ten workers that race and die, answers that are lost, a provider that throttles and fails."""
    random = Random(seed)
    limit, asked = random.randint(1, 5), random.randint(3, 9)
    settings = Settings(plans=f"free=total:{limit}", lease_seconds=20, send_timeout_seconds=5, max_attempts=50)
    luck = Luck(
        lost_request=0.02,
        lost_answer=0.03,
        contended=0.02,
        late=0.05,
        latest_seconds=10,
        dropped_event=0.1,
        doubled_event=0.1,
    )
    calm = Calm(settings=settings, workers=10, functions=2, seed=seed, luck=luck)
    await calm.start()
    try:
        await calm.account(plan="free", concurrency=random.randint(1, 5), onUncertain="resend")
        calm.world.provider.faults = Faults(
            latencyMs=random.choice([0, 500, 3000]),
            errorRate=random.choice([0.0, 0.3]),
            throttleRate=random.choice([0.0, 0.2]),
            lostResponseRate=random.choice([0.0, 0.3]),
        )
        await calm.send_many(asked, threads=random.randint(1, asked))
        for _ in range(random.randint(0, 6)):
            await asyncio.sleep(random.random() * 15)
            calm.world.crash(calm.world.workers, random.randrange(10))
        calm.world.provider.faults = NO_FAULTS
        wanted = min(limit, asked)
        expected = {"sent": wanted, **({"skipped": asked - wanted} if asked > wanted else {})}
        await calm.until(lambda: calm.statuses() == expected, within=timedelta(hours=2))
        delivered = {call.request_id for call in calm.world.provider.record.calls() if call.accepted}
        assert len(delivered) == wanted, f"{len(delivered)} were delivered, the plan allows {limit}"
    finally:
        await calm.stop()


@pytest.mark.parametrize("first", range(0, SEEDS, 10))
def test_with_kills_and_ten_workers_exactly_the_plan_is_sent(first: int) -> None:
    with _silence():
        for seed in range(first, min(first + 10, SEEDS)):
            try:
                run(troubled(seed), seed=seed, start=datetime(2026, 3, 1, 12, tzinfo=UTC), time_limit=timedelta(days=2))
            except Exception as error:
                raise AssertionError(f"seed {seed}: {error}") from error
