"""The plan that follows from what Stripe reported, whatever the order of its events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest

from firestore_outbox.billing.events import NoNews, Reported, Unreadable, read_event
from firestore_outbox.billing.prices import offered
from firestore_outbox.billing.standing import (
    MOST_REPORTS,
    Added,
    Known,
    Ledger,
    Report,
    Standing,
    Unclear,
    add,
    add_answer,
    is_subscribed,
    standing,
    unknown_prices,
)
from firestore_outbox.plans.plan import PlanTerm
from tests.billing.events import LIVES, OFFER, PRO, Life, at, checked_out, invoiced, told


def reported(event: Mapping[str, Any]) -> Report:
    found = read_event(event)
    assert isinstance(found, Reported)
    return found.report


def after(events: Iterable[Mapping[str, Any]]) -> Ledger:
    """As the webhook takes them: what is no report of a subscription changes nothing."""
    ledger: Ledger = {}
    for event in events:
        found = read_event(event)
        if isinstance(found, Reported):
            added = add(ledger, found.report)
            assert not isinstance(added, Unclear), "these events have different seconds"
            ledger = added.ledger if isinstance(added, Added) else ledger
    return ledger


@pytest.mark.parametrize("life", LIVES.values(), ids=LIVES.keys())
def test_all_720_orders_of_six_events_give_the_same_plan(life: Life) -> None:
    orders = list(permutations(life.events))
    assert len(orders) == 720
    expected = Standing(plan=life.plan, until=life.until, after=life.after)
    for order in orders:
        assert standing(after(order), OFFER) == expected


@pytest.mark.parametrize("life", LIVES.values(), ids=LIVES.keys())
def test_events_that_come_twice_change_nothing(life: Life) -> None:
    once = after(life.events)
    assert after([*life.events, *reversed(life.events)]) == once
    assert all(isinstance(add(once, reported(event)), Known) for event in life.events if _is_report(event))


def _is_report(event: Mapping[str, Any]) -> bool:
    return isinstance(read_event(event), Reported)


def test_payments_and_checkouts_alone_change_no_plan() -> None:
    events = [checked_out(1), invoiced(2, is_paid=True), invoiced(3, is_paid=False)]
    assert [read_event(event) for event in events] == [NoNews()] * 3


def test_a_checkout_that_is_never_paid_leaves_the_account_alone() -> None:
    ledger = after([told(0, "created", "incomplete"), told(1, "updated", "incomplete_expired")])
    assert standing(ledger, OFFER) is None
    assert not is_subscribed(ledger)


def test_an_ended_subscription_stays_ended_whatever_comes_later() -> None:
    ledger = after([told(0, "created", "active"), told(1, "deleted", "canceled")])
    for number in range(2, 2 * MOST_REPORTS):
        ledger = after_one(ledger, told(number, "updated", "active"))
    assert standing(ledger, OFFER) == Standing(plan="free")
    assert sum(len(reports) for reports in ledger.values()) <= MOST_REPORTS


def after_one(ledger: Ledger, event: Mapping[str, Any]) -> Ledger:
    added = add(ledger, reported(event))
    return added.ledger if isinstance(added, Added) else ledger


def test_two_reports_of_one_second_that_differ_are_unclear_until_stripe_answers() -> None:
    first, second = reported(told(0, "created", "incomplete")), replace(reported(told(0, "updated", "active")))
    second = replace(second, event_id="evt_other")
    for one, other in ((first, second), (second, first)):
        ledger = add({}, one)
        assert isinstance(ledger, Added)
        assert add(ledger.ledger, other) == Unclear()
        answered = add_answer(ledger.ledger, other, replace(second, event_id="asked"))
        assert isinstance(answered, Added)
        assert standing(answered.ledger, OFFER) == Standing(plan="pro")


def test_of_one_second_the_end_wins_without_a_question() -> None:
    end = replace(reported(told(0, "deleted", "canceled")), event_id="evt_end")
    begun = add({}, reported(told(0, "created", "active")))
    assert isinstance(begun, Added)
    ended = add(begun.ledger, end)
    assert isinstance(ended, Added)
    assert standing(ended.ledger, OFFER) == Standing(plan="free")


def test_a_price_that_buys_no_plan_is_named() -> None:
    ledger = after([told(0, "created", "active", "price_other")])
    assert standing(ledger, OFFER) is None
    assert unknown_prices(ledger, OFFER) == {"price_other"}
    assert unknown_prices(after([told(0, "created", "active", PRO)]), OFFER) == set()


def test_the_plan_of_the_grace_period_ends_by_itself() -> None:
    term = PlanTerm(plan="pro", until=at(0), after="free")
    assert (term.at(at(-1)), term.at(at(0)), term.at(at(1))) == ("pro", "free", "free")
    assert PlanTerm(plan="pro").at(at(0)) == "pro"


@pytest.mark.parametrize(
    "event",
    [
        [],
        {},
        {"object": "event"},
        {"object": "event", "data": {"object": []}},
        {**told(0, "created", "active"), "id": None},
        {**told(0, "created", "active"), "created": True},
        {**told(0, "created", "active"), "created": 10**30},
        {**told(0, "created", "active"), "data": {"object": {"object": "subscription", "customer": 5}}},
    ],
)
def test_an_event_of_another_shape_is_unreadable(event: Any) -> None:
    assert isinstance(read_event(event), Unreadable)


def test_an_event_of_a_connected_account_is_no_news() -> None:
    assert read_event({**told(0, "created", "active"), "account": "acct_other"}) == NoNews()


@pytest.mark.parametrize("text", ["basic", "basic=", "basic=prod_1", "BASIC=price_1", "a=price_1 a=price_2"])
def test_a_bad_price_is_named(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no price|a second time"):
        offered(text)
