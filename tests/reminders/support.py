"""Reminders and runs in a calm world."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

from firestore_outbox.firestore import paths
from firestore_outbox.firestore.writes import create
from firestore_outbox.lane.ref import reminder_lane
from tests.calm import Calm

ENDED = {"success", "partial", "failed", "cancelled"}


async def remind(
    calm: Calm, reminder_id: str = "rem", *, targets: int = 10, listed: list[Any] | None = None, **fields: Any
) -> None:
    """A reminder that fires once, at once, unless told otherwise; `listed` are its targets instead of `targets`."""
    now = calm.world.clock()
    document: dict[str, Any] = {
        "accountId": "shop",
        "targets": listed or [{"id": f"t{number:05}", "to": f"{number:05}@g.us"} for number in range(targets)],
        "parts": [{"type": "text", "text": "The market opens at nine."}],
        "timezone": "UTC",
        "window": {"startHour": 0, "endHour": 24},
        "schedule": {"type": "once", "at": now},
        "createdAt": now,
        **fields,
    }
    await calm.write(create(paths.reminder(reminder_id), document))
    await calm.world.client.system.waker.wake(reminder_lane(reminder_id))


def runs(calm: Calm) -> dict[str, dict[str, Any]]:
    return dict(calm.world.truth.collection("runs"))


def only_run(calm: Calm) -> dict[str, Any]:
    found = runs(calm)
    assert len(found) == 1, sorted(found)
    return next(iter(found.values()))


def has_ended(calm: Calm, count: int = 1) -> bool:
    return sum(run["status"] in ENDED for run in runs(calm).values()) == count


async def until_ended(calm: Calm, count: int = 1, *, within: timedelta = timedelta(hours=2)) -> None:
    await calm.until(lambda: has_ended(calm, count), within=within)


def targets_called(calm: Calm) -> Counter[str]:
    """How often the provider accepted each recipient."""
    return Counter(call.to for call in calm.world.truth.calls if call.accepted)


def call_times(calm: Calm, account_id: str = "shop") -> list[datetime]:
    return sorted(call.at for call in calm.world.truth.calls if call.account_id == account_id)


def refreshes(calm: Calm, run_id: str) -> list[dict[str, Any]]:
    """Each version of the run document with new counts, the oldest first."""
    found: list[dict[str, Any]] = []
    for change in calm.world.truth.changes:
        data = change.data if change.path == paths.run(run_id) else None
        if data and data.get("countedAt") and (not found or found[-1]["countedAt"] != data["countedAt"]):
            found.append(dict(data))
    return found
