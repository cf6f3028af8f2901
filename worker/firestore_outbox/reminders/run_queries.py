"""What a run's progress and forecast ask of Firestore: reasons, what goes before, and what overlaps. Reads alone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from firestore_outbox.firestore import paths
from firestore_outbox.firestore.gateway import Gateway
from firestore_outbox.firestore.queries import Find
from firestore_outbox.messages.states import OutboxStatus
from firestore_outbox.reminders.reminder_states import ReminderStatus
from firestore_outbox.reminders.run import RunStatus


@dataclass(frozen=True, slots=True)
class RunQueries:
    gateway: Gateway

    async def next_reason(self, run_id: str, status: OutboxStatus, after: str | None) -> str | None:
        """The first error code behind that one, in their order, that a run's documents of the status have."""
        query = Find(
            collection=paths.OUTBOX,
            where=(("runId", "==", run_id), ("status", "==", status.value)),
            order_by=("lastError.code",),
            limit=1,
            start_after=None if after is None else (after,),
            select=("lastError.code",),
        )
        found = await self.gateway.find(query)
        error = found[0].data.get("lastError") if found else None
        code = error.get("code") if isinstance(error, dict) else None
        return code if isinstance(code, str) else None

    async def count_reason(self, run_id: str, status: OutboxStatus, code: str) -> int:
        only = (("lastError.code", ">=", code), ("lastError.code", "<=", code))  # a range: the index of `next_reason`
        where = (("runId", "==", run_id), ("status", "==", status.value), *only)
        return await self.gateway.count(Find(collection=paths.OUTBOX, where=where, order_by=("lastError.code",)))

    async def count_due(self, account_id: str, by: datetime) -> int:
        """Queued messages of the account that come due by then."""
        status = ("status", "==", OutboxStatus.QUEUED.value)
        where = (("accountId", "==", account_id), status, ("nextAttemptAt", "<=", by))
        order = ("nextAttemptAt", "createdAt")  # not needed, but then one index serves this and others
        return await self.gateway.count(Find(collection=paths.OUTBOX, where=where, order_by=order))

    async def under_way(self, account_id: str, limit: int) -> list[str]:
        """The ids of an account's runs that have not ended and are not paused."""
        statuses = (RunStatus.PENDING.value, RunStatus.RUNNING.value)
        where = (("accountId", "==", account_id), ("status", "in", statuses))
        query = Find(collection=paths.RUNS, where=where, limit=limit, select=("status",))
        return [snapshot.id for snapshot in await self.gateway.find(query)]

    async def firing(self, account_id: str, start: datetime, end: datetime, limit: int = 20) -> list[str]:
        """The ids of an account's active reminders that fire next between these times, the first first."""
        active = ("status", "==", ReminderStatus.ACTIVE.value)
        times = (("nextFireAt", ">=", start), ("nextFireAt", "<=", end))
        query = Find(
            collection=paths.REMINDERS,
            where=(("accountId", "==", account_id), active, *times),
            order_by=("nextFireAt",),
            limit=limit,
            select=("nextFireAt",),
        )
        return [snapshot.id for snapshot in await self.gateway.find(query)]
