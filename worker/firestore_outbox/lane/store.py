"""Lane documents: read, and written by compare-and-set.

A lane's `version` is the update time at which the copy in hand was exact. A write demands it, so what another worker
wrote in between (a wake's `rerunRequested`, above all) is never overwritten.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zlib import crc32

from firestore_outbox.firestore import paths
from firestore_outbox.firestore.gateway import Conflict, Gateway, Snapshot
from firestore_outbox.firestore.queries import MOST_IN_A_QUERY, Find
from firestore_outbox.firestore.values import Version, time_of
from firestore_outbox.firestore.writes import DELETE, WriteOp, create, update
from firestore_outbox.handlers.progress import Progress
from firestore_outbox.health.day_use import day_of_text, day_text
from firestore_outbox.lane.recent import recent_of, recent_text
from firestore_outbox.lane.ref import LaneRef, lane_ref
from firestore_outbox.lane.state import Lane, ThreadHold, acquirable_at
from firestore_outbox.lane.transitions import LaneState

SHARDS = MOST_IN_A_QUERY
"""Ranges of the index of `acquirableAt`, whose values grow with time. One query reads as many as there are shards."""
Place = tuple[int | None, datetime | None]
"""Where the index of acquirable lanes has a lane: its shard and its time."""
Behind = tuple[datetime, str]
"""The place of the last lane of a page: its time, and its id."""


@dataclass(frozen=True, slots=True)
class StoredLane:
    lane: Lane
    version: Version | None
    """None: there is no document yet."""
    place: Place | None = None
    """As the document has it. None: not known, and the next write sets it."""

    @property
    def written_at(self) -> datetime:
        """By the database's clock."""
        assert self.version is not None, "it is stored"
        return time_of(self.version)


@dataclass(frozen=True, slots=True)
class Acquirable:
    """A lane of the index of acquirable lanes."""

    ref: LaneRef
    place: Behind
    data: Mapping[str, Any]

    @property
    def lane(self) -> Lane:
        """Raises what a document raises that cannot be decoded."""
        return lane_of(self.data)


class LaneStore:
    def __init__(self, gateway: Gateway, shards: int = SHARDS) -> None:
        self._gateway = gateway
        self._shards = shards
        self.compare_and_set = gateway.compare_and_set

    async def read(self, ref: LaneRef) -> StoredLane:
        snapshot = await self._gateway.get(ref.path)
        return StoredLane(Lane(), None) if snapshot is None else _stored(snapshot)

    async def read_all(self, refs: Sequence[LaneRef]) -> list[StoredLane]:
        """In one call, in the order of `refs`."""
        found = await self._gateway.get_all([ref.path for ref in refs]) if refs else {}
        return [_stored(found[ref.path]) if ref.path in found else StoredLane(Lane(), None) for ref in refs]

    async def read_beside(self, ref: LaneRef, path: str) -> tuple[StoredLane, Snapshot | None]:
        """The lane and another document, in one call."""
        found = await self._gateway.get_all([ref.path, path])
        snapshot = found.get(ref.path)
        return StoredLane(Lane(), None) if snapshot is None else _stored(snapshot), found.get(path)

    async def write(self, ref: LaneRef, new: Lane, old: StoredLane) -> StoredLane | None:
        """None: another worker wrote it in the meantime, or may have; look again."""
        written = await self.try_write(ref, new, old)
        return None if isinstance(written, Conflict) else written

    async def try_write(self, ref: LaneRef, new: Lane, old: StoredLane) -> StoredLane | Conflict:
        """The same, and whether what stands in the way may be our own write."""
        op = self.write_op(ref, new, old)
        if op is None:
            return old
        result = await self._gateway.commit([op])
        return result if isinstance(result, Conflict) else self.written(ref, new, result.versions[0])

    def write_op(self, ref: LaneRef, new: Lane, old: StoredLane) -> WriteOp | None:
        """The write that turns one into the other, and touches nothing else; None if there is no difference."""
        return write_op(ref, new, old, place_of(ref, new, self._shards))

    def written(self, ref: LaneRef, new: Lane, version: Version) -> StoredLane:
        """The lane after a commit with `write_op`."""
        return StoredLane(new, version, place_of(ref, new, self._shards))

    async def acquirable(self, by: datetime, limit: int, after: Behind | None = None) -> list[Acquirable]:
        """Lanes that a worker could have acquired by then, the longest waiting first: an expired lease, a ready lane
        that no worker took, a next-due time that no worker kept. Behind `after`, if given.

        A worker of the release before leaves `acquirableAt` as it was: ask `overdue` (lane/state.py) about each."""
        shards = range(max(self._shards, SHARDS))
        found: list[Acquirable] = []
        for first in range(0, len(shards), MOST_IN_A_QUERY):
            query = Find(
                collection=paths.LANES,
                where=(("shard", "in", list(shards[first : first + MOST_IN_A_QUERY])), ("acquirableAt", "<=", by)),
                order_by=("acquirableAt", "__name__"),
                limit=limit,
                start_after=None if after is None else (after[0], f"{paths.LANES}/{after[1]}"),
            )
            for snapshot in await self._gateway.find(query):
                place = snapshot.data["acquirableAt"], snapshot.id
                found.append(Acquirable(lane_ref(snapshot.id), place, snapshot.data))
        return sorted(found, key=lambda one: one.place)[:limit]

    async def all(self, limit: int = 1000) -> list[tuple[LaneRef, Lane]]:
        snapshots = await self._gateway.find(Find(collection=paths.LANES, limit=limit))
        return [(lane_ref(snapshot.id), lane_of(snapshot.data)) for snapshot in snapshots]

    async def count_ready(self) -> int:
        return await self._gateway.count(Find(collection=paths.LANES, where=(("state", "==", "ready"),)))

    async def ready(self) -> AsyncIterator[list[tuple[LaneRef, Lane]]]:
        """Lanes as they become ready, for a worker that pulls."""
        query = Find(collection=paths.LANES, where=(("state", "==", "ready"),))  # in order they would be a hot index
        async for snapshots in self._gateway.watch(query):
            yield [(lane_ref(snapshot.id), lane_of(snapshot.data)) for snapshot in snapshots]


