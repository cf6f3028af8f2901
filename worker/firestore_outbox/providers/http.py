"""Calls to providers: one client for all, and the one place where network failures are translated.

    no connection, or none free in the pool      Retryable   nothing left this machine
    anything later without a whole answer        Unknown     the request may have been processed

A connection that the other side closed while it was idle fails like a dropped response, so idle connections are kept
for less time than servers keep them.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import httpx

from firestore_outbox.providers.outcome import ErrorCode, Rejected, Retryable, Unknown
from firestore_outbox.providers.pool import ConnectionPool

# Waiting for a connection and opening it end well before any call's limit, so that a limit that is reached means a
# request that was sent.
_TIMEOUT = httpx.Timeout(connect=2.5, pool=2.5, write=10.0, read=10.0)
_MAX_CONNECTIONS = 200
_KEEPALIVE_SECONDS = 4.0
_LONGEST_RETRY_AFTER = timedelta(days=1)

_NOT_PROCESSED = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.UnsupportedProtocol,
    httpx.LocalProtocolError,  # a header that cannot be written
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Streamed:
    """A body that is never whole in memory."""

    size_bytes: int
    pieces: Callable[[], AsyncIterator[bytes]]

    @classmethod
    def of(cls, content: bytes) -> Streamed:
        async def pieces() -> AsyncIterator[bytes]:
            yield content

        return cls(size_bytes=len(content), pieces=pieces)

    def between(self, head: bytes, tail: bytes) -> Streamed:
        async def pieces() -> AsyncIterator[bytes]:
            yield head
            async for piece in self.pieces():
                yield piece
            yield tail

        return Streamed(size_bytes=len(head) + self.size_bytes + len(tail), pieces=pieces)


class Http:
    """`transport` is the network; a simulation puts its own in its place."""

    def __init__(self, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self._transport = transport
        self._client: httpx.AsyncClient | None = None

    async def post(
        self,
        url: str,
        *,
        headers: Mapping[str, str],
        content: bytes | Streamed,
        limit: timedelta,
        read: timedelta | None = None,
    ) -> httpx.Response | Retryable | Unknown:
        """`read` is for a provider that is known to take its time before it answers."""
        options = {} if read is None else {"timeout": _patient(read)}
        if isinstance(content, Streamed):
            length = {"Content-Length": str(content.size_bytes)}
            return await self._answer(
                "POST", url, limit, headers={**headers, **length}, content=content.pieces(), **options
            )
        return await self._answer("POST", url, limit, headers=dict(headers), content=content, **options)

    async def post_form(
        self,
        url: str,
        *,
        headers: Mapping[str, str],
        fields: Mapping[str, str],
        file: tuple[str, Streamed, str],
        limit: timedelta,
    ) -> httpx.Response | Retryable | Unknown:
        """A multipart form with one `file`: its name, content and type."""
        name, content, mime_type = file
        mark = secrets.token_bytes(16)  # httpx writes the form around it, and the file takes its place
        form = httpx.Request("POST", url, data=dict(fields), files={"file": (name, mark, mime_type)})
        head, _, tail = form.read().partition(mark)
        typed = {**headers, "Content-Type": form.headers["Content-Type"]}
        return await self.post(url, headers=typed, content=content.between(head, tail), limit=limit)

    async def put(
        self, url: str, *, headers: Mapping[str, str], content: bytes, limit: timedelta
    ) -> httpx.Response | Retryable | Unknown:
        return await self._answer("PUT", url, limit, headers=dict(headers), content=content)

    async def get(
        self, url: str, *, headers: Mapping[str, str], limit: timedelta
    ) -> httpx.Response | Retryable | Unknown:
        return await self._answer("GET", url, limit, headers=dict(headers))

    async def download(
        self, url: str, *, headers: Mapping[str, str], most_bytes: int, limit: timedelta
    ) -> httpx.Response | Rejected | Retryable | Unknown:
        """A GET whose body is read up to `most_bytes`; a larger one is Rejected, without the rest of it."""
        try:
            async with asyncio.timeout(limit.total_seconds()):
                return await self._downloaded(url, headers, most_bytes)
        except _NOT_PROCESSED as error:
            return Retryable(
                code=ErrorCode.PROVIDER_UNAVAILABLE, detail=f"no connection to the provider ({type(error).__name__})"
            )
        except (httpx.HTTPError, TimeoutError) as error:
            return Unknown(detail=f"the file did not come ({type(error).__name__})")

    async def _downloaded(self, url: str, headers: Mapping[str, str], most_bytes: int) -> httpx.Response | Rejected:
        too_large = Rejected(code=ErrorCode.INVALID_MESSAGE, detail=f"the file has more than {most_bytes} bytes")
        async with self._pool().stream("GET", url, headers=dict(headers)) as answer:
            declared = answer.headers.get("content-length", "")
            if declared.isdigit() and int(declared) > most_bytes:
                return too_large
            content = bytearray()
            async for piece in answer.aiter_bytes():
                content += piece
                if len(content) > most_bytes:
                    return too_large
            return httpx.Response(answer.status_code, content=bytes(content))

    async def _answer(
        self, method: str, url: str, limit: timedelta, **request: Any
    ) -> httpx.Response | Retryable | Unknown:
        try:
            async with asyncio.timeout(limit.total_seconds()):
                return await self._pool().request(method, url, **request)
        except _NOT_PROCESSED as error:
            return Retryable(
                code=ErrorCode.PROVIDER_UNAVAILABLE, detail=f"no connection to the provider ({type(error).__name__})"
            )
        except (httpx.TimeoutException, TimeoutError):
            return Unknown(detail="the provider did not answer in time")
        except httpx.HTTPError as error:
            # Its text is left out: it may quote the address, and some providers want secrets in there.
            return Unknown(detail=f"the provider's answer was lost ({type(error).__name__})")

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    def _pool(self) -> httpx.AsyncClient:
        """Made by the first call: a pool belongs to the event loop that runs then."""
        if self._client is None:
            self._client = httpx.AsyncClient(
                transport=self._transport
                or ConnectionPool(max_connections=_MAX_CONNECTIONS, keepalive_seconds=_KEEPALIVE_SECONDS),
                timeout=_TIMEOUT,
                follow_redirects=False,
                trust_env=False,
            )
        return self._client


def _patient(read: timedelta) -> httpx.Timeout:
    return httpx.Timeout(connect=_TIMEOUT.connect, pool=_TIMEOUT.pool, write=_TIMEOUT.write, read=read.total_seconds())


def retry_after(headers: Mapping[str, str]) -> timedelta | None:
    """In seconds, a day at most. The form with a date is not used by any provider we know."""
    value = headers.get("retry-after", "").strip()
    if not (value.isascii() and value.isdigit()):
        return None
    return min(timedelta(seconds=int(value[:9])), _LONGEST_RETRY_AFTER)
