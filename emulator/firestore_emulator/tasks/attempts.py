"""The tasks in motion: which may be sent now, and what a recorded outcome makes of them.

A claim is a value. It names the row it was made from, and every write after it goes through it: when the row
is gone (deleted, purged, or finished by another attempt), the write changes nothing, which is a normal
result.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, assert_never

from firestore_emulator.database import Database
from firestore_emulator.outgoing import Answered
from firestore_emulator.rpc.service import Message
from firestore_emulator.tasks import outcomes, pacing, protos, retry
from firestore_emulator.tasks.outcomes import Outcome
from firestore_emulator.tasks.queues import Queue, Queues
from firestore_emulator.tasks.retry import Failure, GiveUp, RetryAt
from firestore_emulator.tasks.rules import policy_of
from firestore_emulator.tasks.tasks import Found, Tasks
from firestore_emulator.tasks.times import from_us, to_us

_RETENTION_US = retry.RETENTION // timedelta(microseconds=1)
_CLAIM_COLUMNS = (
    "id, task_id, named, request, deadline_ms, created_us, schedule_us, dispatches, executions, previous_status"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One attempt that must now be made."""

    id: int
    queue_id: int
    queue_name: str
    task_id: str
    named: bool
    request: Message
    deadline: timedelta
    schedule_us: int
    retries: int
    """Attempts before this one."""
    executions: int
    previous_status: int | None
    forced_at: datetime | None
    """When RunTask asked for it; None for one that was due."""


class Attempts:
    def __init__(self, database: Database, queues: Queues, tasks: Tasks) -> None:
        self._database = database
        self._queues = queues
        self._tasks = tasks

    def forget_running(self) -> None:
        """At a start: no attempt of an earlier run is still ours, so each of them is made again."""
        with self._database.atomic():
            self._database.execute("UPDATE tasks SET running = 0 WHERE running > 0")

    def claim_due(self, queue: Queue, in_flight: int, now: datetime) -> list[Claim]:
        """What is due, by schedule time, as far as the queue's state, rate and concurrency allow."""
        if not queue.running:
            return []
        bucket = pacing.refilled(queue.bucket, queue.limits, queue.slowdown, now)
        room = min(pacing.available(bucket), queue.limits.concurrent - in_flight)
        if room <= 0:
            return []
        now_us = to_us(now)
        rows = self._database.execute(
            f"SELECT {_CLAIM_COLUMNS} FROM tasks WHERE queue = ? AND running = 0 AND schedule_us <= ? "
            "ORDER BY schedule_us, id LIMIT ?",
            (queue.id, now_us, room),
        ).fetchall()
        if not rows:
            return []
        claims = []
        with self._database.atomic():
            for row in rows:
                claim = _claim(queue, row, None)
                if row[5] + _RETENTION_US <= now_us:
                    self._tasks.remove(claim.id, queue.id, claim.task_id, claim.named, now)
                else:
                    claims.append(claim)
            self._start(claims, now_us)
            self._queues.set_pace(queue, pacing.spent(bucket, len(claims)), queue.slowdown)
        return claims

    def claim_now(self, found: Found, now: datetime) -> Claim:
        """For RunTask: whatever the schedule, the pause, the limits and other attempts say."""
        row = self._database.row(f"SELECT {_CLAIM_COLUMNS} FROM tasks WHERE id = ?", (found.id,))
        assert row is not None
        claim = _claim(found.queue, row, now)
        with self._database.atomic():
            self._start([claim], to_us(now))
        return claim

    def _start(self, claims: list[Claim], now_us: int) -> None:
        self._database.executemany(
            "UPDATE tasks SET running = running + 1, dispatches = dispatches + 1, "
            "first_dispatch_us = coalesce(first_dispatch_us, ?1), last_schedule_us = schedule_us, "
            "last_dispatch_us = ?1, last_response_us = NULL WHERE id = ?2",
            [(now_us, claim.id) for claim in claims],
        )

    def next_look(self, queue: Queue, in_flight: int, now: datetime) -> datetime | None:
        """When `claim_due` can next find something; None when only a change can bring that about."""
        if not queue.running or in_flight >= queue.limits.concurrent:
            return None
        row = self._database.execute(
            "SELECT schedule_us FROM tasks WHERE queue = ? AND running = 0 ORDER BY schedule_us LIMIT 1",
            (queue.id,),
        ).fetchone()
        if row is None:
            return None
        bucket = pacing.refilled(queue.bucket, queue.limits, queue.slowdown, now)
        return max(from_us(row[0]), pacing.next_token_at(bucket, queue.limits, queue.slowdown))

    def record(self, claim: Claim, outcome: Outcome, now: datetime) -> None:
        """The outcome of a claimed attempt that ended at `now`."""
        queue = self._queues.by_id(claim.queue_id)
        if queue is None:
            return
        with self._database.atomic():
            if outcomes.slows_the_queue(outcome):
                bucket = pacing.refilled(queue.bucket, queue.limits, queue.slowdown, now)
                self._queues.set_pace(queue, pacing.emptied(bucket), pacing.slowed(queue.slowdown, now))
            if outcomes.succeeded(outcome):
                self._finish(claim, now)
            else:
                self._fail(queue, claim, outcome, now)

    def _finish(self, claim: Claim, now: datetime) -> None:
        if self._database.row("SELECT 1 FROM tasks WHERE id = ?", (claim.id,)) is not None:
            self._tasks.remove(claim.id, claim.queue_id, claim.task_id, claim.named, now)

    def _fail(self, queue: Queue, claim: Claim, outcome: Outcome, now: datetime) -> None:
        row = self._database.row(
            "SELECT dispatches, first_dispatch_us, created_us, retry_config FROM tasks WHERE id = ?",
            (claim.id,),
        )
        if row is None:
            return
        dispatches, first_dispatch_us, created_us, own_config = row
        failure = Failure(
            attempts=dispatches,
            first_attempt_at=from_us(first_dispatch_us),
            created_at=from_us(created_us),
            wait_from=claim.forced_at or now,
            retry_after=outcomes.retry_after(outcome) if outcomes.slows_the_queue(outcome) else timedelta(0),
        )
        policy = queue.policy if own_config is None else policy_of(protos.RetryConfig.FromString(own_config))
        decision = retry.after(failure, policy)
        match decision:
            case GiveUp():
                self._tasks.remove(claim.id, claim.queue_id, claim.task_id, claim.named, now)
            case RetryAt():
                self._database.execute(
                    "UPDATE tasks SET running = running - 1, schedule_us = ?, responses = responses + ?, "
                    "executions = executions + ?, previous_status = ?, last_response_us = ? WHERE id = ?",
                    (
                        to_us(decision.at),
                        isinstance(outcome, Answered),
                        outcomes.is_execution(outcome),
                        outcomes.status_told(outcome),
                        to_us(now),
                        claim.id,
                    ),
                )
            case _:
                assert_never(decision)


def _claim(queue: Queue, row: Any, forced_at: datetime | None) -> Claim:
    id_, task_id, named, request, deadline_ms, _, schedule_us, dispatches, executions, previous_status = row
    return Claim(
        id=id_,
        queue_id=queue.id,
        queue_name=queue.name,
        task_id=task_id,
        named=bool(named),
        request=protos.HttpRequest.FromString(request),
        deadline=timedelta(milliseconds=deadline_ms),
        schedule_us=schedule_us,
        retries=dispatches,
        executions=executions,
        previous_status=previous_status,
        forced_at=forced_at,
    )
