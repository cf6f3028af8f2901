"""The run document that a page watches, brought up to date: counts, reasons, what the run waits for, its forecast.

No message causes a write to the run: the run's own lane refreshes the document, about forty times in a run's life
(reminders/progress.py), and once more when it is paused or ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from firestore_outbox.accounts.account import Account, Closed, sending
from firestore_outbox.accounts.window import next_open
from firestore_outbox.clock import Clock
from firestore_outbox.firestore.writes import DELETE
from firestore_outbox.health.refusals import Pause, judged, tally
from firestore_outbox.lane.state import Lane
from firestore_outbox.messages.states import MessageStatus, OutboxStatus
from firestore_outbox.messages.store import MessageStore
from firestore_outbox.reminders.progress import CLOSED_EVERY, LEAST_EVERY, later_if_nothing_changed, refresh_at
from firestore_outbox.reminders.run import Counts, Run
from firestore_outbox.reminders.store import (
    StoredRun,
    count_fields,
    counts_of,
    forecast_fields,
    judged_fields,
    judged_of,
    rate_fields,
)
from firestore_outbox.reminders.summary import Standing, Summary

MOST_OVERLAPS = 5
"""Other runs that are named."""

WaitsFor = Callable[[Run, Counts, Account, Lane, datetime], tuple[str, ...]]
"""What a run waits for, in sentences."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refreshed:
    fields: Mapping[str, Any]
    """What the run document becomes."""
    at: datetime
    """When the next refresh is due."""
    pause: str | None = None
    """Why the run pauses itself, in a sentence; None: it goes on."""


@dataclass(frozen=True, slots=True)
class Refresh:
    messages: MessageStore
    summary: Summary
    waits_for: WaitsFor
    clock: Clock

    async def __call__(self, stored: StoredRun, left: int) -> Refreshed:
        """`left` are the run's queued messages."""
        run, now = stored.run, self.clock()
        counts = await self._counts(run, left)
        standing = await self.summary.standing(stored, left, learn=True)
        overlaps = await self._overlaps(run) if standing.ahead else []
        fields = {
            **await self.counted(stored, counts),
            "rate": DELETE if standing.rate is None else rate_fields(standing.rate),
            "forecast": forecast_fields(standing.forecast, now),
            "overlaps": overlaps or DELETE,
            "waitsFor": self._sentences(run, counts, standing, overlaps, now) or DELETE,
        }
        at, counted_at = self._next(run, standing, now), stored.data.get("countedAt")
        if isinstance(counted_at, datetime) and counts == counts_of(stored.data):
            at = later_if_nothing_changed(at, counted_at, now)
        return self._judged(stored, standing, Refreshed(fields=fields, at=at), counts)

    def _judged(self, stored: StoredRun, standing: Standing, refreshed: Refreshed, counts: Counts) -> Refreshed:
        """With what follows from the refusals, if the account asks for it."""
        limit = None if standing.account is None else standing.account.pause_runs_at
        if limit is None:
            return refreshed
        reasons = refreshed.fields.get("reasons", stored.data.get("reasons"))
        by_code = reasons.get("failed", {}) if isinstance(reasons, Mapping) else {}
        before = judged_of(stored.data)
        verdict = judged(before, tally(counts.sent, counts.failed, by_code), limit)
        fields = (
            refreshed.fields
            if verdict.since == before
            else {**refreshed.fields, "judged": judged_fields(verdict.since)}
        )
        if isinstance(verdict, Pause):
            return Refreshed(fields=fields, at=refreshed.at, pause=verdict.sentence)
        now = self.clock()
        soon = now + max(LEAST_EVERY, limit.outcomes * standing.each)
        return Refreshed(fields=fields, at=min(refreshed.at, soon))

    async def counted(self, stored: StoredRun, counts: Counts) -> dict[str, Any]:
        """The fields of these counts. Reasons are counted only if more messages failed or were skipped."""
        before = counts_of(stored.data)
        fields: dict[str, Any] = {"counts": count_fields(counts), "countedAt": self.clock()}
        if before is None or (before.failed, before.skipped) != (counts.failed, counts.skipped):
            fields["reasons"] = await self.summary.reasons(stored.run, counts) or DELETE
        return fields

    async def _counts(self, run: Run, left: int) -> Counts:
        """They add up, though they are taken one after another: a message that was queued at the first count and has an
        outcome at a later one is no longer pending, and what is left over is in flight."""
        of, shown = self.messages.count_of_run, self.messages.count_shown_of_run
        sent = await of(run.run_id, OutboxStatus.SENT)
        failed = await of(run.run_id, OutboxStatus.FAILED)
        skipped = await of(run.run_id, OutboxStatus.SKIPPED)
        uncertain = await of(run.run_id, OutboxStatus.UNCERTAIN)
        rest = run.total - sent - failed - skipped - uncertain
        if rest < 0:  # a receipt moved one between two counts
            return await self.summary.counts(run)
        return Counts(
            total=run.total,
            pending=min(left, rest),
            sending=max(0, rest - left),
            sent=sent,
            failed=failed,
            skipped=skipped,
            uncertain=uncertain,
            delivered=await shown(run.run_id, MessageStatus.DELIVERED),
            read=await shown(run.run_id, MessageStatus.READ),
        )

    async def _overlaps(self, run: Run) -> list[str]:
        """Other runs of the account that share its pace with this one."""
        found = await self.summary.queries.under_way(run.account_id, MOST_OVERLAPS + 1)
        return sorted(run_id for run_id in found if run_id != run.run_id)[:MOST_OVERLAPS]

    def _sentences(self, run: Run, counts: Counts, standing: Standing, overlaps: list[str], now: datetime) -> list[str]:
        if standing.account is None or standing.lane is None:
            return [standing.forecast.warning or ""]
        sentences = list(self.waits_for(run, counts, standing.account, standing.lane, now))
        if overlaps:
            sentences.append(f"It shares the account's pace with {' and '.join(overlaps)}.")
        return sentences

    def _next(self, run: Run, standing: Standing, now: datetime) -> datetime:
        """While nothing can be sent, there is nothing to count."""
        started, opening = run.started_at or run.fire_at, now
        if standing.account is not None:
            closed = sending(standing.account, now)
            if isinstance(closed, Closed):
                return now + CLOSED_EVERY if closed.until is None else max(closed.until, now + LEAST_EVERY)
            opening = next_open(run.window, now)
        return refresh_at(started, standing.forecast.ends_at, now) if opening <= now else opening + LEAST_EVERY
