"""The HTTP calls that the emulators make: tasks dispatched, events delivered, webhooks sent.

A `Sender` is the network. By default it is a pool of connections (`HttpSender`); a simulation puts in its own.

httpx would do for the pool, and costs too much here: its own looks through all connections for each request that begins
or ends, so a burst of a hundred takes a hundred times a hundred looks (measured: 3.7 ms of CPU a call, where this takes
well under one). What is needed is little: send one request, read the answer's status, drop its body.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from urllib.parse import quote, urlsplit

import h11

IDLE_SECONDS = 1.0
"""Shorter than any server waits before it drops an idle connection: a request sent into one being dropped fails."""
IDLE_CONNECTIONS = 100
"""Kept for one origin; a burst may open more, and closes them."""

_NOT_FORWARDED = frozenset({"connection", "expect", "host", "te", "trailer", "transfer-encoding", "upgrade"})
_WITH_LENGTH = frozenset({"POST", "PUT", "PATCH"})


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpCall:
    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes
    deadline: timedelta
    """The caller enforces it; a sender need not."""


@dataclass(frozen=True, slots=True)
class Answered:
    status: int
    retry_after: timedelta = timedelta(0)
    """How long the receiver asks to be left alone; zero when it does not say."""


Sender = Callable[[HttpCall], Awaitable[Answered]]
"""Makes the call and tells its answer. What it raises counts as no answer at all."""


@dataclass(frozen=True, slots=True)
class Origin:
    host: str
    port: int
    tls: bool


class HttpSender:
    """The sender for real networks: HTTP/1.1 over connections that are kept and used again."""

    def __init__(self) -> None:
        self._idle: defaultdict[Origin, list[_Connection]] = defaultdict(list)

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return ssl.create_default_context()

    async def __call__(self, call: HttpCall) -> Answered:
        parts = urlsplit(call.url)
        tls = parts.scheme.lower() == "https"
        origin = Origin(parts.hostname or "", parts.port or (443 if tls else 80), tls)
        target = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~") + (f"?{_query(parts.query)}" if parts.query else "")
        connection = self._kept(origin) or await self._opened(origin)
        try:
            answer = await connection.exchange(call, parts.netloc.rpartition("@")[2], target)
        except BaseException:
            connection.abort()
            raise
        if connection.ready_again() and len(self._idle[origin]) < IDLE_CONNECTIONS:
            self._idle[origin].append(connection)
        else:
            connection.abort()
        return answer

    def _kept(self, origin: Origin) -> _Connection | None:
        kept = self._idle[origin]
        while kept:
            connection = kept.pop()  # the one used last: the others age, and go
            if connection.usable():
                return connection
            connection.abort()
        return None

    async def _opened(self, origin: Origin) -> _Connection:
        _, connection = await asyncio.get_running_loop().create_connection(
            _Connection, origin.host, origin.port, ssl=self._tls if origin.tls else None
        )
        return connection

    async def close(self) -> None:
        for kept in self._idle.values():
            for connection in kept:
                connection.abort()
        self._idle.clear()


class _Connection(asyncio.Protocol):
    """One connection, one request at a time."""

    def __init__(self) -> None:
        self._http = h11.Connection(h11.CLIENT)
        self._transport: asyncio.Transport | None = None
        self._answer: asyncio.Future[Answered] | None = None
        self._response: h11.Response | None = None
        self._idle_since = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def exchange(self, call: HttpCall, host: str, target: str) -> asyncio.Future[Answered]:
        assert self._transport is not None
        headers = [(b"Host", host.encode("idna" if not host.isascii() else "ascii"))]
        headers += [(n.encode(), v.encode()) for n, v in call.headers.items() if n.lower() not in _NOT_FORWARDED]
        if call.body or call.method in _WITH_LENGTH:
            headers.append((b"Content-Length", str(len(call.body)).encode()))
        self._response = None
        self._answer = asyncio.get_running_loop().create_future()
        out = self._http.send(h11.Request(method=call.method, target=target, headers=headers))
        if call.body:
            out = (out or b"") + (self._http.send(h11.Data(data=call.body)) or b"")
        self._http.send(h11.EndOfMessage())
        self._transport.write(out or b"")
        return self._answer

    def data_received(self, data: bytes) -> None:
        try:
            self._http.receive_data(data)
            self._read()
        except h11.RemoteProtocolError as error:
            self._failed(error)

    def eof_received(self) -> None:
        self.data_received(b"")

    def _read(self) -> None:
        while True:
            event = self._http.next_event()
            if isinstance(event, h11.Response):
                self._response = event
            elif isinstance(event, h11.EndOfMessage) and self._response is not None:
                if self._answer is not None and not self._answer.done():
                    self._answer.set_result(_answered(self._response))
                return
            elif event in (h11.NEED_DATA, h11.PAUSED) or isinstance(event, h11.ConnectionClosed):
                return

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._failed(error or ConnectionResetError("the worker closed the connection before it answered"))

    def _failed(self, error: Exception) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)

    def ready_again(self) -> bool:
        """After an answer: whether another request may follow on this connection."""
        if self._transport is None or self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
            return False
        self._http.start_next_cycle()
        self._idle_since = asyncio.get_running_loop().time()
        return True

    def usable(self) -> bool:
        return (
            self._transport is not None
            and not self._transport.is_closing()
            and asyncio.get_running_loop().time() - self._idle_since < IDLE_SECONDS
        )

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()


def _answered(response: h11.Response) -> Answered:
    wish = next((value for name, value in response.headers if name == b"retry-after"), b"")
    # Seconds. The form with a date is rare between services, and is taken for no wish at all.
    seconds = min(int(wish), 86_400) if wish.isdigit() else 0
    return Answered(response.status_code, timedelta(seconds=seconds))


def _query(text: str) -> str:
    return quote(text, safe="/?%:@!$&'()*+,;=~[]")
