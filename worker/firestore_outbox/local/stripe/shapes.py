"""Objects and events as Stripe's API writes them, with the fields that billing reads and those around them."""

from __future__ import annotations

import hashlib
import hmac
from typing import Any

API_VERSION = "2026-10-28.acacia"
MONTH_SECONDS = 30 * 86_400


def subscription(
    subscription_id: str, customer: str, *prices: str, status: str = "active", created: int = 0, **more: Any
) -> dict[str, Any]:
    items = [
        {
            "id": f"si_{subscription_id}_{number}",
            "object": "subscription_item",
            "current_period_start": created,
            "current_period_end": created + MONTH_SECONDS,
            "price": {"id": price, "object": "price", "active": True, "type": "recurring"},
            "quantity": 1,
            "subscription": subscription_id,
        }
        for number, price in enumerate(prices)
    ]
    return {
        "id": subscription_id,
        "object": "subscription",
        "cancel_at_period_end": False,
        "canceled_at": None,
        "collection_method": "charge_automatically",
        "created": created,
        "customer": customer,
        "items": {"object": "list", "data": items, "has_more": False, "url": "/v1/subscription_items"},
        "livemode": False,
        "metadata": {},
        "status": status,
        **more,
    }


def invoice(invoice_id: str, customer: str, subscription_id: str, *, is_paid: bool) -> dict[str, Any]:
    return {
        "id": invoice_id,
        "object": "invoice",
        "attempt_count": 1,
        "billing_reason": "subscription_cycle",
        "customer": customer,
        "livemode": False,
        "metadata": {},
        "parent": {"type": "subscription_details", "subscription_details": {"subscription": subscription_id}},
        "status": "paid" if is_paid else "open",
    }


def checkout_session(session_id: str, customer: str, subscription_id: str | None, url: str) -> dict[str, Any]:
    return {
        "id": session_id,
        "object": "checkout.session",
        "client_reference_id": None,
        "customer": customer,
        "livemode": False,
        "metadata": {},
        "mode": "subscription",
        "payment_status": "unpaid" if subscription_id is None else "paid",
        "status": "open" if subscription_id is None else "complete",
        "subscription": subscription_id,
        "url": url,
    }


def event(event_id: str, kind: str, subject: dict[str, Any], *, created: int) -> dict[str, Any]:
    return {
        "id": event_id,
        "object": "event",
        "api_version": API_VERSION,
        "created": created,
        "data": {"object": subject},
        "livemode": False,
        "pending_webhooks": 1,
        "request": {"id": None, "idempotency_key": None},
        "type": kind,
    }


def signature(secret: str, body: bytes, at: int) -> str:
    """The header `Stripe-Signature` of a delivery at that time."""
    digest = hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={at},v1={digest}"
