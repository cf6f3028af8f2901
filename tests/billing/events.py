"""The lives of subscriptions as Stripe tells them, six events each, in the shapes of its API."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from firestore_outbox.billing.prices import Offer
from firestore_outbox.local.stripe import shapes

CUSTOMER = "cus_1"
BASIC, PRO = "price_basic", "price_pro"
OFFER = Offer(prices=(("basic", BASIC), ("pro", PRO)), unpaid="free", grace=timedelta(days=7))
START = 1_790_000_000
"""Seconds since 1970."""


def at(seconds: int) -> datetime:
    return datetime.fromtimestamp(START + seconds, UTC)


def told(number: int, kind: str, status: str, *prices: str, subscription: str = "sub_1") -> dict[str, Any]:
    """An event of a subscription, `number` minutes after the start."""
    subject = shapes.subscription(subscription, CUSTOMER, *(prices or (PRO,)), status=status, created=START)
    return shapes.event(
        f"evt_{subscription}_{number}", f"customer.subscription.{kind}", subject, created=START + 60 * number
    )


def invoiced(number: int, *, is_paid: bool) -> dict[str, Any]:
    subject = shapes.invoice(f"in_{number}", CUSTOMER, "sub_1", is_paid=is_paid)
    kind = "invoice.paid" if is_paid else "invoice.payment_failed"
    return shapes.event(f"evt_in_{number}", kind, subject, created=START + 60 * number)


def checked_out(number: int) -> dict[str, Any]:
    subject = shapes.checkout_session("cs_1", CUSTOMER, "sub_1", "https://checkout.example")
    return shapes.event("evt_cs", "checkout.session.completed", subject, created=START + 60 * number)


@dataclass(frozen=True)
class Life:
    events: Sequence[dict[str, Any]]
    plan: str
    until: datetime | None = None
    after: str | None = None


LIVES = {
    "bought, and paid": Life(
        [
            told(0, "created", "incomplete"),
            told(1, "updated", "active"),
            checked_out(1),
            invoiced(2, is_paid=True),
            invoiced(50, is_paid=False),
            told(60, "updated", "active"),
        ],
        "pro",
    ),
    "bought, changed, late, paid again, and cancelled": Life(
        [
            told(0, "created", "active", BASIC),
            told(10, "updated", "active", PRO),
            told(20, "updated", "past_due", PRO),
            told(30, "updated", "active", PRO),
            told(40, "updated", "active", BASIC),
            told(50, "deleted", "canceled", BASIC),
        ],
        "free",
    ),
    "a payment fails, three times": Life(
        [
            told(0, "created", "active"),
            told(10, "updated", "past_due"),
            invoiced(10, is_paid=False),
            told(20, "updated", "past_due"),
            told(30, "updated", "past_due"),
            told(5, "updated", "active"),
        ],
        "pro",
        until=at(600) + OFFER.grace,
        after="free",
    ),
    "never paid in the end": Life(
        [
            told(0, "created", "incomplete"),
            told(1, "updated", "active"),
            told(2, "updated", "past_due"),
            told(3, "updated", "unpaid"),
            invoiced(2, is_paid=False),
            invoiced(3, is_paid=False),
        ],
        "free",
    ),
    "the end of an old subscription comes beside the next one": Life(
        [
            told(0, "created", "active", PRO, subscription="sub_1"),
            told(1, "updated", "past_due", PRO, subscription="sub_1"),
            told(9, "deleted", "canceled", PRO, subscription="sub_1"),
            told(5, "created", "incomplete", BASIC, subscription="sub_2"),
            told(6, "updated", "active", BASIC, subscription="sub_2"),
            told(7, "updated", "active", BASIC, subscription="sub_2"),
        ],
        "basic",
    ),
    "a late one beside a smaller one that is paid": Life(
        [
            told(0, "created", "active", PRO, subscription="sub_1"),
            told(4, "updated", "past_due", PRO, subscription="sub_1"),
            told(5, "updated", "past_due", PRO, subscription="sub_1"),
            told(1, "created", "incomplete", BASIC, subscription="sub_2"),
            told(2, "updated", "trialing", BASIC, subscription="sub_2"),
            told(3, "updated", "active", BASIC, subscription="sub_2"),
        ],
        "pro",
        until=at(240) + OFFER.grace,
        after="basic",
    ),
}