def place_of(ref: LaneRef, lane: Lane, shards: int = SHARDS) -> Place:
    return crc32(str(ref).encode(errors="surrogatepass")) % shards, acquirable_at(lane)


def write_op(ref: LaneRef, new: Lane, old: StoredLane, place: Place) -> WriteOp | None:
    """`place` is that of the new lane."""
    after = {**_fields(new), **place_fields(place)}
    if old.version is None:
        fields = {name: value for name, value in after.items() if value is not None}
        return create(ref.path, {**fields, **_holds(new.holds)})
    before = _fields(old.lane) | ({} if old.place is None else place_fields(old.place))
    changed = {
        name: DELETE if value is None else value
        for name, value in after.items()
        if name not in before or value != before[name]
    }
    nested = hold_changes(old.lane.holds, new.holds)
    if not changed and not nested:
        return None
    return update(ref.path, changed, version=old.version, nested=nested)


def hold_changes(old: Mapping[str, ThreadHold], new: Mapping[str, ThreadHold]) -> dict[tuple[str, str], Any]:
    """Entry by entry, so that a write of one thread's hold does not carry all the others."""
    changes: dict[tuple[str, str], Any] = {}
    for thread_id in {*old, *new}:
        before, after = old.get(thread_id), new.get(thread_id)
        if before == after:
            continue
        changes["holds", thread_id] = DELETE if after is None else after.until
        changes["heldFor", thread_id] = DELETE if after is None or after.request_id is None else after.request_id
    return changes


def place_fields(place: Place) -> dict[str, Any]:
    shard, at = place
    return {"shard": shard, "acquirableAt": at}


def _fields(lane: Lane) -> dict[str, Any]:
    return {
        "state": lane.state.value,
        "fence": lane.fence,
        "owner": lane.owner,
        "leaseUntil": lane.lease_until,
        "wokenAt": lane.woken_at,
        "dueAt": lane.due_at,
        "readyAt": lane.ready_at,
        "rerunRequested": lane.rerun_requested,
        "nextDueAt": lane.next_due_at,
        "doubtUntil": lane.doubt_until,
        "tat": lane.tat,
        "rateFactor": lane.rate_factor,
        "pausedUntil": lane.paused_until,
        "throttledUntil": lane.throttled_until,
        "failures": lane.failures or None,
        "retryAt": lane.retry_at,
        "urgentAt": lane.urgent_at,
        "normalAt": lane.normal_at,
        "sinceBulk": lane.since_bulk or None,
        "urgentTat": lane.urgent_tat,
        "cursor": None if lane.progress is None else _cursor(lane.progress),
        "recent": recent_text(lane.recent),
        "dayUse": day_text(lane.day_use),
    }


def _cursor(progress: Progress) -> dict[str, Any]:
    replay = {"replay": list(progress.replay)} if progress.replay else {}
    return {"at": progress.at, "seen": dict(progress.seen), **replay}


def _progress(cursor: Mapping[str, Any] | None) -> Progress | None:
    if cursor is None:
        return None
    return Progress(at=cursor["at"], seen=cursor.get("seen", {}), replay=tuple(cursor.get("replay", ())))


def _holds(holds: Mapping[str, ThreadHold]) -> dict[str, Any]:
    named = {thread_id: hold.request_id for thread_id, hold in holds.items() if hold.request_id is not None}
    return {"holds": {thread_id: hold.until for thread_id, hold in holds.items()}, "heldFor": named}


def _stored(snapshot: Snapshot) -> StoredLane:
    place = snapshot.data.get("shard"), snapshot.data.get("acquirableAt")
    return StoredLane(lane_of(snapshot.data), snapshot.version, place)


def lane_of(data: Mapping[str, Any]) -> Lane:
    """Only the worker writes lanes, so what is there is believed."""
    named = data.get("heldFor", {})
    return Lane(
        state=LaneState(data.get("state", "idle")),
        fence=data.get("fence", 0),
        owner=data.get("owner"),
        lease_until=data.get("leaseUntil"),
        woken_at=data.get("wokenAt"),
        due_at=data.get("dueAt"),
        ready_at=data.get("readyAt"),
        rerun_requested=data.get("rerunRequested", False),
        next_due_at=data.get("nextDueAt"),
        doubt_until=data.get("doubtUntil"),
        tat=data.get("tat"),
        rate_factor=float(data.get("rateFactor", 1.0)),
        paused_until=data.get("pausedUntil"),
        throttled_until=data.get("throttledUntil"),
        failures=data.get("failures", 0),
        retry_at=data.get("retryAt"),
        progress=_progress(data.get("cursor")),
        urgent_at=data.get("urgentAt"),
        normal_at=data.get("normalAt"),
        recent=recent_of(data.get("recent")),
        day_use=day_of_text(data.get("dayUse")),
        since_bulk=data.get("sinceBulk", 0),
        urgent_tat=data.get("urgentTat"),
        holds={
            thread_id: ThreadHold(until=until, request_id=named.get(thread_id))
            for thread_id, until in data.get("holds", {}).items()
        },
    )
