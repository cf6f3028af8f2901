"""Billing by HTTP: links for an account's owners, and Stripe's events.

`POST /v1/accounts/{accountId}:checkout` with `{"plan": "pro"}`, and `POST /v1/accounts/{accountId}:portal`, answer with
`{"url": …}`, a page of Stripe for the owner's browser. Where that page leads back to is a setting, not the caller's.

    409  the account has a subscription already, or none to manage; the plan is not for sale
    503  nothing is sold here, or Stripe does not answer

Stripe gets 200 for an event that was taken, now or before, and 400 for one without its signature. After a 503 it
delivers the event again, for days.
"""

from __future__ import annotations

from typing import assert_never

from firestore_outbox import log
from firestore_outbox.billing.billing import Billing, Link, NotSold, Taken
from firestore_outbox.billing.stripe_calls import StripeUnavailable
from firestore_outbox.errors import Unavailable
from firestore_outbox.web.http_api import Answer, BadBody, object_of, refusal

CHECKOUT, PORTAL = "checkout", "portal"
STRIPE_SIGNATURE = "stripe-signature"


async def billing_link(billing: Billing | None, account_id: str, verb: str, body: bytes) -> Answer:
    """For an owner of the account; the caller has checked that."""
    if billing is None:
        return refusal(503, "nothing is sold here; an operator sets OUTBOX_BILLING_PRICES")
    plan = _plan(body) if verb == CHECKOUT else ""
    try:
        link = await (billing.checkout(account_id, plan) if verb == CHECKOUT else billing.portal(account_id))
    except StripeUnavailable as error:
        log.billing_unavailable(account_id, error)
        return refusal(503, "the payment service could not be reached at the moment; try again")
    match link:
        case Link(url=url):
            return Answer(200, {"accountId": account_id, "url": url})
        case NotSold(sentence=sentence):
            return refusal(409, sentence)
        case _:
            assert_never(link)


async def billing_event(billing: Billing | None, body: bytes, signature: str) -> tuple[str, int]:
    if billing is None:
        return "nothing is sold here", 503
    try:
        taken = await billing.take(body, signature)
    except Unavailable as error:
        log.billing_unavailable(None, error)
        return "try again", 503
    return taken.value, 400 if taken is Taken.REFUSED else 200


def _plan(body: bytes) -> str:
    plan = object_of(body).get("plan")
    if not isinstance(plan, str):
        raise BadBody("plan must be the name of a plan")
    return plan
