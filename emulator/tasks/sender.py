"""The sender for real networks: one pool of connections for all queues."""

from __future__ import annotations

from datetime import timedelta
from functools import cached_property

import httpx

from emulator.tasks.calls import HttpCall
from emulator.tasks.outcomes import Answered

# Shorter than the five seconds after which uvicorn drops an idle connection: a request sent into a connection
# that is being closed is a failed attempt.
_KEEPALIVE_SECONDS = 2.0


class HttpSender:
    @cached_property
    def _client(self) -> httpx.AsyncClient:
        # Made when it is first needed, since it reads the system's certificates.
        # trust_env off: a proxy for the internet must not see calls to this machine. The deadline is the
        # dispatcher's.
        return httpx.AsyncClient(
            follow_redirects=False,
            trust_env=False,
            timeout=None,
            limits=httpx.Limits(
                max_connections=None, max_keepalive_connections=100, keepalive_expiry=_KEEPALIVE_SECONDS
            ),
        )

    async def __call__(self, call: HttpCall) -> Answered:
        headers = [(name.encode(), value.encode()) for name, value in call.headers.items()]
        async with self._client.stream(call.method, call.url, headers=headers, content=call.body) as response:
            async for _ in response.aiter_raw():
                pass  # read to its end, so that the connection can be used again
            return Answered(response.status_code, _retry_after(response.headers.get("retry-after", "")))

    async def close(self) -> None:
        if "_client" in self.__dict__:
            await self._client.aclose()


def _retry_after(value: str) -> timedelta:
    """Seconds. The form with a date is rare between services, and is taken for no wish at all."""
    return timedelta(seconds=min(int(value), 86_400)) if value.isascii() and value.isdigit() else timedelta(0)
