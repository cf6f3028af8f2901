"""A wire between two processes, with a listener on it: bytes pass unchanged, and each exchange is written down.

So a test can tell which way a message took without asking those who carried it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import h11

HOST = "127.0.0.1"


@dataclass
class Exchange:
    """One request over HTTP/1.1, and what was answered. Times are of the machine's clock, in seconds."""

    asked_at: float
    """When the last byte of the request had passed."""
    method: str
    path: str
    headers: Mapping[str, str]
    """By name in lower case."""
    body: bytes = field(repr=False)
    status: int | None = None
    """None: no answer has passed yet."""
    answer: bytes = field(default=b"", repr=False)
    answered_at: float | None = None


class Tap:
    """`async with Tap(lambda: port) as tap`: who connects to `tap.address` is connected to that port."""

    def __init__(self, target: Callable[[], int]) -> None:
        self._target = target
        self._server: asyncio.Server | None = None
        self._wires: set[asyncio.Transport] = set()
        self.exchanges: list[Exchange] = []
        """In the order in which they were asked."""

    @property
    def address(self) -> str:
        assert self._server is not None, "it was not started"
        return f"{HOST}:{self._server.sockets[0].getsockname()[1]}"

    async def __aenter__(self) -> Tap:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Asking(self._target, self.exchanges, self._wires), HOST, 0)
        return self

    async def __aexit__(self, *exc: object) -> None:
        assert self._server is not None
        self._server.close()
        for wire in list(self._wires):
            wire.abort()
        await self._server.wait_closed()


class _End(asyncio.Protocol):
    """One of a wire's two ends. What comes before the other end is connected waits."""

    def __init__(self, wires: set[asyncio.Transport]) -> None:
        self._wires = wires
        self._transport: asyncio.Transport | None = None
        self._waiting = b""
        self.other: _End | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._wires.add(transport)
        self.write(b"")

    def write(self, data: bytes) -> None:
        self._waiting += data
        if self._transport is not None and self._waiting:
            self._transport.write(self._waiting)
            self._waiting = b""

    def data_received(self, data: bytes) -> None:
        if self.other is not None:
            self.other.write(data)

    def connection_lost(self, error: Exception | None) -> None:
        if self._transport is not None:
            self._wires.discard(self._transport)
        if self.other is not None and self.other._transport is not None:
            self.other._transport.close()


class _Asking(_End):
    """The caller's end. It opens the other one."""

    def __init__(self, target: Callable[[], int], exchanges: list[Exchange], wires: set[asyncio.Transport]) -> None:
        super().__init__(wires)
        self._target = target
        self._exchanges = exchanges
        self._http = h11.Connection(h11.SERVER)
        self._request: h11.Request | None = None
        self._body = b""
        self._dialing: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.other = _Answering(self, self._wires)
        self._dialing = asyncio.ensure_future(self._dial(self.other))

    async def _dial(self, other: _Answering) -> None:
        try:
            await asyncio.get_running_loop().create_connection(lambda: other, HOST, self._target())
        except OSError:  # nothing is there, and the caller sees just that
            if self._transport is not None:
                self._transport.abort()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._http.receive_data(data)
        while True:
            event = self._http.next_event()
            match event:
                case h11.Request():
                    self._request, self._body = event, b""
                case h11.Data():
                    self._body += bytes(event.data)
                case h11.EndOfMessage():
                    self._asked()
                case _:
                    return

    def _asked(self) -> None:
        assert self._request is not None
        exchange = Exchange(
            asked_at=time.time(),
            method=self._request.method.decode(),
            path=self._request.target.decode(),
            headers={name.decode().lower(): value.decode("latin-1") for name, value in self._request.headers},
            body=self._body,
        )
        self._exchanges.append(exchange)
        assert isinstance(self.other, _Answering)
        self.other.expect(exchange)
        rest, _ = self._http.trailing_data
        self._http = h11.Connection(h11.SERVER)  # each request is read anew: nothing is answered from here
        if rest:
            self._http.receive_data(rest)


class _Answering(_End):
    """The other process's end."""

    def __init__(self, asking: _Asking, wires: set[asyncio.Transport]) -> None:
        super().__init__(wires)
        self.other = asking
        self._http: h11.Connection | None = None
        self._exchange: Exchange | None = None

    def expect(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._http = h11.Connection(h11.CLIENT)
        self._http.send(h11.Request(method=exchange.method, target="/", headers=[("Host", HOST)]))
        self._http.send(h11.EndOfMessage())

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._http is None or self._exchange is None:
            return
        self._http.receive_data(data)
        while True:
            event = self._http.next_event()
            match event:
                case h11.Response():
                    self._exchange.status = event.status_code
                case h11.Data():
                    self._exchange.answer += bytes(event.data)
                case h11.EndOfMessage():
                    self._exchange.answered_at = time.time()
                    self._http = self._exchange = None
                    return
                case _:
                    return
