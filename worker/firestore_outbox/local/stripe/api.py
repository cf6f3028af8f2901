"""The calls of Stripe's API that billing makes, two pages in the place of Stripe's, and the events that follow.

Served beside the provider simulator. Everything is in memory. On the page of a checkout a person pays with one button;
the page of the portal has a button for each thing that happens to a subscription: cancelled, a payment failed, paid.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from html import escape
from typing import Any
from urllib.parse import parse_qsl

import httpx
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from firestore_outbox.clock import Clock
from firestore_outbox.local.stripe import shapes

DELIVERIES = 5
"""Of one event, while the webhook does not answer with a 2xx. Stripe itself tries for three days."""
DELIVERY_SECONDS = 0.5
"""Between two of them."""
ACTIONS = {
    "cancel": ("customer.subscription.deleted", "canceled"),
    "fail": ("customer.subscription.updated", "past_due"),
    "pay": ("customer.subscription.updated", "active"),
}
"""What a person can do on the page of the portal -> the event, and the status of the subscription from then on."""

Post = Callable[[str, bytes, dict[str, str]], Awaitable[int]]


async def over_http(url: str, body: bytes, headers: dict[str, str]) -> int:
    async with httpx.AsyncClient(trust_env=False, timeout=30) as client:
        return (await client.post(url, content=body, headers=headers)).status_code


class StripeStandIn:
    def __init__(self, webhook: str | None, secret: str, clock: Clock, post: Post = over_http) -> None:
        """`webhook` is where events go; None: nowhere."""
        self._webhook, self._secret, self._clock, self._post = webhook, secret, clock, post
        self._numbers = 0
        self._repeated: dict[str, dict[str, Any]] = {}
        """Idempotency key -> the answer that was given."""
        self._prices: dict[str, str] = {}
        """Of open checkouts."""
        self.customers: dict[str, dict[str, Any]] = {}
        self.sessions: dict[str, dict[str, Any]] = {}
        self.subscriptions: dict[str, dict[str, Any]] = {}
        self.events: list[dict[str, Any]] = []
        self.calls: list[str] = []
        """Method and path of each call of the API."""
        self._deliveries: set[asyncio.Task[None]] = set()

    def routes(self) -> list[Route]:
        return [
            Route("/v1/customers", self._customer, methods=["POST"]),
            Route("/v1/checkout/sessions", self._checkout, methods=["POST"]),
            Route("/v1/billing_portal/sessions", self._portal, methods=["POST"]),
            Route("/v1/subscriptions/{name}", self._subscription),
            Route("/stripe/checkout/{name}", self._page_of_checkout, methods=["GET", "POST"]),
            Route("/stripe/portal/{name}", self._page_of_portal, methods=["GET", "POST"]),
            Route("/stripe/done", self._done),
        ]

    # --- the API

    async def _customer(self, request: Request) -> Response:
        if (refused := self._called(request)) is not None:
            return refused
        key = request.headers.get("idempotency-key", "")
        if key not in self._repeated:
            fields = await _form(request)
            metadata = {name[9:-1]: value for name, value in fields.items() if name.startswith("metadata[")}
            name = self._new_id("cus")
            self.customers[name] = {"id": name, "object": "customer", "livemode": False, "metadata": metadata}
            self._repeated[key] = self.customers[name]
        return JSONResponse(self._repeated[key])

    async def _checkout(self, request: Request) -> Response:
        if (refused := self._called(request)) is not None:
            return refused
        fields = await _form(request)
        customer, price = fields.get("customer", ""), fields.get("line_items[0][price]", "")
        if customer not in self.customers:
            return _refused(400, "resource_missing", f"No such customer: '{customer}'")
        name = self._new_id("cs_test")
        url = f"{request.base_url}stripe/checkout/{name}"
        self.sessions[name] = {**shapes.checkout_session(name, customer, None, url), **_urls(fields)}
        self._prices[name] = price
        return JSONResponse(self.sessions[name])

    async def _portal(self, request: Request) -> Response:
        if (refused := self._called(request)) is not None:
            return refused
        fields = await _form(request)
        customer = fields.get("customer", "")
        if customer not in self.customers:
            return _refused(400, "resource_missing", f"No such customer: '{customer}'")
        url = f"{request.base_url}stripe/portal/{customer}"
        session = {"id": self._new_id("bps"), "object": "billing_portal.session", "customer": customer, "url": url}
        return JSONResponse({**session, **_urls(fields)})

    async def _subscription(self, request: Request) -> Response:
        if (refused := self._called(request)) is not None:
            return refused
        found = self.subscriptions.get(request.path_params["name"])
        return JSONResponse(found) if found else _refused(404, "resource_missing", "No such subscription")

    def _called(self, request: Request) -> Response | None:
        self.calls.append(f"{request.method} {request.url.path}")
        if request.headers.get("authorization", "").startswith(("Bearer sk_", "Bearer rk_")):
            return None
        return _refused(401, "api_key_invalid", "Invalid API Key provided")

    # --- the pages

    async def _page_of_checkout(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in self.sessions:
            return HTMLResponse(_page("There is no such checkout."), status_code=404)
        session = self.sessions[name]
        if request.method == "POST":
            self.pay(name)
            return RedirectResponse(session.get("success_url") or "/stripe/done", status_code=303)
        return HTMLResponse(_page(f"A stand-in for Stripe: buy {self._prices[name]}?", "pay"))

    async def _page_of_portal(self, request: Request) -> Response:
        customer = request.path_params["name"]
        mine = [name for name, one in self.subscriptions.items() if one["customer"] == customer]
        if request.method == "POST":
            action = (await _form(request)).get("action", "")
            for name in mine if action in ACTIONS else ():
                self.act(name, action)
            return RedirectResponse(f"/stripe/portal/{customer}", status_code=303)
        states = ", ".join(f"{name} is {self.subscriptions[name]['status']}" for name in mine)
        return HTMLResponse(_page(f"A stand-in for Stripe: {states or 'no subscription'}.", *ACTIONS))

    async def _done(self, request: Request) -> Response:
        return HTMLResponse(_page("Done. You can close this page."))

    # --- what happens

    def pay(self, session_id: str) -> str:
        """The customer pays an open checkout. Returns the subscription."""
        session = self.sessions[session_id]
        if (known := session["subscription"]) is not None:
            return str(known)
        customer, name = session["customer"], self._new_id("sub")
        made = shapes.subscription(name, customer, self._prices[session_id], created=self._now())
        self.subscriptions[name] = made
        session |= {"subscription": name, "status": "complete", "payment_status": "paid"}
        self.emit("customer.subscription.created", made)
        self.emit("invoice.paid", shapes.invoice(self._new_id("in"), customer, name, is_paid=True))
        self.emit("checkout.session.completed", session)
        return name

    def act(self, subscription_id: str, action: str) -> None:
        kind, status = ACTIONS[action]
        subject = self.subscriptions[subscription_id]
        subject["status"] = status
        if action != "cancel":
            paid = shapes.invoice(self._new_id("in"), subject["customer"], subscription_id, is_paid=action == "pay")
            self.emit("invoice.paid" if action == "pay" else "invoice.payment_failed", paid)
        self.emit(kind, subject)

    def emit(self, kind: str, subject: dict[str, Any]) -> None:
        copy = json.loads(json.dumps(subject))
        self.events.append(shapes.event(self._new_id("evt"), kind, copy, created=self._now()))
        if self._webhook is not None:
            task = asyncio.get_running_loop().create_task(self._deliver(self._webhook, self.events[-1]))
            self._deliveries.add(task)
            task.add_done_callback(self._deliveries.discard)

    async def _deliver(self, webhook: str, event: dict[str, Any]) -> None:
        body = json.dumps(event).encode()
        for _ in range(DELIVERIES):
            headers = {"content-type": "application/json"}
            headers["stripe-signature"] = shapes.signature(self._secret, body, self._now())
            try:
                if 200 <= await self._post(webhook, body, headers) < 300:
                    return
            except httpx.HTTPError:
                pass
            await asyncio.sleep(DELIVERY_SECONDS)

    def _new_id(self, prefix: str) -> str:
        self._numbers += 1
        return f"{prefix}_{self._numbers:06d}"

    def _now(self) -> int:
        return int(self._clock().timestamp())


async def _form(request: Request) -> dict[str, str]:
    return dict(parse_qsl((await request.body()).decode()))


def _urls(fields: dict[str, str]) -> dict[str, str]:
    return {name: fields[name] for name in ("success_url", "cancel_url", "return_url") if name in fields}


def _page(sentence: str, *actions: str) -> str:
    buttons = "".join(f'<button name="action" value="{action}">{action}</button>' for action in actions)
    head = '<!doctype html><meta charset="utf-8"><title>Stripe</title>'
    return f'{head}<p>{escape(sentence)}</p><form method="post">{buttons}</form>'


def _refused(status: int, code: str, message: str) -> Response:
    error = {"type": "invalid_request_error", "code": code, "message": message}
    return JSONResponse({"error": error}, status_code=status)
