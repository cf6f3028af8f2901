"""The answers of a query, read to their end.

Firestore sends a query's documents one by one. grpc's asyncio client wakes the event loop for each of them, which costs
more than everything else that we do with the document; its synchronous client, told to stay in the calling thread,
takes a quarter of that. So where there is a network, queries have a channel of their own and are read in a thread.

The option is grpc's own and marked experimental; without it the same code is right, and slower.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import grpc
from google.cloud.firestore import AsyncClient
from google.cloud.firestore_v1.services.firestore.transports import FirestoreGrpcTransport
from grpc import experimental

from worker.store.protos import Proto

THREADS = 8
"""Queries at once in one process. A query takes milliseconds; more would only wait for each other."""

Metadata = Sequence[tuple[str, str]]


class ReadStream(Protocol):
    async def __call__(self, request: Proto, *, within_seconds: float, metadata: Metadata) -> list[Proto]:
        """Every answer, in order. Raises grpc.RpcError."""
        ...


class InLoop:
    """For channels without a network, whose time may be virtual."""

    def __init__(self, method: Any) -> None:
        self._method = method

    async def __call__(self, request: Proto, *, within_seconds: float, metadata: Metadata) -> list[Proto]:
        return [answer async for answer in self._method(request, timeout=within_seconds, metadata=metadata)]


class InThread:
    def __init__(self, method: Any) -> None:
        self._method = method
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="firestore-query")

    async def __call__(self, request: Proto, *, within_seconds: float, metadata: Metadata) -> list[Proto]:
        call = self._method(request, timeout=within_seconds, metadata=metadata)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, list, call)
        except asyncio.CancelledError:
            call.cancel()
            raise


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
