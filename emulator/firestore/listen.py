"""Listen: what a client sees of a document or a query, kept up to date over one stream.

A target's life: ADD, then each document of its initial state, then CURRENT. From then on each commit that touches it
sends the differences, and after them a NO_CHANGE with a read time, which tells the client that what it has is one
consistent moment. A target that cannot be served is answered with REMOVE and the cause; the stream lives on.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from emulator.firestore.engine import Change, Engine
from emulator.firestore.fields import project
from emulator.firestore.names import Location, parse_document, parse_parent
from emulator.firestore.protos import ListenResponse, Proto, TargetChange
from emulator.firestore.query import Query, parse_query
from emulator.firestore.storage import location_of
from emulator.firestore.times import set_stamp
from emulator.rpc.errors import RpcError, invalid_argument

_kind = TargetChange.TargetChangeType.Value
ADD, REMOVE, CURRENT, RESET, NO_CHANGE = map(_kind, ("ADD", "REMOVE", "CURRENT", "RESET", "NO_CHANGE"))


@dataclass(slots=True)
class _DocumentsTarget:
    id: int
    locations: frozenset[Location]


@dataclass(slots=True)
class _QueryTarget:
    id: int
    query: Query
    shown: set[Location] = field(default_factory=set)
    """What the client has."""

    @property
    def is_windowed(self) -> bool:
        """With a limit or an offset, one document's change can bring in or push out another."""
        return self.query.limit is not None or self.query.offset > 0


_Target = _DocumentsTarget | _QueryTarget


async def listen(
    engine: Engine, requests: AsyncIterator[Proto], check_database: Callable[[str], str]
) -> AsyncIterator[Proto]:
    """One stream. A request is answered only when every commit so far has been told: then all targets stand at now."""
    commits: deque[tuple[Sequence[Change], int]] = deque()
    asked: deque[Proto | Exception | None] = deque()
    """None: the client will ask for nothing more."""
    news = asyncio.Event()
    targets: dict[int, _Target] = {}

    async def read_requests() -> None:
        try:
            async for request in requests:
                asked.append(request)
                news.set()
            asked.append(None)
        except Exception as error:  # noqa: BLE001 - carried to the stream, which answers with it
            asked.append(error)
        news.set()

    def on_commit(changes: Sequence[Change], micros: int) -> None:
        commits.append((changes, micros))
        news.set()

    engine.after_commit.append(on_commit)
    reader = asyncio.create_task(read_requests())
    try:
        while True:
            if commits:
                messages = list(_differences(engine, targets.values(), *commits.popleft()))
            elif asked:
                request = asked.popleft()
                if request is None:
                    return
                if isinstance(request, Exception):
                    raise request
                messages = list(_answer(engine, request, targets, check_database))
            else:
                news.clear()
                await news.wait()
                continue
            await engine.settled()
            for message in messages:
                yield message
    finally:
        engine.after_commit.remove(on_commit)
        reader.cancel()


def _answer(
    engine: Engine, request: Proto, targets: dict[int, _Target], check_database: Callable[[str], str]
) -> Iterator[Proto]:
    check_database(request.database)
    match request.WhichOneof("target_change"):
        case "add_target":
            yield from _add(engine, request.add_target, targets)
        case "remove_target":
            if targets.pop(request.remove_target, None) is not None:
                yield _target_change(REMOVE, [request.remove_target])
        case _:
            raise invalid_argument("A listen request must add or remove a target.")


def _add(engine: Engine, target: Proto, targets: dict[int, _Target]) -> Iterator[Proto]:
    number = target.target_id or max(targets, default=0) + 1
    if number < 0:
        raise invalid_argument("Target ids must not be negative.")
    if number in targets:
        raise invalid_argument(f"Target id {number} is in use on this stream.")
    yield _target_change(ADD, [number])
    try:
        now = engine.now_micros()
        added = _parse_target(number, target)
        messages = list(_initial(engine, added))
    except RpcError as error:
        removed = _target_change(REMOVE, [number])
        removed.target_change.cause.code = error.code.value[0]
        removed.target_change.cause.message = error.message
        yield removed
        return
    targets[number] = added
    if target.WhichOneof("resume_type") is not None:
        # What the client has is thrown away and sent again: always right, if not the least.
        yield _target_change(RESET, [number])
    yield from messages
    yield _target_change(CURRENT, [number], now)
    yield _target_change(NO_CHANGE, [], now)


