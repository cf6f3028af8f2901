"""The time zones in which a recipient may be: the target's own, or those of its phone number's region.

A number's region may have several, such as a mobile number of Russia: all of them count. The library that knows regions
takes a twentieth of a second to import, so only a run that asks for zones imports it.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from firestore_outbox.accounts.window import Window
from firestore_outbox.consent.words import key_of
from firestore_outbox.messages.checked_fields import is_time_zone

_UNKNOWN = ("Etc/Unknown",)
_COMPARED_AT = (datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 7, 1, tzinfo=UTC))
"""Zones of one region that show the same time in winter and in summer count as one."""


def hours_of(hours: Window, to: str, own_zone: str | None) -> tuple[Window, ...]:
    """The hours on each clock that the recipient may have. `hours.zone` is for a recipient whose region is unknown."""
    zones = (own_zone,) if own_zone is not None else zones_of(to)
    return tuple(
        Window(start_hour=hours.start_hour, end_hour=hours.end_hour, zone=ZoneInfo(zone)) for zone in zones
    ) or (hours,)


@lru_cache(maxsize=10_000)
def zones_of(address: str) -> tuple[str, ...]:
    """The zones of a phone number's region, one of each group that shows the same time; empty: no region is known."""
    digits = key_of(address)
    if not digits.isdigit():
        return ()
    import phonenumbers
    from phonenumbers import timezone

    try:
        number = phonenumbers.parse(f"+{digits}")
    except phonenumbers.NumberParseException:
        return ()
    found = timezone.time_zones_for_number(number)
    if found == _UNKNOWN:  # no number of the region's plan; its prefix may still tell
        found = timezone.time_zones_for_geographical_number(number)
    return _distinct(zone for zone in found if zone not in _UNKNOWN and is_time_zone(zone))


def _distinct(zones: Iterable[str]) -> tuple[str, ...]:
    """Without those that show the same time as another, in winter and in summer."""
    by_time: dict[tuple[timedelta | None, ...], str] = {}
    for zone in zones:
        offsets = tuple(at.astimezone(ZoneInfo(zone)).utcoffset() for at in _COMPARED_AT)
        by_time.setdefault(offsets, zone)
    return tuple(by_time.values())
