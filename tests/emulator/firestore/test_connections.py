"""One port for gRPC, HTTP and whatever else knocks: nonsense is closed, and no other client notices."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import httpx
import pytest
import pytest_asyncio
from grpc import aio

from firestore_emulator.emulator import FirestoreEmulator
from firestore_emulator.rpc.frames import PREFACE
from firestore_emulator.rpc.server import PortTaken, Server
from tests.conformance.backends import Backend, Place
from tests.conformance.wire import query
from tests.patience import PATIENCE_SECONDS

PREFACE = PREFACE + b".0\r\n\r\nSM\r\n\r\n"


@dataclass
class Served:
    server: Server
    emulator: FirestoreEmulator
    backend: Backend
    """Connected before the nonsense comes, and used after it."""

    async def send(self, data: bytes, *, then_half_close: bool = False) -> bytes:
        """All that the server answers until it closes the connection."""
        reader, writer = await asyncio.open_connection(self.server.host, self.server.port)
        try:
            writer.write(data)
            if then_half_close:
                writer.write_eof()
            async with asyncio.timeout(PATIENCE_SECONDS):
                return await reader.read()
        except ConnectionResetError:
            return b""
        finally:
            writer.close()

    def connections(self) -> int:
        return self.server.connections

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not condition():  # noqa: ASYNC110 - the kernel tells the other side when it does
                await asyncio.sleep(0.001)

    async def answers(self) -> bool:
        await self.backend.seed({"c/1": {"a": 1}})
        async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE_SECONDS) as client:
            health = await client.get(f"http://{self.server.address}/")
        return await self.backend.paths(query("c")) == ["c/1"] and health.status_code == 200


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served() -> AsyncIterator[Served]:
    emulator = FirestoreEmulator()
    await emulator.start()
    server = await Server.start(emulator.service, http=emulator.http_app)
    channel = aio.insecure_channel(server.address)
    it = Served(server, emulator, Backend(Place("grpc", channel, server.address)))
    assert await it.answers()
    yield it
    await channel.close()
    await server.stop(grace_seconds=0)
    await emulator.stop()


NONSENSE = {
    "no protocol": b"\x00\x01\x02\x03nonsense\r\n\r\n",
    "a TLS hello": bytes.fromhex("16030100a5010000a10303") + b"\x00" * 160,
    "an HTTP request cut short": b"GET / HTTP/1.1\r\nHost: x\r\n",
    "an HTTP request with a bad line": b"GET\r\n\r\n",
    "a header that is none": b"GET / HTTP/1.1\r\n\xff\xfe: \x00\r\n\r\n",
    "an endless request line": b"GET /" + b"x" * 200_000,
    "half a preface": b"PRI * HT",
    "one byte of a preface": b"P",
    "a preface with another ending": PREFACE + b"nonsense" * 10,
    "frames that are none": PREFACE + b"\xff" * 1000,
    "a frame longer than itself": PREFACE + b"\x00\x00\x00\x04\x00\x00\x00\x00\x00" + b"\xff\xff\xff\x00",
}


@pytest.mark.parametrize("case", NONSENSE)
async def test_nonsense_ends_its_own_connection_and_nothing_else(served: Served, case: str) -> None:
    before = served.connections()
    await served.send(NONSENSE[case], then_half_close=True)
    await served.until(lambda: served.connections() <= before)
    assert await served.answers()


@pytest.mark.parametrize("case", NONSENSE)
async def test_a_client_that_vanishes_leaves_no_connection_behind(served: Served, case: str) -> None:
    before = served.connections()
    _, writer = await asyncio.open_connection(served.server.host, served.server.port)
    await served.until(lambda: served.connections() > before)
    writer.write(NONSENSE[case])
    await writer.drain()
    writer.transport.abort()
    await served.until(lambda: served.connections() <= before)
    assert await served.answers()


async def test_a_hundred_connections_that_say_nothing_hold_up_no_other(served: Served) -> None:
    before = served.connections()
    silent = [await asyncio.open_connection(served.server.host, served.server.port) for _ in range(100)]
    assert await served.answers()
    for _, writer in silent:
        writer.close()
    await served.until(lambda: served.connections() <= before)


async def test_no_descriptor_stays_open_after_many_broken_connections(served: Served) -> None:
    def open_descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    await served.send(b"GET\r\n\r\n", then_half_close=True)
    before = open_descriptors()
    for data in (b"PRI", b"\x00", b"GET / HTTP/1.1\r\n\r\n"):
        for _ in range(30):
            await served.send(data, then_half_close=True)
    await served.until(lambda: open_descriptors() <= before + 5)


async def test_a_preface_in_small_pieces_is_still_grpc(served: Served) -> None:
    reader, writer = await asyncio.open_connection(served.server.host, served.server.port)
    for place in range(len(PREFACE)):
        writer.write(PREFACE[place : place + 1])
        await writer.drain()
    writer.write(b"\x00\x00\x00\x04\x00\x00\x00\x00\x00")  # an empty SETTINGS frame
    async with asyncio.timeout(PATIENCE_SECONDS):
        header = await reader.readexactly(9)
    assert header[3] == 4, "the server answers with its own SETTINGS"
    writer.close()


async def test_http_and_grpc_answer_on_one_port(served: Served) -> None:
    async with httpx.AsyncClient(
        base_url=f"http://{served.server.address}", trust_env=False, timeout=PATIENCE_SECONDS
    ) as client:
        assert (await client.get("/")).text == "Ok\n"
        assert (await client.get("/nowhere")).status_code == 404
        cleared = await client.delete(f"/emulator/v1/projects/{served.backend.project}/databases/(default)/documents")
    assert cleared.status_code == 200
    assert await served.backend.paths(query("c")) == []


async def test_a_port_in_use_is_named(served: Served) -> None:
    with pytest.raises(PortTaken, match=str(served.server.port)):
        await Server.start(served.emulator.service, port=served.server.port)
    assert await served.answers()


async def test_a_connection_that_was_idle_for_a_minute_is_still_answered() -> None:
    """A server that closes an idle connection may do so just when its client sends the next request."""

    async def idle_for_a_minute() -> list[bytes]:
        emulator = FirestoreEmulator()
        server = await Server.start(emulator.service, http=emulator.http_app)
        reader, writer = await asyncio.open_connection(server.host, server.port)
        answers = []
        for _ in range(2):
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            answers.append(await reader.readuntil(b"\r\n"))
            await reader.readuntil(b"Ok\n")
            await _a_minute_later()
        writer.close()
        await server.stop(grace_seconds=0)
        return answers

    answers = await asyncio.to_thread(asyncio.run, idle_for_a_minute())
    assert answers == [b"HTTP/1.1 200 OK\r\n"] * 2


async def _a_minute_later() -> None:
    """For the running loop, which has done all that came due by then."""
    loop = asyncio.get_running_loop()
    before = loop.time
    loop.time = lambda: before() + 60  # type: ignore[method-assign]  # asyncio has no other way to set its clock
    for _ in range(10):
        await asyncio.sleep(0)
