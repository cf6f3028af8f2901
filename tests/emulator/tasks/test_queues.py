"""Queues through the real client, over gRPC and in process."""

from __future__ import annotations

from datetime import timedelta

import pytest
from google.api_core.exceptions import AlreadyExists, FailedPrecondition, NotFound
from google.cloud.tasks_v2 import CloudTasksAsyncClient, Queue
from google.cloud.tasks_v2.types import RateLimits, RetryConfig, UpdateQueueRequest
from google.protobuf.field_mask_pb2 import FieldMask

from firestore_emulator.tasks.emulator import TasksEmulator
from tests.emulator.tasks.support import LOCATION, QUEUE, START, client_of, http_task

OTHER = f"{LOCATION}/queues/other"


async def test_a_new_queue_has_productions_defaults(client: CloudTasksAsyncClient) -> None:
    queue = await client.create_queue(parent=LOCATION, queue=Queue(name=OTHER))
    assert queue == await client.get_queue(name=OTHER)
    assert queue.state == Queue.State.RUNNING
    limits, retry = queue.rate_limits, queue.retry_config
    assert (limits.max_dispatches_per_second, limits.max_burst_size, limits.max_concurrent_dispatches) == (
        500,
        100,
        1000,
    )
    assert (retry.max_attempts, retry.max_doublings) == (100, 16)
    assert (retry.min_backoff, retry.max_backoff) == (timedelta(milliseconds=100), timedelta(hours=1))
    assert not retry.max_retry_duration


async def test_a_queue_keeps_what_it_was_given(client: CloudTasksAsyncClient) -> None:
    asked = Queue(
        name=OTHER,
        rate_limits=RateLimits(max_dispatches_per_second=0.25, max_concurrent_dispatches=3, max_burst_size=400),
        retry_config=RetryConfig(
            max_attempts=-1,
            max_retry_duration=timedelta(hours=4),
            min_backoff=timedelta(milliseconds=2500),
            max_backoff=timedelta(seconds=30),
            max_doublings=2,
        ),
    )
    queue = await client.create_queue(parent=LOCATION, queue=asked)
    assert queue.retry_config == asked.retry_config
    assert queue.rate_limits.max_dispatches_per_second == 0.25
    assert queue.rate_limits.max_concurrent_dispatches == 3
    assert queue.rate_limits.max_burst_size == 10  # output only: what was asked for is not looked at


async def test_a_name_is_taken_once(client: CloudTasksAsyncClient) -> None:
    with pytest.raises(AlreadyExists, match="Queue already exists"):
        await client.create_queue(parent=LOCATION, queue=Queue(name=QUEUE))


async def test_queues_are_listed_by_location_and_page(client: CloudTasksAsyncClient) -> None:
    elsewhere = "projects/demo-outbox/locations/us-central1"
    await client.create_queue(parent=elsewhere, queue=Queue(name=f"{elsewhere}/queues/far"))
    names = [QUEUE, *[f"{LOCATION}/queues/q{n}" for n in range(5)]]
    for name in names[1:]:
        await client.create_queue(parent=LOCATION, queue=Queue(name=name))
    pager = await client.list_queues(request={"parent": LOCATION, "page_size": 2})
    pages = [[queue.name for queue in page.queues] async for page in pager.pages]
    assert pages == [names[0:2], names[2:4], names[4:6]]


async def test_an_update_changes_what_its_mask_names(client: CloudTasksAsyncClient) -> None:
    wanted = Queue(
        name=QUEUE,
        rate_limits=RateLimits(max_dispatches_per_second=50),
        retry_config=RetryConfig(max_attempts=7, max_doublings=3),
    )
    mask = FieldMask(paths=["rate_limits.max_dispatches_per_second", "retry_config.max_attempts"])
    queue = await client.update_queue(queue=wanted, update_mask=mask)
    assert queue.rate_limits.max_dispatches_per_second == 50
    assert queue.rate_limits.max_burst_size == 10
    assert (queue.retry_config.max_attempts, queue.retry_config.max_doublings) == (7, 16)


async def test_an_update_without_a_mask_sets_everything(client: CloudTasksAsyncClient) -> None:
    await client.update_queue(queue=Queue(name=QUEUE, retry_config=RetryConfig(max_attempts=7)))
    queue = await client.update_queue(queue=Queue(name=QUEUE, retry_config=RetryConfig(max_doublings=3)))
    assert (queue.retry_config.max_attempts, queue.retry_config.max_doublings) == (100, 3)


async def test_an_update_creates_a_queue_that_is_not_there(client: CloudTasksAsyncClient) -> None:
    await client.update_queue(request=UpdateQueueRequest(queue=Queue(name=OTHER)))
    assert (await client.get_queue(name=OTHER)).rate_limits.max_dispatches_per_second == 500


async def test_an_update_leaves_a_paused_queue_paused(client: CloudTasksAsyncClient) -> None:
    await client.pause_queue(name=QUEUE)
    queue = await client.update_queue(queue=Queue(name=QUEUE, state=Queue.State.RUNNING))
    assert queue.state == Queue.State.PAUSED


async def test_pause_and_resume_are_shown(client: CloudTasksAsyncClient) -> None:
    assert (await client.pause_queue(name=QUEUE)).state == Queue.State.PAUSED
    assert (await client.get_queue(name=QUEUE)).state == Queue.State.PAUSED
    assert (await client.resume_queue(name=QUEUE)).state == Queue.State.RUNNING


async def test_a_purge_takes_all_tasks_and_says_when(client: CloudTasksAsyncClient) -> None:
    await client.pause_queue(name=QUEUE)
    for n in range(3):
        await client.create_task(parent=QUEUE, task=http_task(name=f"t{n}"))
    queue = await client.purge_queue(name=QUEUE)
    assert queue.purge_time
    assert [task async for task in await client.list_tasks(parent=QUEUE)] == []
    with pytest.raises(AlreadyExists, match="existed too recently"):
        await client.create_task(parent=QUEUE, task=http_task(name="t0"))


async def test_a_deleted_queue_is_gone_with_its_tasks(client: CloudTasksAsyncClient) -> None:
    await client.pause_queue(name=QUEUE)
    await client.create_task(parent=QUEUE, task=http_task(name="t"))
    await client.delete_queue(name=QUEUE)
    with pytest.raises(NotFound):
        await client.get_queue(name=QUEUE)
    await client.create_queue(parent=LOCATION, queue=Queue(name=QUEUE))
    assert [task async for task in await client.list_tasks(parent=QUEUE)] == []


async def test_a_deleted_queues_name_can_be_kept_as_long_as_production_keeps_it() -> None:
    now = START
    emulator = TasksEmulator(queues=[QUEUE], queue_tombstone=timedelta(days=3), clock=lambda: now)
    async with emulator:
        client = client_of(emulator)
        await client.delete_queue(name=QUEUE)
        with pytest.raises(FailedPrecondition, match="existed too recently"):
            await client.create_queue(parent=LOCATION, queue=Queue(name=QUEUE))
        now += timedelta(days=3)
        await client.create_queue(parent=LOCATION, queue=Queue(name=QUEUE))
