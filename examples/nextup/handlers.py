"""What runs when Notion reports a change: rank the tasks of one person again, and write what changed.

NOTION_URL, NOTION_TOKEN, NOTION_DATABASE   which database
OUTBOX_LIMITS=notion=3/3                    three calls a second, for all workers together
NEXTUP_DRY_RUN=1                            decide and report, but write nothing
NEXTUP_TODAY=2026-03-02                     another day than today
NEXTUP_REPORT=FILE                          one JSON line for each run
"""

from __future__ import annotations

import json
import os
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import httpx

from firestore_outbox import Context, keyed
from nextup.client import Notion
from nextup.ranking import Change, changes

QUIET_SECONDS = float(os.environ.get("NEXTUP_QUIET_SECONDS", "5"))
AT_MOST_SECONDS = 3 * QUIET_SECONDS
CALL_SECONDS = 60.0
"""Limit of one call to Notion."""


@keyed("nextup", quiet=QUIET_SECONDS, at_most=AT_MOST_SECONDS, adaptive=True)
async def rank(context: Context) -> None:
    """One run for a person whose tasks changed. `context.key` is the assignee (events.json says where it is)."""
    is_dry = os.environ.get("NEXTUP_DRY_RUN", "") not in ("", "0")
    async with httpx.AsyncClient(
        base_url=os.environ["NOTION_URL"],
        headers={"Authorization": f"Bearer {os.environ['NOTION_TOKEN']}"},
        transport=context.limit("notion").transport(),
        timeout=CALL_SECONDS,
    ) as http:
        notion = Notion(http, os.environ["NOTION_DATABASE"])
        tasks = await notion.open_tasks_of(context.key)
        decided = changes(tasks, today())
        if not is_dry:
            for change in decided:
                await notion.write(change)
    events = await context.events()
    context.log.info("%d events, %d tasks, %d changed, dry run: %s", len(events), len(tasks), len(decided), is_dry)
    report(
        assignee=context.key,
        events=[event.id for event in events],
        tasks=len(tasks),
        changes=[shown(change) for change in decided],
        dryRun=is_dry,
    )


def today() -> date:
    named = os.environ.get("NEXTUP_TODAY")
    return date.fromisoformat(named) if named else datetime.now(UTC).date()


def shown(change: Change) -> dict[str, Any]:
    completion = None if change.completion is None else change.completion.isoformat()
    return {"task": change.task.name, "from": change.task.rank, "rank": change.rank, "completion": completion}


def report(**line: Any) -> None:
    if path := os.environ.get("NEXTUP_REPORT"):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
