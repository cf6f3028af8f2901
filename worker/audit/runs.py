"""Runs that have ended: whether their counts add up."""

from __future__ import annotations

from collections.abc import AsyncIterator

from worker.audit.finding import Finding
from worker.audit.pages import pages
from worker.domain.run import ENDED
from worker.store import paths
from worker.store.gateway import Gateway
from worker.store.runs import counts_of


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
