"""A service on a TCP port, gRPC and HTTP/1.1 side by side, as Google's emulator offers them.

A connection's first bytes tell the two apart: HTTP/2 opens with a fixed preface. gRPC is served by `http2.py`, and
HTTP/1.1, which browsers, tools and tests speak, by `http1.py`.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from typing import Any

from firestore_emulator.rpc.frames import PREFACE
from firestore_emulator.rpc.http1 import Http1
from firestore_emulator.rpc.http2 import Http2Connection
from firestore_emulator.rpc.service import Service


class PortTaken(OSError):
    """The port asked for belongs to another process."""


class Server:
    """Started with `await Server.start(...)`, stopped with `await server.stop()`."""

    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self.port = port
        self._front: asyncio.Server | None = None
        self._http: Http1 | None = None
        self._calls: set[Http2Connection] = set()
        self._unknown: set[_Sniffed] = set()

    @property
    def connections(self) -> int:
        """How many clients are connected now."""
        return len(self._calls) + len(self._unknown) + (0 if self._http is None else self._http.connections)

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    @classmethod
    async def start(cls, service: Service, *, http: Any = None, host: str = "127.0.0.1", port: int = 0) -> Server:
        """Serve `service`, and the ASGI application `http` beside it. Port 0 takes a free one."""
        server = cls(host, port)
        try:
            await server._listen(service, http)
        except BaseException:
            await server.stop(grace_seconds=0)
            raise
        return server

    async def _listen(self, service: Service, http: Any) -> None:
        methods = service.paths()
        if http is not None:
            self._http = await Http1.start(http)

        def connection() -> _Sniffed:
            return _Sniffed(lambda: Http2Connection(methods, self._calls), self._http, self._unknown)

        try:
            self._front = await asyncio.get_running_loop().create_server(connection, self.host, self.port)
        except OSError as error:
            if error.errno in (errno.EADDRINUSE, errno.EACCES):
                reason = f"port {self.port} on {self.host} cannot be used: {error.strerror}"
                raise PortTaken(error.errno, reason) from None
            raise
        self.port = self._front.sockets[0].getsockname()[1]

    async def stop(self, *, grace_seconds: float = 1.0) -> None:
        if self._front is not None:
            self._front.close()
        await asyncio.gather(*(connection.end(grace_seconds) for connection in list(self._calls)))
        for connection in list(self._unknown):
            connection.abort()
        if self._http is not None:
            await self._http.stop()


class _Sniffed(asyncio.Protocol):
    """One connection until it is known what it speaks."""

    def __init__(self, calls: Callable[[], Http2Connection], http: Http1 | None, everyone: set[_Sniffed]) -> None:
        self._calls = calls
        self._http = http
        self._everyone = everyone
        self._client: asyncio.Transport | None = None
        self._held = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._client = transport
        self._everyone.add(self)

    def data_received(self, data: bytes) -> None:
        assert self._client is not None
        self._held += data
        if self._held.startswith(PREFACE):
            self._everyone.discard(self)
            connection = self._calls()
            self._client.set_protocol(connection)
            connection.connection_made(self._client)
            if rest := self._held[len(PREFACE) :]:
                connection.data_received(rest)
        elif PREFACE.startswith(self._held):
            return
        elif self._http is None:
            self.abort()
        else:
            self._everyone.discard(self)
            self._http.take(self._client, self._held)

    def connection_lost(self, error: Exception | None) -> None:
        self._everyone.discard(self)

    def abort(self) -> None:
        if self._client is not None:
            self._client.abort()
