"""Calls to Stripe, and its signatures, by Stripe's own library.

The library is imported by the first call: most processes never make one, and its import takes longer than a command.
It comes with the extra `billing`. A call opens a client of its own, since calls are rare: one for each payment.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from firestore_outbox.errors import Unavailable

ANSWER_SECONDS = 10.0
RETRIES = 1
TOLERANCE_SECONDS = 300
"""How old a signature may be. Stripe signs each delivery anew, so a retry of an old event has a fresh one."""


class StripeUnavailable(Unavailable):
    """Stripe does not answer, or refuses this process. What it wrote is not quoted: it may name keys and people."""


class StripeCalls:
    def __init__(self, secret_key: str, emulator_host: str = "") -> None:
        """`emulator_host` is HOST:PORT of a stand-in; empty means Stripe."""
        self._secret_key = secret_key
        self._bases = {"api": f"http://{emulator_host}"} if emulator_host else {}

    async def new_customer(self, account_id: str, key: str) -> str:
        """The id of a new customer; of the same one, if the key was used before. The metadata is for people."""
        params = {"metadata": {"accountId": account_id}, "description": f"account {account_id}"}
        async with self._client() as client:
            made = await client.v1.customers.create_async(params, {"idempotency_key": key})
        return str(made.id)

    async def checkout(self, customer: str, price: str, return_url: str) -> str:
        """The address of a page where the customer pays for a new subscription."""
        params = {
            "mode": "subscription",
            "customer": customer,
            "line_items": [{"price": price, "quantity": 1}],
            "success_url": return_url,
            "cancel_url": return_url,
        }
        async with self._client() as client:
            return str((await client.v1.checkout.sessions.create_async(params)).url)

    async def portal(self, customer: str, return_url: str) -> str:
        """The address of a page where the customer changes or ends a subscription."""
        params = {"customer": customer, "return_url": return_url}
        async with self._client() as client:
            return str((await client.v1.billing_portal.sessions.create_async(params)).url)

    async def subscription(self, subscription_id: str) -> Mapping[str, Any]:
        """As it is now."""
        async with self._client() as client:
            found: Mapping[str, Any] = (await client.v1.subscriptions.retrieve_async(subscription_id)).to_dict()
        return found

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[Any]:
        stripe = _library()
        http = stripe.HTTPXClient(timeout=ANSWER_SECONDS)
        try:
            yield stripe.StripeClient(
                self._secret_key, base_addresses=self._bases, http_client=http, max_network_retries=RETRIES
            )
        except stripe.StripeError as error:
            reason = f"{type(error).__name__}, status {error.http_status}, code {error.code}"
            raise StripeUnavailable(f"Stripe does not do what was asked ({reason})") from None
        finally:
            await http.close_async()


def is_genuine(body: bytes, signature: str | None, secret: str) -> bool:
    """Whether Stripe signed this body, byte by byte, within the last five minutes."""
    stripe = _library()
    try:
        stripe.WebhookSignature.verify_header(body, signature, secret, TOLERANCE_SECONDS)
    except (stripe.SignatureVerificationError, ValueError):  # ValueError: not UTF-8
        return False
    return True


def _library() -> Any:
    try:
        import stripe
    except ImportError:
        raise StripeUnavailable("the package stripe is missing: pip install 'firestore-outbox[billing]'") from None
    stripe.enable_telemetry = False
    return stripe
