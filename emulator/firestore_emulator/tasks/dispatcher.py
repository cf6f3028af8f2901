"""The loop that sends what is due.

It sleeps until the next moment at which a queue can have something to send, and is woken by every change that
could make that sooner. With nothing waiting there is no timer at all; nothing is ever polled. Times are
absolute and read from the injected clock, so naps do not add up to a drift.

Each attempt is a task of its own: wait until its claim is in the file, send within the deadline, record.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections import Counter
from datetime import datetime, timedelta

from firestore_emulator.outgoing import Sender
from firestore_emulator.tasks.attempts import Claim
from firestore_emulator.tasks.calls import call_of
from firestore_emulator.tasks.engine import Engine
from firestore_emulator.tasks.oidc import TokenIssuer
from firestore_emulator.tasks.outcomes import Outcome, TimedOut, Unreachable, succeeded

log = logging.getLogger(__name__)

AFTER_A_FAULT = timedelta(seconds=1)
"""When the file cannot be written, the next try is made after this."""


def log_failed(claim: Claim, outcome: Outcome) -> None:
    log.info(
        "an attempt of task %s failed: %s",
        claim.task_id,
        outcome,
        extra={"action": "task_attempt_failed", "queue": claim.queue_name, "attempt": claim.retries + 1},
    )


def log_storage_fault(error: sqlite3.Error) -> None:
    log.error("the tasks file cannot be used", exc_info=error, extra={"action": "tasks_storage_fault"})


class Dispatcher:
    def __init__(self, engine: Engine, send: Sender, issuer: TokenIssuer) -> None:
        self._engine = engine
        self._send = send
        self._issuer = issuer
        self._wake = asyncio.Event()
        self._stirred: set[int] = set()
        self._look_at: dict[int, datetime] = {}
        self._in_flight: Counter[int] = Counter()
        self._attempts: set[asyncio.Task[None]] = set()
        self._loop: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self._engine.stirred = self.stir
        for queue in self._engine.queues:
            self.stir(queue.id)
        self._loop = asyncio.get_running_loop().create_task(self._run(), name="cloud-tasks-dispatcher")

    async def stop(self, grace: timedelta) -> None:
        """No new attempts. Those under way have `grace` to end; the next start makes cancelled ones again."""
        if self._loop is not None:
            await _cancelled(self._loop)
        if self._timer is not None:
            self._timer.cancel()
        if self._attempts and grace > timedelta(0):
            await asyncio.wait(self._attempts, timeout=grace.total_seconds())
        for attempt in list(self._attempts):
            await _cancelled(attempt)

    def stir(self, queue_id: int) -> None:
        self._stirred.add(queue_id)
        self._wake.set()

    def launch(self, claim: Claim) -> None:
        """Make a claimed attempt."""
        self._in_flight[claim.queue_id] += 1
        attempt = asyncio.get_running_loop().create_task(self._attempt(claim, self._engine.group()))
        self._attempts.add(attempt)
        attempt.add_done_callback(self._attempts.discard)

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            self._look()
            self._nap()
            await self._wake.wait()
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    def _look(self) -> None:
        """Claim and launch whatever may go now, and note when each queue is to be looked at again."""
        now = self._engine.clock()
        ripe = self._stirred | {id_ for id_, at in self._look_at.items() if at <= now}
        self._stirred = set()
        for queue_id in sorted(ripe):
            self._look_at.pop(queue_id, None)
            queue = self._engine.queues.by_id(queue_id)
            if queue is None:
                continue
            try:
                for claim in self._engine.attempts.claim_due(queue, self._in_flight[queue_id], now):
                    self.launch(claim)
                at = self._engine.attempts.next_look(queue, self._in_flight[queue_id], now)
            except sqlite3.Error as error:
                self._leave_alone(queue_id, error)
                continue
            if at is not None:
                self._look_at[queue_id] = at

    def _nap(self) -> None:
        if self._look_at and not self._wake.is_set():
            seconds = (min(self._look_at.values()) - self._engine.clock()).total_seconds()
            self._timer = asyncio.get_running_loop().call_later(max(0.0, seconds), self._wake.set)

    async def _attempt(self, claim: Claim, group: asyncio.Future[None] | None) -> None:
        """`group` is what the claim was written with: nothing is sent before it is in the file."""
        try:
            await self._engine.written(group)
        except sqlite3.Error as error:
            self._ended(claim)
            self._leave_alone(claim.queue_id, error)
            return
        try:
            outcome = await self._sent(claim)
            if not succeeded(outcome):
                log_failed(claim, outcome)
            await self._recorded(claim, outcome)
        finally:
            self._ended(claim)

    def _ended(self, claim: Claim) -> None:
        self._in_flight[claim.queue_id] -= 1
        if not self._in_flight[claim.queue_id]:
            del self._in_flight[claim.queue_id]
        self.stir(claim.queue_id)

    async def _recorded(self, claim: Claim, outcome: Outcome) -> None:
        """Until it is in the file: a task whose success is lost would be sent twice for no reason."""
        ended_at = self._engine.clock()
        while True:
            try:
                self._engine.attempts.record(claim, outcome, ended_at)
                await self._engine.settled()
                return
            except sqlite3.Error as error:
                log_storage_fault(error)
                await asyncio.sleep(AFTER_A_FAULT.total_seconds())

    async def _sent(self, claim: Claim) -> Outcome:
        try:
            call = call_of(claim, self._issuer)
            async with asyncio.timeout(call.deadline.total_seconds()):
                answer = await self._send(call)
        except TimeoutError:
            return TimedOut()
        except Exception as error:  # noqa: BLE001 - the border: however a call fails, its task is tried again
            return Unreachable(f"{type(error).__name__}: {error}")
        return answer

    def _leave_alone(self, queue_id: int, error: sqlite3.Error) -> None:
        log_storage_fault(error)
        self._stirred.discard(queue_id)
        self._look_at[queue_id] = self._engine.clock() + AFTER_A_FAULT


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
