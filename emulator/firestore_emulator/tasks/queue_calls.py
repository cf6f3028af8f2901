"""The calls on queues, each a plain function of the state, the request and the clock."""

from __future__ import annotations

from collections.abc import Callable

from firestore_emulator.rpc.errors import invalid_argument, not_found, unimplemented
from firestore_emulator.rpc.service import Message
from firestore_emulator.tasks import names, protos, rules
from firestore_emulator.tasks.paging import page_size
from firestore_emulator.tasks.queues import Queues
from firestore_emulator.tasks.tasks import Tasks
from firestore_emulator.tasks.times import Clock

MAX_QUEUES_PAGE = 9800


class QueueCalls:
    def __init__(self, queues: Queues, tasks: Tasks, clock: Clock, stirred: Callable[[int], None]) -> None:
        self._queues = queues
        self._tasks = tasks
        self._clock = clock
        self._stirred = stirred

    def create(self, request: Message) -> Message:
        names.location(request.parent)
        name = names.queue(request.queue.name)
        if names.location_of(name) != request.parent:
            raise invalid_argument(f"{name} must begin with {request.parent}.")
        return self._queues.create(rules.canonical_queue(request.queue), self._clock()).settings

    def ensure(self, name: str) -> None:
        if self._queues.find(names.queue(name)) is None:
            self._queues.create(rules.canonical_queue(protos.Queue(name=name)), self._clock())

    def get(self, request: Message) -> Message:
        return self._queues.get(names.queue(request.name)).settings

    def list(self, request: Message) -> Message:
        location = names.location(request.parent)
        if request.filter:
            raise unimplemented("ListQueuesRequest.filter is not supported by this emulator.")
        size = page_size(request.page_size, MAX_QUEUES_PAGE)
        found = self._queues.page(location, request.page_token, size + 1)
        return protos.ListQueuesResponse(
            queues=[queue.settings for queue in found[:size]],
            next_page_token=found[size - 1].name if len(found) > size else "",
        )

    def update(self, request: Message) -> Message:
        name = names.queue(request.queue.name)
        queue = self._queues.find(name)
        if queue is None:  # production creates a queue that it is asked to update
            return self._queues.create(rules.canonical_queue(request.queue), self._clock()).settings
        settings = rules.updated_queue(queue.settings, request.queue, list(request.update_mask.paths))
        self._queues.change(queue, settings)
        self._stirred(queue.id)
        return queue.settings

    def delete(self, request: Message) -> Message:
        queue = self._queues.find(names.queue(request.name))
        if queue is None:
            raise not_found("Requested entity was not found.")
        self._tasks.forget_queue(queue)
        self._stirred(queue.id)
        self._queues.delete(queue, self._clock())
        return protos.Empty()

    def purge(self, request: Message) -> Message:
        queue, now = self._queues.get(names.queue(request.name)), self._clock()
        self._tasks.purge(queue, now)
        self._queues.set_purge_time(queue, now)
        self._stirred(queue.id)
        return queue.settings

    def pause(self, request: Message) -> Message:
        queue = self._queues.get(names.queue(request.name))
        self._queues.set_state(queue, protos.PAUSED)
        self._stirred(queue.id)
        return queue.settings

    def resume(self, request: Message) -> Message:
        queue = self._queues.get(names.queue(request.name))
        self._queues.set_state(queue, protos.RUNNING)
        self._stirred(queue.id)
        return queue.settings
