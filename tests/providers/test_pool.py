"""Connections: used again, limited, given back whatever happens, and closed when they are not needed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx
import pytest

from firestore_outbox.providers.pool import ConnectionPool


@dataclass
class Server:
    url: str = ""
    opened: int = 0
    closed: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))
    """Released with each connection that the client closed."""
    heard: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))
    """Released with each request."""
    may_answer: asyncio.Event = field(default_factory=asyncio.Event)
    handlers: set[asyncio.Task[None] | None] = field(default_factory=set)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.opened += 1
        self.handlers.add(asyncio.current_task())
        try:
            while True:
                await reader.readuntil(b"\r\n\r\n")
                self.heard.release()
                await self.may_answer.wait()
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        except (asyncio.IncompleteReadError, ConnectionError):
            self.closed.release()
        finally:
            writer.close()


@asynccontextmanager
async def serving() -> AsyncIterator[Server]:
    it = Server()
    server = await asyncio.start_server(it.serve, "127.0.0.1", 0)
    it.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield it
    finally:
        server.close()
        it.may_answer.set()
        await asyncio.gather(*(handler for handler in it.handlers if handler))


def client(
    *, max_connections: int = 10, keepalive_seconds: float = 60, pool_seconds: float | None = None
) -> httpx.AsyncClient:
    pool = ConnectionPool(max_connections=max_connections, keepalive_seconds=keepalive_seconds)
    return httpx.AsyncClient(transport=pool, trust_env=False, timeout=httpx.Timeout(None, pool=pool_seconds))


async def test_requests_one_after_the_other_share_a_connection() -> None:
    async with serving() as server, client() as http:
        server.may_answer.set()
        for _ in range(5):
            assert (await http.get(server.url)).text == "ok"
        assert server.opened == 1


async def test_requests_at_once_have_a_connection_each_and_later_ones_use_them_again() -> None:
    async with serving() as server, client() as http:
        first = [asyncio.create_task(http.get(server.url)) for _ in range(3)]
        for _ in first:
            await server.heard.acquire()
        server.may_answer.set()
        await asyncio.gather(*first)
        await asyncio.gather(*(http.get(server.url) for _ in range(3)))
        assert server.opened == 3


async def test_a_full_pool_is_a_pool_timeout_and_nothing_is_sent() -> None:
    async with serving() as server, client(max_connections=1, pool_seconds=0.01) as http:
        first = asyncio.create_task(http.get(server.url))
        await server.heard.acquire()
        with pytest.raises(httpx.PoolTimeout):
            await http.get(server.url)
        server.may_answer.set()
        assert (await first).status_code == 200
        assert server.heard.locked()


async def test_a_request_waits_for_a_connection_that_becomes_free() -> None:
    async with serving() as server, client(max_connections=1) as http:
        both = [asyncio.create_task(http.get(server.url)) for _ in range(2)]
        await server.heard.acquire()
        server.may_answer.set()
        assert [answer.status_code for answer in await asyncio.gather(*both)] == [200, 200]
        assert server.opened == 1


async def test_a_cancelled_request_gives_its_place_back() -> None:
    async with serving() as server, client(max_connections=1) as http:
        first = asyncio.create_task(http.get(server.url))
        await server.heard.acquire()
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        server.may_answer.set()
        assert (await http.get(server.url)).status_code == 200


async def test_a_refused_connection_gives_its_place_back() -> None:
    async with serving() as server, client(max_connections=1) as http:
        server.may_answer.set()
        for _ in range(3):
            with pytest.raises(httpx.ConnectError):
                await http.get("http://127.0.0.1:1")
        assert (await http.get(server.url)).status_code == 200


async def test_an_answer_that_is_not_read_gives_its_place_back() -> None:
    async with serving() as server, client(max_connections=1) as http:
        server.may_answer.set()
        for _ in range(3):
            async with http.stream("GET", server.url):
                pass
        assert (await http.get(server.url)).status_code == 200


async def test_connections_that_fall_idle_are_closed_by_those_that_go_on() -> None:
    async with serving() as server, client(keepalive_seconds=0) as http:
        several = [asyncio.create_task(http.get(server.url)) for _ in range(3)]
        for _ in several:
            await server.heard.acquire()
        server.may_answer.set()
        await asyncio.gather(*several)
        await http.get(server.url)
        for _ in range(2):
            await server.closed.acquire()


async def test_closing_the_client_closes_every_connection() -> None:
    async with serving() as server:
        async with client() as http:
            several = [asyncio.create_task(http.get(server.url)) for _ in range(3)]
            for _ in several:
                await server.heard.acquire()
            server.may_answer.set()
            await asyncio.gather(*several)
        for _ in range(3):
            await server.closed.acquire()
