"""When tasks are sent, and what becomes of them: the real client and the whole emulator, in virtual time."""

from __future__ import annotations

import asyncio
import sqlite3
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from google.api_core.exceptions import AlreadyExists, NotFound
from google.cloud.tasks_v2 import Queue
from google.cloud.tasks_v2.types import RateLimits, RetryConfig

from firestore_emulator import virtual_time
from firestore_emulator.outgoing import Answered
from tests.emulator.tasks.support import QUEUE, START, World, http_task, in_virtual_time

EVERY_SECOND = RetryConfig(min_backoff=timedelta(seconds=1), max_backoff=timedelta(seconds=1))


async def configure(world: World, **settings: Any) -> None:
    await world.client.update_queue(queue=Queue(name=QUEUE, **settings))


async def is_gone(world: World, name: str) -> bool:
    try:
        await world.client.get_task(name=f"{QUEUE}/tasks/{name}")
    except NotFound:
        return True
    return False


# --- when


@in_virtual_time()
async def test_a_task_without_a_time_is_sent_at_once_and_is_gone(world: World) -> None:
    await world.create("now")
    await world.pass_time(0.001)
    assert world.times() == [0]
    assert await is_gone(world, "now")


@in_virtual_time()
async def test_a_scheduled_task_is_sent_at_its_moment(world: World) -> None:
    await world.create("later", schedule_time=START + timedelta(days=30))
    await world.create("soon", schedule_time=START + timedelta(seconds=90, microseconds=123))
    await world.pass_time(31 * 86_400)
    assert [(sent.task, sent.after) for sent in world.sent] == [("soon", 90.000123), ("later", 30 * 86_400)]


@in_virtual_time()
async def test_tasks_that_are_due_together_go_in_the_order_of_their_schedule(world: World) -> None:
    await configure(world, rate_limits=RateLimits(max_concurrent_dispatches=1))
    await world.client.pause_queue(name=QUEUE)
    for second in (30, 10, 20):
        await world.create(f"t{second}", schedule_time=START + timedelta(seconds=second))
    await world.pass_time(60)
    await world.client.resume_queue(name=QUEUE)
    await world.pass_time(0.1)
    assert [sent.task for sent in world.sent] == ["t10", "t20", "t30"]


@in_virtual_time()
async def test_an_idle_dispatcher_has_no_timer(world: World) -> None:
    assert world.timers() == 0
    task = await world.create("t", schedule_time=START + timedelta(days=1))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert world.timers() == 1
    await world.client.delete_task(name=task.name)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert world.timers() == 0
    await world.create("u")
    await world.pass_time(5)
    assert world.times("u") == [0]
    assert world.timers() == 0


@in_virtual_time()
async def test_a_paused_queue_sends_nothing_and_has_no_timer(world: World) -> None:
    await world.client.pause_queue(name=QUEUE)
    await world.create("t")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert world.timers() == 0
    await world.pass_time(1000)
    assert world.sent == []
    await world.client.resume_queue(name=QUEUE)
    await world.pass_time(1)
    assert world.times() == [1000]


# --- what is sent


@in_virtual_time()
async def test_the_request_is_the_tasks_with_productions_headers(world: World) -> None:
    task = http_task(name="t", body=b'{"key": 1}', schedule_time=START + timedelta(seconds=1.5))
    task.http_request.headers = {"Content-Type": "application/json"}
    await world.client.create_task(parent=QUEUE, task=task)
    await world.pass_time(2)
    call = world.sent[0].call
    assert (call.method, call.url, call.body) == ("POST", "http://worker.test/tasks/lane", b'{"key": 1}')
    assert call.deadline == timedelta(minutes=10)
    assert dict(call.headers) == {
        "Content-Type": "application/json",
        "User-Agent": "Google-Cloud-Tasks",
        "X-CloudTasks-QueueName": "lanes",
        "X-CloudTasks-TaskName": "t",
        "X-CloudTasks-TaskRetryCount": "0",
        "X-CloudTasks-TaskExecutionCount": "0",
        "X-CloudTasks-TaskETA": f"{int(START.timestamp()) + 1}.500000",
    }


