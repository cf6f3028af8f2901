"""What a data directory keeps: over a clean restart, over one in the middle of an attempt, and over kill -9."""

from __future__ import annotations

import asyncio
import os
import random
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from google.api_core.exceptions import AlreadyExists, GoogleAPICallError
from google.cloud.tasks_v2 import CloudTasksAsyncClient, Queue
from google.cloud.tasks_v2.types import RateLimits, RetryConfig
from grpc import aio

from firestore_emulator import virtual_time
from firestore_emulator.database import DatabaseUnusable
from firestore_emulator.processes import free_port
from firestore_emulator.tasks.emulator import DATABASE_FILE, TasksEmulator
from tests.emulator.tasks import serve
from tests.emulator.tasks.support import LOCATION, QUEUE, START, Worker, World, client_over, http_task, worker
from tests.patience import PATIENCE_SECONDS

ROUNDS = int(os.environ.get("OUTBOX_CRASH_ROUNDS", "3"))
CLIENTS = 4
ROOT = Path(__file__).parents[3]


async def start(data: Path) -> World:
    world = World({"data": data})
    await world.emulator.start()
    return world


def test_queues_tasks_names_and_counters_outlive_a_restart(tmp_path: Path) -> None:
    async def main() -> None:
        world = await start(tmp_path)
        other = f"{LOCATION}/queues/other"
        await world.client.create_queue(
            parent=LOCATION,
            queue=Queue(name=other, rate_limits=RateLimits(max_dispatches_per_second=2)),
        )
        await world.client.pause_queue(name=other)
        await world.create("done")
        world.scripts["failing"] = [500, 404]
        await world.create("failing", retry_config=RetryConfig(min_backoff=timedelta(seconds=100)))
        await world.pass_time(150)
        await world.create("later", schedule_time=START + timedelta(hours=1))
        before = [task async for task in await world.client.list_tasks(parent=QUEUE)]
        queues = [queue async for queue in await world.client.list_queues(parent=LOCATION)]
        await world.emulator.stop(timedelta(0))

        world = await start(tmp_path)
        assert [task async for task in await world.client.list_tasks(parent=QUEUE)] == before
        assert [queue async for queue in await world.client.list_queues(parent=LOCATION)] == queues
        with pytest.raises(AlreadyExists):
            await world.create("done")
        await world.pass_time(4000)
        assert world.times("failing") == [300]
        assert world.sent[0].call.headers["X-CloudTasks-TaskRetryCount"] == "2"
        assert world.sent[0].call.headers["X-CloudTasks-TaskExecutionCount"] == "1"
        assert world.times("later") == [3600]
        await world.emulator.stop(timedelta(0))

    virtual_time.run(main(), seed=1, start=START)


def test_an_attempt_without_a_recorded_end_is_made_again_and_stays_counted(tmp_path: Path) -> None:
    async def main() -> None:
        world = await start(tmp_path)
        world.takes = timedelta(seconds=10)
        await world.create("t", retry_config=RetryConfig(max_attempts=1))
        await world.pass_time(5)
        await world.emulator.stop(timedelta(0))

        world = await start(tmp_path)
        await world.pass_time(1)
        assert world.times() == [5]
        assert world.sent[0].call.headers["X-CloudTasks-TaskRetryCount"] == "1"
        assert "X-CloudTasks-TaskPreviousResponse" not in world.sent[0].call.headers
        await world.emulator.stop(timedelta(0))

    virtual_time.run(main(), seed=1, start=START)


def test_a_restart_does_not_refill_the_bucket(tmp_path: Path) -> None:
    async def main() -> None:
        times: list[float] = []
        world = await start(tmp_path)
        rate = RateLimits(max_dispatches_per_second=0.5)
        await world.client.update_queue(queue=Queue(name=QUEUE, rate_limits=rate))
        for _ in range(20):
            await world.create()
        for _ in range(10):
            await world.pass_time(1.7)
            times += world.times()
            await world.emulator.stop(timedelta(0))
            world = await start(tmp_path)
        await world.emulator.stop(timedelta(0))
        assert times == [0.0] * 10 + [2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0, 16.0]

    virtual_time.run(main(), seed=1, start=START)


def test_a_data_directory_has_one_owner(tmp_path: Path) -> None:
    first = TasksEmulator(tmp_path)
    with pytest.raises(DatabaseUnusable, match="in use by another process"):
        TasksEmulator(tmp_path)
    first.engine.close()
    TasksEmulator(tmp_path).engine.close()
    assert (tmp_path / DATABASE_FILE).exists()


# --- kill -9


async def launched(data: Path, port: int) -> asyncio.subprocess.Process:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        serve.__file__,
        str(data),
        str(port),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert process.stdout is not None
    async with asyncio.timeout(PATIENCE_SECONDS):
        assert await process.stdout.readline() == b"ready\n"
    return process


class Acknowledged:
    """The names of the tasks whose creation was answered, by all clients together."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self._more = asyncio.Event()

    def add(self, name: str) -> None:
        self.names.add(name)
        self._more.set()

    async def until(self, count: int) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(self.names) < count:
                self._more.clear()
                await self._more.wait()


async def create_until_it_dies(
    client: CloudTasksAsyncClient, url: str, prefix: str, acknowledged: Acknowledged
) -> None:
    """At most 10,000: the process is killed long before."""
    for n in range(10_000):
        try:
            task = await client.create_task(parent=QUEUE, task=http_task(url, name=f"{prefix}-{n}"), retry=None)
        except GoogleAPICallError:
            return
        acknowledged.add(task.name.rpartition("/")[2])


async def one_round(
    data: Path, port: int, it: Worker, prefix: str, rng: random.Random, acknowledged: Acknowledged
) -> None:
    """Start, let clients create tasks while the worker gets them, and kill at a random moment."""
    process = await launched(data, port)
    channel = aio.insecure_channel(f"127.0.0.1:{port}", [("grpc.use_local_subchannel_pool", 1)])
    client = client_over(channel)
    try:
        creators = [
            asyncio.create_task(create_until_it_dies(client, it.url, f"{prefix}-{n}", acknowledged))
            for n in range(CLIENTS)
        ]
        # The moment depends on progress, not on a clock: after a number of further answers to the clients.
        await acknowledged.until(len(acknowledged.names) + rng.randrange(1, 150))
    finally:
        process.kill()
        await process.wait()
    await asyncio.gather(*creators)
    await channel.close()


@pytest.mark.timeout(600 + ROUNDS * 30)
async def test_every_acknowledged_task_is_dispatched_whenever_the_server_is_killed(tmp_path: Path) -> None:
    rng = random.Random(20300101)
    port = free_port()
    acknowledged = Acknowledged()
    async with worker() as it:
        it.answer = lambda heard: 200 if rng.random() > 0.1 else 500
        for number in range(ROUNDS):
            await one_round(tmp_path, port, it, f"r{number}", rng, acknowledged)
        process = await launched(tmp_path, port)
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await it.until(lambda heard: acknowledged.names <= {one.task for one in heard})
        finally:
            process.kill()
            await process.wait()
    assert acknowledged.names <= {one.task for one in it.heard}
