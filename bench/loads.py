"""What both emulators are asked to do when they are measured: writes, claims, queries, listeners.

The same calls go to every server, on a bare channel: what can be serialized before the clock starts is, and answers
stay bytes wherever nothing in them is needed. Each load checks afterwards that the work was done.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, TypeVar

import grpc
from google.cloud.firestore_v1 import types
from grpc import aio

from bench.places import Place
from bench.queries import DATABASE, LIMIT, document, outbox_query

IN_FLIGHT = 50
BATCH = 500
BATCHES_IN_FLIGHT = 2
QUERIES_IN_FLIGHT = 4
CONTENDED_DOCUMENTS = 10
LISTENERS_A_CONNECTION = 20
PATIENCE_SECONDS = 240.0

Job = TypeVar("Job")
Proto = Any  # raw protobuf classes, made at run time
_Begin: Proto = types.BeginTransactionRequest.pb()
_Begun: Proto = types.BeginTransactionResponse.pb()
_BatchGet: Proto = types.BatchGetDocumentsRequest.pb()
_Got: Proto = types.BatchGetDocumentsResponse.pb()
_Commit: Proto = types.CommitRequest.pb()
_Listen: Proto = types.ListenRequest.pb()
_Listened: Proto = types.ListenResponse.pb()
_RunQuery: Proto = types.RunQueryRequest.pb()
_RunQueryAnswer: Proto = types.RunQueryResponse.pb()
_METADATA = (("authorization", "Bearer owner"),)
_LISTEN_METADATA = (*_METADATA, ("google-cloud-resource-prefix", DATABASE))  # Google's answers nothing without
_CURRENT_STATE = b"CURRENT"
_CURRENT = types.TargetChange.TargetChangeType.CURRENT


@dataclass(frozen=True)
class Sample:
    operations: int
    seconds: float
    client_cpu_seconds: float
    server_cpu_seconds: float | None
    latencies: list[float] = field(default_factory=list)
    """In seconds; only where a load measures them."""

    @property
    def rate(self) -> float:
        return self.operations / self.seconds


class Calls:
    """Firestore's methods on one channel, bytes in and bytes out."""

    def __init__(self, channel: aio.Channel) -> None:
        service = "/google.firestore.v1.Firestore/"
        self._commit = channel.unary_unary(service + "Commit")
        self._begin = channel.unary_unary(service + "BeginTransaction")
        self._get = channel.unary_unary(service + "GetDocument")
        self._batch_get = channel.unary_stream(service + "BatchGetDocuments")
        self._query = channel.unary_stream(service + "RunQuery")
        self._listen = channel.stream_stream(service + "Listen")

    async def answers(self) -> None:
        """Returns when a document that is not there was asked for, and the server said so."""
        request = types.GetDocumentRequest.pb()(name=f"{DATABASE}/documents/nothing/here")
        try:
            await self._get(request.SerializeToString(), metadata=_METADATA, wait_for_ready=True)
        except aio.AioRpcError as error:
            if error.code() != grpc.StatusCode.NOT_FOUND:
                raise

    async def commit(self, request: bytes) -> None:
        await self._commit(request, metadata=_METADATA)

    async def begin(self) -> bytes:
        answer = await self._begin(_Begin(database=DATABASE).SerializeToString(), metadata=_METADATA)
        begun: bytes = _Begun.FromString(answer).transaction
        return begun

    async def get(self, name: str, transaction: bytes = b"") -> Proto:
        request = _BatchGet(database=DATABASE, documents=[name])
        if transaction:
            request.transaction = transaction
        answers = [one async for one in self._batch_get(request.SerializeToString(), metadata=_METADATA)]
        return _Got.FromString(answers[-1]).found

    async def query(self, request: bytes) -> list[bytes]:
        return [answer async for answer in self._query(request, metadata=_METADATA)]

    def listen(self, request: bytes, hold: asyncio.Event) -> AsyncIterator[bytes]:
        async def requests() -> AsyncIterator[bytes]:
            yield request
            await hold.wait()

        answers: AsyncIterator[bytes] = aiter(self._listen(requests(), metadata=_LISTEN_METADATA))
        return answers


# --- what every load is made of