@in_virtual_time()
async def test_retries_tell_what_went_before_as_production_tells_it(world: World) -> None:
    """The values were recorded from production by others: 503, 404, 429, 500, 302, and then a success."""
    await configure(world, retry_config=EVERY_SECOND)
    world.scripts["t"] = [503, 404, 429, 500, 302]
    await world.create("t")
    await world.pass_time(600)
    told = [
        tuple(
            sent.call.headers.get(f"X-CloudTasks-Task{field}")
            for field in ("RetryCount", "ExecutionCount", "PreviousResponse", "RetryReason")
        )
        for sent in world.sent
    ]
    assert told == [
        ("0", "0", None, None),
        ("1", "0", "503", ""),
        ("2", "1", "404", ""),
        ("3", "2", "429", ""),
        ("4", "2", "500", ""),
        ("5", "3", "302", ""),
    ]


# --- retries


@in_virtual_time()
async def test_the_wait_counts_from_the_end_of_the_attempt(world: World) -> None:
    retry = RetryConfig(min_backoff=timedelta(seconds=10), max_backoff=timedelta(seconds=300), max_doublings=3)
    await configure(world, retry_config=retry)
    world.takes = timedelta(seconds=7)
    world.scripts["t"] = [500] * 6
    await world.create("t")
    await world.pass_time(3600)
    gaps = [b - a for a, b in pairwise(world.times())]
    assert gaps == [17, 27, 47, 87, 167, 247]


@in_virtual_time()
async def test_after_the_last_attempt_the_task_is_gone_and_its_name_is_taken(world: World) -> None:
    await configure(world, retry_config=RetryConfig(max_attempts=3))
    world.scripts["t"] = [500] * 10
    await world.create("t")
    await world.pass_time(3600)
    assert len(world.sent) == 3
    assert await is_gone(world, "t")
    with pytest.raises(AlreadyExists):
        await world.create("t")


@in_virtual_time()
async def test_minus_one_attempts_do_not_give_up(world: World) -> None:
    await configure(world, retry_config=RetryConfig(max_attempts=-1, max_backoff=timedelta(seconds=10)))
    world.scripts["t"] = [500] * 250
    await world.create("t")
    await world.pass_time(3600)
    assert len(world.sent) == 251
    assert await is_gone(world, "t")


@in_virtual_time()
async def test_a_task_may_have_a_retry_config_of_its_own(world: World) -> None:
    world.scripts["t"] = [500] * 10
    await world.create("t", retry_config=RetryConfig(max_attempts=2))
    await world.pass_time(3600)
    assert len(world.sent) == 2


@in_virtual_time()
async def test_a_task_ends_after_31_days_whatever_its_retries(world: World) -> None:
    await configure(world, retry_config=RetryConfig(max_attempts=-1))
    world.scripts["t"] = [500] * 10_000
    await world.create("t")
    await world.pass_time(40 * 86_400)
    assert await is_gone(world, "t")
    assert world.sent[-1].after <= 31 * 86_400
    assert world.timers() == 0


@in_virtual_time()
async def test_a_task_in_a_queue_paused_for_31_days_is_not_sent_any_more(world: World) -> None:
    await world.client.pause_queue(name=QUEUE)
    await world.create("t")
    await world.pass_time(31 * 86_400)
    await world.client.resume_queue(name=QUEUE)
    await world.pass_time(60)
    assert world.sent == []
    assert await is_gone(world, "t")


@in_virtual_time()
async def test_an_attempt_ends_at_its_deadline_and_is_reported_as_504(world: World) -> None:
    world.takes = timedelta(hours=1)
    await world.create("t", dispatch_deadline=timedelta(seconds=15))
    await world.pass_time(15.001)
    world.takes = timedelta(0)
    task = await world.client.get_task(name=f"{QUEUE}/tasks/t")
    assert (task.dispatch_count, task.response_count) == (1, 0)
    assert task.last_attempt.response_status.message == "DEADLINE_EXCEEDED(4): HTTP status code 504"
    await world.pass_time(1)
    assert world.times() == [0, 15.1]
    assert world.sent[1].call.headers["X-CloudTasks-TaskPreviousResponse"] == "504"


@in_virtual_time()
async def test_a_worker_that_cannot_be_reached_is_tried_again(world: World) -> None:
    world.scripts["t"] = [ConnectionRefusedError("no"), OSError("no"), 200]
    await world.create("t")
    await world.pass_time(1)
    assert world.times() == [0, 0.1, 0.3]
    assert world.sent[2].call.headers["X-CloudTasks-TaskPreviousResponse"] == "503"
    assert world.sent[2].call.headers["X-CloudTasks-TaskExecutionCount"] == "0"


