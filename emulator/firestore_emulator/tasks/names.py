"""Resource names: their grammar, and the refusals production answers to a name that breaks it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from firestore_emulator.rpc.errors import invalid_argument

_PROJECT = r"[A-Za-z0-9.:-]+"
_LOCATION_NAME = re.compile(rf"projects/{_PROJECT}/locations/[A-Za-z0-9-]+")
_QUEUE_NAME = re.compile(rf"(?P<location>projects/{_PROJECT}/locations/[A-Za-z0-9-]+)/queues/(?P<id>[^/]*)", re.DOTALL)
_TASK_NAME = re.compile(
    rf"(?P<queue>projects/{_PROJECT}/locations/[A-Za-z0-9-]+/queues/[^/]*)/tasks/(?P<id>[^/]*)", re.DOTALL
)
_QUEUE_ID = re.compile(r"[A-Za-z0-9-]{1,100}")
_TASK_ID = re.compile(r"[A-Za-z0-9_-]{1,500}")


@dataclass(frozen=True, slots=True)
class TaskName:
    queue: str
    """The full name of its queue."""
    id: str

    def __str__(self) -> str:
        return f"{self.queue}/tasks/{self.id}"


def location(name: str) -> str:
    if _LOCATION_NAME.fullmatch(name) is None:
        raise invalid_argument('Location name must be formatted: "projects/<PROJECT_ID>/locations/<LOCATION_ID>".')
    return name


def queue(name: str) -> str:
    parsed = _QUEUE_NAME.fullmatch(name)
    if parsed is None:
        raise invalid_argument(
            'Queue name must be formatted: "projects/<PROJECT_ID>/locations/<LOCATION_ID>/queues/<QUEUE_ID>".'
        )
    if _QUEUE_ID.fullmatch(parsed["id"]) is None:
        raise invalid_argument(
            f'Queue ID "{_shown(parsed["id"])}" can contain only letters ([A-Za-z]), numbers ([0-9]), '
            "or hyphens (-). Queue ID must be between 1 and 100 characters."
        )
    return name


def task(name: str) -> TaskName:
    parsed = _TASK_NAME.fullmatch(name)
    if parsed is None:
        raise invalid_argument(
            'Task name must be formatted: "projects/<PROJECT_ID>/locations/<LOCATION_ID>'
            '/queues/<QUEUE_ID>/tasks/<TASK_ID>"'
        )
    if _TASK_ID.fullmatch(parsed["id"]) is None:
        raise invalid_argument(
            f'Task ID "{_shown(parsed["id"])}" can contain only letters ([A-Za-z]), numbers ([0-9]), '
            "hyphens (-), or underscores (_). Task ID must between 1 and 500 characters."
        )
    return TaskName(queue=queue(parsed["queue"]), id=parsed["id"])


def queue_id(name: str) -> str:
    """The last part of a queue's name, as the X-CloudTasks-QueueName header tells it."""
    return name.rpartition("/")[2]


def location_of(queue_name: str) -> str:
    return queue_name.partition("/queues/")[0]


def _shown(text: str) -> str:
    return text if len(text) <= 600 else f"{text[:600]}…"
