"""`pressure/{kind}`: workers write it, processes that wake lanes read it. Only kinds with `adaptive=True` have one."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from datetime import datetime, timedelta

from firestore_outbox.clock import Clock
from firestore_outbox.errors import StoreUnavailable
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.gateway import Gateway
from firestore_outbox.firestore.writes import upsert
from firestore_outbox.handlers.pressure import Pressure, is_worth_a_write, level_at, stretched
from firestore_outbox.lane.state import Debounce

FRESH = timedelta(seconds=10)
"""How long a process goes by what it has read or written."""


class PressureStore:
    def __init__(self, gateway: Gateway, clock: Clock, adaptive: Collection[str]) -> None:
        self._gateway = gateway
        self._clock = clock
        self._adaptive = frozenset(adaptive)
        self._known: dict[str, tuple[Pressure | None, datetime]] = {}

    async def debounce(self, kind: str, debounce: Debounce) -> Debounce:
        """The debounce that a wake of this kind gets now."""
        if kind not in self._adaptive:
            return debounce
        try:
            return stretched(debounce, level_at(await self._read(kind), self._clock()))
        except StoreUnavailable:
            return debounce  # a hint; the wake itself is what must not be lost

    async def report(self, kind: str, level: float) -> None:
        """After a run. Written if the pressure grew, at most every ten seconds in each worker."""
        if kind not in self._adaptive or not level:
            return
        with suppress(StoreUnavailable):  # a hint: for its sake no run is repeated
            known, now = await self._read(kind), self._clock()
            if is_worth_a_write(known, level, now):
                # The last writer wins: all of them see the same limits and queues, or nearly.
                await self._gateway.commit([upsert(paths.pressure(kind), {"level": level, "at": now})])
                self._known[kind] = (Pressure(level, now), now)

    async def _read(self, kind: str) -> Pressure | None:
        now = self._clock()
        known = self._known.get(kind)
        if known is None or now - known[1] >= FRESH:
            snapshot = await self._gateway.get(paths.pressure(kind))
            found = None if snapshot is None else Pressure(float(snapshot.data["level"]), snapshot.data["at"])
            known = self._known[kind] = (found, now)
        return known[0]
