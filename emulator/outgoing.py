"""The HTTP calls that the emulators make: tasks dispatched, events delivered.

A `Sender` is the network. By default it is a pool of connections; a simulation puts its own in its place.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx

# Shorter than the five seconds after which uvicorn drops an idle connection: a request sent into a connection
# that is being closed is a failed attempt.
_KEEPALIVE_SECONDS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpCall:
    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes
    deadline: timedelta
    """Whoever asks for the call enforces it; a sender need not."""


@dataclass(frozen=True, slots=True)
class Answered:
    status: int
    retry_after: timedelta = timedelta(0)
    """How long the receiver asks to be left alone; zero when it does not say."""


Sender = Callable[[HttpCall], Awaitable[Answered]]
"""Makes the call and tells its answer. What it raises counts as no answer at all."""


class HttpSender:
    """The sender for real networks: one pool of connections."""

    @cached_property
    def _client(self) -> httpx.AsyncClient:
        import httpx  # here, so that an emulator is up before it has to call anybody

        # trust_env off: a proxy for the internet must not see calls to this machine.
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
