"""Account documents, and the caps that lanes share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from firestore_outbox.accounts.account import Account, AccountStatus, InvalidAccount, Route, parse_account, route_of
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.compare_and_set import AGAIN, TRIES, Again, Contended
from firestore_outbox.firestore.gateway import Conflict, Gateway, Snapshot
from firestore_outbox.firestore.queries import MOST_IN_A_QUERY, Find
from firestore_outbox.firestore.values import Version
from firestore_outbox.firestore.writes import DELETE, WriteOp, create, update
from firestore_outbox.lane.pacing import Block, Cap, pushed, reserve
from firestore_outbox.messages.outbox_document import error_fields
from firestore_outbox.providers.outcome import DeliveryError

MOST_OF_A_NUMBER = 300
"""Accounts read for one query of numbers. Gateways of several owners may all call their session `default`."""


class AccountStore:
    def __init__(self, gateway: Gateway, *, per_minute: float, concurrency: int) -> None:
        self._gateway = gateway
        self._per_minute = per_minute
        self._concurrency = concurrency

    async def read(self, account_id: str) -> Account | InvalidAccount:
        return (await self.read_dated(account_id))[0]

    async def read_dated(self, account_id: str) -> tuple[Account | InvalidAccount, datetime | None]:
        """With the time of its last change; None: it does not exist."""
        snapshot = await self._gateway.get(paths.account(account_id))
        return self.parsed(account_id, snapshot), None if snapshot is None else snapshot.updated

    def parsed(self, account_id: str, snapshot: Snapshot | None) -> Account | InvalidAccount:
        """The account of a document that was read with others."""
        if snapshot is None:
            return InvalidAccount(account_id=account_id, sentence=f"accounts/{account_id} does not exist.")
        return parse_account(account_id, snapshot.data, per_minute=self._per_minute, concurrency=self._concurrency)

    async def route(self, account_id: str) -> Route | None:
        """How webhooks find the account; None: it does not exist, or names no provider."""
        snapshot = await self._gateway.get(paths.account(account_id))
        return None if snapshot is None else route_of(account_id, snapshot.data)

    async def routes_of_numbers(self, numbers: Sequence[str]) -> list[Route]:
        """Every account that has one of these as its `providerNumber`."""
        found: list[Route] = []
        for start in range(0, len(numbers), MOST_IN_A_QUERY):
            some = list(numbers[start : start + MOST_IN_A_QUERY])
            query = Find(collection="accounts", where=(("providerNumber", "in", some),), limit=MOST_OF_A_NUMBER)
            snapshots = await self._gateway.find(query)
            found += [route for one in snapshots if (route := route_of(one.id, one.data)) is not None]
        return found

    async def park(self, account_id: str, error: DeliveryError, *, since: Version) -> None:
        """Until a person resumes it. Nothing happens if the account changed after `since`, the time of the claim: what
        was refused may be corrected by now. If not, the next attempt shows it."""
        snapshot = await self._gateway.get(paths.account(account_id))
        if snapshot is None or snapshot.version > since:
            return
        fields = {"status": AccountStatus.PARKED.value, "parkedBecause": error_fields(error)}
        await self._gateway.commit([update(paths.account(account_id), fields, version=snapshot.version)])

    async def pause(self, account_id: str, until: datetime | None = None) -> bool:
        """Pause the account until that time; None means until an operator resumes it. The end of an earlier pause
        does not count any more. False: there is no such account."""
        end = DELETE if until is None else until
        return await self._change(account_id, {"status": AccountStatus.PAUSED.value, "pausedUntil": end})

    async def resume(self, account_id: str) -> bool:
        """Whatever it was closed for. False: no such account."""
        fields = {"status": AccountStatus.ACTIVE.value, "pausedUntil": DELETE, "parkedBecause": DELETE}
        return await self._change(account_id, fields)

    async def _change(self, account_id: str, fields: Mapping[str, Any]) -> bool:
        result = await self._gateway.commit([update(paths.account(account_id), fields, version=None)])
        return not isinstance(result, Conflict)


@dataclass(frozen=True, slots=True)
class SharedLimit:
    """One of `limits/{name}`: what it allows, and a way to reserve a block of it."""

    gateway: Gateway
    name: str
    cap: Cap

    async def reserve(self, sends: int, now: datetime, mine: Block | None, *, longest: timedelta) -> Block | datetime:
        """A block; or, if it would lie further ahead than `longest`, nothing and the time to ask again.

        It begins no earlier than the cap's tolerance from now, which allows its use at once, and leaves time for the
        claim that comes before the call.
        """

        async def attempt() -> Block | datetime | Again:
            snapshot = await self.gateway.get(paths.limit(self.name))
            stored = None if snapshot is None else snapshot.data.get("tat")
            block = reserve(self.cap, stored, now=now + self.cap.tolerance, sends=sends, mine=mine)
            usable_at = block.tat - self.cap.tolerance
            if usable_at > now + longest:
                return usable_at - longest / 2
            written = await self.gateway.commit([self._moved(snapshot, block.until)])
            return AGAIN if isinstance(written, Conflict) else block

        try:
            return await self.gateway.compare_and_set(attempt)
        except Contended:
            return now + self.cap.interval * TRIES

    async def pause(self, until: datetime) -> None:
        """Nothing of this limit goes before then."""

        async def attempt() -> Again | None:
            snapshot = await self.gateway.get(paths.limit(self.name))
            stored = None if snapshot is None else snapshot.data.get("tat")
            tat = pushed(self.cap, stored, until=until)
            written = await self.gateway.commit([self._moved(snapshot, tat)])
            return AGAIN if isinstance(written, Conflict) else None

        with suppress(Contended):  # the next throttle pauses it again
            await self.gateway.compare_and_set(attempt)

    def _moved(self, before: Snapshot | None, tat: datetime) -> WriteOp:
        """With the cap that is in force: the settings say it, and here people can see it."""
        path, per_second = paths.limit(self.name), 1 / self.cap.interval.total_seconds()
        fields = {"tat": tat, "perSecond": float(f"{per_second:.4g}"), "burst": self.cap.burst}
        return create(path, fields) if before is None else update(path, fields, version=before.version)
