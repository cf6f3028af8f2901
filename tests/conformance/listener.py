"""What a client makes of a Listen stream: the documents that each target shows at each consistent moment.

Google's emulator answers any change near a query by RESET and the whole result; production and ours send what changed.
Both are valid and add up to the same view, so tests look at the view. It is complete at a NO_CHANGE for no target.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from tests.conformance.backends import PATIENCE_SECONDS, Backend, Conversation
from tests.conformance.wire import REQUESTS, Plain, Proto, Stamp, fields_of, stamp

NO_CHANGE, ADD, REMOVE, CURRENT, RESET = range(5)
View = dict[str, dict[str, Plain]]


class Listener:
    def __init__(self, backend: Backend, conversation: Conversation) -> None:
        self._backend = backend
        self._conversation = conversation
        self._shown: dict[int, View] = {}
        self.current: set[int] = set()
        self.read_time = Stamp(0)
        self.resume_token = b""
        self.removed: dict[int, Proto] = {}
        """The cause, for each target that the server ended."""

    # --- asking

    async def query(self, structured_query: Proto, target: int = 2, **options: object) -> None:
        request = self._request(target, **options)
        request.add_target.query.parent = self._backend.root
        request.add_target.query.structured_query.CopyFrom(structured_query)
        await self._conversation.send(request)

    async def documents(self, *paths: str, target: int = 2, **options: object) -> None:
        request = self._request(target, **options)
        request.add_target.documents.documents.extend(self._backend.name(path) for path in paths)
        await self._conversation.send(request)

    async def send(self, request: Proto) -> None:
        await self._conversation.send(request)

    async def forget(self, target: int) -> None:
        await self._conversation.send(REQUESTS["Listen"](database=self._backend.database, remove_target=target))

    def _request(self, target: int, **options: object) -> Proto:
        request = REQUESTS["Listen"](database=self._backend.database)
        request.add_target.target_id = target
        for name, option in options.items():
            setattr(request.add_target, name, option)
        return request

    # --- hearing

    async def message(self) -> Proto:
        """The next message, taken into the view."""
        message = await self._conversation.read()
        assert message is not None, "the stream ended"
        self._take(message)
        return message

    async def snapshot(self, target: int = 2) -> View:
        """The view at the next consistent moment in which this target is current."""
        while True:
            message = await self.message()
            if _is_moment(message) and target in self.current:
                return self.view(target)

    def view(self, target: int) -> View:
        """What this target shows now, by name; consistent just after `snapshot` of whatever target."""
        return {path: self._shown[target][path] for path in sorted(self._shown[target])}

    async def until(self, wanted: Callable[[View], bool], target: int = 2) -> View:
        """The first consistent view of which this holds. Waits no longer than the test's patience."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not wanted(view := await self.snapshot(target)):
                pass
            return view

    async def shows(self, *paths: str, target: int = 2) -> View:
        """The first consistent view with exactly these documents."""
        return await self.until(lambda view: list(view) == sorted(paths), target)

    def remember(self, target: int, view: View) -> None:
        """A client that takes up a stream again still has what it saw; a RESET makes it forget."""
        self._shown[target].update(view)

    def _take(self, message: Proto) -> None:
        kind = message.WhichOneof("response_type")
        if kind == "target_change":
            self._take_target_change(message.target_change)
        elif kind == "document_change":
            change = message.document_change
            path = self._backend.path(change.document.name)
            for target in change.target_ids:
                self._shown[target][path] = fields_of(change.document)
            self._drop(path, change.removed_target_ids)
        elif kind == "document_delete":
            self._drop(self._backend.path(message.document_delete.document), message.document_delete.removed_target_ids)
        elif kind == "document_remove":
            self._drop(self._backend.path(message.document_remove.document), message.document_remove.removed_target_ids)

    def _take_target_change(self, change: Proto) -> None:
        for target in change.target_ids:
            if change.target_change_type == ADD:
                self._shown[target] = {}
            elif change.target_change_type == RESET:
                self._shown[target] = {}
                self.current.discard(target)
            elif change.target_change_type == CURRENT:
                self.current.add(target)
            elif change.target_change_type == REMOVE:
                self._shown.pop(target, None)
                self.current.discard(target)
                self.removed[target] = change.cause
        if change.resume_token:
            self.resume_token = change.resume_token
        if change.HasField("read_time"):
            self.read_time = stamp(change.read_time)

    def _drop(self, path: str, targets: list[int]) -> None:
        for target in targets:
            self._shown.get(target, {}).pop(path, None)


def _is_moment(message: Proto) -> bool:
    change = message.target_change
    return bool(
        message.WhichOneof("response_type") == "target_change"
        and change.target_change_type == NO_CHANGE
        and not change.target_ids
        and change.HasField("read_time")
    )


@asynccontextmanager
async def listening(backend: Backend) -> AsyncIterator[Listener]:
    conversation = backend.converse("Listen")
    try:
        yield Listener(backend, conversation)
    finally:
        conversation.cancel()