@in_virtual_time()
async def test_a_task_shows_its_attempts(world: World) -> None:
    world.scripts["t"] = [500, 404, 404]
    await configure(world, retry_config=EVERY_SECOND)
    await world.create("t")
    await world.pass_time(1.5)
    task = await world.client.get_task(name=f"{QUEUE}/tasks/t")
    assert (task.dispatch_count, task.response_count) == (2, 2)
    assert task.first_attempt.dispatch_time == START
    assert task.last_attempt.dispatch_time == task.last_attempt.response_time == START + timedelta(seconds=1)
    assert task.last_attempt.response_status.message == "NOT_FOUND(5): HTTP status code 404"
    assert task.schedule_time == START + timedelta(seconds=2)


@in_virtual_time()
async def test_a_task_deleted_while_it_runs_stays_deleted(world: World) -> None:
    world.takes = timedelta(seconds=10)
    world.scripts["t"] = [500]
    task = await world.create("t")
    await world.pass_time(5)
    await world.client.delete_task(name=task.name)
    await world.pass_time(100)
    assert world.times() == [0]
    assert await is_gone(world, "t")


@in_virtual_time()
async def test_a_queue_deleted_while_its_task_runs_stays_deleted(world: World) -> None:
    world.takes = timedelta(seconds=10)
    world.scripts["t"] = [503]
    await world.create("t")
    await world.pass_time(5)
    await world.client.delete_queue(name=QUEUE)
    await world.pass_time(100)
    assert world.times() == [0]
    assert world.timers() == 0


# --- rate and concurrency


@in_virtual_time()
async def test_a_burst_goes_at_once_and_then_the_rate_holds(world: World) -> None:
    await configure(world, rate_limits=RateLimits(max_dispatches_per_second=2))
    for _ in range(14):
        await world.create()
    await world.pass_time(60)
    assert world.times() == [0] * 10 + [0.5, 1.0, 1.5, 2.0]


@in_virtual_time()
async def test_a_rate_below_one_a_second_holds_for_hours_without_drift(world: World) -> None:
    await configure(world, rate_limits=RateLimits(max_dispatches_per_second=0.1))
    for _ in range(1010):
        await world.create()
    await world.pass_time(20_000)
    assert world.times()[9:] == [float(n * 10) for n in range(1001)]


@in_virtual_time()
async def test_an_idle_queue_saves_up_no_more_than_its_burst(world: World) -> None:
    await configure(world, rate_limits=RateLimits(max_dispatches_per_second=1))
    await world.pass_time(1000)
    for _ in range(12):
        await world.create()
    await world.pass_time(60)
    assert world.times() == [1000] * 10 + [1001, 1002]


@in_virtual_time()
async def test_no_more_run_at_once_than_the_queue_allows(world: World) -> None:
    await configure(world, rate_limits=RateLimits(max_concurrent_dispatches=3))
    world.takes = timedelta(seconds=1)
    for _ in range(10):
        await world.create()
    await world.pass_time(60)
    assert world.most_busy == 3
    assert world.times() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3]


@in_virtual_time()
async def test_raised_limits_take_effect_at_once(world: World) -> None:
    await configure(world, rate_limits=RateLimits(max_concurrent_dispatches=1))
    world.takes = timedelta(seconds=100)
    for _ in range(3):
        await world.create()
    await world.pass_time(10)
    await configure(world, rate_limits=RateLimits(max_concurrent_dispatches=3))
    await world.pass_time(1)
    assert world.times() == [0, 10, 10]


@in_virtual_time()
async def test_a_429_slows_the_whole_queue_and_it_recovers(world: World) -> None:
    await configure(world, rate_limits=RateLimits(max_dispatches_per_second=4), retry_config=EVERY_SECOND)
    world.scripts["bad"] = [429]
    await world.create("bad")
    await world.pass_time(0.01)
    for n in range(40):
        await world.create(f"t{n}")
    await world.pass_time(60)
    times = world.times()[1:]
    gaps = [round(b - a, 3) for a, b in pairwise(times)]
    assert times[0] == 0.5  # the bucket was emptied, and fills at half the rate
    assert set(gaps[:8]) == {0.5}
    assert set(gaps[-10:]) == {0.25}


@in_virtual_time()
async def test_a_500_slows_only_its_own_task(world: World) -> None:
    world.scripts["bad"] = [500] * 5
    await world.create("bad")
    for n in range(50):
        await world.create(f"t{n}")
    await world.pass_time(0.001)
    assert len(world.sent) == 51


@in_virtual_time()
async def test_the_wish_of_a_retry_after_header_is_granted(world: World) -> None:
    world.scripts["t"] = [Answered(503, timedelta(seconds=30))]
    await world.create("t")
    await world.pass_time(100)
    assert world.times() == [0, 30]


# --- RunTask


