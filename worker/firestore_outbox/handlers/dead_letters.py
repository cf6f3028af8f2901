"""Runs of handlers that failed for good: `jobs/{id}`, one for each. A person retries or drops them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from firestore_outbox.clock import Clock
from firestore_outbox.errors import NotFound
from firestore_outbox.firestore.compare_and_set import AGAIN, Again
from firestore_outbox.firestore.gateway import Gateway, Snapshot
from firestore_outbox.firestore.queries import Find
from firestore_outbox.firestore.writes import SERVER_TIME, delete, upsert
from firestore_outbox.handlers.progress import Progress, job_id, replaying
from firestore_outbox.lane.ref import LaneRef
from firestore_outbox.lane.store import LaneStore
from firestore_outbox.lane.wake import Waker

JOBS = "jobs"
LONGEST_ERROR = 500
"""Characters of an error's text that are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    id: str
    kind: str
    key: str
    events: tuple[str, ...]
    error: str
    at: datetime

    @property
    def ref(self) -> LaneRef:
        return LaneRef(self.kind, self.key)


class DeadLetters:
    def __init__(self, gateway: Gateway, lanes: LaneStore, waker: Waker, clock: Clock) -> None:
        self._gateway = gateway
        self._lanes = lanes
        self._waker = waker
        self._clock = clock

    async def add(self, ref: LaneRef, progress: Progress | None, events: Sequence[str], error: Exception) -> str:
        """The same run gives the same job, also if it is repeated after a crash."""
        name = job_id(ref.kind, ref.key, progress)
        fields = {
            "kind": ref.kind,
            "key": ref.key,
            "events": list(events),
            "error": f"{type(error).__name__}: {error}"[:LONGEST_ERROR],
            "at": SERVER_TIME,
        }
        await self._gateway.commit([upsert(f"{JOBS}/{name}", fields)])
        return name

    async def list(self, limit: int) -> list[Job]:
        """The newest first."""
        found = await self._gateway.find(Find(collection=JOBS, order_by=("-at",), limit=limit))
        return [_job(one) for one in found]

    async def get(self, name: str) -> Job:
        found = await self._gateway.get(f"{JOBS}/{name}")
        if found is None:
            raise NotFound(f"there is no job {name}; `outbox jobs list` shows them")
        return _job(found)

    async def retry(self, name: str) -> Job:
        """Run the handler again with the events of the job, and with what came since."""
        job = await self.get(name)

        async def attempt() -> Again | None:
            stored = await self._lanes.read(job.ref)
            again = replace(stored.lane, progress=replaying(stored.lane.progress, job.events, self._clock()))
            return AGAIN if await self._lanes.write(job.ref, again, stored) is None else None

        await self._lanes.compare_and_set(attempt)
        await self._waker.wake(job.ref)
        await self.drop(name)
        return job

    async def drop(self, name: str) -> None:
        await self._gateway.commit([delete(f"{JOBS}/{name}")])


def _job(found: Snapshot) -> Job:
    data = found.data
    return Job(
        id=found.id,
        kind=str(data.get("kind")),
        key=str(data.get("key")),
        events=tuple(data.get("events", ())),
        error=str(data.get("error")),
        at=data["at"],
    )
