"""Billing by its documented ways: links for owners, and events that Stripe delivers to the function."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from firestore_outbox.accounts.administration import Removed
from firestore_outbox.accounts.changes import Refused
from firestore_outbox.firestore.writes import create, update
from firestore_outbox.local.stripe import shapes
from tests.billing.events import BASIC, LIVES, OFFER, PRO, Life
from tests.billing.world import SECRET, Shop, deliver, shop, webhook
from tests.web.functions.calling import call, member
from tests.web.service import support
from tests.web.service.support import now


@pytest.fixture
async def world(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Shop]:
    async with support.certificates() as served, shop(served, monkeypatch) as world:
        yield world


async def checkout(plan: Any = "pro", *, uid: str | None = "olga", account: str = "shop") -> Any:
    return await call("accounts", "POST", f"/v1/accounts/{account}:checkout", {"plan": plan}, uid=uid)


# --- links


async def test_an_owner_buys_a_plan_changes_it_and_ends_it(world: Shop) -> None:
    await world.service.account(plan="free")
    subscription = await world.buy("pro")
    assert await world.account() == {"plan": "pro", "planUntil": None, "planAfter": None}
    answer = await call("accounts", "POST", "/v1/accounts/shop:portal", {}, uid="olga")
    assert answer.status_code == 200
    assert "/stripe/portal/" in answer.json()["url"]
    world.stripe.act(subscription, "cancel")
    await world.delivered()
    assert (await world.account())["plan"] == "free"
    assert set(world.taken) == {200}
    actions = (await call("accounts", "GET", "/v1/accounts/shop", uid="olga")).json()["actions"]
    assert [(one["by"], one["detail"]) for one in actions] == [
        ("stripe", {"plan": "free"}),
        ("stripe", {"plan": "pro"}),
    ]


async def test_after_a_failed_payment_the_plan_stays_for_the_grace_period(world: Shop) -> None:
    subscription = await world.buy("basic")
    world.stripe.events.clear()
    world.taken.clear()
    world.stripe.subscriptions[subscription]["status"] = "past_due"
    late = world.stripe.subscriptions[subscription]
    failed_at = int((now() + timedelta(seconds=5)).timestamp())
    assert (
        await deliver(shapes.event("evt_late", "customer.subscription.updated", late, created=failed_at))
    ).is_success
    stored = await world.account()
    assert (stored["plan"], stored["planAfter"]) == ("basic", "free")
    assert stored["planUntil"].timestamp() == failed_at + OFFER.grace.total_seconds()
    late["status"] = "active"
    paid = shapes.event("evt_paid", "customer.subscription.updated", late, created=failed_at + 60)
    assert (await deliver(paid)).is_success
    assert await world.account() == {"plan": "basic", "planUntil": None, "planAfter": None}


async def test_only_an_owner_gets_links(world: Shop) -> None:
    assert (await checkout(uid=None)).status_code == 401
    assert [(await checkout(uid=uid)).status_code for uid in ("ann", "vic", "stranger")] == [403] * 3
    assert (await call("accounts", "POST", "/v1/accounts/shop:portal", {}, uid="ann")).status_code == 403
    assert world.stripe.calls == []


@pytest.mark.parametrize(("plan", "status"), [("gold", 409), ("free", 409), (5, 400), (None, 400)])
async def test_what_is_not_for_sale_is_refused(world: Shop, plan: Any, status: int) -> None:
    answer = await checkout(plan)
    assert answer.status_code == status
    assert world.stripe.calls == []


async def test_a_second_subscription_is_refused_and_the_portal_needs_a_first(world: Shop) -> None:
    refused = await call("accounts", "POST", "/v1/accounts/shop:portal", {}, uid="olga")
    assert (refused.status_code, "nothing was bought" in refused.json()["error"]) == (409, True)
    await world.buy("basic")
    answer = await checkout("pro")
    assert (answer.status_code, "customer portal" in answer.json()["error"]) == (409, True)


async def test_one_account_has_one_customer_however_often_it_asks(world: Shop) -> None:
    for _ in range(3):
        assert (await checkout("pro")).status_code == 200
    assert len(world.stripe.customers) == 1
    assert len(world.stripe.sessions) == 3


async def test_when_stripe_does_not_answer_the_caller_may_try_again(world: Shop) -> None:
    billing: Any = world.service.system.billing
    billing._stripe._secret_key = "wrong"
    answer = await checkout("pro")
    assert (answer.status_code, "try again" in answer.json()["error"]) == (503, True)
    billing._stripe._secret_key = "sk_test_1"
    assert (await checkout("pro")).status_code == 200
    assert len(world.stripe.customers) == 1


# --- whose payment it is


async def test_what_an_event_says_of_accounts_counts_for_nothing(world: Shop) -> None:
    """Metadata and references can be written by a client; the customer is bound by us."""
    await world.service.account("other", plan="free")
    await member(world.service, "eve", "owner", account="other")
    await world.buy("basic")
    mine = next(iter(world.stripe.customers))
    forged = shapes.subscription(
        "sub_forged", "cus_of_eve", PRO, metadata={"accountId": "shop"}, client_reference_id="shop"
    )
    at = int(now().timestamp()) + 60
    answer = await deliver(shapes.event("evt_forged", "customer.subscription.created", forged, created=at))
    assert (answer.status_code, answer.text) == (200, "no news")
    named = shapes.subscription("sub_mine", mine, PRO, metadata={"accountId": "other"})
    assert (await deliver(shapes.event("evt_mine", "customer.subscription.created", named, created=at))).is_success
    assert (await world.account("other"))["plan"] == "free"
    assert (await world.account())["plan"] == "pro"


async def test_an_account_of_the_same_name_does_not_get_the_customer_of_a_removed_one(world: Shop) -> None:
    subscription = await world.buy("pro")
    administration = world.service.system.administration
    assert isinstance(await administration.remove("shop"), Refused), "it is being paid for"
    world.stripe.act(subscription, "cancel")
    await world.delivered()
    assert isinstance(await administration.remove("shop"), Removed)
    await world.service.account()
    await member(world.service, "mallory", "owner")
    assert (await call("accounts", "POST", "/v1/accounts/shop:portal", {}, uid="mallory")).status_code == 409
    old = world.stripe.subscriptions[subscription] | {"status": "active"}
    event = shapes.event("evt_x", "customer.subscription.updated", old, created=int(now().timestamp()) + 9)
    assert (await deliver(event)).text == "no news"
    assert (await world.account())["plan"] is None


# --- events


async def _bound(world: Shop, customer: str) -> None:
    writes = [
        create("accounts/shop/billing/state", {"customerKey": "key", "customer": customer}),
        create(f"billingCustomers/{customer}", {"accountId": "shop"}),
    ]
    await world.service.system.gateway.commit(writes)


@pytest.mark.parametrize("life", LIVES.values(), ids=LIVES.keys())
async def test_in_some_orders_and_twice_the_account_has_the_same_plan(world: Shop, life: Life) -> None:
    await _bound(world, "cus_1")
    gateway, random = world.service.system.gateway, Random(7)
    for _ in range(4):
        await gateway.commit([update("accounts/shop/billing/state", {"subscriptions": {}}, version=None)])
        await world.service.account(plan="free", planUntil=None, planAfter=None)
        order = [*life.events, *life.events]
        random.shuffle(order)
        answers = [(await deliver(event)).text for event in order]
        assert set(answers) <= {"done", "no news"}
        assert await world.account() == {"plan": life.plan, "planUntil": life.until, "planAfter": life.after}


async def test_events_of_one_second_are_settled_by_asking_stripe(world: Shop) -> None:
    await _bound(world, "cus_1")
    at = int(now().timestamp())
    begun = shapes.subscription("sub_1", "cus_1", PRO, status="incomplete", created=at)
    paid = shapes.subscription("sub_1", "cus_1", PRO, status="active", created=at)
    world.stripe.subscriptions["sub_1"] = paid
    # The newer one arrives first; the event's own order within a second is not known.
    await deliver(shapes.event("evt_2", "customer.subscription.updated", paid, created=at))
    await deliver(shapes.event("evt_1", "customer.subscription.created", begun, created=at))
    assert world.stripe.calls == ["GET /v1/subscriptions/sub_1"]
    assert (await world.account())["plan"] == "pro"
    await deliver(shapes.event("evt_1", "customer.subscription.created", begun, created=at))
    assert len(world.stripe.calls) == 1, "an event that was taken is not asked about again"


async def test_a_body_without_the_right_signature_is_refused_before_it_is_parsed(
    world: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _bound(world, "cus_1")
    parsed: list[object] = []
    monkeypatch.setattr("firestore_outbox.billing.billing.json", SimpleNamespace(loads=parsed.append))
    at = int(now().timestamp())
    event = shapes.event(
        "evt_1", "customer.subscription.created", shapes.subscription("sub_1", "cus_1", PRO), created=at
    )
    body = json.dumps(event).encode()
    right = shapes.signature(SECRET, body, at)
    wrong: list[tuple[bytes, str | None]] = [
        (body, None),
        (body, ""),
        (body, "garbage"),
        (body, f"t={at}"),
        (body, shapes.signature("another secret", body, at)),
        (body, shapes.signature(SECRET, body, at - 3600)),
        (body.replace(b"price_pro", b"price_xxx"), right),
        (json.dumps(event, indent=1).encode(), right),
        (body + b" ", right),
        (b"\xff\xfe", shapes.signature(SECRET, b"\xff\xfe", at)),
        (body, right.replace("v1=", "v0=")),
    ]
    for raw, signature in wrong:
        assert (await webhook(raw, signature)).status_code == 400
    assert parsed == []
    assert (await world.account())["plan"] is None


@pytest.mark.parametrize("body", [b"", b"[]", b"nothing", b'{"object": "event"}', b"[" * 100_000])
async def test_a_signed_body_that_is_no_event_is_refused(world: Shop, body: bytes) -> None:
    assert (await webhook(body, shapes.signature(SECRET, body, int(now().timestamp())))).status_code == 400


async def test_while_firestore_is_away_stripe_is_asked_to_deliver_again(world: Shop) -> None:
    await _bound(world, "cus_1")
    event = shapes.event(
        "evt_1", "customer.subscription.created", shapes.subscription("sub_1", "cus_1", BASIC), created=1_790_000_000
    )
    world.service.store.is_down = True
    assert (await deliver(event)).status_code == 503
    world.service.store.is_down = False
    assert (await deliver(event)).text == "done"
    assert (await deliver(event)).text == "no news"
    assert (await world.account())["plan"] == "basic"
