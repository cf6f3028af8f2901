"""The only place that talks to Firestore: reads, queries and commits, on raw protobuf messages.

It stands on the real client's channel (so credentials, emulator and in-process transport are the client's business),
and leaves out the client's document layer, which costs more processor time than the rest of the worker.

Two rules. A commit that loses a precondition is a normal answer (`Conflict`), not an error. And a commit whose answer
did not come is tried again only if trying again is harmless: every write here is either guarded by a precondition or
sets the same values; but the second try may meet the first one's effect, so after a `Conflict` that followed a lost
answer (`maybe_ours`), the caller must look whose it is.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

import grpc
from google.cloud.firestore import AsyncClient

from firestore_outbox import metrics
from firestore_outbox.errors import StoreUnavailable, Unwritable
from firestore_outbox.firestore import protos
from firestore_outbox.firestore.compare_and_set import CompareAndSet
from firestore_outbox.firestore.protos import Proto
from firestore_outbox.firestore.queries import Find, fill
from firestore_outbox.firestore.size import WIRE_FACTOR, document_size
from firestore_outbox.firestore.streams import InLoop, InThread, ReadStream
from firestore_outbox.firestore.values import Version, from_fields, from_timestamp, scalars_of, time_of
from firestore_outbox.firestore.writes import WriteOp, add_write

T = TypeVar("T")

RPC_TIMEOUT_SECONDS = 10.0
TRIES = 5
FIRST_PAUSE_SECONDS = 0.05
DECODED_IN_LOOP_BYTES = 64 * 1024
"""Documents read by name, if they are larger together, are decoded in a thread."""

_NOT_APPLIED = {grpc.StatusCode.ABORTED, grpc.StatusCode.RESOURCE_EXHAUSTED}
_PERHAPS_APPLIED = {
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.INTERNAL,
    grpc.StatusCode.UNKNOWN,
    grpc.StatusCode.CANCELLED,
}
_LOST = {grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.NOT_FOUND, grpc.StatusCode.ALREADY_EXISTS}


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A document as it was read."""

    path: str
    data: dict[str, Any]
    version: Version
    created: datetime
    size_bytes: int = 0
    """On the wire; where `hollow_above` was given, as Firestore counts it if that is more."""
    is_hollow: bool = False
    """It was larger than the reader takes: `data` has all fields, but None for each list and map."""

    @property
    def id(self) -> str:
        return self.path.rsplit("/", 1)[-1]

    @property
    def updated(self) -> datetime:
        return time_of(self.version)


@dataclass(frozen=True, slots=True)
class Found:
    """What a query returned, and the moment at which that was true."""

    found: list[Snapshot]
    moment: datetime
    is_cut: bool = False
    """Reading stopped at the query's `most_bytes`; more documents may follow the last one."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """A precondition did not hold; nothing was written."""

    maybe_ours: bool
    """An earlier try of the same commit was not answered, so what stands in the way may be its effect."""


@dataclass(frozen=True, slots=True)
class Committed:
    versions: tuple[Version, ...]
    """Of each write's document afterwards, in order."""


