"""Reading the body of an HTTP request: never more of it than allowed, never for longer, and never too many at once.

A caller who has shown nothing yet may send a body without end, or one byte a minute, or a thousand large bodies at the
same time. So three limits hold for each: its own size, which the Content-Length must respect before a byte is read; a
deadline; and the bytes that all bodies of this process hold together. A body counts until its caller is answered.

    413  larger than allowed            408  not here within the deadline
    503  too many bodies at once        400  the caller went away, or says two lengths
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from starlette.requests import ClientDisconnect, Request

LENGTH_HEADER = "content-length"


@dataclass(frozen=True, slots=True)
class NotRead:
    """Why there is no body, as an HTTP status and a sentence."""

    status: int
    reason: str


def declared(headers: Mapping[str, str], most: int) -> NotRead | None:
    """What the Content-Length alone forbids. None: the body may be read; a chunked one has no length to look at."""
    length = headers.get(LENGTH_HEADER)
    if length is None:
        return None
    if not (length.isascii() and length.isdigit()):
        return NotRead(400, "the Content-Length is no number")
    return NotRead(413, _too_large(most)) if len(length) > 12 or int(length) > most else None


def has_body(headers: Mapping[str, str]) -> bool:
    """Whether one is announced. An answer that leaves it unread must close the connection, or it would go on coming."""
    return headers.get(LENGTH_HEADER, "0") != "0" or "transfer-encoding" in headers


class Bodies:
    """All bodies of a process."""

    def __init__(self, *, most_bytes: int, seconds: float) -> None:
        """`most_bytes` for all of them together, `seconds` for each."""
        self._most_bytes = most_bytes
        self._seconds = seconds
        self._held = 0

    @property
    def held_bytes(self) -> int:
        return self._held

    @asynccontextmanager
    async def read(self, request: Request, most: int) -> AsyncIterator[bytes | NotRead]:
        """At most `most` bytes. They count against the process until the context ends."""
        body = bytearray()
        try:
            yield declared(request.headers, most) or await self._read(request, most, body)
        finally:
            self._held -= len(body)

    async def _read(self, request: Request, most: int, body: bytearray) -> bytes | NotRead:
        try:
            async with asyncio.timeout(self._seconds):
                async for chunk in request.stream():
                    if len(body) + len(chunk) > most:
                        return NotRead(413, _too_large(most))
                    if self._held + len(chunk) > self._most_bytes:
                        return NotRead(503, "too many requests with large bodies at the moment; try again")
                    self._held += len(chunk)
                    body += chunk
        except TimeoutError:
            return NotRead(408, f"the body did not come within {self._seconds:g} seconds")
        except ClientDisconnect:
            return NotRead(400, "the body ended early")
        return bytes(body)


def _too_large(most: int) -> str:
    return f"the body is larger than {most:,} bytes"
