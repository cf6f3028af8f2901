"""Reminders and runs, as Firestore has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from pydantic import TypeAdapter

from firestore_outbox.accounts.window import Window
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.gateway import Committed, Conflict, Gateway, Snapshot
from firestore_outbox.firestore.queries import Find
from firestore_outbox.firestore.values import Version
from firestore_outbox.firestore.writes import DELETE, SERVER_TIME, WriteOp, create, delete, update
from firestore_outbox.health.refusals import Tally
from firestore_outbox.messages.model import Part
from firestore_outbox.reminders.choices import Category, OnWindowEnd
from firestore_outbox.reminders.forecast import Forecast
from firestore_outbox.reminders.progress import Rate
from firestore_outbox.reminders.reminder import InvalidReminder, Reminder, parse_reminder
from firestore_outbox.reminders.reminder_states import TRANSITIONS, ReminderEvent, ReminderStatus
from firestore_outbox.reminders.run import Command, Counts, Cursor, Run, RunStatus
from firestore_outbox.transitions import after

INCOMPLETE = "incomplete"
"""On a reminder whose targets are still being written."""

_parts: TypeAdapter[tuple[Part, ...]] = TypeAdapter(tuple[Part, ...])


@dataclass(frozen=True, slots=True)
class StoredRun:
    run: Run
    version: Version
    data: Mapping[str, Any]
    """All of it: what people see is not what decisions are made from."""


@dataclass(frozen=True, slots=True)
class StoredReminder:
    reminder: Reminder
    version: Version


@dataclass(frozen=True, slots=True)
class Chunk:
    """A document of targets, as it stands in the reminder's subcollection."""

    name: str
    targets: Any


