"""What a user holds: `async with limit:`, and an httpx transport that acquires for each request."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import timedelta
from random import Random
from types import TracebackType
from typing import TYPE_CHECKING

from firestore_outbox.clock import Clock, system_clock
from firestore_outbox.limits.limiter import Limiter
from firestore_outbox.limits.line import Rate, is_limit_name, rates
from firestore_outbox.limits.store import BadLimit, LimitStore
from firestore_outbox.settings import Settings

if TYPE_CHECKING:
    import httpx
    from google.cloud.firestore import AsyncClient

    from firestore_outbox.firestore.gateway import Gateway


class Limit:
    """A rate that all instances share, by its name.

        notion = Limit("notion", per_second=3, burst=3)

        async with notion:                                        # waits until one call may go
            await client.get(...)

        client = httpx.AsyncClient(transport=notion.transport())  # or: for each request by itself

    The document `limits/{name}` ({perSecond, burst}) sets the rate; OUTBOX_LIMITS is the default where there is none,
    and `per_second` and `burst` are the default of the code. Without `client` the limit connects as the worker does.
    A limit belongs to the event loop in which it is first used.
    """

    def __init__(
        self,
        name: str,
        *,
        per_second: float | None = None,
        burst: int | None = None,
        client: AsyncClient | None = None,
    ) -> None:
        self.name = _checked(name)
        self._default = _rate(name, per_second, burst)
        self._client = client
        self._own_client: AsyncClient | None = None
        self._limiter: Limiter | None = None

    @classmethod
    def of(cls, limiter: Limiter) -> Limit:
        """One whose part in this process exists already."""
        made = cls(limiter.name)
        made._limiter = limiter
        return made

    async def acquire(self) -> None:
        """Return when one call may go."""
        await self._connected().acquire()

    async def __aenter__(self) -> Limit:
        await self.acquire()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing: a call that was made counts."""

    async def throttled(self, retry_after: float | None = None) -> None:
        """Call it after a 429: all instances pause for that many seconds, go on at half of the rate, and recover."""
        await self._connected().throttled(None if retry_after is None else timedelta(seconds=max(0.0, retry_after)))

    def transport(self, inner: httpx.AsyncBaseTransport | None = None, *, retries: int = 3) -> httpx.AsyncBaseTransport:
        """For `httpx.AsyncClient(transport=...)`: acquires for each request, and repeats one that got a 429."""
        from firestore_outbox.limits.transport import LimitTransport

        return LimitTransport(self, inner, retries=retries)

    @property
    def throttles_of_the_last_minute(self) -> int:
        """429 answers that this process saw."""
        return 0 if self._limiter is None else self._limiter.throttles_of_the_last_minute

    async def close(self) -> None:
        """Let go of what this limit opened itself."""
        if self._limiter is not None:
            await self._limiter.close()
        if self._own_client is not None:
            self._own_client.close()

    def _connected(self) -> Limiter:
        if self._limiter is None:
            from google.cloud.firestore import AsyncClient

            from firestore_outbox.firestore.gateway import Gateway

            settings, random = Settings.from_environment(os.environ), Random()
            if self._client is None:
                self._client = self._own_client = AsyncClient(project=settings.project, database=settings.database)
            gateway = Gateway(self._client, jitter=random.random)
            default = rates(settings.limits).get(self.name) or self._default
            self._limiter = Limiter(self.name, LimitStore(gateway), default=default, clock=system_clock, random=random)
        return self._limiter


class Limits:
    """The limits of a worker, by name: all handlers of a process share one part in each."""

    def __init__(self, gateway: Gateway, settings: Settings, *, clock: Clock, random: Random) -> None:
        self._store = LimitStore(gateway)
        self._defaults: Mapping[str, Rate] = rates(settings.limits)
        self._clock = clock
        self._random = random
        self._made: dict[str, Limit] = {}

    @property
    def throttles_of_the_last_minute(self) -> int:
        """429 answers that this process saw."""
        return sum(limit.throttles_of_the_last_minute for limit in self._made.values())

    def __getitem__(self, name: str) -> Limit:
        if name not in self._made:
            limiter = Limiter(
                _checked(name),
                self._store,
                default=self._defaults.get(name),
                clock=self._clock,
                random=self._random,
            )
            self._made[name] = Limit.of(limiter)
        return self._made[name]


def _checked(name: str) -> str:
    if not is_limit_name(name):
        raise BadLimit(
            f"the limit {name[:60]!r} cannot be used: take letters, digits, - and _ (at most 100), not `global`, "
            "and nothing that begins with app-"
        )
    return name


def _rate(name: str, per_second: float | None, burst: int | None) -> Rate | None:
    if per_second is None:
        return None
    try:
        return Rate(per_second=per_second, burst=max(1, int(per_second)) if burst is None else burst)
    except ValueError as error:
        raise BadLimit(f"Limit({name!r}): {error}") from error
