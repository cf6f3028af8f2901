"""What a client makes of a Listen stream: the documents that each target shows at each consistent moment.

Google's emulator answers any change near a query by RESET and the whole result; production and ours send what changed.
Both are valid and add up to the same view, so tests look at the view. It is complete at a NO_CHANGE for no target.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from google.protobuf import wrappers_pb2

from tests.conformance.backends import Backend, Conversation, Refused
from tests.conformance.wire import REQUESTS, Plain, Proto, Stamp, fields_of, stamp
from tests.patience import PATIENCE_SECONDS

NO_CHANGE, ADD, REMOVE, CURRENT, RESET = range(5)
View = dict[str, dict[str, Plain]]


@dataclass(frozen=True)
class Kept:
    """What a client still has when its stream breaks: its last consistent moment."""

    resume_token: bytes = b""
    read_time: Stamp | None = None
    views: Mapping[int, View] = field(default_factory=dict)
    """For each target that was current then."""


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
        self.reset: set[int] = set()
        """Targets whose documents the client had to forget."""
        self.filters: dict[int, Proto] = {}
        """The last existence filter of each target."""
        self.differs: set[int] = set()
        """Targets that hold more or fewer documents than their filter counts."""
        self.kept = Kept()
        self._remembered: dict[int, View] = {}

    # --- asking

    async def query(self, structured_query: Proto, target: int = 2, parent: str = "", **options: Any) -> None:
        request = self._request(target, **options)
        request.add_target.query.parent = self._backend.name(parent) if parent else self._backend.root
        request.add_target.query.structured_query.CopyFrom(structured_query)
        await self._conversation.send(request)

    async def documents(self, *paths: str, target: int = 2, **options: Any) -> None:
        request = self._request(target, **options)
        request.add_target.documents.documents.extend(self._backend.name(path) for path in paths)
        await self._conversation.send(request)

    async def send(self, request: Proto) -> None:
        await self._conversation.send(request)

    async def forget(self, target: int) -> None:
        await self._conversation.send(REQUESTS["Listen"](database=self._backend.database, remove_target=target))

    def remember(self, target: int, view: View) -> None:
        """A client that takes up a target again still has what it saw; a RESET makes it forget."""
        self._remembered[target] = view

    def _request(self, target: int, expected_count: int | None = None, **options: Any) -> Proto:
        request = REQUESTS["Listen"](database=self._backend.database)
        request.add_target.MergeFrom(type(request.add_target)(target_id=target, **options))
        if expected_count is not None:
            request.add_target.expected_count.CopyFrom(wrappers_pb2.Int32Value(value=expected_count))
        return request

    # --- hearing

    async def message(self) -> Proto:
        """The next message, taken into the view."""
        message = await self._conversation.read()
        assert message is not None, "the stream ended"
        self._take(message)
        if _is_moment(message):
            views = {target: self.view(target) for target in self.current}
            self.kept = Kept(self.resume_token, self.read_time, views)
        return message

    async def messages(self, target: int = 2) -> list[Proto]:
        """Every message up to the next consistent moment in which this target is current."""
        heard = [await self.message()]
        while not (_is_moment(heard[-1]) and target in self.current):
            heard.append(await self.message())
        return heard

    async def snapshot(self, target: int = 2) -> View:
        """The view at the next consistent moment in which this target is current."""
        await self.messages(target)
        return self.view(target)

    def view(self, target: int) -> View:
        """What this target shows now, by name; consistent just after `snapshot` of whatever target."""
        return {path: self._shown[target][path] for path in sorted(self._shown[target])}

    async def until(self, wanted: Callable[[View], bool], target: int = 2) -> View:
        """The first consistent view for which this holds. Waits no longer than the test's patience."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not wanted(view := await self.snapshot(target)):
                pass
            return view

    async def shows(self, *paths: str, target: int = 2) -> View:
        """The first consistent view with exactly these documents."""
        return await self.until(lambda view: list(view) == sorted(paths), target)

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

        elif kind == "filter":
            self.filters[message.filter.target_id] = message.filter
            if len(self._shown[message.filter.target_id]) != message.filter.count:
                self.differs.add(message.filter.target_id)

    def _take_target_change(self, change: Proto) -> None:
        for target in change.target_ids:
            if change.target_change_type == ADD:
                self._shown[target] = dict(self._remembered.pop(target, {}))
            elif change.target_change_type == RESET:
                self._shown[target] = {}
                self.current.discard(target)
                self.reset.add(target)
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


def told(message: Proto) -> str:
    """A message in a few words: what it says, and about which targets or document."""
    kind: str = message.WhichOneof("response_type")
    body = getattr(message, kind)
    match kind:
        case "target_change":
            numbers = " ".join(map(str, body.target_ids))
            return f"{_KINDS[body.target_change_type]} {numbers}".strip()
        case "document_change":
            shows = f" in {_numbers(body.target_ids)}" if body.target_ids else ""
            left = f" left {_numbers(body.removed_target_ids)}" if body.removed_target_ids else ""
            return f"change {_path(body.document.name)}{shows}{left}"
        case "filter":
            return f"filter {body.target_id}: {body.count}"
    return f"{kind.removeprefix('document_')} {_path(body.document)} left {_numbers(body.removed_target_ids)}"


_KINDS = ("NO_CHANGE", "ADD", "REMOVE", "CURRENT", "RESET")


def _numbers(targets: list[int]) -> str:
    return " ".join(map(str, sorted(targets)))


def _path(name: str) -> str:
    return name.split("/documents/")[1]


def might_hold(filter_: Proto, name: str) -> bool:
    """Whether an existence filter's names may include this one, as the protocol's definition tells to find out."""
    names = filter_.unchanged_names
    bits = len(names.bits.bitmap) * 8 - names.bits.padding
    digest = hashlib.md5(name.encode(), usedforsecurity=False).digest()
    one, two = (int.from_bytes(half, "little") for half in (digest[:8], digest[8:]))
    places = ((one + number * two) % 2**64 % bits for number in range(names.hash_count))
    return bits > 0 and all(names.bits.bitmap[place // 8] & 1 << place % 8 for place in places)


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
        if backend.is_official:
            # A commit that finds a listener cancelled fails in Google's emulator. One that has ended is not found.
            await _heard_out(conversation)
    finally:
        conversation.cancel()


async def _heard_out(conversation: Conversation) -> None:
    await conversation.finish()
    with suppress(Refused):
        while await conversation.read() is not None:
            pass
