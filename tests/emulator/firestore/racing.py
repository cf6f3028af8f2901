"""Clients that race over twenty documents and remember what each of their committed transactions read and wrote.

Each has a connection of its own. What they do is drawn from a seed; how their calls meet at the server is not. Every
write has a version that no other has, so that a read tells whose write it saw.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Any, TypeVar

from grpc import aio

from firestore_emulator.transactions.transaction import Concurrency
from tests.conformance.backends import CHANNEL_OPTIONS, Backend, Place, Refused
from tests.conformance.wire import REQUESTS, Proto, TransactionOptions, delete, fields_of, query, set_, stamp, where
from tests.emulator.firestore.serializability import Committed, Doc, NotSerializable, State, serial_order

CLIENTS = 8
DOCUMENTS = tuple(f"c/{number}" for number in range(20))
GROUPS = 5
TRANSACTIONS = 8
"""Of each client in one run."""
MOST_TRIES = 40
OWN_CONNECTION = (("grpc.use_local_subchannel_pool", 1),)

Key = TypeVar("Key")
Item = TypeVar("Item")


@dataclass
class Run:
    seed: int
    modes: tuple[Concurrency, ...] = ()
    """What the transactions ask for, one of these at random; none: they leave it to the database."""
    history: list[Committed] = field(default_factory=list)
    happened: Counter[str] = field(default_factory=Counter)
    versions: Iterator[int] = field(default_factory=lambda: count(1))


@asynccontextmanager
async def connection(address: str) -> AsyncIterator[Place]:
    channel = aio.insecure_channel(address, options=(*CHANNEL_OPTIONS, *OWN_CONNECTION))
    try:
        yield Place("grpc", channel, address)
    finally:
        await channel.close()


async def race(places: list[Place], run: Run) -> None:
    """One run, in a database of its own. Raises NotSerializable if no order explains it."""
    first = Backend(places[0])
    random = Random(f"{run.seed} documents")
    initial: State = {path: Doc(next(run.versions), random.randrange(GROUPS)) for path in DOCUMENTS[::2]}
    await first.seed({path: doc._asdict() for path, doc in initial.items()})
    clients = [Client(number, Backend(place, first.project), run) for number, place in enumerate(places)]
    try:
        async with asyncio.TaskGroup() as group:
            for client in clients:
                group.create_task(client.work())
    except* NotSerializable as seen:
        raise NotSerializable(str(seen.exceptions[0])) from seen
    serial_order(initial, run.history)


class Client:
    def __init__(self, number: int, backend: Backend, run: Run) -> None:
        self._number = number
        self._backend = backend
        self._run = run
        self._random = Random(f"{run.seed} {number}")

    async def work(self) -> None:
        for serial in range(TRANSACTIONS):
            kind = self._random.choice((self._read_write,) * 6 + (self._read_only, self._write_alone, self._read_alone))
            await kind(f"{self._number}.{serial}")

    async def _read_write(self, name: str) -> None:
        """Tried again until it is through, as the client libraries do; now and then its client gives it up."""
        earlier = b""
        for _ in range(MOST_TRIES):
            notes = _Notes(name, self._backend)
            transaction = await self._backend.begin(options=self._options(earlier))
            try:
                for _ in range(self._random.randint(1, 3)):
                    await self._read(notes, transaction)
                if self._random.random() < 0.1:
                    await self._backend.rollback(transaction)
                    self._run.happened["given up"] += 1
                    return
                writes = self._writes(notes)
                answer = await self._backend.commit(*writes, transaction=transaction)
            except Refused as refusal:
                self._run.happened[refusal.code] += 1
                if refusal.code == "ALREADY_EXISTS":
                    continue
                if refusal.code != "ABORTED":
                    raise
                earlier = transaction
                continue
            self._remember(notes, answer)
            return
        raise AssertionError(f"transaction {name} was aborted {MOST_TRIES} times")

    async def _read_only(self, name: str) -> None:
        notes = _Notes(name, self._backend)
        transaction = await self._backend.begin_read_only()
        for _ in range(self._random.randint(2, 4)):
            await self._read(notes, transaction)
        await self._backend.commit(transaction=transaction)
        self._remember(notes, None)

    async def _write_alone(self, name: str) -> None:
        for _ in range(MOST_TRIES):
            notes = _Notes(name, self._backend)
            try:
                answer = await self._backend.commit(*self._writes(notes, least=1))
            except Refused as refusal:
                self._run.happened[refusal.code] += 1
                if refusal.code not in ("ALREADY_EXISTS", "ABORTED"):
                    raise
                continue
            self._remember(notes, answer)
            return
        raise AssertionError(f"write {name} was refused {MOST_TRIES} times")

    async def _read_alone(self, name: str) -> None:
        notes = _Notes(name, self._backend)
        await self._read(notes, b"")
        self._remember(notes, None)

    def _options(self, earlier: bytes) -> Proto:
        options = TransactionOptions()
        options.read_write.retry_transaction = earlier
        if self._run.modes:
            mode = self._random.choice(self._run.modes)
            options.read_write.concurrency_mode = TransactionOptions.ConcurrencyMode.Value(mode.name)
        return options

    async def _read(self, notes: _Notes, transaction: bytes) -> None:
        match self._random.randrange(6):
            case 0 | 1 | 2:
                await notes.get(self._random.sample(DOCUMENTS, self._random.randint(1, 3)), transaction)
            case 3 | 4:
                await notes.find(self._random.randrange(GROUPS), transaction)
            case _:
                await notes.count(self._random.randrange(GROUPS), transaction)

    def _writes(self, notes: _Notes, least: int = 0) -> list[Proto]:
        writes = []
        # What was read is what a transaction most often writes.
        likely = [*notes.got, *notes.got, *DOCUMENTS]
        for path in {self._random.choice(likely) for _ in range(self._random.randint(least, 3))}:
            if self._random.random() < 0.2:
                writes.append(notes.removes(path))
            else:
                doc = Doc(next(self._run.versions), self._random.randrange(GROUPS))
                writes.append(notes.puts(path, doc, create=path not in notes.got and self._random.random() < 0.3))
        return writes

    def _remember(self, notes: _Notes, answer: Proto | None) -> None:
        wrote = bool(notes.wrote) and answer is not None
        when = stamp(answer.commit_time) if wrote and answer is not None else None
        self._run.happened["committed"] += 1
        self._run.history.append(
            Committed(
                name=notes.name,
                began=notes.began,
                ended=time.monotonic(),
                got=notes.got,
                found=notes.found,
                counted=notes.counted,
                wrote=notes.wrote,
                commit_micros=None if when is None else when.seconds * 1_000_000 + when.nanos // 1_000,
            )
        )


class _Notes:
    """One try: what it has read, and what it is about to write."""

    def __init__(self, name: str, backend: Backend) -> None:
        self.name = name
        self.began = time.monotonic()
        self.got: dict[str, Doc | None] = {}
        self.found: dict[int, dict[str, Doc]] = {}
        self.counted: dict[int, int] = {}
        self.wrote: dict[str, Doc | None] = {}
        self._backend = backend

    async def get(self, paths: list[str], transaction: bytes) -> None:
        request = REQUESTS["BatchGetDocuments"](
            database=self._backend.database,
            documents=[self._backend.name(path) for path in paths],
            **_in(transaction),
        )
        for answer in await self._backend.call("BatchGetDocuments", request):
            if answer.HasField("found"):
                self._same(self.got, self._backend.path(answer.found.name), _doc(answer.found))
            else:
                self._same(self.got, self._backend.path(answer.missing), None)

    async def find(self, group: int, transaction: bytes) -> None:
        found = await self._backend.documents(_asked(group), **_in(transaction))
        self._same(self.found, group, {self._backend.path(item.name): _doc(item) for item in found})

    async def count(self, group: int, transaction: bytes) -> None:
        request = REQUESTS["RunAggregationQuery"](parent=self._backend.root, **_in(transaction))
        request.structured_aggregation_query.structured_query.CopyFrom(_asked(group))
        request.structured_aggregation_query.aggregations.add(alias="n").count.SetInParent()
        [answer] = await self._backend.call("RunAggregationQuery", request)
        self._same(self.counted, group, answer.result.aggregate_fields["n"].integer_value)

    def _same(self, notes: dict[Key, Item], key: Key, item: Item) -> None:
        if notes.setdefault(key, item) != item:
            raise NotSerializable(f"{self.name} read {key} twice and saw {notes[key]}, then {item}")

    def puts(self, path: str, doc: Doc, *, create: bool) -> Proto:
        self.wrote[path] = doc
        if create:
            self.got[path] = None  # or the commit is refused
            return set_(self._backend.name(path), doc._asdict(), exists=False)
        return set_(self._backend.name(path), doc._asdict())

    def removes(self, path: str) -> Proto:
        self.wrote[path] = None
        return delete(self._backend.name(path))


def _asked(group: int) -> Proto:
    return query("c", where("group", "==", group))


def _in(transaction: bytes) -> dict[str, Any]:
    return {"transaction": transaction} if transaction else {}


def _doc(document: Proto) -> Doc:
    fields = fields_of(document)
    return Doc(fields["version"], fields["group"])
