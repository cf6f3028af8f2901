"""What the author of a reminder chooses between."""

from __future__ import annotations

from enum import StrEnum


class Missed(StrEnum):
    """What becomes of a time at which the reminder did not fire."""

    SKIP = "skip"
    RUN_ONCE = "runOnce"


class OnWindowEnd(StrEnum):
    """What becomes of targets that are left when the delivery window ends."""

    STOP = "stop"
    RESUME_NEXT_DAY = "resumeNextDay"


class Category(StrEnum):
    """What kind of message it is. An account may cap marketing for each recipient."""

    UTILITY = "utility"
    MARKETING = "marketing"