class Gateway:
    def __init__(
        self,
        client: AsyncClient,
        *,
        queries: grpc.Channel | None = None,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        """`queries` is a channel for queries alone, read in threads; without it they share the client's."""
        self._client = client
        self._queries = queries  # kept: a channel without a reference is closed
        self._jitter = jitter
        self.compare_and_set = CompareAndSet(jitter)
        self._database = client._database_string
        self._root = f"{self._database}/documents"
        self._metadata = [("google-cloud-resource-prefix", self._database)]
        if client._emulator_host:
            self._metadata.append(("authorization", "Bearer owner"))
        channel = client._firestore_api.transport.grpc_channel
        self._batch_get = _method(channel.unary_stream, "BatchGetDocuments", protos.BatchGetDocumentsResponse)
        self._threads = (
            None if queries is None else InThread(_method(queries.unary_stream, "RunQuery", protos.RunQueryResponse))
        )
        self._run_query: ReadStream = self._threads or InLoop(
            _method(channel.unary_stream, "RunQuery", protos.RunQueryResponse)
        )
        self._aggregate = _method(channel.unary_stream, "RunAggregationQuery", protos.RunAggregationQueryResponse)
        self._commit = _method(channel.unary_unary, "Commit", protos.CommitResponse)
        self._listen = _method(channel.stream_stream, "Listen", protos.ListenResponse)

    # --- reads

    async def get(self, path: str) -> Snapshot | None:
        return (await self.get_all([path])).get(path)

    async def get_all(self, paths: Sequence[str], *, hollow_above: int | None = None) -> dict[str, Snapshot]:
        """Those that exist, by path. Documents above `hollow_above` bytes come hollow."""
        if not paths:
            return {}
        request = protos.BatchGetDocumentsRequest(database=self._database)
        request.documents.extend(f"{self._root}/{path}" for path in paths)

        async def read() -> dict[str, Snapshot]:
            answers = [
                answer.found
                async for answer in self._batch_get(request, timeout=RPC_TIMEOUT_SECONDS, metadata=self._metadata)
                if answer.HasField("found")
            ]
            if self._threads is not None and sum(answer.ByteSize() for answer in answers) > DECODED_IN_LOOP_BYTES:
                return await self._threads.run(lambda: self._by_path(answers, hollow_above))
            return self._by_path(answers, hollow_above)

        found = await self._reading(read)
        metrics.firestore("read", len(paths))  # a document that is missing is billed too
        return found

    async def find(self, query: Find) -> list[Snapshot]:
        return (await self.find_at(query, None)).found

    async def find_at(self, query: Find, moment: datetime | None) -> Found:
        """As it was at that moment, at most a minute ago; None: now."""
        request = protos.RunQueryRequest()
        fill(request, self._root, query)
        if moment is not None:
            request.read_time.FromDatetime(moment)

        def decode(answer: Proto) -> tuple[Snapshot | None, datetime]:
            has_one = answer.HasField("document")
            return self._snapshot(answer.document, query.hollow_above) if has_one else None, from_timestamp(
                answer.read_time
            )

        async def read() -> Found:
            answers = await self._run_query(
                request,
                decode,
                most_bytes=query.most_bytes,
                within_seconds=RPC_TIMEOUT_SECONDS,
                metadata=self._metadata,
            )
            documents = [snapshot for snapshot, _ in answers.items if snapshot is not None]
            return Found(documents, answers.items[-1][1], answers.is_cut)

        try:
            found = await self._reading(read)
        except grpc.RpcError as error:
            if moment is not None and error.code() is grpc.StatusCode.FAILED_PRECONDITION:
                raise StoreUnavailable(f"Firestore could not read at {moment:%X.%f}: {error.details()}") from error
            raise
        metrics.firestore("read", max(1, len(found.found)))
        return found

    async def count(self, query: Find) -> int:
        request = protos.RunAggregationQueryRequest()
        structured = protos.RunQueryRequest()
        fill(structured, self._root, query)
        request.parent = structured.parent
        request.structured_aggregation_query.structured_query.CopyFrom(structured.structured_query)
        request.structured_aggregation_query.aggregations.add(alias="n").count.SetInParent()

        async def read() -> int:
            async for answer in self._aggregate(request, timeout=RPC_TIMEOUT_SECONDS, metadata=self._metadata):
                return int(answer.result.aggregate_fields["n"].integer_value)
            return 0

        return await self._reading(read)

    async def watch(self, query: Find) -> AsyncIterator[list[Snapshot]]:
        """The query's documents that are new or changed, commit by commit, until the stream breaks.

        The first item is what the query holds now, also if that is nothing.
        """
        request = protos.ListenRequest(database=self._database)
        target = protos.RunQueryRequest()
        fill(target, self._root, query)
        request.add_target.target_id = 1
        request.add_target.query.parent = target.parent
        request.add_target.query.structured_query.CopyFrom(target.structured_query)
        gone = asyncio.Event()

        async def requests() -> AsyncIterator[Proto]:
            yield request
            await gone.wait()  # the stream lives for as long as its request side is open

        changed: list[Snapshot] = []
        started = False
        try:
            async for answer in self._listen(requests(), metadata=self._metadata):
                if answer.HasField("document_change"):
                    changed.append(self._snapshot(answer.document_change.document))
                elif answer.HasField("target_change"):
                    change = answer.target_change
                    if change.HasField("cause") and change.cause.code:
                        raise StoreUnavailable(f"the listener was refused: {change.cause.message}")
                    # NO_CHANGE with no target and a read time: what came so far is one consistent moment.
                    is_moment = (
                        change.target_change_type == 0 and not change.target_ids and change.HasField("read_time")
                    )
                    if is_moment and (changed or not started):
                        started = True
                        yield changed
                        changed = []
        except grpc.aio.AioRpcError as error:
            raise StoreUnavailable(f"the listener broke: {error.details()}") from error
        finally:
            gone.set()

    # --- writes

    async def commit(self, writes: Sequence[WriteOp]) -> Committed | Conflict:
        """All of them, or none and a `Conflict`."""
        request = protos.CommitRequest(database=self._database)
        for write in writes:
            add_write(request, self._root, write)
        maybe_applied = False
        for attempt in range(TRIES):
            try:
                answer = await self._commit(request, timeout=RPC_TIMEOUT_SECONDS, metadata=self._metadata)
            except grpc.aio.AioRpcError as error:
                code = error.code()
                if code in _LOST:
                    return Conflict(maybe_ours=maybe_applied)
                if code is grpc.StatusCode.INVALID_ARGUMENT:
                    raise Unwritable(error.details()) from error
                if code not in _NOT_APPLIED | _PERHAPS_APPLIED:
                    raise
                maybe_applied = maybe_applied or code in _PERHAPS_APPLIED
                if attempt == TRIES - 1:
                    raise StoreUnavailable(f"Firestore did not take a commit: {code.name} {error.details()}") from error
                await self._pause(attempt)
            else:
                metrics.firestore("write", len(writes))
                return Committed(tuple((r.update_time.seconds, r.update_time.nanos) for r in answer.write_results))
        raise AssertionError("the last try returns or raises")

    def _by_path(self, documents: Sequence[Proto], hollow_above: int | None) -> dict[str, Snapshot]:
        snapshots = [self._snapshot(document, hollow_above) for document in documents]
        return {snapshot.path: snapshot for snapshot in snapshots}

    def _snapshot(self, document: Proto, hollow_above: int | None = None) -> Snapshot:
        path, size = document.name[len(self._root) + 1 :], document.ByteSize()
        if hollow_above is not None and hollow_above / WIRE_FACTOR < size <= hollow_above:
            size = max(size, document_size(path, document.fields))
        is_hollow = hollow_above is not None and size > hollow_above
        return Snapshot(
            path=path,
            data=scalars_of(document.fields) if is_hollow else from_fields(document.fields),
            version=(document.update_time.seconds, document.update_time.nanos),
            created=from_timestamp(document.create_time),
            size_bytes=size,
            is_hollow=is_hollow,
        )

    # --- trying again

    async def _reading(self, read: Callable[[], Awaitable[T]]) -> T:
        for attempt in range(TRIES):
            try:
                return await read()
            except grpc.RpcError as error:
                if error.code() not in _NOT_APPLIED | _PERHAPS_APPLIED:
                    raise
                if attempt == TRIES - 1:
                    raise StoreUnavailable(
                        f"Firestore did not answer: {error.code().name} {error.details()}"
                    ) from error
            await self._pause(attempt)
        raise AssertionError("the last try returns or raises")

    async def _pause(self, attempt: int) -> None:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            # gRPC may answer a call whose caller was cancelled with CANCELLED: another try would swallow Ctrl-C.
            raise asyncio.CancelledError
        await asyncio.sleep(FIRST_PAUSE_SECONDS * 2**attempt * (0.75 + self._jitter() / 2))


def _method(kind: Callable[..., Any], name: str, response: Proto) -> Any:
    return kind(
        f"/google.firestore.v1.Firestore/{name}",
        request_serializer=_serialize,
        response_deserializer=response.FromString,
    )


def _serialize(message: Proto) -> bytes:
    data: bytes = message.SerializeToString()
    return data