def _documents(collection: str, numbers: Iterable[int]) -> list[Proto]:
    made = []
    for number in numbers:
        one = document(number)
        one.name = one.name.replace("/outbox/", f"/{collection}/")
        made.append(one)
    return made


def _put(documents: Iterable[Proto]) -> bytes:
    request = _Commit(database=DATABASE)
    for one in documents:
        request.writes.add().update.CopyFrom(one)
    serialized: bytes = request.SerializeToString()
    return serialized


def _indexed_query(collection: str) -> bytes:
    request = outbox_query()
    request.structured_query.from_[0].collection_id = collection
    serialized: bytes = request.SerializeToString()
    return serialized


async def _new_collection(calls: Calls) -> str:
    """Empty, and asked the outbox's query once: a server that keeps an index for it pays for it with every write."""
    collection = f"outbox-{secrets.token_hex(4)}"
    await calls.query(_indexed_query(collection))
    return collection


async def _count(calls: Calls, collection: str) -> int:
    """By reading their names."""
    request = _RunQuery(parent=f"{DATABASE}/documents")
    request.structured_query.from_.add().collection_id = collection
    request.structured_query.select.fields.add().field_path = "__name__"
    answers = await calls.query(request.SerializeToString())
    return sum(_RunQueryAnswer.FromString(answer).HasField("document") for answer in answers)


async def _at_a_time(width: int, jobs: Iterable[Job], work: Callable[[Job], Awaitable[None]]) -> None:
    waiting = iter(jobs)

    async def worker() -> None:
        for job in waiting:
            await work(job)

    async with asyncio.TaskGroup() as group:
        for _ in range(width):
            group.create_task(worker())


class Watch:
    """Wall time, and the processor time of both sides, between `start` and `stop`."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._server, self._client, self._began = place.cpu_seconds(), time.process_time(), time.perf_counter()

    def stop(self, operations: int, latencies: list[float] | None = None) -> Sample:
        seconds, client, server = (
            time.perf_counter() - self._began,
            time.process_time() - self._client,
            self._place.cpu_seconds(),
        )
        used = None if server is None or self._server is None else server - self._server
        return Sample(operations, seconds, client, used, latencies or [])


# --- the loads


async def single_writes(place: Place, documents: int) -> Sample:
    """New documents, one a commit."""
    calls = Calls(place.channel)
    collection = await _new_collection(calls)
    requests = [_put([one]) for one in _documents(collection, range(documents))]
    watch = Watch(place)
    await _at_a_time(IN_FLIGHT, requests, calls.commit)
    sample = watch.stop(documents)
    _must_be(await _count(calls, collection), documents, "documents written one by one")
    return sample


async def batched_writes(place: Place, documents: int) -> Sample:
    """New documents, 500 a commit."""
    calls = Calls(place.channel)
    collection = await _new_collection(calls)
    requests = [_put(batch) for batch in _batches(collection, range(documents))]
    watch = Watch(place)
    await _at_a_time(BATCHES_IN_FLIGHT, requests, calls.commit)
    sample = watch.stop(documents)
    _must_be(await _count(calls, collection), documents, "documents written in batches")
    return sample


async def overwrites(place: Place, documents: int) -> Sample:
    """Documents that exist, 500 a commit."""
    calls = Calls(place.channel)
    collection = await _new_collection(calls)
    requests = [_put(batch) for batch in _batches(collection, range(documents))]
    await _at_a_time(BATCHES_IN_FLIGHT, requests, calls.commit)
    watch = Watch(place)
    await _at_a_time(BATCHES_IN_FLIGHT, requests, calls.commit)
    sample = watch.stop(documents)
    _must_be(await _count(calls, collection), documents, "documents written over")
    return sample


async def mixed_batches(place: Place, documents: int) -> Sample:
    """500 a commit: half of them new, a quarter written over, a quarter deleted."""
    calls = Calls(place.channel)
    collection = await _new_collection(calls)
    half, quarter = documents // 2, documents // 4
    for batch in _batches(collection, range(half)):
        await calls.commit(_put(batch))
    requests = []
    for first in range(0, quarter, BATCH // 4):
        last = min(first + BATCH // 4, quarter)
        request = _Commit(database=DATABASE)
        new = range(half + 2 * first, half + 2 * last)
        for one in _documents(collection, [*new, *range(first, last)]):
            request.writes.add().update.CopyFrom(one)
        for one in _documents(collection, range(quarter + first, quarter + last)):
            request.writes.add().delete = one.name
        requests.append(request.SerializeToString())
    watch = Watch(place)
    await _at_a_time(BATCHES_IN_FLIGHT, requests, calls.commit)
    sample = watch.stop(4 * quarter)
    _must_be(await _count(calls, collection), half + quarter, "documents after mixed batches")
    return sample


async def write_then_query(place: Place, documents: int) -> Sample:
    """New documents, 500 a commit, and the outbox's query after each."""
    calls = Calls(place.channel)
    collection = await _new_collection(calls)
    requests = [_put(batch) for batch in _batches(collection, range(documents))]
    query = _indexed_query(collection)
    found: list[bytes] = []
    watch = Watch(place)
    for request in requests:
        await calls.commit(request)
        found = await calls.query(query)
    sample = watch.stop(documents)
    _must_be(len(found), LIMIT, "documents found after the last batch")
    return sample


