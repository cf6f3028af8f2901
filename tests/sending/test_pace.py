"""The pace, in virtual time: exact, over restarts, shared between lanes, and slower when the provider says so."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from firestore_outbox.firestore import paths
from firestore_outbox.local.simulators.faults import Faults
from firestore_outbox.settings import Settings
from tests.calm import START, Calm, simulate


def most_in(times: list[datetime], window: timedelta) -> int:
    """The fullest window of that length."""
    times = sorted(times)
    first = 0
    most = 0
    for last, at in enumerate(times):
        while at - times[first] >= window:
            first += 1
        most = max(most, last - first + 1)
    return most


def times_of(calm: Calm, account_id: str | None = None) -> list[datetime]:
    return [call.at for call in calm.world.truth.calls if account_id in (None, call.account_id)]


def test_two_accounts_at_40_a_minute_send_200_each_in_five_minutes_over_three_restarts() -> None:
    async def body(calm: Calm) -> dict[str, list[datetime]]:
        for name in ("one", "two"):
            await calm.account(name, pace={"perMinute": 40}, onUncertain="resend", provider="simulated-idempotent")
        await asyncio.gather(*(calm.send_many(200, account_id=name, threads=20) for name in ("one", "two")))
        for _ in range(3):
            await asyncio.sleep(75)
            await restart(calm)
        await calm.until(lambda: calm.statuses()["sent"] == 400)
        return {name: times_of(calm, name) for name in ("one", "two")}

    async def restart(calm: Calm) -> None:
        """As a new revision comes: every worker gets SIGTERM, finishes, and is replaced."""
        world = calm.world
        for place, old in enumerate(list(world.workers)):
            await old.process.serve(stopped(old.system))
            world.crash(world.workers, place)

    async def stopped(system: Any) -> None:
        await system.engine.stop()

    for times in simulate(body, receipts=False, workers=2).values():
        assert len(times) == 200
        assert most_in(times, timedelta(minutes=1)) <= 40
        took = max(times) - START
        assert timedelta(minutes=4, seconds=55) <= took <= timedelta(minutes=5, seconds=30)


def test_the_pace_holds_when_workers_are_killed() -> None:
    async def body(calm: Calm) -> list[datetime]:
        await calm.account(pace={"perMinute": 40}, provider="simulated-idempotent")
        await calm.send_many(60, threads=10)
        for _ in range(3):
            await asyncio.sleep(20)
            calm.world.crash(calm.world.workers, 0)
        await calm.until(lambda: calm.statuses()["sent"] == 60)
        return times_of(calm)

    times = simulate(body, workers=1)

    assert most_in(times, timedelta(minutes=1)) <= 40
    assert most_in(times, timedelta(seconds=1.5)) == 1


def test_a_burst_goes_at_once_and_the_rest_at_the_pace() -> None:
    async def body(calm: Calm) -> list[datetime]:
        await calm.account(pace={"perMinute": 60, "burst": 5}, concurrency=10)
        await calm.send_many(20)
        await calm.until(lambda: calm.statuses()["sent"] == 20)
        return times_of(calm)

    times = simulate(body)

    assert most_in(times, timedelta(seconds=1)) >= 4
    assert most_in(times, timedelta(minutes=1)) <= 4 + 60
    assert (max(times) - min(times)).total_seconds() == pytest.approx(15, abs=1)


def test_one_recipient_is_spared() -> None:
    async def body(calm: Calm) -> list[datetime]:
        await calm.account(pace={"perMinute": 0, "perRecipientSeconds": 10})
        await calm.send_many(5, threads=1)
        await calm.until(lambda: calm.statuses()["sent"] == 5)
        return times_of(calm)

    times = simulate(body)

    assert [b - a >= timedelta(seconds=10) for a, b in pairwise(times)] == [True] * 4
    assert max(times) - min(times) < timedelta(seconds=45)


def test_a_claim_that_came_too_late_for_the_shared_cap_spends_nothing_of_its_recipients_pace() -> None:
    async def body(calm: Calm) -> float:
        await calm.account(pace={"perMinute": 0, "perRecipientSeconds": 600})
        workers = [one.process for one in calm.world.workers]

        def on_answer(path: str, answer: Any) -> None:
            if path.endswith("/Commit") and calm.statuses()["sending"]:  # claimed, and the worker sleeps over its place
                calm.world.network.on_answer = lambda path, answer: None
                for worker in workers:
                    worker.pause()
                    calm.world.loop.call_later(5, worker.go_on)

        calm.world.network.on_answer = on_answer
        await calm.send("request-1")
        await calm.until(lambda: calm.status("request-1") == "sent")
        assert calm.outbox("request-1")["attempts"] == 2, "the first claim is given back"
        return calm.sent_at("request-1")

    assert simulate(body, settings=Settings(global_per_second=3)) < 15


@pytest.mark.parametrize("lanes", [2, 12])
def test_all_lanes_together_keep_to_the_shared_cap_and_use_most_of_it(lanes: int) -> None:
    async def body(calm: Calm) -> list[datetime]:
        names = [f"account-{number}" for number in range(lanes)]
        for name in names:
            await calm.account(name)
        await asyncio.gather(*(calm.send_many(60 // lanes, account_id=name) for name in names))
        await calm.until(lambda: calm.statuses()["sent"] == 60)
        return times_of(calm)

    times = simulate(body, receipts=False, settings=Settings(global_per_second=3), workers=2)

    assert most_in(times, timedelta(seconds=1)) <= 2 + 3
    assert most_in(times, timedelta(seconds=10)) <= 2 + 30
    assert max(times) - min(times) <= timedelta(seconds=35)  # 20 s at the full rate


def test_paced_lanes_do_not_waste_the_shared_cap() -> None:
    async def body(calm: Calm) -> list[datetime]:
        names = [f"account-{number}" for number in range(6)]
        for name in names:
            await calm.account(name, pace={"perMinute": 40})
        await asyncio.gather(*(calm.send_many(10, account_id=name) for name in names))
        await calm.until(lambda: calm.statuses()["sent"] == 60)
        return times_of(calm)

    times = simulate(body, receipts=False, settings=Settings(global_per_second=3), workers=2)

    assert max(times) - min(times) <= timedelta(seconds=40)


@pytest.mark.parametrize("global_per_second", [0, 20])
@pytest.mark.parametrize("scope", ["recipient", "account", "app"])
def test_a_throttle_makes_its_scope_wait_and_no_other(scope: str, global_per_second: float) -> None:
    async def body(calm: Calm) -> dict[str, float]:
        for name in ("one", "two"):
            await calm.account(name)
        calm.world.provider.faults = Faults.model_validate(
            {"throttleRate": 1.0, "throttleScope": scope, "retryAfterSeconds": 30, "forCalls": 1}
        )
        await calm.send("throttled", account_id="one", to="+491")
        await calm.until(lambda: calm.outbox("throttled")["attempts"] == 1 and calm.status("throttled") == "queued")
        await calm.send("same-thread", account_id="one", to="+491")
        await calm.send("same-account", account_id="one", to="+492")
        await calm.send("another-account", account_id="two", to="+491")
        await calm.until(lambda: calm.statuses()["sent"] == 4)
        assert calm.outbox("throttled").get("failures", 0) == 0, "being told to wait is no failure"
        names = ("same-thread", "same-account", "another-account")
        return {name: calm.sent_at(name) for name in names}

    times = simulate(body, settings=Settings(global_per_second=global_per_second))

    assert times["same-thread"] >= 30
    assert (times["same-account"] >= 30) == (scope in ("account", "app"))
    assert (times["another-account"] >= 29) == (scope == "app")


def test_after_a_throttle_of_the_account_the_rate_recovers_step_by_step() -> None:
    async def body(calm: Calm) -> list[datetime]:
        await calm.account(pace={"perMinute": 60})
        calm.world.provider.faults = Faults(throttleRate=1.0, retryAfterSeconds=5, forCalls=1)
        await calm.send_many(120)
        await calm.until(lambda: calm.statuses()["sent"] == 120, within=timedelta(minutes=60))
        return times_of(calm)[1:]

    times = simulate(body)
    gaps = [(b - a).total_seconds() for a, b in pairwise(times)]

    assert gaps[1] == pytest.approx(2, abs=0.1)
    assert gaps[-1] == pytest.approx(1, abs=0.3)
    assert all(later <= earlier + 0.05 for earlier, later in pairwise(gaps[1:]))


def test_a_throttle_of_the_app_costs_each_worker_a_call_or_two_and_not_each_account() -> None:
    names = [f"account-{number}" for number in range(24)]
    workers, retry_after, per_minute = 2, 120, 40
    interval = 60 / per_minute

    async def body(calm: Calm) -> tuple[datetime, list[datetime], int]:
        for name in names:
            await calm.account(name, pace={"perMinute": per_minute})
            await calm.send_many(20, account_id=name)
            await asyncio.sleep(interval / len(names))  # the accounts' sends are spread over the interval of the pace
        await asyncio.sleep(5)
        calm.world.provider.faults = Faults.model_validate(
            {"throttleRate": 1.0, "throttleScope": "app", "retryAfterSeconds": retry_after}
        )
        began = calm.world.clock()
        await asyncio.sleep(retry_after - 1)
        writes = [one for one in calm.world.truth.changes if one.path == paths.app_throttle("simulated")]
        return began, [attempt.at for attempt in calm.world.truth.attempts], len(writes)

    began, times, writes = simulate(body, receipts=False, workers=workers)

    assert 0 < len([at for at in times if at > began]) <= 4 * workers, "what was in flight, and no more"
    assert writes == 1


def test_a_lane_that_was_held_back_by_another_accounts_throttle_keeps_its_own_rate() -> None:
    async def body(calm: Calm) -> tuple[dict[str, Any], dict[str, Any]]:
        for name in ("one", "two"):
            await calm.account(name)
        calm.world.provider.faults = Faults.model_validate(
            {"throttleRate": 1.0, "throttleScope": "app", "retryAfterSeconds": 30, "forCalls": 1}
        )
        await calm.send("throttled", account_id="one", to="+491")
        await calm.until(lambda: calm.outbox("throttled")["attempts"] == 1 and calm.status("throttled") == "queued")
        await calm.send("another-account", account_id="two", to="+491")
        await asyncio.sleep(10)
        return dict(calm.lane("one")), dict(calm.lane("two"))

    throttled, held_back = simulate(body)

    assert (throttled["rateFactor"], held_back["rateFactor"]) == (0.5, 1.0)
    assert held_back["pausedUntil"] >= throttled["pausedUntil"] - timedelta(seconds=1)
