"""A caller with a socket of its own, who sends as much of a request as a test wants, and no more."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Self

import uvicorn

from tests.patience import PATIENCE_SECONDS


class Connection:
    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)

    async def __aenter__(self) -> Self:
        self._reader, self._writer = await asyncio.open_connection(*self._address)
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._writer.close()

    async def start(
        self, path: str, *, length: int | None = None, headers: Mapping[str, str] | None = None, method: str = "POST"
    ) -> None:
        """The head of a request. Without a length its body is chunked."""
        framing = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
        lines = [f"{method} {path} HTTP/1.1", "Host: test", framing]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        await self.send(("\r\n".join(lines) + "\r\n\r\n").encode())

    async def send(self, data: bytes) -> None:
        with contextlib.suppress(ConnectionError):  # the other side has answered and closed
            self._writer.write(data)
            await self._writer.drain()

    async def send_chunks(self, data: bytes, *, most: int) -> int:
        """Chunk after chunk until there is an answer. How many were sent."""
        answered = asyncio.create_task(self._answered())
        chunk = f"{len(data):x}\r\n".encode() + data + b"\r\n"
        try:
            for number in range(most):
                sending = asyncio.create_task(self.send(chunk))
                await asyncio.wait({answered, sending}, return_when=asyncio.FIRST_COMPLETED)
                if answered.done():
                    sending.cancel()
                    return number
                await sending
            return most
        finally:
            await answered

    async def _answered(self) -> None:
        """Until the first byte of the answer, or the end of the connection."""
        with contextlib.suppress(ConnectionError):
            self._first = await self._reader.read(1)

    _first = b""

    async def answer(self) -> tuple[int, str]:
        """The status and the body of the answer."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            head = (self._first + await self._reader.readuntil(b"\r\n\r\n")).decode()
            headers = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
            body = await self._reader.readexactly(int(headers.get("content-length", "0")))
        self.is_closing = headers.get("connection") == "close"
        return int(head.split(" ")[1]), body.decode()

    is_closing = False

    async def is_closed(self) -> bool:
        """Whether the other side closes the connection, in a while."""
        with contextlib.suppress(ConnectionError):
            async with asyncio.timeout(PATIENCE_SECONDS):
                return await self._reader.read(1) == b""
        return True


@asynccontextmanager
async def connected(server: uvicorn.Server) -> AsyncIterator[tuple[str, int]]:
    """Its address, for as long as the context lasts."""
    serving = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 - uvicorn offers no event
        await asyncio.sleep(0.005)
    try:
        yield server.servers[0].sockets[0].getsockname()[:2]
    finally:
        server.should_exit = True
        await serving
