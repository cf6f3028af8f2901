"""`limits/app-{provider}`: until when all accounts of a provider wait, because it throttled the whole app."""

from __future__ import annotations

from datetime import datetime

from firestore_outbox.firestore import paths
from firestore_outbox.firestore.compare_and_set import AGAIN, Again, Contended
from firestore_outbox.firestore.gateway import Conflict, Gateway
from firestore_outbox.firestore.writes import create, update
from firestore_outbox.lane.app_throttle import is_worth_a_write


class AppThrottleStore:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def read(self, provider: str) -> datetime | None:
        """The end of the last pause, which may have passed; None: there never was one."""
        snapshot = await self._gateway.get(paths.app_throttle(provider))
        until = None if snapshot is None else snapshot.data.get("pausedUntil")
        return until if isinstance(until, datetime) else None

    async def pause(self, provider: str, until: datetime, now: datetime) -> datetime:
        """Make the pause last until then, unless one that is long enough is known. The end that is in force."""
        path = paths.app_throttle(provider)

        async def attempt() -> datetime | Again:
            snapshot = await self._gateway.get(path)
            known = None if snapshot is None else snapshot.data.get("pausedUntil")
            if isinstance(known, datetime) and not is_worth_a_write(known, until, now):
                return known
            fields = {"pausedUntil": until}
            write = create(path, fields) if snapshot is None else update(path, fields, version=snapshot.version)
            return AGAIN if isinstance(await self._gateway.commit([write]), Conflict) else until

        try:
            return await self._gateway.compare_and_set(attempt)
        except Contended:
            return until  # the next throttle writes again
