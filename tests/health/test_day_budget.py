"""Caps of a day at the claim: nothing is sent above them, and all of it is sent on the days that come.

The worlds begin an hour before the account's midnight, and mostly without sweeps: a day of sweeps takes longer than all
the rest.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from firestore_outbox.firestore import paths
from firestore_outbox.firestore.writes import create
from firestore_outbox.settings import Settings
from tests.calm import Calm, simulate
from tests.reminders.support import remind

DAY = timedelta(days=1)
ZONE = "Asia/Magadan"


def by_day(calm: Calm, zone: str = ZONE) -> list[int]:
    """Calls to the provider, by the days of the account on which there were any."""
    days = Counter(call.at.astimezone(ZoneInfo(zone)).date() for call in calm.world.truth.attempts)
    return [days[day] for day in sorted(days)]


def test_what_is_above_the_daily_cap_waits_for_the_next_day() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(timezone=ZONE, dailyCap=10)
        await calm.send_many(25)
        await calm.until(lambda: calm.statuses() == {"sent": 25}, within=3 * DAY)
        assert by_day(calm) == [10, 10, 5]

    simulate(body, sweeps=False)


def test_a_warm_up_spreads_messages_over_its_days() -> None:
    async def body(calm: Calm) -> None:
        warm_up = {"startPerDay": 5, "factor": 2.0, "untilPerDay": 40, "since": "2026-03-01"}
        await calm.account(timezone=ZONE, warmUp=warm_up, concurrency=5)
        await calm.send_many(90)
        await calm.until(lambda: calm.statuses() == {"sent": 90}, within=6 * DAY)
        assert by_day(calm) == [5, 10, 20, 55]

    simulate(body, sweeps=False)


@pytest.mark.parametrize("zone", ["Pacific/Auckland", "America/Los_Angeles"])
def test_the_day_is_that_of_the_account(zone: str) -> None:
    async def body(calm: Calm) -> None:
        await calm.account(dailyCap=4, timezone=zone)
        await calm.send_many(10)
        await calm.until(lambda: calm.statuses() == {"sent": 10}, within=4 * DAY)
        assert by_day(calm, zone) == [4, 4, 2]
        second = calm.world.truth.attempts[4].at.astimezone(ZoneInfo(zone))
        assert second.hour == 0

    simulate(body, sweeps=False)


def test_an_urgent_message_waits_for_the_next_day_too() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(timezone=ZONE, dailyCap=3)
        await calm.send_many(3)
        await calm.until(lambda: calm.statuses() == {"sent": 3})
        await calm.send("urgent-1", to="+4999", priority="urgent")
        await asyncio.sleep(600)
        assert calm.status("urgent-1") == "queued"
        await calm.until(lambda: calm.status("urgent-1") == "sent", within=DAY)

    simulate(body, sweeps=False)


@pytest.mark.parametrize("crashes", [1, 4])
def test_takeovers_never_exceed_the_cap(crashes: int) -> None:
    async def body(calm: Calm) -> None:
        await calm.account(timezone=ZONE, dailyCap=30, onUncertain="resend", concurrency=4, pace={"perMinute": 60})
        await calm.send_many(60)
        for number in range(crashes):
            await calm.until(lambda: len(calm.world.truth.attempts) >= 3 + 3 * number)  # noqa: B023
            for worker in range(len(calm.world.workers)):
                calm.world.crash(calm.world.workers, worker)
        await asyncio.sleep(timedelta(minutes=55).total_seconds() - calm.seconds(calm.world.clock()))
        sent = len(calm.world.truth.attempts)
        assert 30 - 3 * crashes - crashes <= sent <= 30  # a block of three is forfeited by each crash, and no more
        await asyncio.sleep(7200)
        assert by_day(calm)[1] == 30

    simulate(body)


def test_a_lowered_cap_counts_what_was_sent_before() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(timezone=ZONE, dailyCap=20)
        await calm.send_many(12)
        await calm.until(lambda: calm.statuses() == {"sent": 12})
        await calm.change_account(dailyCap=15)
        await asyncio.sleep(60)
        for number in range(8):
            await calm.send(f"more-{number:04d}", to=f"+498{number}")
        await asyncio.sleep(1800)
        assert len(calm.world.truth.attempts) == 15

    simulate(body, sweeps=False)


def test_new_contacts_wait_while_known_ones_go() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(timezone=ZONE, newContactsPerDay=3, concurrency=5)
        await calm.send_many(8)
        await calm.until(lambda: calm.statuses() == {"sent": 3, "queued": 5})
        known = calm.world.truth.attempts[0].thread_id.removeprefix("shop__")
        await calm.send("known-001", to=known)
        await calm.until(lambda: calm.status("known-001") == "sent")
        assert calm.statuses() == {"sent": 4, "queued": 5}
        await calm.until(lambda: calm.statuses() == {"sent": 9}, within=3 * DAY)
        assert by_day(calm) == [4, 3, 2]

    simulate(body, sweeps=False)


def test_a_person_who_wrote_first_is_no_new_contact() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(timezone=ZONE, newContactsPerDay=1)
        thread = "shop__+497"
        inbound: dict[str, Any] = {"direction": "inbound", "status": "delivered", "accountId": "shop"}
        await calm.write(create(paths.message(thread, "hello-in"), inbound))
        await calm.send("first-001", to="+491")
        await calm.send("reply-001", to="+497")
        await calm.until(lambda: calm.statuses() == {"sent": 2})

    simulate(body, sweeps=False)


def test_the_thread_of_a_new_contact_keeps_its_order() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(timezone=ZONE, newContactsPerDay=1, concurrency=5)
        await calm.send("first-001", to="+491")
        await calm.until(lambda: calm.status("first-001") == "sent")
        for number in range(3):
            await calm.send(f"second-{number}", to="+492")
        await calm.until(lambda: calm.statuses() == {"sent": 4}, within=2 * DAY)
        assert calm.order_of_calls() == ["first-001", "second-0", "second-1", "second-2"]

    simulate(body, sweeps=False)


def test_an_account_without_caps_writes_nothing_of_its_day() -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        await calm.send_many(3)
        await calm.until(lambda: calm.statuses() == {"sent": 3})
        assert "dayUse" not in calm.lane()

    simulate(body, sweeps=False)


def test_reserving_the_day_costs_no_write_of_its_own() -> None:
    """Ten messages a minute: the renewals of the lane reserve in time."""
    commits: list[int] = []
    for fields in ({}, {"dailyCap": 1000}):

        async def body(calm: Calm, fields: dict[str, Any] = fields) -> None:
            await calm.account(pace={"perMinute": 10}, **fields)
            await calm.send_many(60)
            await calm.until(lambda: calm.statuses() == {"sent": 60})
            commits.append(len([one for one in calm.world.truth.changes if one.path == paths.lane("outbox", "shop")]))

        simulate(body, settings=Settings(), receipts=False)
    assert commits[0] == commits[1]


def test_a_run_to_new_contacts_spreads_over_days_and_each_message_is_moved_once() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(timezone=ZONE, newContactsPerDay=3, concurrency=5)
        await remind(calm, targets=8, onWindowEnd="resumeNextDay")
        await calm.until(lambda: calm.statuses() == {"sent": 3, "queued": 5})
        await asyncio.sleep(60)
        waiting = [one for one in calm.world.truth.collection("outbox").values() if one["status"] == "queued"]
        assert {one["lastError"]["code"] for one in waiting} == {"new_contact_capped"}
        days = Counter(one["nextAttemptAt"].astimezone(ZoneInfo(ZONE)).day for one in waiting)
        assert days == {2: 3, 3: 2}
        why = await calm.world.client.system.explain(waiting[0]["requestId"])
        assert why is not None
        assert "3 new contacts a day" in why.sentence

    simulate(body, sweeps=False)


def test_a_message_above_the_cap_says_what_it_waits_for_and_until_when() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(timezone=ZONE, dailyCap=10)
        await calm.send_many(11)
        await calm.until(lambda: calm.statuses() == {"sent": 10, "queued": 1})
        await asyncio.sleep(60)
        (waiting,) = [one for one in calm.world.truth.collection("outbox").values() if one["status"] == "queued"]
        why = await calm.world.client.system.explain(waiting["requestId"])
        assert why is not None
        assert "used up its daily cap of 10 messages" in why.sentence
        assert why.earliest is not None
        assert calm.seconds(why.earliest) == 3600

    simulate(body, sweeps=False)
