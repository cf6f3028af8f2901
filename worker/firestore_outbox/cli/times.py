"""Times and time zones as they are written on a command line."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import typer

from firestore_outbox.messages import faults
from firestore_outbox.shown_time import shown_time

if TYPE_CHECKING:
    from firestore_outbox.firestore.gateway import Snapshot

NOW = "now"


def zone_of(name: str) -> ZoneInfo:
    from firestore_outbox.messages.checked_fields import is_time_zone

    if not is_time_zone(name):
        raise typer.BadParameter(f"it {faults.NO_TIME_ZONE}", param_hint="--timezone")
    return ZoneInfo(name)


def zone_of_account(account: Snapshot) -> ZoneInfo:
    return zone_of(str(account.data.get("timezone", "UTC")))


def time_of(option: str, text: str, zone: ZoneInfo, now: datetime) -> datetime:
    """The time that an option names. Without an offset it is the local time of that zone."""
    if text.strip().lower() == NOW:
        return now
    try:
        at = datetime.fromisoformat(text.strip())
        return (at if at.tzinfo else at.replace(tzinfo=zone)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise typer.BadParameter(f"{text!r} is not a time; write 2030-01-31T09:00, or now", param_hint=option) from None


def check_time(option: str, text: str | None) -> None:
    """Refuse what is not a time before anything else is asked; in which zone it is meant comes later."""
    if text is not None:
        time_of(option, text, ZoneInfo("UTC"), datetime.now(UTC))


def future_time_of(option: str, text: str, zone: ZoneInfo, now: datetime) -> datetime:
    """The same for an option that makes no sense with a time that has passed; `now` is allowed."""
    at = time_of(option, text, zone, now)
    if at < now:
        raise typer.BadParameter(f"{shown_time(at, zone)} has passed; write a later time, or now", param_hint=option)
    return at
