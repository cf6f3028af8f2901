"""What Stripe reported of an account's subscriptions, and the plan that follows from it. Pure.

Stripe delivers events in any order and more than once. So nothing here depends on the order: a ledger is a set of
reports, each with the id of its event, and the plan is a function of that set. Of each subscription the newest report
counts, by the second in which Stripe made its event. A subscription that ended stays ended.

    active, trialing                                     the plan
    past_due                                             the plan, until the grace period ends
    incomplete, incomplete_expired, canceled, unpaid, paused, and what Stripe adds later        nothing

Two reports of one second that differ have no order: `Unclear`. Then the caller asks Stripe how the subscription is now,
and adds the answer as one more report of that second.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import takewhile

from firestore_outbox.billing.prices import Offer

PAID = frozenset({"active", "trialing"})
LATE = "past_due"
ENDED = frozenset({"canceled", "incomplete_expired"})
"""Final: Stripe never revives such a subscription."""
MOST_REPORTS = 30
"""Kept of one subscription, the newest. A payment is retried eight times at most, with two events each."""
MOST_SUBSCRIPTIONS = 20
"""Kept of one account: those with the newest reports."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    event_id: str
    subscription_id: str
    at: datetime
    """When Stripe made the event, to the second."""
    asked: int = 0
    """0: from an event. Otherwise the answer to our question, counted within its second."""
    status: str
    prices: tuple[str, ...]

    def agrees_with(self, other: Report) -> bool:
        return (self.status, self.prices) == (other.status, other.prices)


Ledger = Mapping[str, Sequence[Report]]
"""Subscription -> its reports, the newest first."""


@dataclass(frozen=True, slots=True)
class Added:
    ledger: Ledger


@dataclass(frozen=True, slots=True)
class Known:
    """The event was taken before, or is older than all that is kept."""


@dataclass(frozen=True, slots=True)
class Unclear:
    """Another report of the same second differs: ask Stripe."""


def add(ledger: Ledger, report: Report) -> Added | Known | Unclear:
    before = ledger.get(report.subscription_id, ())
    if any(report.event_id == one.event_id for one in before):
        return Known()
    if before and not _has_ended((*before, report)) and _is_unclear(before[0], report):
        return Unclear()
    return _with(ledger, report)


def add_answer(ledger: Ledger, report: Report, answer: Report) -> Added | Known:
    """`answer` is how the subscription is now, asked for because of `report`."""
    before = ledger.get(report.subscription_id, ())
    asked = 1 + max((one.asked for one in before if one.at == report.at), default=0)
    with_report = _with(ledger, report)
    if isinstance(with_report, Known):
        return with_report
    told = replace(answer, event_id=f"{report.event_id}:asked", at=report.at, asked=asked)
    return _with(with_report.ledger, told)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The plan that is paid for."""

    plan: str
    until: datetime | None = None
    """The end of the grace period; None: it has no end that is known."""
    after: str | None = None
    """The plan from then on."""


def standing(ledger: Ledger, offer: Offer) -> Standing | None:
    """None: nothing was ever paid, so billing has no say about the account's plan."""
    plans = [plan for plan, _ in offer.prices]
    found = [one for reports in ledger.values() if (one := _worth(reports, offer)) is not None]
    lasting = max((rank for rank, until in found if until is None), default=None)
    settled = offer.unpaid if lasting is None else plans[lasting]
    # Worth its grace period only if it is more than what is paid anyway.
    late = [(rank, until) for rank, until in found if until is not None and (lasting is None or rank > lasting)]
    if late:
        rank, until = max(late)
        return Standing(plan=plans[rank], until=until, after=settled)
    was_paid = any(one.status in (*PAID, LATE) and offer.rank_of(one.prices) is not None for one in _all(ledger))
    return Standing(plan=settled) if lasting is not None or was_paid else None


def is_subscribed(ledger: Ledger) -> bool:
    """Whether a subscription is alive, so that a second one would be paid beside it."""
    return any(not _has_ended(reports) and reports[0].status != "incomplete" for reports in ledger.values())


def unknown_prices(ledger: Ledger, offer: Offer) -> set[str]:
    """Prices of paid subscriptions that buy none of the plans."""
    newest = [reports[0] for reports in ledger.values() if not _has_ended(reports)]
    paid = [one for one in newest if one.status in (*PAID, LATE) and offer.rank_of(one.prices) is None]
    return {price for one in paid for price in one.prices}


def _worth(reports: Sequence[Report], offer: Offer) -> tuple[int, datetime | None] | None:
    """The rank of the plan that a subscription pays for, and the end of its grace period."""
    newest = reports[0]
    rank = offer.rank_of(newest.prices)
    if rank is None or _has_ended(reports):
        return None
    if newest.status in PAID:
        return rank, None
    if newest.status != LATE:
        return None
    late = list(takewhile(lambda one: one.status == LATE, reports))
    return rank, late[-1].at + offer.grace


def _has_ended(reports: Iterable[Report]) -> bool:
    return any(one.status in ENDED for one in reports)


def _is_unclear(newest: Report, report: Report) -> bool:
    return newest.at == report.at and not newest.agrees_with(report)


def _with(ledger: Ledger, report: Report) -> Added | Known:
    before = ledger.get(report.subscription_id, ())
    ordered = sorted((*before, report), key=_age, reverse=True)
    ended = [one for one in ordered if one.status in ENDED]
    # A report of the end stays, however old: it outweighs all the others.
    kept = ordered[:MOST_REPORTS] if not ended else [*ended[:1], *(one for one in ordered if one != ended[0])]
    kept = sorted(kept[:MOST_REPORTS], key=_age, reverse=True)
    if report not in kept:
        return Known()
    subscriptions = {**ledger, report.subscription_id: tuple(kept)}
    newest = sorted(subscriptions.items(), key=lambda entry: _age(entry[1][0]), reverse=True)
    return Added(dict(newest[:MOST_SUBSCRIPTIONS]))


def _age(report: Report) -> tuple[datetime, int, str]:
    return report.at, report.asked, report.event_id


def _all(ledger: Ledger) -> Iterator[Report]:
    for reports in ledger.values():
        yield from reports
