"""An httpx transport that keeps to a shared limit."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

import httpx

if TYPE_CHECKING:
    from firestore_outbox.limits.limit import Limit

TOO_MANY_REQUESTS = 429


class LimitTransport(httpx.AsyncBaseTransport):
    """Acquires for each request. After a 429 all instances pause for its Retry-After, and the request is repeated
    `retries` times if its body can be read again; then the caller gets the 429."""

    def __init__(self, limit: Limit, inner: httpx.AsyncBaseTransport | None, *, retries: int) -> None:
        self._limit = limit
        self._inner = inner or httpx.AsyncHTTPTransport()
        self._retries = retries

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        tries = self._retries if isinstance(request.stream, httpx.ByteStream) else 0
        while True:
            await self._limit.acquire()
            response = await self._inner.handle_async_request(request)
            if response.status_code != TOO_MANY_REQUESTS:
                return response
            await self._limit.throttled(retry_after_of(response.headers.get("retry-after"), datetime.now(UTC)))
            if tries == 0:
                return response
            tries -= 1
            await response.aclose()

    async def aclose(self) -> None:
        await self._inner.aclose()


def retry_after_of(header: str | None, now: datetime) -> float | None:
    """The seconds that a Retry-After header names, as a number or as a date; None if it names none."""
    if header is None:
        return None
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        at = parsedate_to_datetime(header)
    except ValueError:
        return None
    return max(0.0, ((at if at.tzinfo else at.replace(tzinfo=UTC)) - now).total_seconds())
