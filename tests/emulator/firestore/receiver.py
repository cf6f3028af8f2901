"""A local HTTP server in the place of Cloud Functions. It keeps the events it was sent and answers as ordered."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from google.events.cloud import firestore as firestore_events

from tests.conformance.wire import Plain, fields_of
from tests.patience import PATIENCE_SECONDS

_Data: Any = firestore_events.DocumentEventData.pb()


@dataclass(frozen=True)
class Event:
    path: str
    headers: dict[str, str]
    """By lower-case name."""
    body: bytes

    @property
    def trigger(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def document(self) -> str:
        return self.headers["ce-document"]

    @property
    def data(self) -> Any:
        return _Data.FromString(self.body)

    @property
    def value(self) -> dict[str, Plain] | None:
        return fields_of(self.data.value) if self.data.HasField("value") else None

    @property
    def old_value(self) -> dict[str, Plain] | None:
        return fields_of(self.data.old_value) if self.data.HasField("old_value") else None


async def taken(event: Event) -> int:
    return 204


@dataclass
class Receiver:
    answer: Callable[[Event], Awaitable[int]] = taken
    events: list[Event] = field(default_factory=list)
    address: str = ""
    _more: asyncio.Event = field(default_factory=asyncio.Event)

    async def until(self, enough: Callable[[list[Event]], bool]) -> list[Event]:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not enough(self.events):
                self._more.clear()
                await self._more.wait()
        return self.events

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                _, path, _ = head[0].split(" ")
                headers = {key.lower(): text for key, _, text in (line.partition(": ") for line in head[1:] if line)}
                event = Event(path, headers, await reader.readexactly(int(headers.get("content-length", "0"))))
                self.events.append(event)
                self._more.set()
                status = await self.answer(event)
                writer.write(f"HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n".encode())
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    it = Receiver()
    server = await asyncio.start_server(it.serve, "127.0.0.1", 0)
    it.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield it
    finally:
        server.close()