@in_virtual_time()
async def test_run_task_asks_neither_the_schedule_nor_the_pause_nor_the_rate(world: World) -> None:
    await configure(world, rate_limits=RateLimits(max_dispatches_per_second=0.001, max_concurrent_dispatches=1))
    await world.client.pause_queue(name=QUEUE)
    for n in range(15):
        await world.create(f"t{n}", schedule_time=START + timedelta(days=1))
    for n in range(15):
        task = await world.client.run_task(name=f"{QUEUE}/tasks/t{n}")
        assert (task.dispatch_count, task.response_count) == (1, 0)
        assert not task.last_attempt.response_time
    await world.pass_time(1)
    assert world.times() == [0] * 15
    assert await is_gone(world, "t0")


@in_virtual_time()
async def test_a_forced_attempt_that_fails_is_retried_after_its_wait(world: World) -> None:
    world.scripts["t"] = [500]
    world.takes = timedelta(seconds=4)
    await configure(
        world, retry_config=RetryConfig(min_backoff=timedelta(seconds=10), max_backoff=timedelta(seconds=10))
    )
    task = await world.create("t", schedule_time=START + timedelta(days=1))
    await world.pass_time(100)
    await world.client.run_task(name=task.name)
    await world.pass_time(5)
    # Google: "the time that RunTask was called plus the retry delay"
    assert (await world.client.get_task(name=task.name)).schedule_time == START + timedelta(seconds=110)
    await world.pass_time(100)
    assert world.times() == [100, 110]


@in_virtual_time()
async def test_a_running_task_can_be_run_again_and_one_success_ends_it(world: World) -> None:
    world.takes = timedelta(seconds=10)
    task = await world.create("t")
    await world.pass_time(5)
    await world.client.run_task(name=task.name)
    await world.pass_time(100)
    assert world.times() == [0, 5]
    with pytest.raises(NotFound):
        await world.client.run_task(name=task.name)


# --- the shape of a run


def test_the_same_seed_gives_the_same_run() -> None:
    def run() -> list[tuple[float, str]]:
        async def main() -> list[tuple[float, str]]:
            world = World({})
            await world.emulator.start()
            await configure(world, rate_limits=RateLimits(max_dispatches_per_second=5))
            for n in range(50):
                task = await world.create()
                world.scripts[task.name.rpartition("/")[2]] = [500, 429, 200] if n % 3 else []
            await world.pass_time(600)
            await world.emulator.stop(timedelta(0))
            return [(sent.after, sent.task) for sent in world.sent]

        return virtual_time.run(main(), seed=11, start=START)

    assert run() == run()


def test_stopping_waits_for_attempts_under_way_and_then_cuts_them_off() -> None:
    async def main() -> None:
        world = World({})
        await world.emulator.start()
        world.takes = timedelta(seconds=2)
        await world.create("t")
        await world.pass_time(1)
        await world.emulator.stop(timedelta(seconds=5))
        assert (world.now(), world.busy) == (2, 0)

        world = World({})
        await world.emulator.start()
        world.takes = timedelta(seconds=60)
        await world.create("t")
        await world.pass_time(1)
        await world.emulator.stop(timedelta(seconds=5))
        assert (world.now(), world.busy) == (8, 0)

    virtual_time.run(main(), seed=1, start=START)


def test_a_file_that_cannot_be_written_for_a_while_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        world = World({"data": tmp_path})
        await world.emulator.start()
        world.takes = timedelta(seconds=2)
        await world.create("t", schedule_time=START + timedelta(seconds=1))
        database = world.emulator.engine._database
        commit = database._commit_group
        failures: list[float] = []

        def failing_commit() -> None:
            failures.append(world.now())
            group, database._open_group = database._open_group, None
            database.execute("ROLLBACK")
            if group is not None:
                group.set_exception(sqlite3.OperationalError("disk I/O error"))

        monkeypatch.setattr(database, "_commit_group", failing_commit)
        await world.pass_time(3.5)
        assert failures == [1, 2, 3]  # claims, with a pause between them
        assert world.sent == []
        monkeypatch.setattr(database, "_commit_group", commit)
        await world.pass_time(1)
        assert world.times() == [4]
        monkeypatch.setattr(database, "_commit_group", failing_commit)
        await world.pass_time(4)
        assert failures == [1, 2, 3, 6, 7, 8]  # the record of its success
        monkeypatch.setattr(database, "_commit_group", commit)
        await world.pass_time(10)
        assert await is_gone(world, "t")
        assert world.times() == [4]
        await world.emulator.stop(timedelta(0))

    virtual_time.run(main(), seed=1, start=START)
