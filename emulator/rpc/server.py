"""A service on a TCP port, gRPC and HTTP/1.1 side by side, as Google's emulator offers them.

A connection's first bytes tell the two apart: HTTP/2 opens with a fixed preface. gRPC's C core accepts no socket
that somebody else opened, so it listens on a Unix socket of its own and this front passes bytes through. Measured
with the real client this costs about 5 % of the single-write rate, and buys one port that every tool knows.
"""

from __future__ import annotations

import asyncio
import errno
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
from google.protobuf.message import DecodeError
from grpc import aio

from emulator.rpc.errors import invalid_argument
from emulator.rpc.service import Call, Message, Method, ServerStream, Service, Unary, refusal_of

HTTP2_PREFACE = b"PRI * HTTP/2"
MAX_MESSAGE_BYTES = 64 * 1024 * 1024
"""What the transport takes in. The engine refuses at production's own, smaller limit, with production's status."""


class PortTaken(OSError):
    """The port asked for belongs to somebody else."""


class Server:
    """Started with `await Server.start(...)`, stopped with `await server.stop()`."""

    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self.port = port
        self._sockets = Path(tempfile.mkdtemp(prefix="outbox-"))
        self._grpc: aio.Server | None = None
        self._front: asyncio.Server | None = None
        self._http: Any = None
        self._http_task: asyncio.Task[None] | None = None
        self._connections: set[_Pipe] = set()

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
        grpc_socket, http_socket = self._sockets / "grpc", self._sockets / "http"
        self._grpc = aio.server(
            options=[
                ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
                ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
                # A client that pings to keep its stream open is not an attack here.
                ("grpc.http2.min_ping_interval_without_data_ms", 1_000),
                ("grpc.keepalive_permit_without_calls", 1),
            ]
        )
        handlers = {name: _grpc_handler(f"{service.name}/{name}", m) for name, m in service.methods.items()}
        self._grpc.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service.name, handlers),))
        self._grpc.add_insecure_port(f"unix:{grpc_socket}")
        await self._grpc.start()

        def connection() -> _Pipe:
            return _Pipe(grpc_socket, http_socket if http is not None else None, self._connections)

        loop = asyncio.get_running_loop()
        try:
            self._front = await loop.create_server(connection, self.host, self.port)
        except OSError as error:
            if error.errno in (errno.EADDRINUSE, errno.EACCES):
                raise PortTaken(
                    error.errno, f"port {self.port} on {self.host} cannot be used: {error.strerror}"
                ) from None
            raise
        self.port = self._front.sockets[0].getsockname()[1]
        if http is not None:
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
        if self._grpc is not None:
            await self._grpc.stop(grace_seconds)
        for connection in list(self._connections):
            connection.abort()
        if self._http_task is not None:
            await asyncio.gather(self._http_task, return_exceptions=True)
        shutil.rmtree(self._sockets, ignore_errors=True)


class _Pipe(asyncio.Protocol):
    """One client connection: sniffed once, then bytes both ways with back-pressure."""

    def __init__(self, grpc_socket: Path, http_socket: Path | None, everyone: set[_Pipe]) -> None:
        self._grpc_socket, self._http_socket = grpc_socket, http_socket
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
        sniffed = self._held[: len(HTTP2_PREFACE)]
        if sniffed == HTTP2_PREFACE:
            self._dialing = asyncio.ensure_future(self._dial(self._grpc_socket))
        elif not HTTP2_PREFACE.startswith(sniffed) and self._http_socket is not None:
            self._dialing = asyncio.ensure_future(self._dial(self._http_socket))
        elif not HTTP2_PREFACE.startswith(sniffed):
            self.abort()

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
    """The other end of a `_Pipe`: what the gRPC or HTTP server answers goes straight to the client."""

    def __init__(self, pipe: _Pipe) -> None:
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


def _grpc_handler(path: str, method: Method) -> Any:
    def parse(data: bytes) -> Message:
        try:
            return method.request.FromString(data)
        except DecodeError:
            raise invalid_argument("The request is not a message of this method.") from None

    # Requests are parsed here and not by gRPC, which would answer garbage with INTERNAL.
    if isinstance(method, Unary):
        unary = method.handler

        async def answer(data: bytes, context: Any) -> Message:
            try:
                return await unary(parse(data), _call(context))
            except Exception as error:  # noqa: BLE001 - the border: whatever a handler raises becomes a status
                refusal = refusal_of(error, path)
                await context.abort(refusal.code, refusal.message)

        return grpc.unary_unary_rpc_method_handler(answer, None, _serialize)
    if isinstance(method, ServerStream):
        server_stream = method.handler

        async def stream(data: bytes, context: Any) -> AsyncIterator[Message]:
            try:
                async for item in server_stream(parse(data), _call(context)):
                    yield item
            except Exception as error:  # noqa: BLE001 - the border, as above
                refusal = refusal_of(error, path)
                await context.abort(refusal.code, refusal.message)

        return grpc.unary_stream_rpc_method_handler(stream, None, _serialize)

    bidi_stream = method.handler

    async def converse(requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[Message]:
        async def parsed() -> AsyncIterator[Message]:
            async for data in requests:
                yield parse(data)

        try:
            async for item in bidi_stream(parsed(), _call(context)):
                yield item
        except Exception as error:  # noqa: BLE001 - the border, as above
            refusal = refusal_of(error, path)
            await context.abort(refusal.code, refusal.message)

    return grpc.stream_stream_rpc_method_handler(converse, None, _serialize)


def _serialize(message: Message) -> bytes:
    data: bytes = message.SerializeToString()
    return data


def _call(context: Any) -> Call:
    return Call(metadata={k: v for k, v in context.invocation_metadata() or () if isinstance(v, str)})
