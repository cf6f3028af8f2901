"""A run as people see it: what its document says, how it stands, and when it will be done."""

from __future__ import annotations

from typing import Any

from firestore_outbox.reminders.run import ENDED, Counts
from firestore_outbox.reminders.store import StoredRun, count_fields, forecast_fields
from firestore_outbox.reminders.summary import Summary

_FIELDS = ("reminderId", "retryOf", "requested", "fireAt", "windowEndAt", "timezone", "onWindowEnd")
_ENDS = ("startedAt", "finishedAt", "errorSummary")


async def shown(summary: Summary, stored: StoredRun) -> dict[str, Any]:
    """Without what there is not."""
    run, data = stored.run, stored.data
    counts = await current_counts(summary, stored)
    fields: dict[str, Any] = {"runId": run.run_id, "accountId": run.account_id, "status": run.status.value}
    fields |= {name: data[name] for name in _FIELDS if data.get(name) is not None}
    fields["counts"] = counts
    if run.status not in ENDED:
        fields["forecast"] = forecast_fields(await summary.forecast(run), summary.clock())
    return fields | {name: data[name] for name in _ENDS if data.get(name) is not None}


async def current_counts(summary: Summary, stored: StoredRun) -> dict[str, int]:
    """Of now: also after a run's end receipts come in. But outbox documents expire, and then the end's counts stay."""
    counts: Counts = await summary.counts(stored.run)
    kept = stored.data.get("counts")
    if stored.run.status in ENDED and not counts.adds_up and isinstance(kept, dict):
        return kept
    return count_fields(counts)
