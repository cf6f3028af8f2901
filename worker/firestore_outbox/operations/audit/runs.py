"""Runs that have ended: whether their counts add up, also with the reasons."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from firestore_outbox.firestore import paths
from firestore_outbox.firestore.gateway import Gateway
from firestore_outbox.operations.audit.finding import Finding
from firestore_outbox.operations.audit.pages import pages
from firestore_outbox.reminders.run import ENDED
from firestore_outbox.reminders.store import counts_of


async def of_runs(gateway: Gateway) -> AsyncIterator[Finding]:
    async for page in pages(gateway, paths.RUNS):
        for run in page:
            if run.data.get("status") not in ENDED:
                continue
            counts = counts_of(run.data)
            if counts is None:
                yield Finding("counts", run.path, "it has ended, and has no counts")
            elif not counts.adds_up or counts.total != run.data.get("total"):
                yield Finding("counts", run.path, f"of {run.data.get('total')} targets it tells {counts}")
            elif (skipped := _reasons_for_skipping(run.data)) not in (None, counts.skipped):
                yield Finding(
                    "reasons", run.path, f"{counts.skipped} targets were skipped, and it says why of {skipped}"
                )


def _reasons_for_skipping(data: Mapping[str, Any]) -> int | None:
    """None: it does not say why; it ended before runs did."""
    reasons = data.get("reasons")
    by_code = reasons.get("skipped") if isinstance(reasons, dict) else None
    return sum(by_code.values()) if isinstance(by_code, dict) else None
