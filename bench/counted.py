"""A channel that counts what passes through it as Firestore bills it: calls, documents read, written and deleted.

It counts where messages are written and read as bytes, so it costs next to nothing and sees the same for every client:
the real library's, which answers in proto-plus, and one that speaks raw protobuf.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import grpc
from grpc import aio


@dataclass
class Count:
    rpcs: int = 0
    commits: int = 0
    reads: int = 0
    writes: int = 0
    deletes: int = 0

    def called(self, method: str, message: Any) -> None:
        self.rpcs += 1
        if method == "Commit":
            deletes = sum(bool(write.delete) for write in getattr(message, "_pb", message).writes)
            self.commits += 1
            self.deletes += deletes
            self.writes -= deletes  # each is answered like a write

    def answered(self, method: str, message: Any) -> None:
        answer = getattr(message, "_pb", message)
        match method:
            case "Commit":
                self.writes += len(answer.write_results)
            case "BatchGetDocuments":
                self.reads += answer.HasField("found") or bool(answer.missing)
            case "RunQuery":
                # An empty result is one answer without a document, and is billed as one read.
                self.reads += answer.HasField("document") or not answer.transaction
            case "RunAggregationQuery":
                self.reads += 1  # for each thousand index entries; nothing here counts more


class CountingQueries:
    """A synchronous channel that only queries go through, counted."""

    def __init__(self, behind: grpc.Channel, count: Count) -> None:
        self._behind = behind
        self._count = count

    def unary_stream(
        self, method: str, request_serializer: Any = None, response_deserializer: Any = None, **_: Any
    ) -> Any:
        measured = counted(self._count, method, request_serializer, response_deserializer)
        return self._behind.unary_stream(method, *measured)


Serializer = Callable[[Any], bytes]
Deserializer = Callable[[bytes], Any]
Coders = tuple[Serializer, Deserializer]


class CountingChannel(aio.Channel):
    """Another channel, counted. Hand it to a generated transport."""

    def __init__(self, behind: aio.Channel, count: Count) -> None:
        self._behind = behind
        self._count = count
        # The generated transports append their logging interceptor here.
        self._unary_unary_interceptors: list[Any] = []

    def unary_unary(
        self, method: str, request_serializer: Any = None, response_deserializer: Any = None, **_: Any
    ) -> Any:
        return self._behind.unary_unary(
            method, *counted(self._count, method, request_serializer, response_deserializer)
        )

    def unary_stream(
        self, method: str, request_serializer: Any = None, response_deserializer: Any = None, **_: Any
    ) -> Any:
        measured = counted(self._count, method, request_serializer, response_deserializer)
        return self._behind.unary_stream(method, *measured)

    def stream_stream(
        self, method: str, request_serializer: Any = None, response_deserializer: Any = None, **_: Any
    ) -> Any:
        return self._behind.stream_stream(method, request_serializer, response_deserializer)

    def stream_unary(self, *args: Any, **kwargs: Any) -> Any:
        return self._behind.stream_unary(*args, **kwargs)

    async def close(self, grace: float | None = None) -> None:
        """The code that opened the channel behind closes it."""

    async def __aenter__(self) -> CountingChannel:
        return self

    async def __aexit__(self, *exc: object) -> None:
        return None

    def get_state(self, try_to_connect: bool = False) -> Any:
        return self._behind.get_state(try_to_connect)

    async def wait_for_state_change(self, last_observed_state: Any) -> None:
        await self._behind.wait_for_state_change(last_observed_state)

    async def channel_ready(self) -> None:
        await self._behind.channel_ready()


def counted(
    count: Count, path: str, serialize: Serializer, deserialize: Deserializer
) -> tuple[Serializer, Deserializer]:
    method = path.rpartition("/")[2]

    def called(message: Any) -> bytes:
        count.called(method, message)
        return serialize(message)

    def answered(data: bytes) -> Any:
        message = deserialize(data)
        count.answered(method, message)
        return message

    return called, answered
