"""A user's handler for test_plan.py. It notes each run in the file that PLAN_LOG names; events tell it what to do."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path

from firestore_outbox import Context, keyed

LOG = Path(os.environ.get("PLAN_LOG", "plan.log"))


@keyed("nightly", quiet=1, at_most=5)
@keyed("nextup", quiet=1, at_most=5)
async def rank(context: Context) -> None:
    events = [event.data for event in await context.events()]
    with LOG.open("a") as log:  # noqa: ASYNC230 - one line
        log.write(json.dumps({"key": context.key, "numbers": [event["number"] for event in events]}) + "\n")
    for event in events:
        if event.get("crash") and not (marker := LOG.with_name(f"{context.key}.crashed")).exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if event.get("throttled") and not (marker := LOG.with_name(f"{context.key}.throttled")).exists():
            marker.touch()
            await context.limit("notion").throttled(retry_after=1)
            raise OSError("429")
        await asyncio.sleep(event.get("seconds", 0))
        async with context.limit("notion"):
            pass
