"""`limits/{name}`, the configuration, and `limits/{name}/shards/{n}`, the lines."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeGuard

from firestore_outbox.errors import OutboxError
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.compare_and_set import AGAIN, Again, Contended
from firestore_outbox.firestore.gateway import Conflict, Gateway, Snapshot
from firestore_outbox.firestore.queries import Find
from firestore_outbox.firestore.writes import WriteOp, create, update
from firestore_outbox.lane.pacing import Block, Cap
from firestore_outbox.limits.line import Line, NotYet, Rate, Slowed, factor_at, taken, throttled

LATER = timedelta(milliseconds=200)
"""When to ask again for a line that others changed at the same time, again and again."""


class BadLimit(OutboxError, ValueError):
    """A limit that cannot be used. The message says what to write where."""


@dataclass(frozen=True, slots=True)
class Reserved:
    block: Block
    factor: float
    """The fraction of the configured rate that the block was made for."""


@dataclass(frozen=True, slots=True)
class LimitNow:
    name: str
    per_second: float
    burst: int
    factor: float
    """The fraction of the configured rate that is in force."""


class LimitStore:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def rate(self, name: str) -> Rate | None:
        """As an operator wrote it; None: there is no document."""
        snapshot = await self._gateway.get(paths.limit(name))
        if snapshot is None:
            return None
        per_second, burst = snapshot.data.get("perSecond"), snapshot.data.get("burst", 1)
        if not _is_number(per_second) or not _is_number(burst):
            raise BadLimit(f"limits/{name} must have numbers in perSecond and burst")
        try:
            return Rate(per_second=float(per_second), burst=int(burst))
        except ValueError as error:
            raise BadLimit(f"limits/{name}: {error}") from error

    async def all(self, limit: int, now: datetime) -> list[LimitNow]:
        """Those that have a document, by name, with the share of the rate that is in force. Costs a read for each
        limit and each of its lines."""
        found = await self._gateway.find(Find(collection="limits", order_by=("__name__",), limit=limit))
        return [await self._now(one, now) for one in found if _is_number(one.data.get("perSecond"))]

    async def _now(self, snapshot: Snapshot, now: datetime) -> LimitNow:
        rate = Rate(per_second=float(snapshot.data["perSecond"]), burst=int(snapshot.data.get("burst", 1)))
        paths_of_lines = [paths.limit_shard(snapshot.id, number) for number in range(len(rate.lines))]
        lines = [_line(one) for one in (await self._gateway.get_all(paths_of_lines)).values()]
        factors = [factor_at(line.slowed, now) for line in lines] or [1.0]
        return LimitNow(snapshot.id, rate.per_second, rate.burst, sum(factors) / len(factors))

    async def reserve(
        self, name: str, number: int, cap: Cap, *, now: datetime, calls: int, is_queued: bool
    ) -> Reserved | NotYet:
        path = paths.limit_shard(name, number)

        async def attempt() -> Reserved | NotYet | Again:
            snapshot = await self._gateway.get(path)
            line = _line(snapshot)
            block = taken(cap, line, now=now, calls=calls, is_queued=is_queued)
            if isinstance(block, NotYet):
                return block
            written = await self._gateway.commit([_write(path, snapshot, {"tat": block.until})])
            return AGAIN if isinstance(written, Conflict) else Reserved(block, factor_at(line.slowed, now))

        try:
            return await self._gateway.compare_and_set(attempt)
        except Contended:
            return NotYet(now + LATER)

    async def throttle(self, name: str, number: int, cap: Cap, *, now: datetime, pause: timedelta) -> float | None:
        """Pause and slow the line. The fraction of the rate that is in force from now on; None: other instances write
        the line again and again, as they do when they met the same 429."""
        path = paths.limit_shard(name, number)

        async def attempt() -> float | Again:
            snapshot = await self._gateway.get(path)
            line = throttled(cap, _line(snapshot), now=now, pause=pause)
            assert line.slowed is not None, "a throttled line is slowed"
            fields = {"tat": line.tat, "rateFactor": line.slowed.factor, "slowedAt": line.slowed.since}
            written = await self._gateway.commit([_write(path, snapshot, fields)])
            return AGAIN if isinstance(written, Conflict) else line.slowed.factor

        try:
            return await self._gateway.compare_and_set(attempt)
        except Contended:
            return None  # the next 429 pauses it


def _line(snapshot: Snapshot | None) -> Line:
    if snapshot is None:
        return Line()
    factor, since = snapshot.data.get("rateFactor"), snapshot.data.get("slowedAt")
    slowed = Slowed(factor=float(factor), since=since) if _is_number(factor) and since is not None else None
    return Line(tat=snapshot.data.get("tat"), slowed=slowed)


def _write(path: str, before: Snapshot | None, fields: dict[str, Any]) -> WriteOp:
    return create(path, fields) if before is None else update(path, fields, version=before.version)


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
