"""A time as sentences for people show it."""

from __future__ import annotations

from datetime import UTC, datetime


def shown_time(at: datetime | None) -> str:
    return "an unknown time" if at is None else f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
