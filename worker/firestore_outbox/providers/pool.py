"""The pool of connections: one httpx transport for each connection, handed out last in, first out.

httpcore's own pool looks at every pair of its connections for each request, so with fifty in use it takes most of a
core at a hundred requests a second. Pools of one connection have no such cost, and choosing between them is a pop.

What was used last is used first, so that connections beyond the need fall idle and are closed.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import cache
from ssl import SSLContext

import httpx

Origin = tuple[str, str, int | None]


@dataclass(frozen=True, slots=True)
class _Idle:
    connection: httpx.AsyncHTTPTransport
    since: float
    """In the time of the loop."""


class ConnectionPool(httpx.AsyncBaseTransport):
    def __init__(self, *, max_connections: int, keepalive_seconds: float) -> None:
        self._keepalive_seconds = keepalive_seconds
        self._slots = asyncio.Semaphore(max_connections)
        self._idle: dict[Origin, deque[_Idle]] = defaultdict(deque)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await self._slot(request)
        origin = (request.url.scheme, request.url.host, request.url.port)
        connection = self._take(origin)
        try:
            response = await connection.handle_async_request(request)
        except BaseException:
            self._give_back(origin, connection)
            raise
        assert isinstance(response.stream, httpx.AsyncByteStream)
        response.stream = _Answer(response.stream, self, origin, connection)
        return response

    async def aclose(self) -> None:
        idle = [it for connections in self._idle.values() for it in connections]
        self._idle.clear()
        for it in idle:
            await it.connection.aclose()

    async def finished(self, origin: Origin, connection: httpx.AsyncHTTPTransport) -> None:
        """An answer was read, or the rest of it is not needed."""
        self._give_back(origin, connection)
        idle = self._idle[origin]
        while idle and idle[0].since < _now() - self._keepalive_seconds:
            await idle.popleft().connection.aclose()

    async def _slot(self, request: httpx.Request) -> None:
        try:
            async with asyncio.timeout(request.extensions.get("timeout", {}).get("pool")):
                await self._slots.acquire()
        except TimeoutError:
            raise httpx.PoolTimeout("all connections are in use", request=request) from None

    def _take(self, origin: Origin) -> httpx.AsyncHTTPTransport:
        idle = self._idle[origin]
        if idle:
            return idle.pop().connection
        return httpx.AsyncHTTPTransport(
            verify=_tls(),
            trust_env=False,
            limits=httpx.Limits(max_connections=1, keepalive_expiry=self._keepalive_seconds),
        )

    def _give_back(self, origin: Origin, connection: httpx.AsyncHTTPTransport) -> None:
        self._slots.release()
        self._idle[origin].append(_Idle(connection, _now()))


class _Answer(httpx.AsyncByteStream):
    """The body of an answer. Its end gives the connection back, once."""

    def __init__(
        self,
        stream: httpx.AsyncByteStream,
        pool: ConnectionPool,
        origin: Origin,
        connection: httpx.AsyncHTTPTransport,
    ) -> None:
        self._stream = stream
        self._pool = pool
        self._origin = origin
        self._connection: httpx.AsyncHTTPTransport | None = connection

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            yield chunk

    async def aclose(self) -> None:
        connection, self._connection = self._connection, None
        try:
            await self._stream.aclose()
        finally:
            if connection is not None:
                await self._pool.finished(self._origin, connection)


@cache
def _tls() -> SSLContext:
    """One for all: to make it reads every certificate that this machine trusts."""
    return httpx.create_ssl_context(trust_env=False)


def _now() -> float:
    return asyncio.get_running_loop().time()