class RunStore:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self.compare_and_set = gateway.compare_and_set

    # --- reminders

    async def reminder(self, reminder_id: str) -> StoredReminder | InvalidReminder | None:
        snapshot = await self._gateway.get(paths.reminder(reminder_id))
        if snapshot is None:
            return None
        parsed = parse_reminder(reminder_id, snapshot.data)
        return parsed if isinstance(parsed, InvalidReminder) else StoredReminder(parsed, snapshot.version)

    async def add_reminder(
        self, reminder_id: str, fields: Mapping[str, Any], chunks: Sequence[Sequence[Mapping[str, Any]]]
    ) -> bool:
        """Its name first, which keeps others away from its targets; until all of those are there it is `incomplete`,
        and paused. False: there is one of this id, and nothing was written."""
        path, made = paths.reminder(reminder_id), {**fields, "createdAt": SERVER_TIME}
        if chunks:
            made |= {"status": ReminderStatus.PAUSED.value, INCOMPLETE: True}
        result = await self._gateway.commit([create(path, made)])
        if isinstance(result, Conflict):
            return False
        if chunks:
            await self.complete_reminder(reminder_id, result.versions[0], chunks)
        return True

    async def complete_reminder(
        self, reminder_id: str, version: Version, chunks: Sequence[Sequence[Mapping[str, Any]]]
    ) -> bool:
        """All of its targets, and then it is active. False: it was changed meanwhile, or completed."""
        await self._write_chunks(reminder_id, chunks)
        status = after(TRANSITIONS, ReminderStatus.PAUSED, ReminderEvent.COMPLETE)
        active = {"status": status.value, INCOMPLETE: DELETE}
        result = await self._gateway.commit([update(paths.reminder(reminder_id), active, version=version)])
        return not isinstance(result, Conflict)

    async def _write_chunks(self, reminder_id: str, chunks: Sequence[Sequence[Mapping[str, Any]]]) -> None:
        for number, chunk in enumerate(chunks):
            path = f"{paths.targets(reminder_id)}/{number:06}"
            await self._gateway.commit([WriteOp(path, {"targets": [dict(one) for one in chunk]}, masked=False)])

    async def reminder_document(self, reminder_id: str) -> Snapshot | None:
        """As it is, also if nothing can be made of it."""
        return await self._gateway.get(paths.reminder(reminder_id))

    async def reminders(self, limit: int, account_id: str | None = None) -> list[Snapshot]:
        """By id; of all accounts if `account_id` is None."""
        where = () if account_id is None else (("accountId", "==", account_id),)
        query = Find(collection=paths.REMINDERS, where=where, order_by=("__name__",), limit=limit)
        return await self._gateway.find(query)

    async def set_reminder(self, stored: StoredReminder, fields: Mapping[str, Any]) -> Committed | Conflict:
        path = paths.reminder(stored.reminder.reminder_id)
        return await self._gateway.commit([update(path, fields, version=stored.version)])

    async def change_reminder(self, found: Snapshot, fields: Mapping[str, Any], others: Sequence[WriteOp] = ()) -> bool:
        """The document as it was read gets these fields, with the other writes in the same commit. False: something
        had changed."""
        changed = update(found.path, fields, version=found.version)
        return not isinstance(await self._gateway.commit([changed, *others]), Conflict)

    async def replace_targets(
        self,
        found: Snapshot,
        fields: Mapping[str, Any],
        chunks: Sequence[Sequence[Mapping[str, Any]]],
        others: Sequence[WriteOp] = (),
    ) -> bool:
        """With new fields and new targets. While documents of targets are written or taken away, the reminder is
        `incomplete`, and does not fire. False: something had changed."""
        beside = await self._chunk_paths(found.id)
        if not chunks and not beside:
            return await self.change_reminder(found, {**fields, INCOMPLETE: DELETE}, others)
        made = update(found.path, {**fields, INCOMPLETE: True}, version=found.version)
        result = await self._gateway.commit([made])
        if isinstance(result, Conflict):
            return False
        for path in beside[len(chunks) :]:
            await self._gateway.commit([delete(path)])
        await self._write_chunks(found.id, chunks)
        done = update(found.path, {INCOMPLETE: DELETE}, version=result.versions[0])
        finished = await self._gateway.commit([done, *others])
        return not isinstance(finished, Conflict)

    async def remove_reminder(self, found: Snapshot) -> bool:
        """With its targets. False: something had changed."""
        if not await self.change_reminder(found, {INCOMPLETE: True}):
            return False
        for path in await self._chunk_paths(found.id):
            await self._gateway.commit([delete(path)])
        await self._gateway.commit([delete(found.path)])
        return True

    async def _chunk_paths(self, reminder_id: str) -> list[str]:
        query = Find(collection=paths.targets(reminder_id), order_by=("__name__",), select=("__name__",))
        return [chunk.path for chunk in await self._gateway.find(query)]

    async def fire(self, stored: StoredReminder, run: Run, next_fire_at: datetime | None) -> Committed | Conflict:
        """The run, and that the reminder has fired: both or neither."""
        fired = {
            "lastFireAt": run.fire_at,
            "lastRunId": run.run_id,
            "nextFireAt": DELETE if next_fire_at is None else next_fire_at,
        }
        path = paths.reminder(stored.reminder.reminder_id)
        return await self._gateway.commit([_created(run), update(path, fired, version=stored.version)])

    async def chunk(self, reminder_id: str, after: str) -> Chunk | None:
        """The first document of targets behind the one of that name; from the name itself with an empty one."""
        collection = paths.targets(reminder_id)
        query = Find(
            collection=collection,
            order_by=("__name__",),
            limit=1,
            start_after=(f"{collection}/{after}",) if after else None,
        )
        found = await self._gateway.find(query)
        return Chunk(found[0].id, found[0].data.get("targets")) if found else None

    async def chunk_named(self, reminder_id: str, name: str) -> Chunk | None:
        snapshot = await self._gateway.get(f"{paths.targets(reminder_id)}/{name}")
        return None if snapshot is None else Chunk(name, snapshot.data.get("targets"))

    # --- runs

    async def run(self, run_id: str) -> StoredRun | None:
        snapshot = await self._gateway.get(paths.run(run_id))
        return None if snapshot is None else _stored(snapshot)

    async def create(self, run: Run) -> bool:
        """False: it exists."""
        return not isinstance(await self._gateway.commit([_created(run)]), Conflict)

    async def runs(self, account_id: str | None, limit: int) -> list[StoredRun]:
        """The newest first."""
        where = () if account_id is None else (("accountId", "==", account_id),)
        query = Find(collection=paths.RUNS, where=where, order_by=("-createdAt",), limit=limit)
        return [_stored(snapshot) for snapshot in await self._gateway.find(query)]

    async def write(self, stored: StoredRun, fields: Mapping[str, Any], others: Sequence[WriteOp] = ()) -> bool:
        """The run as it was read becomes this, with the other writes in the same commit. False: something had
        changed."""
        changed = update(paths.run(stored.run.run_id), fields, version=stored.version)
        return not isinstance(await self._gateway.commit([*others, changed]), Conflict)

    async def existing(self, request_ids: Sequence[str]) -> dict[str, Mapping[str, Any]]:
        """The outbox documents that there are under these ids."""
        found = await self._gateway.get_all([paths.outbox(request_id) for request_id in request_ids])
        return {snapshot.id: snapshot.data for snapshot in found.values()}


