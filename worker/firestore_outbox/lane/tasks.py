"""Cloud Tasks, with the real client: a task is a hint that a lane has work at a time.

Tasks have no names: two for one lane are harmless, a name costs latency, and its tombstone would swallow a later wake.
For the same reason a create whose answer did not come is repeated without asking what became of it.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any, Protocol
from zlib import crc32

import grpc
from google.api_core import exceptions
from google.cloud import tasks_v2
from google.cloud.tasks_v2.services.cloud_tasks.transports import CloudTasksGrpcAsyncIOTransport
from google.protobuf import timestamp_pb2
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from firestore_outbox.clock import Clock
from firestore_outbox.errors import TasksUnavailable
from firestore_outbox.lane.schedule import next_hop
from firestore_outbox.settings import Settings

DISPATCH_DEADLINE = timedelta(minutes=10)
RECEIPT_TASK = "/tasks/receipt"
CREATE_SECONDS = 5.0
"""Longest time for one create; they take about 20 ms."""
TRIES = 4
FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 0.2, 2.0
"""Bounds of the random wait before the next try. The bound doubles with each try: 1.4 s in all, at most."""
TRANSIENT = (
    exceptions.ServerError,
    exceptions.Aborted,
    exceptions.ResourceExhausted,
    exceptions.Cancelled,
)
"""What can pass by itself. ServerError has UNAVAILABLE, DEADLINE_EXCEEDED, INTERNAL and UNKNOWN below it."""


class Tasks(Protocol):
    """Something that calls the worker back."""

    async def enqueue(self, path: str, body: dict[str, Any], at: datetime) -> None: ...


class CloudTasks:
    def __init__(self, client: tasks_v2.CloudTasksAsyncClient, settings: Settings, clock: Clock) -> None:
        self._client = client
        self._settings = settings
        self._clock = clock

    @classmethod
    def connect(cls, settings: Settings, clock: Clock) -> CloudTasks:
        """To Google, or to the emulator that the settings name. Inside the running loop."""
        if not settings.tasks_emulator_host:
            return cls(tasks_v2.CloudTasksAsyncClient(), settings, clock)
        channel = grpc.aio.insecure_channel(settings.tasks_emulator_host)
        return cls.over(channel, settings, clock)

    @classmethod
    def over(cls, channel: grpc.aio.Channel, settings: Settings, clock: Clock) -> CloudTasks:
        transport = CloudTasksGrpcAsyncIOTransport(channel=channel)
        return cls(tasks_v2.CloudTasksAsyncClient(transport=transport), settings, clock)

    async def enqueue(self, path: str, body: dict[str, Any], at: datetime) -> None:
        """For `at`, or for the first hop on the way there if that is too far for one task.

        Raises `TasksUnavailable`.
        """
        now = self._clock()
        settings = self._settings
        task = tasks_v2.Task(
            http_request=tasks_v2.HttpRequest(
                url=f"{settings.worker_url}{path}",
                http_method=tasks_v2.HttpMethod.POST,
                headers={"Content-Type": "application/json"},
                body=json.dumps(body).encode(),
                oidc_token=tasks_v2.OidcToken(
                    service_account_email=settings.service_account, audience=settings.worker_url
                ),
            ),
            dispatch_deadline=DISPATCH_DEADLINE,
        )
        hop = next_hop(at, now).at
        if hop > now:
            stamp = timestamp_pb2.Timestamp()
            stamp.FromDatetime(hop)
            task.schedule_time = stamp
        await self._create(task, self._queue(path, task.http_request.body))

    def _queue(self, path: str, body: bytes) -> str:
        """Lanes are divided by their key. Receipts have a queue of their own, since busy lanes must not delay them."""
        if path == RECEIPT_TASK:
            return self._settings.receipt_queue_name
        queues = self._settings.lane_queue_names
        return queues[crc32(body) % len(queues)]

    async def _create(self, task: tasks_v2.Task, parent: str) -> None:
        tries = AsyncRetrying(
            retry=retry_if_exception_type(TRANSIENT),
            stop=stop_after_attempt(TRIES),
            wait=wait_random_exponential(multiplier=FIRST_WAIT_SECONDS, max=LONGEST_WAIT_SECONDS),
            reraise=True,
        )
        try:
            async for attempt in tries:
                with attempt:
                    await self._client.create_task(parent=parent, task=task, timeout=CREATE_SECONDS)
        except TRANSIENT as error:
            raise TasksUnavailable(f"Cloud Tasks did not take a task: {type(error).__name__}: {error}") from error
