"""The states of a reminder, and what each event makes of them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class ReminderStatus(StrEnum):
    ACTIVE = "active"
    PAUSED = "paused"
    """By a person; or because its targets are not all written yet."""
    ENDED = "ended"
    """It has no further time to fire."""


class ReminderEvent(StrEnum):
    PAUSE = "pause"
    RESUME = "resume"
    COMPLETE = "complete"
    """The last of its targets is written."""
    RUN_OUT = "run_out"
    """Its schedule has no further time."""
    RESCHEDULE = "reschedule"
    """An edit gave it a schedule with a time ahead."""


_S, _E = ReminderStatus, ReminderEvent

TRANSITIONS: Mapping[tuple[ReminderStatus, ReminderEvent], ReminderStatus] = {
    (_S.ACTIVE, _E.PAUSE): _S.PAUSED,
    (_S.ACTIVE, _E.RESUME): _S.ACTIVE,
    (_S.ACTIVE, _E.RUN_OUT): _S.ENDED,
    (_S.PAUSED, _E.PAUSE): _S.PAUSED,
    (_S.PAUSED, _E.RESUME): _S.ACTIVE,
    (_S.PAUSED, _E.COMPLETE): _S.ACTIVE,
    (_S.ACTIVE, _E.RESCHEDULE): _S.ACTIVE,
    (_S.PAUSED, _E.RESCHEDULE): _S.PAUSED,
    (_S.ENDED, _E.RESCHEDULE): _S.ACTIVE,
}
