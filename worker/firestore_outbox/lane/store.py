"""Lane documents: read, and written by compare-and-set.

A lane's `version` is the update time at which the copy in hand was exact. A write demands it, so what somebody else
wrote in between (a wake's `rerunRequested`, above all) is never overwritten.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from firestore_outbox.firestore import paths
from firestore_outbox.firestore.gateway import Conflict, Gateway, Snapshot
from firestore_outbox.firestore.queries import Find
from firestore_outbox.firestore.values import Version, time_of
from firestore_outbox.firestore.writes import DELETE, WriteOp, create, update
from firestore_outbox.handlers.progress import Progress
from firestore_outbox.lane.ref import LaneRef, lane_ref
from firestore_outbox.lane.state import Lane, ThreadHold
from firestore_outbox.lane.transitions import LaneState


@dataclass(frozen=True, slots=True)
class StoredLane:
    lane: Lane
    version: Version | None
    """None: there is no document yet."""

    @property
    def written_at(self) -> datetime:
        """By the database's clock."""
        assert self.version is not None, "it is stored"
        return time_of(self.version)


class LaneStore:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self.compare_and_set = gateway.compare_and_set

    async def read(self, ref: LaneRef) -> StoredLane:
        snapshot = await self._gateway.get(ref.path)
        return StoredLane(Lane(), None) if snapshot is None else _stored(snapshot)

    async def write(self, ref: LaneRef, new: Lane, old: StoredLane) -> StoredLane | None:
        """None: somebody else wrote it in the meantime, or may have; look again."""
        op = write_op(ref, new, old)
        if op is None:
            return old
        result = await self._gateway.commit([op])
        if isinstance(result, Conflict):
            return None
        return StoredLane(new, result.versions[0])

    async def overdue(self, now: datetime, limit: int) -> list[tuple[LaneRef, Lane]]:
        """Lanes whose time has come and gone: an ended lease, a ready lane nobody took, a next-due time nobody kept."""
        found: list[tuple[LaneRef, Lane]] = []
        for state, field in (("running", "leaseUntil"), ("ready", "readyAt"), ("idle", "nextDueAt")):
            where = (("state", "==", state), (field, "<=", now))
            query = Find(collection=paths.LANES, where=where, order_by=(field,), limit=limit)
            for snapshot in await self._gateway.find(query):
                found.append((lane_ref(snapshot.id), _lane(snapshot.data)))
        return found

    async def all(self, limit: int = 1000) -> list[tuple[LaneRef, Lane]]:
        snapshots = await self._gateway.find(Find(collection=paths.LANES, limit=limit))
        return [(lane_ref(snapshot.id), _lane(snapshot.data)) for snapshot in snapshots]

    async def ready(self) -> AsyncIterator[list[tuple[LaneRef, Lane]]]:
        """Lanes as they become ready, for a worker that pulls."""
        query = Find(collection=paths.LANES, where=(("state", "==", "ready"),), order_by=("readyAt",))
        async for snapshots in self._gateway.watch(query):
            yield [(lane_ref(snapshot.id), _lane(snapshot.data)) for snapshot in snapshots]


def write_op(ref: LaneRef, new: Lane, old: StoredLane) -> WriteOp | None:
    """The write that turns one into the other, and touches nothing else; None if there is no difference."""
    if old.version is None:
        fields = {name: value for name, value in _fields(new).items() if value is not None}
        return create(ref.path, {**fields, **_holds(new.holds)})
    before, after = _fields(old.lane), _fields(new)
    changed = {name: DELETE if after[name] is None else after[name] for name in after if after[name] != before[name]}
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
        "tat": lane.tat,
        "rateFactor": lane.rate_factor,
        "pausedUntil": lane.paused_until,
        "throttledUntil": lane.throttled_until,
        "failures": lane.failures or None,
        "retryAt": lane.retry_at,
        "cursor": None if lane.progress is None else _cursor(lane.progress),
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
    return StoredLane(_lane(snapshot.data), snapshot.version)


def _lane(data: Mapping[str, Any]) -> Lane:
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
        tat=data.get("tat"),
        rate_factor=float(data.get("rateFactor", 1.0)),
        paused_until=data.get("pausedUntil"),
        throttled_until=data.get("throttledUntil"),
        failures=data.get("failures", 0),
        retry_at=data.get("retryAt"),
        progress=_progress(data.get("cursor")),
        holds={
            thread_id: ThreadHold(until=until, request_id=named.get(thread_id))
            for thread_id, until in data.get("holds", {}).items()
        },
    )
