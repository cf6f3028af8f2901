"""A connection between two parts that can be cut: a listener whose address never changes, before a port that may.

A client of a link is connected to whatever stands behind it at that time. Bytes that were under way when a link
stalled arrive when it is restored, as they would from a network's buffers, also if their sender has given up.
"""

from __future__ import annotations

import asyncio

from tests.system.chaos.plan import Manner

HOST = "127.0.0.1"
AT_ONCE = 65_536


class Link:
    """`async with Link("a>b") as link`; `behind` is the port that it leads to, None while there is none."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.behind: int | None = None
        self.port = 0
        self._manner: Manner | None = None
        self._whole = asyncio.Event()
        self._whole.set()
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    async def __aenter__(self) -> Link:
        self._server = await asyncio.start_server(self._accepted, HOST, 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exc: object) -> None:
        assert self._server is not None
        self._server.close()
        await self._drop_all()

    async def cut(self, manner: Manner) -> None:
        self._manner = manner
        self._whole.clear()
        if manner is Manner.REFUSE:
            await self._drop_all()

    async def restore(self) -> None:
        """What lost its answers is not to be trusted any more: those connections end."""
        was, self._manner = self._manner, None
        if was is Manner.MUTE:
            await self._drop_all()
        self._whole.set()

    async def _drop_all(self) -> None:
        connections = list(self._connections)
        for connection in connections:
            connection.cancel()
        await asyncio.gather(*connections, return_exceptions=True)

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            await self._joined(reader, writer)
            writer.close()  # after what was written
        except (OSError, asyncio.CancelledError):  # either side may go at any time; or it was cut
            writer.transport.abort()
        finally:
            self._connections.discard(task)

    async def _joined(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._manner is Manner.STALL:
            await self._whole.wait()
        if self._manner is Manner.REFUSE or self.behind is None:
            raise ConnectionRefusedError
        from_behind, to_behind = await asyncio.open_connection(HOST, self.behind)
        forth = asyncio.create_task(self._forth(reader, to_behind))
        back = asyncio.create_task(self._back(from_behind, writer))
        try:
            await asyncio.wait({forth, back}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in (forth, back):
                pump.cancel()
            await asyncio.gather(forth, back, return_exceptions=True)
            to_behind.close()  # after what was written

    async def _forth(self, reader: asyncio.StreamReader, to_behind: asyncio.StreamWriter) -> None:
        while data := await reader.read(AT_ONCE):
            if self._manner is Manner.STALL:
                await self._whole.wait()
            to_behind.write(data)
            await to_behind.drain()

    async def _back(self, from_behind: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await from_behind.read(AT_ONCE):
            if self._manner is not None:
                await self._whole.wait()  # of a mute link: until the connection is dropped
            writer.write(data)
            await writer.drain()
