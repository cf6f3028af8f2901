"""The engine: every operation of the API as a plain function of the state, the request and the clock.

Nothing here waits. Before the service answers a client, and before the dispatcher sends an attempt, they await
`settled()`.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from random import Random

from firestore_emulator.database import Database
from firestore_emulator.rpc.errors import invalid_argument
from firestore_emulator.rpc.service import Message
from firestore_emulator.tasks import names, protos, queues, rules, tasks
from firestore_emulator.tasks.attempts import Attempts, Claim
from firestore_emulator.tasks.paging import page_size
from firestore_emulator.tasks.queue_calls import QueueCalls
from firestore_emulator.tasks.queues import Queue, Queues
from firestore_emulator.tasks.tasks import Found, Tasks
from firestore_emulator.tasks.times import Clock, to_us

MAX_TASKS_PAGE = 1000


def _ignore(queue_id: int) -> None:
    """Stands for the dispatcher until there is one."""


class Engine:
    def __init__(
        self,
        path: Path | None,
        clock: Clock,
        *,
        tombstone: timedelta,
        queue_tombstone: timedelta,
        random: Random,
        survives_power_cuts: bool = False,
    ) -> None:
        schema = queues.SCHEMA + tasks.SCHEMA
        self._database = Database(path, schema, survives_power_cuts=survives_power_cuts)
        self.clock = clock
        self.queues = Queues(self._database, tombstone=queue_tombstone)
        self.tasks = Tasks(self._database, tombstone=tombstone, random=random)
        self.attempts = Attempts(self._database, self.queues, self.tasks)
        self.attempts.forget_running()
        self.stirred: Callable[[int], None] = _ignore
        """Called with a queue's id whenever what it will dispatch next may have changed."""
        self.queue_calls = QueueCalls(self.queues, self.tasks, clock, self._stir)

    def _stir(self, queue_id: int) -> None:
        self.stirred(queue_id)

    async def settled(self) -> None:
        """Returns when everything so far is in the file."""
        await self.written(self._database.open_group)

    def group(self) -> asyncio.Future[None] | None:
        """What was written so far, as something to await later with `written`."""
        return self._database.open_group

    async def written(self, group: asyncio.Future[None] | None) -> None:
        """Returns when the group is in the file. When it cannot be, memory is made to agree with the file."""
        try:
            if group is not None:
                await asyncio.shield(group)
        except sqlite3.Error:
            self.queues.load()
            raise

    def close(self) -> None:
        self._database.close()

    # --- tasks ---

    def create_task(self, request: Message) -> Message:
        parent, given, now = names.queue(request.parent), request.task, self.clock()
        name = names.task(given.name) if given.name else None
        if name is not None and name.queue != parent:
            raise invalid_argument(
                f"The queue name from request ('{parent}') must be the same as "
                f"the queue name in the named task ('{name.queue}')."
            )
        accepted = rules.accepted_task(given, to_us(now))
        queue = self._queue(parent)
        task = self.tasks.create(queue, name, accepted, now, _view(request))
        self.stirred(queue.id)
        return task

    def get_task(self, request: Message) -> Message:
        return self.tasks.show(self._task(request.name), _view(request))

    def list_tasks(self, request: Message) -> Message:
        queue = self._queue(request.parent)
        size = page_size(request.page_size, MAX_TASKS_PAGE)
        page = self.tasks.page(queue, request.page_token, size + 1, _view(request))
        token = page[size - 1].name.rpartition("/")[2] if len(page) > size else ""
        return protos.ListTasksResponse(tasks=page[:size], next_page_token=token)

    def delete_task(self, request: Message) -> Message:
        found = self._task(request.name)
        self.tasks.remove(found.id, found.queue.id, found.name.id, found.named, self.clock())
        self.stirred(found.queue.id)
        return protos.Empty()

    def run_task(self, request: Message) -> tuple[Claim, Message]:
        """The attempt to make at once, and the task as it is while that attempt is under way."""
        found, view = self._task(request.name), _view(request)
        claim = self.attempts.claim_now(found, self.clock())
        return claim, self.tasks.show(found, view)

    # --- admin ---

    def reset(self) -> None:
        for queue in self.queues:
            self.stirred(queue.id)
        self.tasks.clear()
        self.queues.clear()

    def _queue(self, name: str) -> Queue:
        return self.queues.get(names.queue(name))

    def _task(self, name: str) -> Found:
        parsed = names.task(name)
        return self.tasks.find(self._queue(parsed.queue), parsed, self.clock())


def _view(request: Message) -> int:
    view: int = request.response_view
    if view not in (0, protos.BASIC, protos.FULL):
        raise invalid_argument(f"response_view {view} is not a known view.")
    return view
