"""A service on a TCP port, gRPC and HTTP/1.1 side by side, as Google's emulator offers them.

A connection's first bytes tell the two apart: HTTP/2 opens with a fixed preface. gRPC is served here (`http2.py`);
HTTP/1.1, which only tools and tests speak, is passed on to uvicorn over a Unix socket.
"""

from __future__ import annotations

import asyncio
import errno
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from emulator.rpc.frames import PREFACE
from emulator.rpc.http2 import Http2Connection
from emulator.rpc.service import Service


class PortTaken(OSError):
    """The port asked for belongs to somebody else."""


class Server:
    """Started with `await Server.start(...)`, stopped with `await server.stop()`."""

    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self.port = port
        self._sockets = Path(tempfile.mkdtemp(prefix="outbox-"))
        self._front: asyncio.Server | None = None
        self._http: Any = None
        self._http_task: asyncio.Task[None] | None = None
        self._calls: set[Http2Connection] = set()
        self._pipes: set[_Sniffed] = set()

    @property
    def connections(self) -> int:
        """How many clients are connected now."""
        return len(self._calls) + len(self._pipes)

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
        http_socket = self._sockets / "http" if http is not None else None

        def connection() -> _Sniffed:
            return _Sniffed(lambda: Http2Connection(methods, self._calls), http_socket, self._pipes)

        try:
            self._front = await asyncio.get_running_loop().create_server(connection, self.host, self.port)
        except OSError as error:
            if error.errno in (errno.EADDRINUSE, errno.EACCES):
                reason = f"port {self.port} on {self.host} cannot be used: {error.strerror}"
                raise PortTaken(error.errno, reason) from None
            raise
        self.port = self._front.sockets[0].getsockname()[1]
        if http_socket is not None:
            await self._serve_http(http, http_socket)

    async def _serve_http(self, app: Any, socket: Path) -> None:
        # Imported here: the gRPC half answers sooner without it.
        import uvicorn

        class Quiet(uvicorn.Server):
            """The process has one owner of its signals, and this is not it."""

            @contextmanager
            def capture_signals(self) -> Iterator[None]:
                yield

        config = uvicorn.Config(app, uds=str(socket), log_level="warning", lifespan="off", access_log=False)
        self._http = Quiet(config)
        self._http_task = asyncio.create_task(self._http.serve())
        while not self._http.started and not self._http_task.done():  # noqa: ASYNC110 - uvicorn offers no event
            await asyncio.sleep(0.001)

    async def stop(self, *, grace_seconds: float = 1.0) -> None:
        if self._front is not None:
            self._front.close()
        if self._http is not None:
            self._http.should_exit = True
            self._http.force_exit = True
        await asyncio.gather(*(connection.end(grace_seconds) for connection in list(self._calls)))
        for pipe in list(self._pipes):
            pipe.abort()
        if self._http_task is not None:
            await asyncio.gather(self._http_task, return_exceptions=True)
        shutil.rmtree(self._sockets, ignore_errors=True)


class _Sniffed(asyncio.Protocol):
    """One connection until it is known what it speaks; from then on, if that is HTTP/1.1, a pipe to uvicorn."""

    def __init__(self, calls: Callable[[], Http2Connection], http_socket: Path | None, everyone: set[_Sniffed]) -> None:
        self._calls = calls
        self._http_socket = http_socket
        self._everyone = everyone
        self._client: asyncio.Transport | None = None
        self._behind: asyncio.Transport | None = None
        self._held = b""
        self._dialing: asyncio.Task[None] | None = None
        self._client_is_done = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._client = transport
        self._everyone.add(self)

    def data_received(self, data: bytes) -> None:
        if self._behind is not None:
            self._behind.write(data)
            return
        self._held += data
        if self._dialing is not None:
            return
        if self._held.startswith(PREFACE):
            self._become_http2(self._held[len(PREFACE) :])
        elif not PREFACE.startswith(self._held[: len(PREFACE)]):
            if self._http_socket is None:
                self.abort()
            else:
                self._dialing = asyncio.ensure_future(self._dial(self._http_socket))

    def _become_http2(self, rest: bytes) -> None:
        assert self._client is not None
        self._everyone.discard(self)
        connection = self._calls()
        self._client.set_protocol(connection)
        connection.connection_made(self._client)
        if rest:
            connection.data_received(rest)

    async def _dial(self, path: Path) -> None:
        assert self._client is not None
        try:
            transport, _ = await asyncio.get_running_loop().create_unix_connection(lambda: _Behind(self), str(path))
        except OSError:
            self.abort()
            return
        if self._client.is_closing():
            transport.abort()
            return
        self._behind = transport
        transport.write(self._held)
        self._held = b""
        if self._client_is_done:
            transport.write_eof()

    def pause_writing(self) -> None:
        if self._behind is not None and not self._behind.is_closing():
            self._behind.pause_reading()

    def resume_writing(self) -> None:
        if self._behind is not None and not self._behind.is_closing():
            self._behind.resume_reading()

    def eof_received(self) -> bool:
        """True keeps our side open: an answer may still be on its way."""
        self._client_is_done = True
        if self._behind is not None:
            self._behind.write_eof()
        return self._behind is not None or self._dialing is not None

    def connection_lost(self, error: Exception | None) -> None:
        self._everyone.discard(self)
        if self._behind is not None:
            self._behind.abort()

    def abort(self) -> None:
        if self._client is not None:
            self._client.abort()


class _Behind(asyncio.Protocol):
    """The other end of a pipe: what uvicorn answers goes straight to the client."""

    def __init__(self, pipe: _Sniffed) -> None:
        assert pipe._client is not None
        self._pipe = pipe
        self._client = pipe._client

    def data_received(self, data: bytes) -> None:
        self._client.write(data)

    def pause_writing(self) -> None:
        if not self._client.is_closing():
            self._client.pause_reading()

    def resume_writing(self) -> None:
        if not self._client.is_closing():
            self._client.resume_reading()

    def connection_lost(self, error: Exception | None) -> None:
        self._client.close()