def _parse_target(number: int, target: Proto) -> _Target:
    match target.WhichOneof("target_type"):
        case "documents":
            locations = frozenset(parse_document(name) for name in target.documents.documents)
            return _DocumentsTarget(number, locations)
        case "query":
            query = parse_query(parse_parent(target.query.parent), target.query.structured_query)
            return _QueryTarget(number, query)
    raise invalid_argument("A target must be documents or a query.")


def _initial(engine: Engine, target: _Target) -> Iterator[Proto]:
    match target:
        case _DocumentsTarget():
            for location in sorted(target.locations, key=lambda one: one.segments):
                document = engine.get(location)
                if document is None:
                    yield _deleted(location, target.id, engine.now_micros())
                else:
                    yield _changed(document, target.id)
        case _QueryTarget():
            for document in engine.run(target.query):
                target.shown.add(location_of(document))
                yield _changed(document, target.id)


def _differences(engine: Engine, targets: Iterable[_Target], changes: Sequence[Change], micros: int) -> Iterator[Proto]:
    anything = False
    for target in targets:
        for message in _target_differences(engine, target, changes, micros):
            anything = True
            yield message
    if anything:
        yield _target_change(NO_CHANGE, [], micros)


def _target_differences(engine: Engine, target: _Target, changes: Sequence[Change], micros: int) -> Iterator[Proto]:
    if isinstance(target, _DocumentsTarget):
        for change in changes:
            if change.location in target.locations:
                yield (
                    _deleted(change.location, target.id, micros)
                    if change.new is None
                    else _changed(change.new, target.id)
                )
        return
    query = target.query
    touched = [change for change in changes if query.covers(change.location)]
    if not touched:
        return
    if target.is_windowed:
        yield from _rerun(engine, target, touched, micros)
        return
    for change in touched:
        if change.new is not None and query.matches(change.location, change.new):
            target.shown.add(change.location)
            yield _changed(_shown(query, change.new), target.id)
        elif change.location in target.shown:
            target.shown.discard(change.location)
            yield _gone(change, target.id, micros)


def _rerun(engine: Engine, target: _QueryTarget, touched: Sequence[Change], micros: int) -> Iterator[Proto]:
    now = {location_of(document): document for document in engine.run(target.query, micros)}
    changed = {change.location: change for change in touched}
    for location in target.shown - now.keys():
        change = changed.get(location)
        yield (_gone(change, target.id, micros) if change is not None else _removed(location, target.id, micros))
    for location, document in now.items():
        if location not in target.shown or location in changed:
            yield _changed(document, target.id)
    target.shown = set(now)


def _shown(query: Query, document: Proto) -> Proto:
    return document if query.projection is None else project(document, query.projection)


def _gone(change: Change, target_id: int, micros: int) -> Proto:
    if change.new is None:
        return _deleted(change.location, target_id, micros)
    return _removed(change.location, target_id, micros)


def _changed(document: Proto, target_id: int) -> Proto:
    message = ListenResponse()
    message.document_change.document.CopyFrom(document)
    message.document_change.target_ids.append(target_id)
    return message


def _deleted(location: Location, target_id: int, micros: int) -> Proto:
    message = ListenResponse()
    message.document_delete.document = location.name
    message.document_delete.removed_target_ids.append(target_id)
    set_stamp(message.document_delete.read_time, micros)
    return message


def _removed(location: Location, target_id: int, micros: int) -> Proto:
    message = ListenResponse()
    message.document_remove.document = location.name
    message.document_remove.removed_target_ids.append(target_id)
    set_stamp(message.document_remove.read_time, micros)
    return message


def _target_change(kind: int, target_ids: list[int], micros: int | None = None) -> Proto:
    message = ListenResponse()
    change = message.target_change
    change.target_change_type = kind
    change.target_ids.extend(target_ids)
    change.SetInParent()
    if micros is not None:
        set_stamp(change.read_time, micros)
        change.resume_token = micros.to_bytes(8, "big")
    return message
