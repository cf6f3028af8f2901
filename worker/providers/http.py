"""Calls to providers: one client for all, and the one place where network failures are translated.

    no connection, or none free in the pool      Retryable   nothing left this machine
    anything later without a whole answer        Unknown     the request may have been processed

A connection that the other side closed while it was idle fails like a dropped response, so idle connections are kept
for less time than servers keep them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import timedelta

import httpx

from worker.domain.outcome import ErrorCode, Retryable, Unknown
from worker.providers.pool import ConnectionPool

# Waiting for a connection and opening it end well before any call's limit, so that a limit that is reached means a
# request that was sent.
_TIMEOUT = httpx.Timeout(connect=2.5, pool=2.5, write=10.0, read=10.0)
_MAX_CONNECTIONS = 200
_KEEPALIVE_SECONDS = 4.0
_LONGEST_RETRY_AFTER = timedelta(days=1)

_NOT_PROCESSED = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol)


class Http:
    """`transport` is the network; a simulation puts its own in its place."""

    def __init__(self, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self._transport = transport
        self._client: httpx.AsyncClient | None = None

    async def post(
        self, url: str, *, headers: Mapping[str, str], content: bytes, limit: timedelta
    ) -> httpx.Response | Retryable | Unknown:
        try:
            async with asyncio.timeout(limit.total_seconds()):
                return await self._pool().post(url, headers=dict(headers), content=content)
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


def retry_after(headers: Mapping[str, str]) -> timedelta | None:
    """In seconds, a day at most. The form with a date is not used by any provider we know."""
    value = headers.get("retry-after", "").strip()
    if not (value.isascii() and value.isdigit()):
        return None
    return min(timedelta(seconds=int(value[:9])), _LONGEST_RETRY_AFTER)
