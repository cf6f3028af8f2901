"""One address for several workers, as Cloud Run has, and sure to use them all.

Tasks for one lane go to the workers in turn, and each lane begins with another of them: whatever the timing, lanes are
begun on every worker, and the workers meet on every lane.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

HOST = "127.0.0.1"


class Balancer:
    """`async with Balancer() as balancer`; `backends` are ports, and may change at any time."""

    def __init__(self) -> None:
        self.backends: list[int] = []
        self.url = ""
        self._turns: dict[bytes, int] = {}
        """By a request's body, which for a task names its lane."""
        self._server: asyncio.Server | None = None
        self._under_way: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Balancer:
        self._server = await asyncio.start_server(self._accepted, HOST, 0)
        self.url = f"http://{HOST}:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *exc: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._under_way.add(task)
        try:
            with suppress(OSError, asyncio.IncompleteReadError):  # either side may go at any time, and is then gone
                await self._one_request(reader, writer)
        finally:
            self._under_way.discard(task)
            writer.close()

    async def _one_request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        lines = head.split(b"\r\n")
        fields = dict(line.lower().split(b":", 1) for line in lines[1:] if line)
        body = await reader.readexactly(int(fields.get(b"content-length", b"0")))
        kept = [line for line in lines[1:] if line and not line.lower().startswith(b"connection:")]
        from_worker, to_worker = await asyncio.open_connection(HOST, self._next(body))
        try:
            to_worker.write(b"\r\n".join([lines[0], *kept, b"Connection: close", b"", b""]) + body)
            while answer := await from_worker.read(65536):
                writer.write(answer)
                await writer.drain()
        finally:
            to_worker.close()

    def _next(self, body: bytes) -> int:
        if not self.backends:
            raise ConnectionRefusedError
        turn = self._turns.get(body, len(self._turns))
        self._turns[body] = turn + 1
        return self.backends[turn % len(self.backends)]
