"""The tasks at rest: created, looked up, listed, deleted, and remembered for a while by name after they are
gone.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Any

from firestore_emulator.database import Database
from firestore_emulator.rpc.errors import RpcError, already_exists, invalid_argument, not_found
from firestore_emulator.rpc.service import Message
from firestore_emulator.tasks import protos
from firestore_emulator.tasks.names import TaskName
from firestore_emulator.tasks.outcomes import rpc_status
from firestore_emulator.tasks.queues import Queue
from firestore_emulator.tasks.rules import MAX_TASK_BYTES, AcceptedTask
from firestore_emulator.tasks.times import set_duration, set_timestamp, to_us

SCHEMA = """
CREATE TABLE IF NOT EXISTS tasks (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    queue INTEGER NOT NULL,
    task_id TEXT NOT NULL,
    named INTEGER NOT NULL,
    request BLOB NOT NULL,
    deadline_ms INTEGER NOT NULL,
    retry_config BLOB,
    created_us INTEGER NOT NULL,
    schedule_us INTEGER NOT NULL,
    running INTEGER NOT NULL DEFAULT 0,
    dispatches INTEGER NOT NULL DEFAULT 0,
    responses INTEGER NOT NULL DEFAULT 0,
    executions INTEGER NOT NULL DEFAULT 0,
    previous_status INTEGER,
    first_dispatch_us INTEGER,
    last_schedule_us INTEGER,
    last_dispatch_us INTEGER,
    last_response_us INTEGER
) STRICT;
CREATE UNIQUE INDEX IF NOT EXISTS tasks_by_name ON tasks (queue, task_id);
CREATE INDEX IF NOT EXISTS tasks_due ON tasks (queue, schedule_us, id) WHERE running = 0;
CREATE TABLE IF NOT EXISTS tombstones (
    queue INTEGER NOT NULL, task_id TEXT NOT NULL, gone_at_us INTEGER NOT NULL, PRIMARY KEY (queue, task_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS tombstones_by_age ON tombstones (gone_at_us);
"""
# running: attempts under way; RunTask can make it more than one. The next start sets it to 0.
# executions: answers that were not 5xx, as the X-CloudTasks-TaskExecutionCount header tells them.
# previous_status: of the last recorded attempt.

_COLUMNS = (
    "task_id, request, deadline_ms, retry_config, created_us, schedule_us, dispatches, responses, "
    "previous_status, first_dispatch_us, last_schedule_us, last_dispatch_us, last_response_us"
)
_SWEEP_EVERY = 1024
"""Tombstones are cleared when this many more were written: each costs a little, none costs a scan."""


@dataclass(frozen=True, slots=True)
class Found:
    id: int
    queue: Queue
    name: TaskName
    named: bool


class Tasks:
    def __init__(self, database: Database, *, tombstone: timedelta, random: Random) -> None:
        self._database = database
        self._tombstone_us = tombstone // timedelta(microseconds=1)
        self._random = random
        self._until_sweep = 0  # the first one sweeps what an earlier run left

    def create(self, queue: Queue, name: TaskName | None, accepted: AcceptedTask, now: datetime, view: int) -> Message:
        now_us = to_us(now)
        task_id = self._fresh_id(queue) if name is None else name.id
        task = protos.Task(name=f"{queue.name}/tasks/{task_id}", http_request=accepted.request)
        set_timestamp(task.schedule_time, accepted.schedule_us)
        set_timestamp(task.create_time, now_us - now_us % 1_000_000)
        set_duration(task.dispatch_deadline, accepted.deadline)
        if accepted.retry_config is not None:
            task.retry_config.CopyFrom(accepted.retry_config)
        if task.ByteSize() > MAX_TASK_BYTES:
            raise invalid_argument("Task size too large")
        if name is not None:
            self._refuse_used(queue, task_id, now_us)
        with self._database.atomic():
            self._database.execute(
                "INSERT INTO tasks (queue, task_id, named, request, deadline_ms, retry_config, created_us, "
                "schedule_us) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    queue.id,
                    task_id,
                    name is not None,
                    accepted.request.SerializeToString(),
                    accepted.deadline // timedelta(milliseconds=1),
                    None if accepted.retry_config is None else accepted.retry_config.SerializeToString(),
                    now_us,
                    accepted.schedule_us,
                ),
            )
        return _viewed(task, view)

    def _fresh_id(self, queue: Queue) -> str:
        while True:
            task_id = str(self._random.randrange(10**18, 10**20))
            if self._id_of(queue, task_id) is None:
                return task_id

    def _id_of(self, queue: Queue, task_id: str) -> Any:
        return self._database.execute(
            "SELECT id FROM tasks WHERE queue = ? AND task_id = ?", (queue.id, task_id)
        ).fetchone()

    def _refuse_used(self, queue: Queue, task_id: str, now_us: int) -> None:
        if self._id_of(queue, task_id) is not None:
            raise already_exists("Requested entity already exists")
        if self._is_tombstone(queue, task_id, now_us):
            raise already_exists(
                "The task cannot be created because a task with this name existed too recently. "
                "For more information about task de-duplication see "
                "https://cloud.google.com/tasks/docs/reference/rest/v2/"
                "projects.locations.queues.tasks/create#body.request_body.FIELDS.task."
            )

    def _is_tombstone(self, queue: Queue, task_id: str, now_us: int) -> bool:
        gone = self._database.execute(
            "SELECT gone_at_us FROM tombstones WHERE queue = ? AND task_id = ?", (queue.id, task_id)
        ).fetchone()
        return gone is not None and now_us < gone[0] + self._tombstone_us

    def find(self, queue: Queue, name: TaskName, now: datetime) -> Found:
        row = self._database.execute(
            "SELECT id, named FROM tasks WHERE queue = ? AND task_id = ?", (queue.id, name.id)
        ).fetchone()
        if row is None:
            raise self._missing(queue, name.id, now)
        return Found(row[0], queue, name, bool(row[1]))

    def _missing(self, queue: Queue, task_id: str, now: datetime) -> RpcError:
        if self._is_tombstone(queue, task_id, to_us(now)):
            return not_found(
                "The task no longer exists, though a task with this name existed recently. "
                "The task either successfully completed or was deleted."
            )
        return not_found("Requested entity was not found.")

    def show(self, found: Found, view: int) -> Message:
        row = self._database.row(f"SELECT {_COLUMNS} FROM tasks WHERE id = ?", (found.id,))
        assert row is not None
        return _task(found.queue, row, view)

    def page(self, queue: Queue, after: str, size: int, view: int) -> list[Message]:
        """By name, at most `size`, from behind the task id `after`."""
        rows = self._database.rows(
            f"SELECT {_COLUMNS} FROM tasks WHERE queue = ? AND task_id > ? ORDER BY task_id LIMIT ?",
            (queue.id, after, size),
        )
        return [_task(queue, row, view) for row in rows]

    def remove(self, id_: int, queue_id: int, task_id: str, named: bool, now: datetime) -> None:
        """The end of a task. A name that the client chose stays taken for a while."""
        now_us = to_us(now)
        with self._database.atomic():
            self._database.execute("DELETE FROM tasks WHERE id = ?", (id_,))
            if named:
                self._database.execute(
                    "INSERT OR REPLACE INTO tombstones VALUES (?, ?, ?)", (queue_id, task_id, now_us)
                )
                self._sweep(1, now_us)

    def purge(self, queue: Queue, now: datetime) -> None:
        now_us = to_us(now)
        with self._database.atomic():
            written = self._database.execute(
                "INSERT OR REPLACE INTO tombstones SELECT queue, task_id, ? FROM tasks WHERE queue = ? AND named = 1",
                (now_us, queue.id),
            ).rowcount
            self._database.execute("DELETE FROM tasks WHERE queue = ?", (queue.id,))
            self._sweep(written, now_us)

    def forget_queue(self, queue: Queue) -> None:
        with self._database.atomic():
            self._database.execute("DELETE FROM tasks WHERE queue = ?", (queue.id,))
            self._database.execute("DELETE FROM tombstones WHERE queue = ?", (queue.id,))

    def clear(self) -> None:
        with self._database.atomic():
            self._database.execute("DELETE FROM tasks")
            self._database.execute("DELETE FROM tombstones")

    def _sweep(self, written: int, now_us: int) -> None:
        self._until_sweep -= written
        if self._until_sweep < 0:
            self._until_sweep = _SWEEP_EVERY
            self._database.execute("DELETE FROM tombstones WHERE gone_at_us <= ?", (now_us - self._tombstone_us,))


def _task(queue: Queue, row: Any, view: int) -> Message:
    (
        task_id,
        request,
        deadline_ms,
        retry_config,
        created_us,
        schedule_us,
        dispatches,
        responses,
        previous_status,
        first_dispatch_us,
        last_schedule_us,
        last_dispatch_us,
        last_response_us,
    ) = row
    task = protos.Task(name=f"{queue.name}/tasks/{task_id}", dispatch_count=dispatches, response_count=responses)
    task.http_request.MergeFromString(request)
    set_timestamp(task.schedule_time, schedule_us)
    set_timestamp(task.create_time, created_us - created_us % 1_000_000)
    set_duration(task.dispatch_deadline, timedelta(milliseconds=deadline_ms))
    if retry_config is not None:
        task.retry_config.MergeFromString(retry_config)
    if first_dispatch_us is not None:
        set_timestamp(task.first_attempt.dispatch_time, first_dispatch_us)
        set_timestamp(task.last_attempt.schedule_time, last_schedule_us)
        set_timestamp(task.last_attempt.dispatch_time, last_dispatch_us)
        if last_response_us is not None:
            set_timestamp(task.last_attempt.response_time, last_response_us)
            code, message = rpc_status(previous_status)
            task.last_attempt.response_status.code = code
            task.last_attempt.response_status.message = message
    return _viewed(task, view)


def _viewed(task: Message, view: int) -> Message:
    """The body goes out only to those who ask for the full view."""
    if view == protos.FULL:
        task.view = protos.FULL
    else:
        task.http_request.ClearField("body")
        task.view = protos.BASIC
    return task
