"""The simulator without sockets: an httpx transport that calls the application, on whatever loop runs.

What a network does to a client is done here: a cut connection is a `ReadError`, and an answer that does not come is a
`ReadTimeout`, which a real transport measures and an in-process one has to.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import httpx

from firestore_outbox.local.simulators.app import CUT_EXTENSION

AsgiApp = Callable[
    [
        MutableMapping[str, Any],
        Callable[[], Awaitable[MutableMapping[str, Any]]],
        Callable[[MutableMapping[str, Any]], Awaitable[None]],
    ],
    Awaitable[None],
]


class _Cut(Exception):
    """The application ended the connection."""


async def _cut() -> None:
    raise _Cut


class InProcessTransport(httpx.AsyncBaseTransport):
    """`refuses_connections` may be set any time: the provider is then unreachable."""

    def __init__(self, app: AsgiApp) -> None:
        self.refuses_connections = False

        async def cuttable(scope: Any, receive: Any, send: Any) -> None:
            await app({**scope, "extensions": {CUT_EXTENSION: _cut}}, receive, send)

        self._asgi = httpx.ASGITransport(cuttable)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if self.refuses_connections:
            raise httpx.ConnectError("All connection attempts failed", request=request)
        seconds = request.extensions.get("timeout", {}).get("read")
        timeout = asyncio.timeout(seconds)
        try:
            async with timeout:
                return await self._asgi.handle_async_request(request)
        except _Cut:
            raise httpx.ReadError("the connection was cut", request=request) from None
        except TimeoutError:
            if not timeout.expired():
                raise
            raise httpx.ReadTimeout("no answer in time", request=request) from None
