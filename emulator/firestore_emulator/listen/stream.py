"""Listen: what a client sees of documents and queries, kept up to date over one stream.

A target's life: ADD, then each document of its initial state, then CURRENT. From then on each commit that touches it
sends the differences, and after them a NO_CHANGE with a read time, which tells the client that what it has of all
targets is one consistent moment. A target that was asked for `once` is removed at its first such moment. A target that
cannot be served is answered with REMOVE and the cause; the stream lives on.

A target that is taken up again (`resume.py`) begins with what changed since, and a count of what it should then have.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence

from firestore_emulator.documents.protos import Proto
from firestore_emulator.listen.access import Judge
from firestore_emulator.listen.existence_filter import existence_filter
from firestore_emulator.listen.messages import (
    ADD,
    CURRENT,
    NO_CHANGE,
    REMOVE,
    RESET,
    document_messages,
    target_change,
)
from firestore_emulator.listen.resume import resumed_from
from firestore_emulator.listen.targets import Effect, Target, parse_target, reads_of_changes
from firestore_emulator.meters.billing import reads_of_query
from firestore_emulator.rpc.errors import RpcError, invalid_argument
from firestore_emulator.rpc.service import Call
from firestore_emulator.rules.guard import Guard
from firestore_emulator.storage.engine import Change, Engine

CheckDatabase = Callable[[str], str]


async def listen(
    engine: Engine, requests: AsyncIterator[Proto], check_database: CheckDatabase, guard: Guard, call: Call
) -> AsyncIterator[Proto]:
    """One stream. A request is answered only when every commit so far has been told: then all targets stand at now."""
    commits: deque[tuple[Sequence[Change], int]] = deque()
    asked: deque[Proto | Exception | None] = deque()
    """None: the client will ask for nothing more."""
    news = asyncio.Event()
    watched = _Watched(engine, check_database, guard, call)

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

    def on_rules() -> None:
        on_commit((), engine.moment())

    engine.after_commit.append(on_commit)
    guard.on_change.append(on_rules)
    reader = asyncio.create_task(read_requests())
    try:
        while True:
            if commits:
                messages = list(watched.committed(*commits.popleft()))
            elif asked:
                request = asked.popleft()
                if request is None:
                    return
                if isinstance(request, Exception):
                    raise request
                messages = list(watched.asked(request))
            else:
                news.clear()
                await news.wait()
                continue
            await engine.settled()
            for message in messages:
                yield message
    finally:
        engine.after_commit.remove(on_commit)
        guard.on_change.remove(on_rules)
        reader.cancel()


class _Watched:
    """The targets of one stream, and what each event makes the stream say."""

    def __init__(self, engine: Engine, check_database: CheckDatabase, guard: Guard, call: Call) -> None:
        self._engine = engine
        self._check_database = check_database
        self._judge = Judge(engine, guard, call)
        self._targets: dict[int, Target] = {}
        self._gives_numbers = False
        """Once a client has left it to the server to number a target, it may number none itself."""

    def committed(self, changes: Sequence[Change], micros: int) -> Iterator[Proto]:
        """No changes: the rules are other ones now."""
        changed = {change.location for change in changes}
        for number in list(self._targets):
            try:
                self._judge.after(number, changed)
            except RpcError as error:
                yield from self._remove(number, error)
        effects: list[Effect] = []
        for target in self._targets.values():
            changed_in = list(target.committed(self._engine, changes, micros))
            if changed_in:
                self._bill(target, reads_of_changes(changed_in))
                self._judge.bill_again(target.id)
                effects += changed_in
        yield from document_messages(effects, micros)
        if effects:
            yield target_change(NO_CHANGE, [], micros)

    def asked(self, request: Proto) -> Iterator[Proto]:
        database = self._check_database(request.database)
        match request.WhichOneof("target_change"):
            case "add_target":
                yield from self._add(request.add_target, database)
            case "remove_target":
                yield from self._remove(request.remove_target)
            case _:
                raise invalid_argument("A listen request must add or remove a target.")

    def _remove(self, number: int, cause: RpcError | None = None) -> Iterator[Proto]:
        self._judge.forget(number)
        if self._targets.pop(number, None) is not None or cause is not None:
            removed = target_change(REMOVE, [number])
            if cause is not None:
                removed.target_change.cause.code = cause.code.value[0]
                removed.target_change.cause.message = cause.message
            yield removed

    def _add(self, asked: Proto, database: str) -> Iterator[Proto]:
        number = asked.target_id or max(self._targets, default=0) + 1
        if number < 0:
            raise invalid_argument("Target ids must not be negative.")
        if number in self._targets:
            raise invalid_argument(f"Target id {number} is in use on this stream.")
        if not asked.target_id:
            self._gives_numbers = True
        elif self._gives_numbers:
            yield from self._remove(number, invalid_argument("The server numbers the targets of this stream."))
            return
        yield target_change(ADD, [number])
        try:
            target = parse_target(number, asked, database)
            self._judge.begin(target, asked, database)
            messages = list(self._begun(target, asked, database))
        except RpcError as error:
            yield from self._remove(number, error)
            return
        self._targets[number] = target
        yield from messages
        if asked.once:
            yield from self._remove(number)

    def _begun(self, target: Target, asked: Proto, database: str) -> Iterator[Proto]:
        """What brings a client to now: from nothing, from what it has, or from nothing again."""
        now = self._engine.moment()
        since = resumed_from(asked, database, self._engine)
        if since is not None:
            effects = list(target.changed_since(self._engine, since))
            self._bill(target, reads_of_changes(effects))
            yield from document_messages(effects, now)
            wants_names = asked.expected_count.value > 0
            yield existence_filter(target.id, target.matching(self._engine), with_names=wants_names)
        else:
            if asked.WhichOneof("resume_type") is not None:
                yield target_change(RESET, [target.id])
            effects = list(target.initial(self._engine))
            self._bill(target, reads_of_query(len(effects), skipped=0) if target.is_query else len(effects))
            yield from document_messages(effects, now)
        yield target_change(CURRENT, [target.id], now)
        yield target_change(NO_CHANGE, [], now)

    def _bill(self, target: Target, reads: int) -> None:
        if reads:
            self._engine.billing.add("Listen", target.database, target.collection_id, reads=reads)
