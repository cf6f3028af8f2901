"""Bad input gets production's status and a message that a person can use, and leaves a server that works."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import grpc
import pytest
from google.api_core.exceptions import GoogleAPICallError
from google.cloud.tasks_v2 import CloudTasksAsyncClient, HttpMethod, HttpRequest, Queue, Task
from google.cloud.tasks_v2.types import (
    AppEngineHttpRequest,
    AppEngineRouting,
    CreateTaskRequest,
    HttpTarget,
    ListQueuesRequest,
    ListTasksRequest,
    OidcToken,
    RateLimits,
    RetryConfig,
)
from google.protobuf.duration_pb2 import Duration
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.timestamp_pb2 import Timestamp

from firestore_emulator.tasks import protos
from tests.emulator.tasks.conftest import Api
from tests.emulator.tasks.support import LOCATION, QUEUE, URL, http_task

INVALID = grpc.StatusCode.INVALID_ARGUMENT
NOT_FOUND = grpc.StatusCode.NOT_FOUND
UNIMPLEMENTED = grpc.StatusCode.UNIMPLEMENTED

NO_QUEUE = f"{LOCATION}/queues/missing"


def request(**fields: Any) -> Task:
    return Task(http_request=HttpRequest(**{"url": URL, **fields}))


BAD_TASKS: list[tuple[str, Any, str]] = [
    ("no message type", Task(), "Task.message_type is not set"),
    ("no url", Task(http_request=HttpRequest()), "HttpRequest.url is required."),
    ("no scheme", request(url="worker/tasks"), "must start with 'http://' or 'https://'"),
    ("another scheme", request(url="ftp://worker"), "must start with 'http://' or 'https://'"),
    ("a scheme alone", request(url="http://"), "no valid host"),
    ("a broken address", request(url="http://[::1/"), "no valid host"),
    ("a port out of range", request(url="http://worker:99999/"), "no valid host"),
    ("a long url", request(url=f"{URL}?{'x' * 2100}"), "at most 2083 characters"),
    ("a wrong method", request(http_method=99), "99 is not a known HTTP method"),
    ("a body with GET", request(http_method=HttpMethod.GET, body=b"x"), "not allowed with the method GET"),
    ("a header with a line break", request(headers={"X-A": "b\r\nX-C: d"}), "invalid header"),
    ("a header with no name", request(headers={"": "b"}), "invalid header"),
    ("headers of 81 KB", request(headers={"X-A": "b" * 81 * 1024}), "less than 80KB"),
    ("a token without an account", request(oidc_token=OidcToken(audience="x")), "service_account_email is required"),
    ("a task of a megabyte", request(body=b"x" * 1024 * 1024), "Task size too large"),
    ("a deadline of 14 s", http_task(dispatch_deadline=timedelta(seconds=14)), r"between \[15s, 30m\]"),
    ("a deadline of 31 min", http_task(dispatch_deadline=timedelta(minutes=31)), r"between \[15s, 30m\]"),
    ("a deadline of 10,000 years", http_task(dispatch_deadline=Duration(seconds=10**15)), r"\[15s, 30m\]"),
    ("a schedule in 31 days", http_task(schedule_time=datetime.now(UTC) + timedelta(days=31)), "720h"),
    ("a schedule in the year 9999", http_task(schedule_time=datetime(9999, 12, 31, tzinfo=UTC)), "720h"),
    ("retries of -2", http_task(retry_config=RetryConfig(max_attempts=-2)), "greater or equal to -1"),
    ("a name of another queue", Task(name=f"{NO_QUEUE}/tasks/t", http_request={"url": URL}), "must be the same"),
    ("a name that is no name", Task(name="t", http_request={"url": URL}), "Task name must be formatted"),
    ("a name with a space", http_task(name="not a valid id"), 'Task ID "not a valid id" can contain only'),
    ("a name with a slash", http_task(name="a/b"), "Task name must be formatted"),
    ("a name of 501 characters", http_task(name="x" * 501), "between 1 and 500 characters"),
]


@pytest.mark.parametrize(("task", "message"), [c[1:] for c in BAD_TASKS], ids=[c[0] for c in BAD_TASKS])
async def test_a_bad_task_is_refused_in_words(client: CloudTasksAsyncClient, task: Task, message: str) -> None:
    await _refused(client.create_task(parent=QUEUE, task=task), INVALID, message)
    await _still_works(client)


async def test_a_task_at_the_limits_is_accepted(client: CloudTasksAsyncClient) -> None:
    await client.pause_queue(name=QUEUE)
    nearly_30_days = datetime.now(UTC) + timedelta(days=30) - timedelta(seconds=5)
    task = http_task(name="x" * 500, schedule_time=nearly_30_days, dispatch_deadline=timedelta(minutes=30))
    task.http_request.body = b"x" * (1024 * 1024 - 1000)
    assert (await client.create_task(parent=QUEUE, task=task)).schedule_time == nearly_30_days


async def test_a_schedule_too_far_ahead_is_reported_as_production_tells_it(client: CloudTasksAsyncClient) -> None:
    far = datetime(2090, 12, 1, 3, 0, 0, 690_000, tzinfo=UTC)
    await _refused(
        client.create_task(parent=QUEUE, task=http_task(schedule_time=far)),
        INVALID,
        r"The Task.scheduleTime, 2090-11-30T19:00:00.69-08:00, is too far in the future. "
        r"Schedule time must be no more than 720h in the future.",
    )


BAD_QUEUES: list[tuple[str, Any, str]] = [
    ("a rate of -1", RateLimits(max_dispatches_per_second=-1), "cannot be negative"),
    ("a rate of 501", RateLimits(max_dispatches_per_second=501), "less than or equal to 500"),
    ("no number at all", RateLimits(max_dispatches_per_second=float("nan")), "cannot be negative"),
    ("-1 at once", RateLimits(max_concurrent_dispatches=-1), "cannot be negative"),
    ("5,001 at once", RateLimits(max_concurrent_dispatches=5001), "less than or equal to 5000"),
    ("-2 attempts", RetryConfig(max_attempts=-2), "greater or equal to -1"),
    ("-1 doublings", RetryConfig(max_doublings=-1), "cannot be negative"),
    ("a negative wait", RetryConfig(min_backoff=timedelta(seconds=-1)), "minBackoff cannot be negative"),
    ("a negative end", RetryConfig(max_retry_duration=timedelta(seconds=-1)), "cannot be negative"),
    ("an endless wait", RetryConfig(max_backoff=Duration(seconds=10**15)), "not a valid duration"),
    (
        "waits the wrong way round",
        RetryConfig(min_backoff=timedelta(seconds=2), max_backoff=timedelta(seconds=1)),
        "minBackoff must be less than or equal to RetryConfig.maxBackoff",
    ),
]


@pytest.mark.parametrize(("settings", "message"), [c[1:] for c in BAD_QUEUES], ids=[c[0] for c in BAD_QUEUES])
async def test_bad_settings_of_a_queue_are_refused(client: CloudTasksAsyncClient, settings: Any, message: str) -> None:
    field = "rate_limits" if isinstance(settings, RateLimits) else "retry_config"
    queue = Queue(name=f"{LOCATION}/queues/new", **{field: settings})
    await _refused(client.create_queue(parent=LOCATION, queue=queue), INVALID, message)
    await _refused(client.update_queue(queue=Queue(name=QUEUE, **{field: settings})), INVALID, message)
    assert (await client.get_queue(name=QUEUE)).rate_limits.max_dispatches_per_second == 500
    await _still_works(client)


Ask = Callable[[CloudTasksAsyncClient], Any]
BAD_CALLS: list[tuple[str, Ask, grpc.StatusCode, str]] = [
    (
        "a queue id with an underscore",
        lambda c: c.create_queue(parent=LOCATION, queue=Queue(name=f"{LOCATION}/queues/a_b")),
        INVALID,
        'Queue ID "a_b" can contain only letters',
    ),
    (
        "a queue id of 101 characters",
        lambda c: c.create_queue(parent=LOCATION, queue=Queue(name=f"{LOCATION}/queues/{'x' * 101}")),
        INVALID,
        "between 1 and 100 characters",
    ),
    (
        "a queue with no name",
        lambda c: c.create_queue(parent=LOCATION, queue=Queue()),
        INVALID,
        "Queue name must be formatted",
    ),
    (
        "a queue of another location",
        lambda c: c.create_queue(parent="projects/p/locations/l", queue=Queue(name=QUEUE)),
        INVALID,
        "must begin with projects/p/locations/l",
    ),
    (
        "a parent that is no location",
        lambda c: c.create_queue(parent="nowhere", queue=Queue(name=QUEUE)),
        INVALID,
        "Location name must be formatted",
    ),
    (
        "a mask that names no field",
        lambda c: c.update_queue(queue=Queue(name=QUEUE), update_mask=FieldMask(paths=["colour"])),
        INVALID,
        "no field 'colour'",
    ),
    ("an unknown queue", lambda c: c.get_queue(name=NO_QUEUE), NOT_FOUND, "Queue does not exist."),
    ("an unknown queue to pause", lambda c: c.pause_queue(name=NO_QUEUE), NOT_FOUND, "Queue does not exist."),
    ("an unknown queue to resume", lambda c: c.resume_queue(name=NO_QUEUE), NOT_FOUND, "Queue does not exist."),
    ("an unknown queue to purge", lambda c: c.purge_queue(name=NO_QUEUE), NOT_FOUND, "Queue does not exist."),
    ("an unknown queue to delete", lambda c: c.delete_queue(name=NO_QUEUE), NOT_FOUND, "was not found"),
    ("an unknown queue to list", lambda c: c.list_tasks(parent=NO_QUEUE), NOT_FOUND, "Queue does not exist."),
    (
        "a task for an unknown queue",
        lambda c: c.create_task(parent=NO_QUEUE, task=Task(http_request={"url": URL})),
        NOT_FOUND,
        "Queue does not exist. If you just created the queue, wait at least a minute",
    ),
    ("an unknown task", lambda c: c.get_task(name=f"{QUEUE}/tasks/t"), NOT_FOUND, "was not found"),
    ("an unknown task to delete", lambda c: c.delete_task(name=f"{QUEUE}/tasks/t"), NOT_FOUND, "was not found"),
    ("an unknown task to run", lambda c: c.run_task(name=f"{QUEUE}/tasks/t"), NOT_FOUND, "was not found"),
    ("a task name that is a queue's", lambda c: c.get_task(name=QUEUE), INVALID, "Task name must be formatted"),
    (
        "a negative page",
        lambda c: c.list_tasks(request=ListTasksRequest(parent=QUEUE, page_size=-1)),
        INVALID,
        "must not be negative",
    ),
    (
        "a filter",
        lambda c: c.list_queues(request=ListQueuesRequest(parent=LOCATION, filter="state: PAUSED")),
        UNIMPLEMENTED,
        "filter is not supported",
    ),
    (
        "an App Engine task",
        lambda c: c.create_task(
            parent=QUEUE, task=Task(app_engine_http_request=AppEngineHttpRequest(relative_uri="/"))
        ),
        UNIMPLEMENTED,
        "App Engine tasks",
    ),
    (
        "App Engine routing",
        lambda c: c.create_queue(
            parent=LOCATION,
            queue=Queue(name=f"{LOCATION}/queues/new", app_engine_routing_override=AppEngineRouting(service="s")),
        ),
        UNIMPLEMENTED,
        "Queue.app_engine_routing_override",
    ),
    (
        "a target for the whole queue",
        lambda c: c.update_queue(queue=Queue(name=QUEUE, http_target=HttpTarget(http_method=HttpMethod.GET))),
        UNIMPLEMENTED,
        "Queue.http_target",
    ),
    ("a policy", lambda c: c.get_iam_policy(request={"resource": QUEUE}), UNIMPLEMENTED, "GetIamPolicy"),
    (
        "a question about permissions",
        lambda c: c.test_iam_permissions(request={"resource": QUEUE, "permissions": ["x"]}),
        UNIMPLEMENTED,
        "TestIamPermissions",
    ),
    ("a batch", lambda c: c.batch_create_tasks(request={"parent": QUEUE}), UNIMPLEMENTED, "BatchCreateTasks"),
]


@pytest.mark.parametrize(("ask", "code", "message"), [c[1:] for c in BAD_CALLS], ids=[case[0] for case in BAD_CALLS])
async def test_a_bad_call_gets_productions_status(
    client: CloudTasksAsyncClient, ask: Ask, code: grpc.StatusCode, message: str
) -> None:
    await _refused(ask(client), code, message)
    await _still_works(client)


async def test_what_no_client_library_would_send_is_refused_as_well(api: Api, caplog: pytest.LogCaptureFixture) -> None:
    """Raw messages: an impossible timestamp, a view of the future, bytes that are no message."""
    call = api.channel.unary_unary("/google.cloud.tasks.v2.CloudTasks/CreateTask")
    task = protos.Task(http_request=protos.HttpRequest(url=URL), schedule_time=Timestamp(seconds=10**15))
    for raw in (
        protos.CreateTaskRequest(parent=QUEUE, task=task).SerializeToString(),
        CreateTaskRequest.pb()(parent=QUEUE, task=protos.Task(), response_view=77).SerializeToString(),
        protos.CreateTaskRequest().SerializeToString(),
    ):
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await call(raw)
        assert refusal.value.code() == INVALID
        assert refusal.value.details()
    if api.channel.__class__.__module__.startswith("grpc"):
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await call(b"\xff\xff\xff not a protobuf")
        assert refusal.value.code() == INVALID
        assert not caplog.records
    await _still_works(api.client)


async def _refused(call: Any, code: grpc.StatusCode, message: str) -> None:
    with pytest.raises(GoogleAPICallError, match=message) as refusal:
        await call
    assert refusal.value.grpc_status_code == code


async def _still_works(client: CloudTasksAsyncClient) -> None:
    await client.pause_queue(name=QUEUE)
    task = await client.create_task(parent=QUEUE, task=http_task())
    assert (await client.get_task(name=task.name)).name == task.name
