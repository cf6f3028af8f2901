"""The verbs of billing: a link to pay, a link to manage what is paid, and an event of Stripe taken.

An event is a report of one subscription (events.py). It is added to the account's ledger, and the plan that follows
from the ledger (standing.py) is written to the account, both in one commit under the version that was read. Events of
one account that arrive at the same time therefore take turns, and the last of them sees what all of them reported.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from firestore_outbox import log
from firestore_outbox.accounts.administration import Administration
from firestore_outbox.billing.books import Book, Books
from firestore_outbox.billing.events import NoNews, Reported, Unreadable, read_event, read_subscription
from firestore_outbox.billing.prices import Offer
from firestore_outbox.billing.standing import (
    Added,
    Known,
    Report,
    Standing,
    Unclear,
    add,
    add_answer,
    is_subscribed,
    standing,
    unknown_prices,
)
from firestore_outbox.billing.stripe_calls import StripeCalls, StripeUnavailable, is_genuine
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.compare_and_set import AGAIN, Again
from firestore_outbox.firestore.gateway import Conflict, Gateway
from firestore_outbox.firestore.writes import DELETE, WriteOp, update

STRIPE = "stripe"
"""`by` of the action that an event takes."""


class Taken(StrEnum):
    """What became of an event."""

    DONE = "done"
    NO_NEWS = "no news"
    """Nothing to do: taken before, about something else, or of a customer that is not ours."""
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Link:
    url: str


@dataclass(frozen=True, slots=True)
class NotSold:
    sentence: str


class Billing:
    def __init__(
        self,
        gateway: Gateway,
        administration: Administration,
        stripe: StripeCalls,
        offer: Offer,
        *,
        webhook_secret: str,
        return_url: str,
        new_id: Callable[[], str],
    ) -> None:
        self._gateway = gateway
        self._books = Books(gateway)
        self._administration = administration
        self._stripe = stripe
        self._webhook_secret = webhook_secret
        self._return_url = return_url
        self._new_id = new_id
        self.offer = offer

    async def checkout(self, account_id: str, plan: str) -> Link | NotSold:
        """A page where this account's customer buys the plan. The caller has checked that the account exists."""
        price = self.offer.price_of(plan)
        if price is None:
            sold = ", ".join(name for name, _ in self.offer.prices)
            return NotSold(f"the plan {plan[:40]!r} is not for sale; these are: {sold}")
        book = await self._books.begun(account_id, self._new_id())
        if is_subscribed(book.ledger):
            return NotSold("the account has a subscription already; change its plan in the customer portal")
        customer = book.customer
        if customer is None:
            made = await self._stripe.new_customer(account_id, book.customer_key)
            customer = await self._books.bind(account_id, made)
        return Link(await self._stripe.checkout(customer, price, self._return_url))

    async def portal(self, account_id: str) -> Link | NotSold:
        book = await self._books.of_account(account_id)
        if book is None or book.customer is None:
            return NotSold("nothing was bought for this account yet; buy a plan with a checkout link first")
        return Link(await self._stripe.portal(book.customer, self._return_url))

    async def show(self, account_id: str) -> dict[str, Any]:
        book = await self._books.of_account(account_id)
        paid = None if book is None else standing(book.ledger, self.offer)
        newest = {} if book is None else {name: reports[0].status for name, reports in book.ledger.items()}
        return {
            "accountId": account_id,
            "customer": None if book is None else book.customer,
            "plan": None if paid is None else paid.plan,
            "until": None if paid is None else paid.until,
            "after": None if paid is None else paid.after,
            "subscriptions": newest,
        }

    async def take(self, body: bytes, signature: str | None) -> Taken:
        """An event as Stripe delivers it. Nothing of the body is parsed before its signature is verified.

        Raises `Unavailable`: Stripe delivers it again."""
        if not is_genuine(body, signature, self._webhook_secret):
            log.billing_refused("the signature is missing, wrong or too old")
            return Taken.REFUSED
        try:
            event = read_event(json.loads(body))
        except (ValueError, RecursionError):
            event = Unreadable("the body is no JSON")
        match event:
            case Unreadable(sentence=sentence):
                log.billing_refused(sentence)
                return Taken.REFUSED
            case NoNews():
                return Taken.NO_NEWS
            case Reported():
                return await self._report(event)

    async def _report(self, event: Reported) -> Taken:
        async def attempt() -> Taken | Again:
            book = await self._books.of_customer(event.customer)
            if book is None:
                log.billing_customer_unknown(event.customer)
                return Taken.NO_NEWS
            added = await self._added(book, event.report)
            if isinstance(added, Known):
                return Taken.NO_NEWS
            paid = self._changed(book, added)
            writes = [book.reported(added.ledger), *self._plan_writes(book.account_id, paid)]
            if isinstance(await self._gateway.commit(writes), Conflict):
                return AGAIN
            self._tell(book.account_id, added, paid)
            return Taken.DONE

        return await self._gateway.compare_and_set(attempt)

    async def _added(self, book: Book, report: Report) -> Added | Known:
        """Asks Stripe, after the book was read and before it is written: an answer never replaces a newer one."""
        added = add(book.ledger, report)
        if not isinstance(added, Unclear):
            return added
        found = await self._stripe.subscription(report.subscription_id)
        answer = read_subscription(found, event_id=report.event_id, at=report.at)
        if isinstance(answer, Unreadable):
            raise StripeUnavailable(answer.sentence)
        return add_answer(book.ledger, report, answer.report)

    def _changed(self, book: Book, added: Added) -> Standing | None:
        """None: the account's plan stays as it is."""
        after = standing(added.ledger, self.offer)
        return None if after == standing(book.ledger, self.offer) else after

    def _plan_writes(self, account_id: str, paid: Standing | None) -> list[WriteOp]:
        if paid is None:
            return []
        noted = self._administration.noted(account_id, "set", STRIPE, {"plan": paid.plan})
        return [update(paths.account(account_id), _fields(paid), version=None), noted]

    def _tell(self, account_id: str, added: Added, paid: Standing | None) -> None:
        for price in sorted(unknown_prices(added.ledger, self.offer)):
            log.billing_price_unknown(account_id, price)
        if paid is not None:
            log.billing_changed(account_id, paid.plan, paid.until)


def _fields(paid: Standing) -> dict[str, Any]:
    return {
        "plan": paid.plan,
        "planUntil": DELETE if paid.until is None else paid.until,
        "planAfter": DELETE if paid.after is None else paid.after,
    }
