"""Stripe's events, read: what each of them reports. Pure.

An event whose object is a subscription has all of it (`data.object`), as it was when the event was made. Payments and
checkouts change the subscription too and are followed by such an event, so by themselves they report nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from firestore_outbox.billing.standing import Report


@dataclass(frozen=True, slots=True)
class Reported:
    customer: str
    report: Report


@dataclass(frozen=True, slots=True)
class NoNews:
    """An event that changes no plan."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    sentence: str


def read_event(event: object) -> Reported | NoNews | Unreadable:
    """`event` is the JSON of a body whose signature was verified."""
    if not isinstance(event, Mapping) or event.get("object") != "event":
        return Unreadable("the body is no event")
    data = event.get("data")
    subject = data.get("object") if isinstance(data, Mapping) else None
    if not isinstance(subject, Mapping):
        return Unreadable("the event has no object")
    # `account`: an event of an account connected to ours, whose customers are not ours.
    if subject.get("object") != "subscription" or event.get("account") is not None:
        return NoNews()
    event_id, created = event.get("id"), event.get("created")
    if not isinstance(event_id, str) or isinstance(created, bool) or not isinstance(created, int):
        return Unreadable("the event has no id or no time")
    try:
        at = datetime.fromtimestamp(created, UTC)
    except (OverflowError, OSError, ValueError):
        return Unreadable("the event has no time")
    return read_subscription(subject, event_id=event_id, at=at)


def read_subscription(subject: Mapping[str, Any], *, event_id: str, at: datetime) -> Reported | Unreadable:
    """A subscription, from an event or from Stripe's answer."""
    customer, subscription_id, status = _id(subject.get("customer")), subject.get("id"), subject.get("status")
    if customer is None or not isinstance(subscription_id, str) or not isinstance(status, str):
        return Unreadable("the subscription has no id, no customer or no status")
    report = Report(
        event_id=event_id, subscription_id=subscription_id, at=at, status=status, prices=_prices(subject.get("items"))
    )
    return Reported(customer, report)


def _id(value: object) -> str | None:
    """Stripe writes the id of an object, or the object itself where the caller asked for that."""
    found = value.get("id") if isinstance(value, Mapping) else value
    return found if isinstance(found, str) and found else None


def _prices(items: object) -> tuple[str, ...]:
    entries = items.get("data") if isinstance(items, Mapping) else None
    found = [_id(one.get("price")) for one in entries or () if isinstance(one, Mapping)]
    return tuple(sorted(price for price in found if price is not None))