async def claims(place: Place, documents: int) -> Sample:
    """Each document is claimed once: begin, read it, see that it is free, mark it, commit."""
    calls = Calls(place.channel)
    names = await _free_documents(calls, documents)
    watch = Watch(place)
    await _at_a_time(IN_FLIGHT, names, lambda name: _claim(calls, name, must_be_free=True))
    sample = watch.stop(documents)
    for name in (names[0], names[-1]):
        _must_be((await calls.get(name)).fields["attempts"].integer_value, 1, f"claims of {name}")
    return sample


async def contended_claims(place: Place, claimed: int, most_seconds: float) -> Sample:
    """Fifty at a time want the same ten documents, each of them many times. A client that gets ABORTED begins again."""
    calls = Calls(place.channel)
    names = await _free_documents(calls, CONTENDED_DOCUMENTS)
    done = 0
    watch, deadline = Watch(place), time.perf_counter() + most_seconds

    async def claim(number: int) -> None:
        nonlocal done
        while time.perf_counter() < deadline:
            try:
                await _claim(calls, names[number % CONTENDED_DOCUMENTS], must_be_free=False)
            except aio.AioRpcError as error:
                if error.code() != grpc.StatusCode.ABORTED:
                    raise
            else:
                done += 1
                return

    await _at_a_time(IN_FLIGHT, range(claimed), claim)
    sample = watch.stop(done)
    total = sum([(await calls.get(name)).fields["attempts"].integer_value for name in names])
    _must_be(total, done, "contended claims")
    return sample


async def _free_documents(calls: Calls, documents: int) -> list[str]:
    collection = await _new_collection(calls)
    names: list[str] = []
    for first in range(0, documents, BATCH):
        made = _documents(collection, range(first, min(first + BATCH, documents)))
        names += [one.name for one in made]
        await calls.commit(_put(made))
    return names


async def _claim(calls: Calls, name: str, *, must_be_free: bool) -> None:
    transaction = await calls.begin()
    found = await calls.get(name, transaction)
    attempts = found.fields["attempts"].integer_value
    if must_be_free and attempts:
        raise RuntimeError(f"{name} was claimed twice")
    request = _Commit(database=DATABASE, transaction=transaction)
    write = request.writes.add()
    write.update.name = name
    write.update.fields["status"].string_value = "sending"
    write.update.fields["attempts"].integer_value = attempts + 1
    write.update_mask.field_paths.extend(["status", "attempts"])
    write.current_document.exists = True
    await calls.commit(request.SerializeToString())


async def queries(place: Place, most: int, most_seconds: float) -> Sample:
    """The outbox's query, four at a time, as many as fit into the time; one is always let finish."""
    calls = Calls(place.channel)
    request = _indexed_query("outbox")
    answers = await calls.query(request)  # makes the index, where there is such a thing
    times = [
        _RunQueryAnswer.FromString(one).document.fields["nextAttemptAt"].timestamp_value.seconds for one in answers
    ]
    _must_be(len(times), LIMIT, "documents found")
    _must_be(times, sorted(times), "order of the documents found")
    done, latencies = 0, []
    watch, deadline = Watch(place), time.perf_counter() + most_seconds

    async def ask(number: int) -> None:
        nonlocal done
        if time.perf_counter() >= deadline:
            return
        before = time.perf_counter()
        _must_be(len(await calls.query(request)), LIMIT, "documents found")
        latencies.append(time.perf_counter() - before)
        done += 1

    await _at_a_time(QUERIES_IN_FLIGHT, range(most), ask)
    return watch.stop(done, latencies)


