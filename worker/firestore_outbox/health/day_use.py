"""What an account has used of its day, as its lane keeps it. Pure.

The stored numbers are authoritative, and contain what the holder of the lane has reserved and not used. A holder
reserves a block with a write of the lane, and spends from memory what it has reserved: the next holder begins behind
the block. So no cap is exceeded, however many holders there are and however they die. A clean release gives back what
was not used; a crash forfeits it, at most a tenth of the day.

Days only go forward. Of two workers whose clocks differ, the one that is behind spends from the day that the other has
begun.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, datetime

from firestore_outbox.health.caps import DayCaps

LARGEST_BLOCK = 200
"""Messages that are reserved at a time, at most: what a crash forfeits."""
SHARE = 10
"""A block is this part of the day's cap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DayUse:
    day: date
    """On the account's clock."""
    sends: int = 0
    contacts: int = 0
    """New contacts."""
    postponed: int = 0
    """Messages to new contacts that were moved to later days, and whose turn has not come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DayNow:
    """What a person is shown of the account's day."""

    sends: int
    """Sent today, with what the holder has reserved."""
    most_sends: int | None
    """None: as many as the pace allows."""
    is_warming_up: bool
    contacts: int
    most_contacts: int | None


def day_now(use: DayUse | None, caps: DayCaps, now: datetime) -> DayNow:
    today = begun(use, caps, now)
    return DayNow(
        sends=today.sends,
        most_sends=caps.sends_on(today.day),
        is_warming_up=caps.warm_up is not None and caps.warm_up.limit(today.day) is not None,
        contacts=today.contacts,
        most_contacts=caps.new_contacts,
    )


def begun(use: DayUse | None, caps: DayCaps, now: datetime) -> DayUse:
    """The use of the present day; that of a new day is nothing."""
    today = caps.day_of(now)
    if use is None:
        return DayUse(day=today)
    if use.day >= today:
        return use
    came = (today - use.day).days * (caps.new_contacts or 0)
    return DayUse(day=today, postponed=max(0, use.postponed - came))


def reserved(stored: DayUse | None, mine: DayUse | None, caps: DayCaps, now: datetime) -> DayUse:
    """The use to store: with a block behind what this holder has spent (`mine`; None: nothing yet)."""
    use = begun(stored, caps, now)
    spent = mine if mine is not None and mine.day == use.day else use if mine is None else DayUse(day=use.day)
    limit = caps.sends_on(use.day)
    return replace(
        use,
        sends=use.sends if limit is None else _through(use.sends, spent.sends, limit),
        contacts=use.contacts
        if caps.new_contacts is None
        else _through(use.contacts, spent.contacts, caps.new_contacts),
    )


def _through(stored: int, spent: int, limit: int) -> int:
    block = max(1, min(LARGEST_BLOCK, limit // SHARE))
    return max(stored, min(limit, spent + block))


def postponed_to(use: DayUse, caps: DayCaps, others: int = 0) -> datetime:
    """The first day on which one more new contact has room, as far as is known, behind `others`."""
    return caps.after(use.day, 1 + (use.postponed + others) // (caps.new_contacts or 1))


def day_text(use: DayUse | None) -> str | None:
    """As the lane's document has it: one short value. None: the account has no cap, or was never used."""
    return None if use is None else f"{use.day.isoformat()} {use.sends} {use.contacts} {use.postponed}"


def day_of_text(text: str | None) -> DayUse | None:
    if text is None:
        return None
    day, sends, contacts, postponed = text.split(" ")
    return DayUse(day=date.fromisoformat(day), sends=int(sends), contacts=int(contacts), postponed=int(postponed))
