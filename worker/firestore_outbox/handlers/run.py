"""The user's handlers as handlers of lanes.

Errors. A run that raises is repeated at once, after 250 ms, 1 s and 2 s; then the lane backs off, a minute at first and
at most OUTBOX_LANE_BACKOFF_MAX_SECONDS. `Permanent` is not repeated: the run becomes a dead letter (`jobs/{id}`), its
events count as handled, and the lane goes on. Other lanes never wait for a failing one.

What a crash leaves: nothing is written until the run has succeeded, so the next holder runs the same events again. The
handler may therefore run twice for an event; its replies are sent once.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta

from tenacity import AsyncRetrying, retry_if_not_exception_type, stop_after_attempt, wait_chain, wait_fixed

from firestore_outbox import log, metrics
from firestore_outbox.clock import Clock
from firestore_outbox.errors import Unavailable
from firestore_outbox.handlers.context import Context, NotSent, Permanent
from firestore_outbox.handlers.dead_letters import DeadLetters
from firestore_outbox.handlers.events import EventStore
from firestore_outbox.handlers.pressure import measured
from firestore_outbox.handlers.pressure_store import PressureStore
from firestore_outbox.handlers.registration import Registration
from firestore_outbox.lane.holder import Holder, LaneLost
from firestore_outbox.lane.state import More, Nothing, Work
from firestore_outbox.limits.limit import Limits
from firestore_outbox.messages.enqueue import Enqueue

RETRIES = (0.25, 1.0, 2.0)
"""Seconds before each repetition of a run that raised an error."""
_FINAL = (Permanent, NotSent, LaneLost, Unavailable)


class UserHandler:
    def __init__(
        self,
        registration: Registration,
        *,
        store: EventStore,
        enqueue: Enqueue,
        limits: Limits,
        pressure: PressureStore,
        places: int,
        dead_letters: DeadLetters,
        overlap: timedelta,
        clock: Clock,
    ) -> None:
        self._registration = registration
        self._store = store
        self._enqueue = enqueue
        self._limits = limits
        self._pressure = pressure
        self._places = places
        self._dead_letters = dead_letters
        self._overlap = overlap
        self._clock = clock

    async def run(self, holder: Holder) -> Work:
        kind, began = self._registration.kind, self._clock()
        logger = log.HANDLERS.getChild(kind)
        context = Context(holder, self._store, self._enqueue, self._limits, overlap=self._overlap, logger=logger)
        if not await context.load():
            log.handler_skipped(holder.ref, holder.account_id)
            return Nothing()
        self._note_start(holder, began, len(context.event_ids))
        try:
            await self._repeated(context)
        except (Permanent, NotSent) as error:
            context.begin()  # the dead letter has all events, also those that the handler meant to leave
            job = await self._dead_letters.add(holder.ref, context.began_at, context.event_ids, error)
            metrics.handler_run(kind, "dead letter")
            log.handler_failed(holder.ref, holder.account_id, error, job)
        else:
            metrics.handler_run(kind, "done")
        seconds = (self._clock() - began).total_seconds()
        metrics.handler_ended(kind, seconds)
        log.handler_finished(holder.ref, holder.account_id, seconds, holder.rounds)
        await self._report_pressure(holder)
        done = context.progress_when_done
        holder.tidy_with(lambda lane: replace(lane, progress=done))
        return More() if context.is_more_waiting else Nothing()

    async def _report_pressure(self, holder: Holder) -> None:
        throttles, waiting = self._limits.throttles_of_the_last_minute, holder.lanes_waiting
        level = measured(throttles=throttles, waiting=waiting, places=self._places)
        await self._pressure.report(self._registration.kind, level)

    def _note_start(self, holder: Holder, began: datetime, events: int) -> None:
        ready = _seconds(holder.woken_at, holder.ready_at)
        wait = _seconds(holder.ready_at, began)
        metrics.handler_began(self._registration.kind, ready_seconds=ready, wait_seconds=wait)
        log.handler_started(holder.ref, holder.account_id, events, ready_seconds=ready, wait_seconds=wait)

    async def _repeated(self, context: Context) -> None:
        attempts = AsyncRetrying(
            stop=stop_after_attempt(len(RETRIES) + 1),
            wait=wait_chain(*(wait_fixed(seconds) for seconds in RETRIES)),
            retry=retry_if_not_exception_type(_FINAL),
            before_sleep=lambda state: metrics.handler_run(self._registration.kind, "retried"),
            sleep=asyncio.sleep,
            reraise=True,
        )
        async for attempt in attempts:
            with attempt:
                context.begin()
                await self._registration.function(context)


def _seconds(start: datetime | None, end: datetime | None) -> float | None:
    return None if start is None or end is None else round((end - start).total_seconds(), 3)
