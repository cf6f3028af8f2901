"""Short turns: the function that receives the event sends a message that came alone. The production code on virtual
time; which process made a call is in `truth.attempts`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from itertools import pairwise
from typing import Any

import grpc
import pytest
from grpc import aio

from firestore_outbox.firestore import paths
from firestore_outbox.firestore.writes import update
from firestore_outbox.lane.state import LATEST_COMMIT
from firestore_outbox.local.simulators.core import Account as ProviderAccount
from firestore_outbox.local.simulators.faults import Faults
from firestore_outbox.settings import Settings
from tests.calm import Calm, Meter, simulate

QUICK = Faults(latencyMs=100, receiptLossRate=1.0)


def kinds(calm: Calm) -> list[str]:
    """Who made each call: functions or worker."""
    return [attempt.process.partition("-")[0] for attempt in calm.world.truth.attempts]


async def alone(calm: Calm, request_id: str, *, to: str = "+491", rest: float = 30) -> None:
    await calm.send(request_id, to=to)
    await asyncio.sleep(rest)


def played(body: Callable[[Calm], Awaitable[Any]], **options: Any) -> Any:
    async def main(calm: Calm) -> Any:
        calm.world.provider.faults = QUICK
        return await body(calm)

    return simulate(main, sweeps=False, **options)


# --- the plain case


def test_a_message_alone_costs_three_reads_five_writes_no_task_and_one_invocation() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(pace={"perMinute": 40})
        await alone(calm, "before-it", rest=60)
        for number in range(5):
            meter = Meter(calm)
            await alone(calm, f"request-{number}", to=f"+49{number}", rest=60)
            assert (meter.reads, meter.writes, meter.tasks) == (3, 5, 0)
        assert kinds(calm) == ["functions"] * 6
        assert calm.statuses() == {"sent": 6}
        assert calm.lane()["state"] == "idle"

    played(body)


def test_on_an_instance_that_knows_the_account_it_costs_two_reads() -> None:
    async def body(calm: Calm) -> list[tuple[int, int, int]]:
        await calm.account(pace={"perMinute": 40})
        await alone(calm, "before-it", rest=10)
        found = []
        for number in range(3):
            meter = Meter(calm)
            await alone(calm, f"request-{number}", to=f"+49{number}", rest=9)
            found.append((meter.reads, meter.writes, meter.tasks))
        return found

    found = played(body)

    assert found[0] == (2, 5, 0)
    assert sum(reads for reads, _, _ in found) <= 2 * 3 + 1, "the account is read again after twenty seconds"


def test_there_are_two_round_trips_before_the_call_and_one_after_it() -> None:
    async def body(calm: Calm) -> list[str]:
        await calm.account(pace={"perMinute": 40})
        await alone(calm, "before-it", rest=30)
        seen: list[str] = []
        calm.world.network.on_answer = lambda path, answer: seen.append(path.rsplit("/", 1)[-1])
        receive = calm.world.provider.receive

        def noted(*args: Any) -> Any:
            seen.append("provider")
            return receive(*args)

        calm.world.provider.receive = noted  # type: ignore[method-assign,assignment]
        await alone(calm, "request-1")
        return [*sorted(seen[:2]), *seen[2:]]

    # The first two are asked for at the same time.
    assert played(body) == ["BatchGetDocuments", "RunQuery", "Commit", "provider", "Commit"]


def test_switched_off_every_message_is_sent_by_a_worker() -> None:
    async def body(calm: Calm) -> list[str]:
        await calm.account()
        await alone(calm, "request-1")
        await alone(calm, "request-2")
        return kinds(calm)

    assert played(body, settings=Settings(short_turns=False)) == ["worker", "worker"]


def test_a_function_whose_deadline_is_too_near_leaves_the_message_to_a_worker() -> None:
    async def body(calm: Calm) -> list[str]:
        await calm.account()
        await alone(calm, "request-1")
        return kinds(calm)

    assert played(body, settings=Settings(function_seconds=30)) == ["worker"]


def test_the_pace_holds_between_short_turns_and_workers() -> None:
    async def body(calm: Calm) -> list[float]:
        await calm.account(pace={"perMinute": 40})
        for number in range(12):
            await calm.send(f"request-{number:02d}", to=f"+49{number}")
            await asyncio.sleep(1)
        await calm.until(lambda: calm.statuses()["sent"] == 12)
        assert {"functions", "worker"} == set(kinds(calm))
        return [calm.sent_at(f"request-{number:02d}") for number in range(12)]

    times = played(body)

    assert times == sorted(times)
    assert all(later - earlier >= 1.499 for earlier, later in pairwise(times))


# --- events


def test_an_event_that_comes_again_after_the_end_writes_nothing_and_asks_for_nothing() -> None:
    async def body(calm: Calm) -> tuple[int, int, int]:
        await calm.account()
        await alone(calm, "request-1")
        meter = Meter(calm)
        trigger = calm.world.functions[0].system.trigger
        await trigger.created("request-1", {**calm.outbox("request-1"), "status": "queued", "attempts": 0})
        return meter.writes, meter.tasks, len(calm.world.truth.attempts)

    assert played(body) == (0, 0, 1)


def test_events_of_one_lane_are_joined_and_a_burst_is_a_workers() -> None:
    async def body(calm: Calm) -> tuple[float, float]:
        await calm.account(concurrency=50)
        await asyncio.sleep(5)
        meter = Meter(calm)
        async with asyncio.TaskGroup() as clients:
            for number in range(60):
                clients.create_task(calm.send(f"request-{number:02d}", to=f"+49{number}"))
        await calm.until(lambda: calm.statuses()["sent"] == 60)
        await asyncio.sleep(30)
        assert len(calm.world.truth.attempts) == 60
        # What the clients write is not on the wire that is metered.
        return meter.reads / 60, meter.writes / 60

    reads, writes = played(body)

    assert reads <= 1.35
    assert writes <= 3.2


def test_beside_a_backlog_an_instance_seldom_looks_whether_a_message_came_alone() -> None:
    async def body(calm: Calm) -> int:
        await calm.account(pace={"perMinute": 40})
        for number in range(80):
            await calm.send(f"request-{number:02d}", to=f"+49{number}")
        await asyncio.sleep(30)
        meter = Meter(calm)
        for number in range(10):
            await calm.send(f"later-message-{number}", to=f"+48{number}")
            await asyncio.sleep(6)
        return meter.reads

    without_looks, reads_of_a_look = played(body, settings=Settings(short_turns=False)), 3

    assert played(body) <= without_looks + 3 * reads_of_a_look


def test_two_messages_of_a_thread_at_once_go_in_order_and_once() -> None:
    async def body(calm: Calm) -> list[str]:
        await calm.account()
        for number in range(10):
            await calm.send(f"request-{number}-a")
            await calm.send(f"request-{number}-b")
            await asyncio.sleep(7)
        await calm.until(lambda: calm.statuses()["sent"] == 20)
        return calm.order_of_calls()

    order = played(body, functions=3)

    assert order == sorted(order)
    assert len(order) == 20


# --- what comes in between


def test_a_message_that_comes_during_the_call_is_not_forgotten() -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        calm.world.provider.faults = Faults(latencyMs=1500, receiptLossRate=1.0)
        await calm.send("request-1", to="+491")
        await asyncio.sleep(0.7)
        await calm.send("request-2", to="+492")
        await calm.until(lambda: calm.statuses()["sent"] == 2, within=timedelta(seconds=20))
        await asyncio.sleep(5)
        assert calm.lane()["state"] == "idle"

    played(body, functions=3)


def test_a_cancel_during_the_call_is_kept_and_the_lane_is_released() -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        calm.world.provider.faults = Faults(latencyMs=1500, receiptLossRate=1.0)
        await calm.send("request-1")
        await asyncio.sleep(0.7)
        await calm.write(update(paths.outbox("request-1"), {"cancelRequested": True}, version=None))
        await calm.until(lambda: calm.status("request-1") == "sent", within=timedelta(seconds=20))
        await asyncio.sleep(5)
        assert calm.lane()["state"] == "idle"
        assert kinds(calm) == ["functions"]

    played(body)


@pytest.mark.parametrize("scope", ["recipient", "account", "app"])
def test_after_a_throttle_a_worker_goes_on(scope: Any) -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        calm.world.provider.faults = Faults(
            throttleRate=1.0, throttleScope=scope, retryAfterSeconds=7, receiptLossRate=1.0
        )
        await calm.send("request-1")
        await asyncio.sleep(2)
        assert calm.status("request-1") == "queued"
        assert kinds(calm) == ["functions"]
        calm.world.provider.faults = QUICK
        await calm.until(lambda: calm.status("request-1") == "sent", within=timedelta(seconds=30))
        assert calm.sent_at("request-1") < 2
        assert kinds(calm)[-1] == "worker"

    played(body)


def test_a_failed_call_is_repeated_in_its_time_and_before_its_successor() -> None:
    async def body(calm: Calm) -> list[str]:
        await calm.account()
        calm.world.provider.faults = Faults(errorRate=1.0, errorCode="overloaded", receiptLossRate=1.0)
        await calm.send("request-1")
        await asyncio.sleep(0.5)
        calm.world.provider.faults = QUICK
        await calm.send("request-2")
        await calm.until(lambda: calm.statuses()["sent"] == 2, within=timedelta(seconds=20))
        return calm.order_of_calls()

    assert played(body) == ["request-1", "request-1", "request-2"]


def test_refused_credentials_park_the_account() -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        calm.world.provider.set_account("shop", ProviderAccount(credentials="revoked"))
        await alone(calm, "request-1", rest=5)
        assert calm.document("accounts/shop")["status"] == "parked"
        assert calm.status("request-1") == "queued"
        await alone(calm, "request-2", rest=5)
        assert len(calm.world.truth.attempts) == 1, "the function's copy of the account is dropped"

    played(body)


# --- what goes wrong


def lost_answer(calm: Calm, number: int) -> None:
    """Firestore makes the commit of that number, counted from now, and its answer is lost."""
    commits = 0

    def on_answer(path: str, answer: Any) -> None:
        nonlocal commits
        if path.endswith("/Commit"):
            commits += 1
            if commits == number:
                raise aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, aio.Metadata(), aio.Metadata(), details="lost")

    calm.world.network.on_answer = on_answer


@pytest.mark.parametrize("commit", [1, 2], ids=["of the acquiring commit", "of the completing commit"])
def test_a_lost_answer_is_recognised_as_our_own(commit: int) -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        await asyncio.sleep(5)
        lost_answer(calm, commit)
        await alone(calm, "request-1")
        assert calm.status("request-1") == "sent"
        assert calm.lane()["state"] == "idle"
        assert kinds(calm) == ["functions"]
        assert calm.outbox("request-1")["attempts"] == 1

    played(body)


def test_after_a_function_died_in_the_call_the_event_that_comes_again_brings_a_worker_without_a_sweep() -> None:
    async def body(calm: Calm) -> float:
        await calm.account(provider="simulated-idempotent")
        calm.world.provider.faults = Faults(hangRate=1.0, receiptLossRate=1.0)
        await calm.send("request-1")
        await asyncio.sleep(1)
        assert calm.status("request-1") == "sending"
        calm.world.crash(calm.world.functions, 0)
        calm.world.provider.faults = QUICK
        await calm.until(lambda: calm.status("request-1") == "sent", within=timedelta(minutes=3))
        assert kinds(calm) == ["functions", "worker"]
        return calm.seconds(calm.world.truth.attempts[-1].at)

    assert played(body) < 75, "the lease of sixty seconds and a backoff, and no wait for a sweep"


def test_a_function_that_stalls_beyond_its_lease_sends_nothing_twice() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(provider="simulated-mute", onUncertain="hold")
        await asyncio.sleep(5)
        function = calm.world.functions[0].process

        def on_answer(path: str, answer: Any) -> None:
            if path.endswith("/Commit"):  # made, and the function sleeps before it hears of it
                function.pause()
                calm.world.network.on_answer = lambda path, answer: None
                calm.world.loop.call_later(100, function.go_on)

        calm.world.network.on_answer = on_answer
        await calm.send("request-1")
        await asyncio.sleep(1)
        calm.world.functions.append(calm.world.machine("functions"))
        await asyncio.sleep(200 + LATEST_COMMIT.total_seconds())
        assert "functions" not in kinds(calm), "its trust had ended: the message is given back, or settled"
        assert len(calm.world.truth.calls) <= 1
        assert calm.status("request-1") in ("sent", "uncertain")

    played(body)
