"""A run as people see it: what its document says, how it stands, and when it will be done."""

from __future__ import annotations

from typing import Any

from firestore_outbox.reminders.run import ENDED, Counts
from firestore_outbox.reminders.store import StoredRun, count_fields, counts_of, forecast_fields
from firestore_outbox.reminders.summary import Summary

_FIELDS = ("reminderId", "retryOf", "requested", "fireAt", "windowEndAt", "timezone", "onWindowEnd")
_PROGRESS = ("waitsFor", "overlaps")
_ENDS = ("startedAt", "finishedAt", "errorSummary")


def stored_run(stored: StoredRun) -> dict[str, Any]:
    """What the document says, without a count of now."""
    run, data = stored.run, stored.data
    fields: dict[str, Any] = {"runId": run.run_id, "accountId": run.account_id, "status": run.status.value}
    names = (*_FIELDS, "total", "counts", "countedAt", "reasons", "forecast", *_PROGRESS, *_ENDS)
    return fields | {name: data[name] for name in names if data.get(name) is not None}


async def shown(summary: Summary, stored: StoredRun) -> dict[str, Any]:
    """Without what there is not."""
    run, data = stored.run, stored.data
    counts = await current_counts(summary, stored)
    fields: dict[str, Any] = {"runId": run.run_id, "accountId": run.account_id, "status": run.status.value}
    fields |= {name: data[name] for name in _FIELDS if data.get(name) is not None}
    fields["counts"] = count_fields(counts)
    if reasons := await _reasons(summary, stored, counts):
        fields["reasons"] = reasons
    if run.status not in ENDED:
        fields["forecast"] = forecast_fields(await summary.forecast(stored), summary.clock())
    return fields | {name: data[name] for name in (*_PROGRESS, *_ENDS) if data.get(name) is not None}


async def current_counts(summary: Summary, stored: StoredRun) -> Counts:
    """Of now: also after a run's end receipts come in. But outbox documents expire, and then the end's counts stay."""
    counts, kept = await summary.counts(stored.run), counts_of(stored.data)
    return kept if kept is not None and stored.run.status in ENDED and not counts.adds_up else counts


async def _reasons(summary: Summary, stored: StoredRun, counts: Counts) -> Any:
    """As the run document has them, unless more messages failed or were skipped since."""
    kept = counts_of(stored.data)
    if kept is not None and (kept.failed, kept.skipped) == (counts.failed, counts.skipped):
        return stored.data.get("reasons")
    return await summary.reasons(stored.run, counts)