async def grow(place: Place, first: int, end: int, most_seconds: float) -> bool:
    """Loads outbox documents; False if that was not done in time."""
    calls, deadline = Calls(place.channel), time.perf_counter() + most_seconds
    # Made as they are sent: a million of them do not fit.
    batches = (_put(batch) for batch in _batches("outbox", range(first, end)) if time.perf_counter() < deadline)
    await _at_a_time(BATCHES_IN_FLIGHT, batches, calls.commit)
    return time.perf_counter() < deadline


def _batches(collection: str, numbers: range) -> Iterable[list[Proto]]:
    for first in range(numbers.start, numbers.stop, BATCH):
        yield _documents(collection, range(first, min(first + BATCH, numbers.stop)))


async def listen(place: Place, listeners: int, changes: int) -> Sample:
    """From sending a commit to its sight by each listener; the next is sent when all have seen it."""
    calls, collection = Calls(place.channel), f"watched-{secrets.token_hex(4)}"
    watched = _documents(collection, [0])[0]
    await calls.commit(_put([watched]))
    request = _Listen(database=DATABASE)
    request.add_target.target_id = 1
    request.add_target.query.parent = f"{DATABASE}/documents"
    query = request.add_target.query.structured_query
    query.from_.add().collection_id = collection
    one = query.where.field_filter
    one.field.field_path, one.op, one.value.string_value = "accountId", 5, "account-0"
    board = _Board(listeners)
    async with AsyncExitStack() as stack:
        tasks = []
        for number in range(listeners):
            if number % LISTENERS_A_CONNECTION == 0:
                channel = await stack.enter_async_context(_own_connection(place.address))
            stream = Calls(channel).listen(request.SerializeToString(), board.hold)
            tasks.append(asyncio.create_task(board.follow(stream)))
        try:
            await board.seen_by_all()
            watch = Watch(place)
            for number in range(changes):
                watched.fields["threadId"].string_value = f"change-{number:08}"
                board.seek(b"change-%08d" % number)
                await calls.commit(_put([watched]))
                await board.seen_by_all()
            sample = watch.stop(changes, board.latencies)
        finally:
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
    for error in ended:
        if not isinstance(error, asyncio.CancelledError):
            raise RuntimeError("a listener ended before the measurement") from error
    _must_be(len(sample.latencies), listeners * changes, "changes seen")
    return sample


def _own_connection(address: str) -> aio.Channel:
    return aio.insecure_channel(address, [("grpc.use_local_subchannel_pool", 1)])


class _Board:
    """What is looked for now, and how many have seen it. First all wait for the initial state."""

    def __init__(self, listeners: int) -> None:
        self.latencies: list[float] = []
        self.hold = asyncio.Event()
        """Never set: a stream stays open until its task is cancelled."""
        self._listeners = listeners
        self.seek(_CURRENT_STATE)

    def seek(self, sought: bytes) -> None:
        self._sought, self._seen, self._since, self._by_all = sought, 0, time.perf_counter(), asyncio.Event()

    async def seen_by_all(self) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await self._by_all.wait()

    async def follow(self, answers: AsyncIterator[bytes]) -> None:
        last = b""
        async for answer in answers:
            if self._sought == last or not self._is_in(answer):
                continue  # one change may come twice: some servers send the whole result again
            last = self._sought
            if last != _CURRENT_STATE:
                self.latencies.append(time.perf_counter() - self._since)
            self._seen += 1
            if self._seen == self._listeners:
                self._by_all.set()

    def _is_in(self, answer: bytes) -> bool:
        if self._sought != _CURRENT_STATE:
            return self._sought in answer  # not parsed: a hundred listeners share this process
        return bool(_Listened.FromString(answer).target_change.target_change_type == _CURRENT)


def _must_be(found: object, wanted: object, what: str) -> None:
    if found != wanted:
        raise RuntimeError(f"{what}: {found!r} and not {wanted!r}")
