"""Tasks at rest through the real client, over gRPC and in process."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from google.api_core.exceptions import AlreadyExists, NotFound
from google.cloud.tasks_v2 import CloudTasksAsyncClient, HttpMethod, HttpRequest, Task
from google.cloud.tasks_v2.types import CreateTaskRequest, GetTaskRequest, ListTasksRequest, RetryConfig

from firestore_emulator.tasks.emulator import TasksEmulator
from tests.emulator.tasks.support import QUEUE, START, URL, client_of, http_task


def later() -> datetime:
    """So that nothing is dispatched while a test looks at it."""
    return datetime.now(UTC) + timedelta(hours=1)


async def test_a_task_gets_a_numeric_name_defaults_and_the_current_time(client: CloudTasksAsyncClient) -> None:
    await client.pause_queue(name=QUEUE)
    before = datetime.now(UTC)
    task = await client.create_task(parent=QUEUE, task=Task(http_request=HttpRequest(url=URL)))
    assert task.name.startswith(f"{QUEUE}/tasks/")
    assert task.name.rpartition("/")[2].isdigit()
    assert before <= task.schedule_time <= datetime.now(UTC)
    assert task.create_time.microsecond == 0
    assert task.http_request.http_method == HttpMethod.POST
    assert task.dispatch_deadline == timedelta(minutes=10)
    assert task.view == Task.View.BASIC
    assert (task.dispatch_count, task.response_count) == (0, 0)


async def test_a_schedule_time_in_the_past_becomes_now(client: CloudTasksAsyncClient) -> None:
    await client.pause_queue(name=QUEUE)
    task = await client.create_task(parent=QUEUE, task=http_task(schedule_time=datetime(2001, 1, 1, tzinfo=UTC)))
    assert abs(task.schedule_time - datetime.now(UTC)) < timedelta(seconds=30)


async def test_only_the_full_view_shows_the_body(client: CloudTasksAsyncClient) -> None:
    request = CreateTaskRequest(
        parent=QUEUE,
        task=http_task(name="t", body=b"secret", schedule_time=later()),
        response_view=Task.View.FULL,
    )
    created = await client.create_task(request=request)
    assert (created.view, created.http_request.body) == (Task.View.FULL, b"secret")
    basic = await client.get_task(name=created.name)
    assert (basic.view, basic.http_request.body) == (Task.View.BASIC, b"")
    assert basic.http_request.headers == created.http_request.headers
    full = await client.get_task(request=GetTaskRequest(name=created.name, response_view=Task.View.FULL))
    assert full == created
    listed = await client.list_tasks(request=ListTasksRequest(parent=QUEUE, response_view=Task.View.FULL, page_size=1))
    assert [task async for task in listed] == [created]


async def test_headers_that_belong_to_cloud_tasks_are_dropped_or_replaced(client: CloudTasksAsyncClient) -> None:
    headers = {
        "Content-Type": "application/json",
        "X-Mixed-Case": "kept",
        "host": "elsewhere",
        "Content-Length": "3",
        "USER-AGENT": "mine",
        "X-CloudTasks-TaskName": "mine",
        "x-google-thing": "mine",
        "X-AppEngine-Thing": "mine",
    }
    task = http_task(schedule_time=later())
    task.http_request.headers = headers
    created = await client.create_task(parent=QUEUE, task=task)
    assert dict(created.http_request.headers) == {
        "Content-Type": "application/json",
        "X-Mixed-Case": "kept",
        "User-Agent": "Google-Cloud-Tasks",
    }


async def test_tasks_are_listed_in_pages_and_each_once(client: CloudTasksAsyncClient) -> None:
    names = {(await client.create_task(parent=QUEUE, task=http_task(schedule_time=later()))).name for _ in range(25)}
    pager = await client.list_tasks(request=ListTasksRequest(parent=QUEUE, page_size=10))
    pages = [[task.name for task in page.tasks] async for page in pager.pages]
    assert [len(page) for page in pages] == [10, 10, 5]
    assert {name for page in pages for name in page} == names


async def test_a_live_name_is_taken(client: CloudTasksAsyncClient) -> None:
    await client.create_task(parent=QUEUE, task=http_task(name="one", schedule_time=later()))
    with pytest.raises(AlreadyExists, match="Requested entity already exists"):
        await client.create_task(parent=QUEUE, task=http_task(name="one"))


async def test_a_deleted_task_is_not_found_and_its_name_stays_taken(client: CloudTasksAsyncClient) -> None:
    task = await client.create_task(parent=QUEUE, task=http_task(name="one", schedule_time=later()))
    await client.delete_task(name=task.name)
    for call in (client.get_task, client.delete_task, client.run_task):
        with pytest.raises(NotFound, match="existed recently"):
            await call(name=task.name)
    with pytest.raises(AlreadyExists, match="existed too recently"):
        await client.create_task(parent=QUEUE, task=http_task(name="one"))


async def test_a_retry_config_of_its_own_is_completed_and_shown(client: CloudTasksAsyncClient) -> None:
    own = RetryConfig(max_attempts=2)
    task = await client.create_task(parent=QUEUE, task=http_task(retry_config=own, schedule_time=later()))
    shown = (await client.get_task(name=task.name)).retry_config
    assert (shown.max_attempts, shown.max_doublings, shown.max_backoff) == (2, 16, timedelta(hours=1))


async def test_a_tombstone_lasts_as_long_as_it_is_set_to() -> None:
    now = START
    emulator = TasksEmulator(queues=[QUEUE], tombstone=timedelta(hours=1), clock=lambda: now)
    async with emulator:
        client = client_of(emulator)
        await client.pause_queue(name=QUEUE)
        task = await client.create_task(parent=QUEUE, task=http_task(name="one"))
        now += timedelta(hours=5)
        await client.delete_task(name=task.name)
        now += timedelta(minutes=59)  # measured from the end of the task, not from its beginning
        with pytest.raises(AlreadyExists):
            await client.create_task(parent=QUEUE, task=http_task(name="one"))
        now += timedelta(minutes=1)
        await client.create_task(parent=QUEUE, task=http_task(name="one"))


async def test_tombstones_do_not_pile_up() -> None:
    now = START
    emulator = TasksEmulator(queues=[QUEUE], tombstone=timedelta(hours=1), clock=lambda: now)
    async with emulator:
        client = client_of(emulator)
        await client.pause_queue(name=QUEUE)
        for n in range(2100):
            await client.create_task(parent=QUEUE, task=http_task(name=f"t{n}"))
            if n % 700 == 699:
                await client.purge_queue(name=QUEUE)
                now += timedelta(hours=2)
        kept = emulator.engine._database.rows("SELECT 1 FROM tombstones")
        assert len(kept) <= 1400
