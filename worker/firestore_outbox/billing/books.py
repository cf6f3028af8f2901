"""The documents of billing: which of Stripe's customers belongs to which account, and what Stripe reported.

We make the customer ourselves, for one account, and write the binding before the customer can pay. An event finds its
account by that binding alone: what an event says of accounts (metadata, a reference of the client) counts for nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from firestore_outbox.billing.standing import Ledger, Report, is_subscribed
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.compare_and_set import AGAIN, Again
from firestore_outbox.firestore.gateway import Conflict, Gateway, Snapshot
from firestore_outbox.firestore.writes import SERVER_TIME, WriteOp, create, update


@dataclass(frozen=True, slots=True, kw_only=True)
class Book:
    """`accounts/{accountId}/billing/state`, as it was read."""

    account_id: str
    snapshot: Snapshot
    customer: str | None
    """None: it is being made."""
    customer_key: str
    """Makes a repeated call to Stripe the same call."""
    ledger: Ledger

    def reported(self, ledger: Ledger) -> WriteOp:
        """With what was reported by now. It conflicts if another process was faster."""
        subscriptions = {name: [_fields(one) for one in reports] for name, reports in ledger.items()}
        fields = {"subscriptions": subscriptions, "subscribed": is_subscribed(ledger), "reportedAt": SERVER_TIME}
        return update(self.snapshot.path, fields, version=self.snapshot.version)


class Books:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def of_account(self, account_id: str) -> Book | None:
        """None: nothing was ever bought."""
        found = await self._gateway.get(paths.billing(account_id))
        return None if found is None else _book(account_id, found)

    async def of_customer(self, customer: str) -> Book | None:
        """None: not a customer that we made."""
        if "/" in customer:
            return None
        binding = await self._gateway.get(paths.customer(customer))
        account_id = None if binding is None else binding.data.get("accountId")
        book = await self.of_account(account_id) if isinstance(account_id, str) else None
        return book if book is not None and book.customer == customer else None

    async def begun(self, account_id: str, new_key: str) -> Book:
        """The account's book; a new one, if it had none."""

        async def attempt() -> Book | Again:
            if (book := await self.of_account(account_id)) is not None:
                return book
            fields = {"customerKey": new_key, "createdAt": SERVER_TIME}
            await self._gateway.commit([create(paths.billing(account_id), fields)])
            return AGAIN

        return await self._gateway.compare_and_set(attempt)

    async def bind(self, account_id: str, customer: str) -> str:
        """Give the customer to the account. Returns the customer that it has: another process may have been faster."""

        async def attempt() -> str | Again:
            book = await self.of_account(account_id)
            if book is None:
                return AGAIN
            if book.customer is not None:
                return book.customer
            writes = [
                update(book.snapshot.path, {"customer": customer}, version=book.snapshot.version),
                create(paths.customer(customer), {"accountId": account_id, "createdAt": SERVER_TIME}),
            ]
            return AGAIN if isinstance(await self._gateway.commit(writes), Conflict) else customer

        return await self._gateway.compare_and_set(attempt)


def _book(account_id: str, found: Snapshot) -> Book:
    customer, stored = found.data.get("customer"), found.data.get("subscriptions") or {}
    return Book(
        account_id=account_id,
        snapshot=found,
        customer=customer if isinstance(customer, str) else None,
        customer_key=str(found.data["customerKey"]),
        ledger={name: tuple(_report(name, one) for one in reports) for name, reports in stored.items() if reports},
    )


def _report(subscription_id: str, fields: Mapping[str, Any]) -> Report:
    return Report(
        event_id=fields["eventId"],
        subscription_id=subscription_id,
        at=fields["at"],
        asked=fields.get("asked", 0),
        status=fields["status"],
        prices=tuple(fields["prices"]),
    )


def _fields(report: Report) -> dict[str, Any]:
    return {
        "eventId": report.event_id,
        "at": report.at,
        "asked": report.asked,
        "status": report.status,
        "prices": list(report.prices),
    }
