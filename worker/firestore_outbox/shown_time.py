"""A time as sentences for people show it: with its zone."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo


def shown_time(at: datetime | None, zone: ZoneInfo | None = None) -> str:
    """The time to the second and the zone's name; `zone` None means UTC."""
    if at is None:
        return "an unknown time"
    return f"{at.astimezone(UTC if zone is None else zone):%Y-%m-%d %H:%M:%S} {'UTC' if zone is None else zone.key}"
