"""Which plans are for sale. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from firestore_outbox.plans.plan import PLAN_NAME

_PRICE = re.compile(r"price_[A-Za-z0-9_]{1,200}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What is sold, as the settings say it."""

    prices: Sequence[tuple[str, str]]
    """Plan and price, from the smallest plan to the largest."""
    unpaid: str
    """The plan of an account whose subscription ended."""
    grace: timedelta
    """How long a plan stays after a payment failed."""

    def price_of(self, plan: str) -> str | None:
        return dict(self.prices).get(plan)

    def rank_of(self, prices: Sequence[str]) -> int | None:
        """The largest plan that one of these prices buys, as its place in `prices`; None: none of them is sold here."""
        ranks = [rank for rank, (_, price) in enumerate(self.prices) if price in prices]
        return max(ranks, default=None)


def offered(text: str) -> tuple[tuple[str, str], ...]:
    """`basic=price_1 pro=price_2`. Raises ValueError with a sentence."""
    found: list[tuple[str, str]] = []
    for entry in text.split():
        plan, _, price = entry.partition("=")
        if not PLAN_NAME.fullmatch(plan) or not _PRICE.fullmatch(price):
            raise ValueError(f"{entry[:60]!r} is no price; write PLAN=PRICE, such as basic=price_1AbC")
        if any(plan == other or price == same for other, same in found):
            raise ValueError(f"{entry[:60]!r} names a plan or a price a second time")
        found.append((plan, price))
    return tuple(found)
