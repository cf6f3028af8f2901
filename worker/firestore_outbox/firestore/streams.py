"""The answers of a query: read and decoded, up to a number of bytes.

Firestore sends a query's documents one by one. grpc's asyncio client wakes the event loop for each of them, which costs
more than everything else that we do with the document; its synchronous client, with the option to stay in the calling
thread, takes a quarter of that. So where there is a network, queries have a channel of their own, and a thread reads
and decodes their answers: one account's large documents do not stop the event loop that all lanes share.

The option is grpc's own and marked experimental; without it the same code is right, and slower.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import grpc
from google.cloud.firestore import AsyncClient
from google.cloud.firestore_v1.services.firestore.transports import FirestoreGrpcTransport
from grpc import experimental

from firestore_outbox.firestore.protos import Proto

THREADS = 8
"""Queries at once in one process. A query takes milliseconds; more would only wait for each other."""

Metadata = Sequence[tuple[str, str]]


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Answers(Generic[T]):
    """The answers of a stream, in order."""

    items: list[T]
    is_cut: bool
    """Reading stopped at `most_bytes`; more answers may follow."""


class ReadStream(Protocol):
    async def __call__(
        self,
        request: Proto,
        decode: Callable[[Proto], T],
        *,
        most_bytes: int | None,
        within_seconds: float,
        metadata: Metadata,
    ) -> Answers[T]:
        """Every answer, decoded; with `most_bytes`, none after the one that reaches it. Raises grpc.RpcError."""
        ...


class InLoop:
    """For channels without a network, whose time may be virtual."""

    def __init__(self, method: Any) -> None:
        self._method = method

    async def __call__(
        self,
        request: Proto,
        decode: Callable[[Proto], T],
        *,
        most_bytes: int | None,
        within_seconds: float,
        metadata: Metadata,
    ) -> Answers[T]:
        call = self._method(request, timeout=within_seconds, metadata=metadata)
        items: list[T] = []
        size = 0
        async for answer in call:
            items.append(decode(answer))
            size += answer.ByteSize()
            if most_bytes is not None and size >= most_bytes:
                call.cancel()
                return Answers(items, is_cut=True)
        return Answers(items, is_cut=False)


class InThread:
    def __init__(self, method: Any) -> None:
        self._method = method
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="firestore-query")

    async def __call__(
        self,
        request: Proto,
        decode: Callable[[Proto], T],
        *,
        most_bytes: int | None,
        within_seconds: float,
        metadata: Metadata,
    ) -> Answers[T]:
        call = self._method(request, timeout=within_seconds, metadata=metadata)
        try:
            return await self.run(lambda: _read(call, decode, most_bytes))
        except asyncio.CancelledError:
            call.cancel()
            raise

    async def run(self, work: Callable[[], T]) -> T:
        """Other work that is too much for the event loop."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


def _read(call: Any, decode: Callable[[Proto], T], most_bytes: int | None) -> Answers[T]:
    answers: Iterable[Proto] = call
    items: list[T] = []
    size = 0
    for answer in answers:
        items.append(decode(answer))
        size += answer.ByteSize()
        if most_bytes is not None and size >= most_bytes:
            call.cancel()
            return Answers(items, is_cut=True)
    return Answers(items, is_cut=False)


def query_channel(client: AsyncClient) -> grpc.Channel:
    """To where the client's own channel leads."""
    options = [
        (experimental.ChannelOptions.SingleThreadedUnaryStream, 1),
        ("grpc.max_receive_message_length", -1),
        ("grpc.keepalive_time_ms", 30_000),
    ]
    if client._emulator_host:
        return grpc.insecure_channel(client._emulator_host, options=options)
    return FirestoreGrpcTransport.create_channel(
        "firestore.googleapis.com:443", credentials=client._credentials, options=options
    )
