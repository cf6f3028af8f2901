"""The functions of this process with plans for sale, beside a stand-in for Stripe that answers over a socket.

The stand-in delivers its events to the real function; the calls that billing makes of Stripe are those of its library.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import functions_framework.aio
import httpx
import pytest

import firestore_outbox.web.functions
from firestore_outbox.local.simulators.simulator import ProviderSimulator
from firestore_outbox.local.stripe import shapes
from firestore_outbox.local.stripe.api import StripeStandIn
from tests.billing.events import BASIC, PRO
from tests.patience import PATIENCE_SECONDS
from tests.web.functions.calling import call, prepared
from tests.web.service import support
from tests.web.service.support import Certificates, Service, now

SECRET = "whsec_test"
PLANS = "free=total:3 basic=day:100 pro="


def post_of(body: bytes, signature: str | None) -> dict[str, Any]:
    return {"content": body, "headers": {} if signature is None else {"stripe-signature": signature}}


async def webhook(body: bytes, signature: str | None) -> httpx.Response:
    """Through functions-framework, as Stripe calls it."""
    app = functions_framework.aio.create_asgi_app_from_module(
        "billing_webhook", "main.py", None, firestore_outbox.web.functions, None
    )
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://functions") as client:
        return await client.post("/", **post_of(body, signature))


async def deliver(event: Mapping[str, Any]) -> httpx.Response:
    body = json.dumps(event).encode()
    return await webhook(body, shapes.signature(SECRET, body, int(now().timestamp())))


@dataclass
class Shop:
    service: Service
    stripe: StripeStandIn
    taken: list[int] = field(default_factory=list)
    """The function's answers to the events of the stand-in."""

    async def buy(self, plan: str) -> str:
        """An owner asks for a link and pays. Returns the subscription."""
        answer = await call("accounts", "POST", "/v1/accounts/shop:checkout", {"plan": plan}, uid="olga")
        assert answer.status_code == 200, answer.text
        subscription = self.stripe.pay(answer.json()["url"].rpartition("/")[2])
        await self.delivered()
        return subscription

    async def delivered(self) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(self.taken) < len(self.stripe.events):  # noqa: ASYNC110 - deliveries are tasks of the stand-in
                await asyncio.sleep(0.005)

    async def account(self, account_id: str = "shop") -> dict[str, Any]:
        found = await self.service.system.gateway.get(f"accounts/{account_id}")
        assert found is not None
        return {name: found.data.get(name) for name in ("plan", "planUntil", "planAfter")}


@asynccontextmanager
async def shop(served: Certificates, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Shop]:
    taken: list[int] = []

    async def post(url: str, body: bytes, headers: dict[str, str]) -> int:
        status = (await webhook(body, headers["stripe-signature"])).status_code
        taken.append(status)
        return status

    stripe = StripeStandIn("the function", SECRET, now, post)
    async with ProviderSimulator(others=stripe.routes()) as simulator:
        await simulator.start()
        settings: dict[str, Any] = {
            "plans": PLANS,
            "billing_prices": f"basic={BASIC} pro={PRO}",
            "billing_return_url": "https://app.example/billing",
            "stripe_secret_key": "sk_test_1",
            "stripe_webhook_secret": SECRET,
            "stripe_emulator_host": simulator.url.partition("://")[2],
        }
        async with support.service(served, **settings) as service:
            await prepared(service, monkeypatch)
            yield Shop(service, stripe, taken)
