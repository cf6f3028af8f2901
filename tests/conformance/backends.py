"""The three Firestores that one suite runs on, and how a test talks to them.

    grpc        our server, over a socket
    inprocess   our engine behind the in-process channel, no socket
    official    Google's emulator, the judge

All three are a `grpc.aio.Channel`, so a `Backend` is the same code for each. A backend belongs to one test: it has a
project of its own, which is the cheapest isolation there is, as every emulator holds any number of projects.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import grpc
import pytest
from google.auth.credentials import AnonymousCredentials
from google.cloud.firestore import AsyncClient
from google.cloud.firestore_v1.services.firestore import FirestoreAsyncClient
from google.cloud.firestore_v1.services.firestore.transports import FirestoreGrpcAsyncIOTransport
from grpc import aio

from firestore_emulator import official
from firestore_emulator.emulator import FirestoreEmulator
from firestore_emulator.rpc.inprocess import InProcessChannel
from firestore_emulator.rpc.server import Server
from tests.conformance.wire import (
    CONVERSATIONS,
    REQUESTS,
    SERVER_STREAMS,
    UNARY,
    Plain,
    Proto,
    Ref,
    Stamp,
    fields_of,
    query,
    set_,
    shown,
    stamp,
)
from tests.patience import PATIENCE_SECONDS

SERVICE = "/google.firestore.v1.Firestore/"
OWNER = (("authorization", "Bearer owner"),)
"""Past the security rules, as the server-side clients are."""
NAMED = "named-database"
"""A database that ours were started with. Google's emulator makes it at its first use."""
CHANNEL_OPTIONS = (("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1))


class Refused(Exception):
    """The status a call was answered with, when it was not OK."""

    def __init__(self, code: grpc.StatusCode, message: str) -> None:
        super().__init__(f"{code.name}: {message}")
        self.code: str = code.name
        self.message = message


@dataclass(frozen=True)
class Place:
    """A running Firestore: how to call it, and where it listens if it does."""

    kind: str
    channel: aio.Channel
    address: str | None


class Backend:
    """One test's database on one of the Firestores."""

    def __init__(self, place: Place, project: str | None = None, database_id: str = "(default)") -> None:
        self.place = place
        self.kind = place.kind
        self.channel = place.channel
        self.address = place.address
        self.project = project or f"p-{secrets.token_hex(6)}"
        self.database = f"projects/{self.project}/databases/{database_id}"
        self.root = f"{self.database}/documents"

    def __repr__(self) -> str:
        return f"Backend({self.kind}, {self.project})"

    @property
    def is_official(self) -> bool:
        return self.kind == "official"

    def name(self, path: str) -> str:
        return f"{self.root}/{path}"

    def path(self, name: str) -> str:
        """The part of a document's name that the test wrote."""
        return name.removeprefix(f"{self.root}/")

    def ref(self, path: str) -> Ref:
        return Ref(self.name(path))

    # --- raw calls

    async def call(self, method: str, request: Proto) -> Any:
        """The answer, or the list of answers of a server stream; a refusal is raised as `Refused`."""
        path = SERVICE + method
        try:
            if method in SERVER_STREAMS:
                stream = self.channel.unary_stream(path, _serialize, SERVER_STREAMS[method].FromString)
                return [message async for message in stream(request, metadata=OWNER)]
            unary = self.channel.unary_unary(path, _serialize, UNARY[method].FromString)
            return await unary(request, metadata=OWNER)
        except aio.AioRpcError as error:
            raise Refused(error.code(), error.details() or "") from None

    def converse(self, method: str) -> Conversation:
        path = SERVICE + method
        multi = self.channel.stream_stream(path, _serialize, CONVERSATIONS[method].FromString)
        metadata = (*OWNER, ("google-cloud-resource-prefix", self.database))
        return Conversation(multi(metadata=metadata))

    # --- the calls that nearly every test makes

    async def commit(self, *writes: Proto, transaction: bytes = b"") -> Proto:
        request = REQUESTS["Commit"](database=self.database, writes=writes, transaction=transaction)
        return await self.call("Commit", request)

    async def seed(self, documents: Mapping[str, Mapping[str, Plain]]) -> None:
        await self.commit(*(set_(self.name(path), data) for path, data in documents.items()))

    async def get(self, path: str, **options: Any) -> Proto:
        return await self.call("GetDocument", REQUESTS["GetDocument"](name=self.name(path), **options))

    async def fields(self, path: str, **options: Any) -> dict[str, Plain]:
        return fields_of(await self.get(path, **options))

    async def shown(self, path: str) -> str:
        return shown(await self.fields(path))

    async def exists(self, path: str) -> bool:
        try:
            await self.get(path)
        except Refused as refusal:
            if refusal.code == "NOT_FOUND":
                return False
            raise
        return True

    async def update_time(self, path: str) -> Stamp:
        return stamp((await self.get(path)).update_time)

    async def run(self, structured_query: Proto, *, parent: str = "", **options: Any) -> list[Proto]:
        """The raw stream of a query's answers."""
        request = REQUESTS["RunQuery"](
            parent=self.name(parent) if parent else self.root, structured_query=structured_query, **options
        )
        answers: list[Proto] = await self.call("RunQuery", request)
        return answers

    async def documents(self, structured_query: Proto, *, parent: str = "", **options: Any) -> list[Proto]:
        answers = await self.run(structured_query, parent=parent, **options)
        return [answer.document for answer in answers if answer.HasField("document")]

    async def paths(self, structured_query: Proto, *, parent: str = "", **options: Any) -> list[str]:
        """What a query finds, in its order."""
        found = await self.documents(structured_query, parent=parent, **options)
        return [self.path(item.name) for item in found]

    async def ids(self, collection: str, filter_: Proto | None = None, **options: Any) -> str:
        """The ids that a query on one collection finds, in its order, as one word list."""
        return " ".join(path.split("/")[-1] for path in await self.paths(query(collection, filter_, **options)))

    async def begin(self, **options: Any) -> bytes:
        request = REQUESTS["BeginTransaction"](database=self.database, **options)
        transaction: bytes = (await self.call("BeginTransaction", request)).transaction
        return transaction

    async def begin_read_only(self, read_time: Stamp | None = None) -> bytes:
        request = REQUESTS["BeginTransaction"](database=self.database)
        request.options.read_only.SetInParent()
        if read_time is not None:
            request.options.read_only.read_time.CopyFrom(read_time.proto())
        transaction: bytes = (await self.call("BeginTransaction", request)).transaction
        return transaction

    async def rollback(self, transaction: bytes) -> None:
        await self.call("Rollback", REQUESTS["Rollback"](database=self.database, transaction=transaction))

    # --- the real client

    def client(self) -> AsyncClient:
        """Google's asynchronous client, on this backend's channel instead of one that it opens by itself."""
        client = AsyncClient(project=self.project, credentials=AnonymousCredentials())
        client._emulator_host = self.address or "in-process"  # so that it sends what gets it past the security rules
        transport = FirestoreGrpcAsyncIOTransport(channel=self.channel)
        client._firestore_api_internal = FirestoreAsyncClient(transport=transport)
        return client


class Conversation:
    """A bidirectional stream, read and written message by message."""

    def __init__(self, call: Any) -> None:
        self._call = call

    async def send(self, request: Proto) -> None:
        with suppress(aio.AioRpcError):  # the server has ended the stream: the next read tells how
            await self._call.write(request)

    async def read(self) -> Proto | None:
        """The next message, or None when the server has ended the stream."""
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                message = await self._call.read()
        except aio.AioRpcError as error:
            raise Refused(error.code(), error.details() or "") from None
        return None if message is aio.EOF else message

    async def finish(self) -> None:
        """Says that nothing more will be sent."""
        await self._call.done_writing()

    def cancel(self) -> None:
        self._call.cancel()


@contextmanager
def refused(*codes: str) -> Iterator[list[Refused]]:
    """The block must be answered with one of these status codes. The refusal is in the list afterwards."""
    caught: list[Refused] = []
    try:
        yield caught
    except Refused as refusal:
        if refusal.code not in codes:
            pytest.fail(f"answered {refusal}, not {' or '.join(codes)}")
        caught.append(refusal)
    else:
        pytest.fail(f"was accepted, and should have been refused with {' or '.join(codes)}")


async def outcome(work: Any) -> Any:
    """The status code that this work is refused with, or its result."""
    try:
        return await work
    except Refused as refusal:
        return refusal.code


def _serialize(message: Proto) -> bytes:
    data: bytes = message.SerializeToString()
    return data


# --- bringing the three up


@asynccontextmanager
async def our_server() -> AsyncIterator[Place]:
    emulator = FirestoreEmulator(databases=("(default)", NAMED))
    await emulator.start()
    server = await Server.start(emulator.service, http=emulator.http_app, port=0)
    channel = aio.insecure_channel(server.address, options=CHANNEL_OPTIONS)
    try:
        yield Place("grpc", channel, server.address)
    finally:
        await channel.close()
        await server.stop()
        await emulator.stop()


@asynccontextmanager
async def our_engine() -> AsyncIterator[Place]:
    emulator = FirestoreEmulator(databases=("(default)", NAMED))
    await emulator.start()
    try:
        yield Place("inprocess", InProcessChannel([emulator.service]), None)
    finally:
        await emulator.stop()


@asynccontextmanager
async def googles_emulator() -> AsyncIterator[Place]:
    """One of our own if this machine can start one; else the one that FIRESTORE_EMULATOR_HOST tells of.

    Raises EmulatorMissing where there is neither.
    """
    environ = dict(os.environ)
    if isinstance(official.find_installed(), official.Installed):
        # A host that is set might be our own emulator, and no emulator should judge itself.
        environ.pop(official.HOST_VARIABLE, None)
    emulator = await asyncio.to_thread(official.OfficialEmulator.start, environ=environ)
    channel = aio.insecure_channel(emulator.host, options=CHANNEL_OPTIONS)
    try:
        yield Place("official", channel, emulator.host)
    finally:
        await channel.close()
        await asyncio.to_thread(emulator.stop)


PLACES: Mapping[str, Callable[[], Any]] = {
    "grpc": our_server,
    "inprocess": our_engine,
    "official": googles_emulator,
}
