"""docs/states.md: every table of transitions, drawn. `python -m tests.architecture.states` writes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from firestore_outbox.lane import transitions as lanes
from firestore_outbox.media import upload_states as uploads
from firestore_outbox.messages import states as messages
from firestore_outbox.reminders import reminder_states as reminders
from firestore_outbox.reminders import run as runs
from firestore_outbox.sessions import states as sessions
from firestore_outbox.transitions import diagram

PAGE = Path(__file__).parents[2] / "docs" / "states.md"


@dataclass(frozen=True)
class Machine:
    title: str
    where: str
    """The module with the table."""
    table: Mapping[Any, StrEnum]
    """(state, event) -> state."""
    first: StrEnum
    text: str


MACHINES = (
    Machine(
        "A message in the outbox",
        "messages/states.py",
        messages.TRANSITIONS,
        messages.OutboxStatus.QUEUED,
        "The `status` of `outbox/{requestId}`. The status that people see follows from it and from receipts.",
    ),
    Machine(
        "A lane",
        "lane/transitions.py",
        lanes.TRANSITIONS,
        lanes.LaneState.IDLE,
        "The `state` of `lanes/{kind}:{key}`. [lane.md](lane.md) has the theory.",
    ),
    Machine(
        "A run",
        "reminders/run.py",
        runs.TRANSITIONS,
        runs.RunStatus.PENDING,
        "The `status` of `runs/{runId}`. [fan-out.md](fan-out.md) says what happens in each.",
    ),
    Machine(
        "A reminder",
        "reminders/reminder_states.py",
        reminders.TRANSITIONS,
        reminders.ReminderStatus.ACTIVE,
        "The `status` of `reminders/{reminderId}`. One with many targets is `paused` until all of them are written.",
    ),
    Machine(
        "A session of the hot set",
        "sessions/states.py",
        sessions.TRANSITIONS,
        sessions.State.COLD,
        "[sessions.md](sessions.md) says who gets a slot.",
    ),
    Machine(
        "An upload",
        "media/upload_states.py",
        uploads.TRANSITIONS,
        uploads.UploadState.FREE,
        "What `accounts/{accountId}/uploads/{mediaId}` means at a moment. [media.md](media.md) has the rest.",
    ),
)


def page() -> str:
    parts = [
        "# States\n\nEach table of transitions in the code, drawn by `make states`. A pair of state and event that a\n"
        "table does not have is an error in the program: the code raises `IllegalTransition`.\n"
    ]
    for machine in MACHINES:
        drawn = diagram(machine.table, first=machine.first)
        parts.append(f"## {machine.title}\n\n{machine.text} Table: `{machine.where}`.\n\n```mermaid\n{drawn}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
