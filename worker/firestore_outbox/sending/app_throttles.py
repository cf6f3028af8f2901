"""App-wide throttles as one worker knows them: one copy for a provider, shared by all the worker's lanes."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from random import Random

from firestore_outbox.clock import Clock
from firestore_outbox.lane.app_throttle import FRESH, comes_back_at, is_worth_a_write
from firestore_outbox.lane.app_throttle_store import AppThrottleStore
from firestore_outbox.providers.outcome import Scope
from firestore_outbox.providers.registry import Providers


@dataclass(frozen=True, slots=True)
class _Known:
    until: datetime | None
    """The end of the last pause; None: there never was one."""
    as_of: datetime
    """When it was read, or when the provider last accepted a call."""


class AppThrottles:
    def __init__(self, store: AppThrottleStore, providers: Providers, clock: Clock, random: Random) -> None:
        self._store = store
        self._providers = providers
        self._clock = clock
        self._random = random
        self._known: dict[str, _Known] = {}
        self._reading: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def not_before(self, provider: str) -> datetime | None:
        """When an account of this provider may call it; None: now."""
        if Scope.APP not in self._providers[provider].profile.throttle_scopes:
            return None
        until, now = (await self._fresh(provider)).until, self._clock()
        return None if until is None or until <= now else comes_back_at(until, now, jitter=self._random.random())

    async def pause(self, provider: str, until: datetime) -> None:
        """The provider throttled the app until then. Lanes of this worker know at once, others within `FRESH`."""
        now = self._clock()
        known = self._known.get(provider)
        if known is not None and not is_worth_a_write(known.until, until, now):
            return
        self._known[provider] = _Known(until, now)
        in_force = await self._store.pause(provider, until, now)
        self._known[provider] = _Known(max(until, in_force), now)

    def accepted(self, provider: str) -> None:
        """The provider accepted a call just now, so the app is not throttled. A pause that is known is kept: the call
        may have begun before it."""
        known, now = self._known.get(provider), self._clock()
        if known is not None and (known.until is None or known.until <= now):
            self._known[provider] = _Known(None, now)

    async def _fresh(self, provider: str) -> _Known:
        """One read for all lanes that ask at the same time."""
        async with self._reading[provider]:
            known, now = self._known.get(provider), self._clock()
            if known is None or now - known.as_of >= FRESH:
                known = self._known[provider] = _Known(await self._store.read(provider), now)
            return known