def _created(run: Run) -> WriteOp:
    window = {"startHour": run.window.start_hour, "endHour": run.window.end_hour}
    fields: dict[str, Any] = {
        "runId": run.run_id,
        "accountId": run.account_id,
        "parts": [part.model_dump(exclude_none=True) for part in run.parts],
        "timezone": run.window.zone.key,
        "window": window,
        "onWindowEnd": run.on_window_end.value,
        "fireAt": run.fire_at,
        "windowEndAt": run.window_end_at,
        "status": run.status.value,
        "expanded": False,
        "total": 0,
        "createdAt": SERVER_TIME,
    }
    if run.seed is not None:
        fields["seed"] = run.seed
    if run.reminder_id is not None:
        fields["reminderId"] = run.reminder_id
    if run.retry_of is not None:
        fields["retryOf"] = run.retry_of
    if run.is_personal:
        fields["personal"] = True
    if run.category is not Category.UTILITY:
        fields["category"] = run.category.value
    return create(paths.run(run.run_id), fields)


def _stored(snapshot: Snapshot) -> StoredRun:
    data = snapshot.data
    hours, cursor = data["window"], data.get("cursor")
    run = Run(
        run_id=snapshot.id,
        account_id=data["accountId"],
        parts=_parts.validate_python(data["parts"]),
        window=Window(start_hour=hours["startHour"], end_hour=hours["endHour"], zone=ZoneInfo(data["timezone"])),
        on_window_end=OnWindowEnd(data["onWindowEnd"]),
        fire_at=data["fireAt"],
        reminder_id=data.get("reminderId"),
        seed=data.get("seed"),
        retry_of=data.get("retryOf"),
        is_personal=data.get("personal", False),
        category=Category(data.get("category", Category.UTILITY)),
        status=RunStatus(data["status"]),
        requested=Command(data["requested"]) if data.get("requested") else None,
        window_end_at=data["windowEndAt"],
        cursor=None if cursor is None else Cursor(chunk=cursor["chunk"], index=cursor["index"]),
        is_expanded=data["expanded"],
        total=data["total"],
        window_closed=data.get("windowClosed", False),
        started_at=data.get("startedAt"),
        paused_because=data.get("pausedBecause"),
    )
    return StoredRun(run, snapshot.version, data)


def cursor_fields(cursor: Cursor) -> dict[str, Any]:
    return {"chunk": cursor.chunk, "index": cursor.index}


def count_fields(counts: Counts) -> dict[str, int]:
    return {
        "total": counts.total,
        "pending": counts.pending,
        "sending": counts.sending,
        "sent": counts.sent,
        "failed": counts.failed,
        "skipped": counts.skipped,
        "cancelled": counts.cancelled,
        "uncertain": counts.uncertain,
        "delivered": counts.delivered,
        "read": counts.read,
    }


def counts_of(data: Mapping[str, Any]) -> Counts | None:
    """A run's, as it says itself. None: it has none, or they make no sense."""
    counts = data.get("counts")
    try:
        return Counts(**counts) if isinstance(counts, dict) else None
    except TypeError:
        return None


def forecast_fields(forecast: Forecast, at: datetime) -> dict[str, Any]:
    return {"endsAt": forecast.ends_at, "warning": forecast.warning, "at": at}


def judged_of(data: Mapping[str, Any]) -> Tally:
    """Where the present sample of refusals began."""
    judged = data.get("judged") or {}
    return Tally(outcomes=judged.get("outcomes", 0), refused=judged.get("refused", 0))


def judged_fields(tally: Tally) -> dict[str, int]:
    return {"outcomes": tally.outcomes, "refused": tally.refused}


def rate_of(data: Mapping[str, Any]) -> Rate | None:
    """What the run remembers of its rate; None before the first refresh."""
    rate = data.get("rate")
    if not isinstance(rate, Mapping) or not isinstance(rate.get("at"), datetime):
        return None
    seconds = rate.get("secondsEach")
    each = timedelta(seconds=seconds) if isinstance(seconds, int | float) else None
    return Rate(waiting=int(rate.get("waiting") or 0), at=rate["at"], each=each)


def rate_fields(rate: Rate) -> dict[str, Any]:
    learned = {} if rate.each is None else {"secondsEach": rate.each.total_seconds()}
    return {"waiting": rate.waiting, "at": rate.at, **learned}
