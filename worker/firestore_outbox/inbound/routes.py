"""Which account an event of a webhook belongs to.

A webhook comes to the path of one account, and that account's secret has signed it. Where the provider's events name
the number that received them (one WhatsApp app, or one WAHA gateway, serves many numbers over one address), each event
goes to the account of its number:

    the number is the path account's own            the path account
    one other account has it as `providerNumber`    that account, if its secret, too, signed this body
    none or several have it, or none is named       no account: dropped, logged and counted

The second check of the signature keeps accounts apart that share a number's name by accident, or by intent: a tenant
who signs with a secret of their own reaches no account with another secret.

An account from before `providerNumber` has the number that its credentials name, at its own path only.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Generic, TypeVar

from firestore_outbox.accounts.account import Route
from firestore_outbox.accounts.store import AccountStore
from firestore_outbox.clock import Clock
from firestore_outbox.errors import StoreUnavailable
from firestore_outbox.providers.protocol import Unrecognised, WebhookEvent

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

FRESH = timedelta(seconds=60)
"""How long a known route is used without another look: a changed `providerNumber` or provider counts after this."""
FRESH_UNKNOWN = timedelta(seconds=10)
"""The same for an account or number that was not found. Short: what comes meanwhile for a new account is lost."""
LOOK_WITHIN = timedelta(seconds=2)
"""For a second look at an account that is known: the provider waits, and the old route still serves."""
MOST_KNOWN, MOST_UNKNOWN = 10_000, 1_000
"""Entries kept. Unknown names have a place of their own, so that invented ones push no known account out."""


@dataclass(frozen=True, slots=True)
class Routed:
    """The events of a body, by the account they belong to."""

    accounts: Mapping[str, Sequence[WebhookEvent]]
    dropped: Counter[str]
    """Events that belong to no account here, by number; the empty number: the event names none."""


def foreign_numbers(events: Iterable[WebhookEvent], own: str | None) -> list[str]:
    """The numbers in it that are not the path account's own, each once."""
    named = (event.number for event in events if not isinstance(event, Unrecognised))
    return list(dict.fromkeys(number for number in named if number is not None and number != own))


def routed(
    events: Iterable[WebhookEvent], *, path_account: str, own: str | None, elsewhere: Mapping[str, str]
) -> Routed:
    """`elsewhere` is number -> accountId for what `foreign_numbers` named; a number that is not in it is unknown.

    An event that was not understood is only counted, so it stays with the path account.
    """
    accounts: dict[str, list[WebhookEvent]] = {}
    dropped: Counter[str] = Counter()
    for event in events:
        if isinstance(event, Unrecognised) or (event.number is not None and event.number == own):
            accounts.setdefault(path_account, []).append(event)
        elif event.number is not None and event.number in elsewhere:
            accounts.setdefault(elsewhere[event.number], []).append(event)
        else:
            dropped[event.number or ""] += 1
    return Routed(accounts, dropped)


class Routes:
    """Routes as Firestore has them, kept for a while."""

    def __init__(self, accounts: AccountStore, clock: Clock) -> None:
        self._accounts = accounts
        self._clock = clock
        self._known: _Kept[str, Route] = _Kept(MOST_KNOWN)
        self._unknown: _Kept[str, None] = _Kept(MOST_UNKNOWN)
        self._numbers: _Kept[tuple[str, str], tuple[str, ...]] = _Kept(MOST_KNOWN)

    async def of_account(self, account_id: str) -> Route | None:
        """None: there is no such account. While Firestore does not answer, the last known route serves."""
        now = self._clock()
        if (known := self._known.get(account_id, now - FRESH)) is not None:
            return known
        if self._unknown.has(account_id, now - FRESH_UNKNOWN):
            return None
        stale = self._known.get(account_id, None)
        try:
            async with asyncio.timeout(None if stale is None else LOOK_WITHIN.total_seconds()):
                route = await self._accounts.route(account_id)
        except (StoreUnavailable, TimeoutError):
            if stale is None:
                raise
            return stale
        if route is None:
            self._known.drop(account_id)
            self._unknown.keep(account_id, None, now)
        else:
            self._known.keep(account_id, route, now)
        return route

    async def of_numbers(self, provider: str, numbers: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """The accounts of this provider that have each number; an empty tuple for an unknown one."""
        now = self._clock()
        found: dict[str, tuple[str, ...]] = {}
        for number in numbers:
            known = self._numbers.get((provider, number), now - FRESH)
            if known or (known is not None and self._numbers.has((provider, number), now - FRESH_UNKNOWN)):
                found[number] = known
        asked = [number for number in numbers if number not in found]
        routes = [route for route in await self._accounts.routes_of_numbers(asked) if route.provider == provider]
        for route in routes:  # the same documents: the key of a sealed account comes without another read
            self._known.keep(route.account_id, route, now)
        for number in asked:
            found[number] = tuple(route.account_id for route in routes if route.number == number)
            self._numbers.keep((provider, number), found[number], now)
        return found


class _Kept(Generic[K, V]):
    """The entries that were stored last, up to a number of them, each with its time."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._entries: OrderedDict[K, tuple[V, datetime]] = OrderedDict()

    def get(self, key: K, since: datetime | None) -> V | None:
        """None: not there, or older than `since`."""
        entry = self._entries.get(key)
        return None if entry is None or (since is not None and entry[1] < since) else entry[0]

    def has(self, key: K, since: datetime) -> bool:
        entry = self._entries.get(key)
        return entry is not None and entry[1] >= since

    def keep(self, key: K, value: V, at: datetime) -> None:
        self._entries[key] = (value, at)
        self._entries.move_to_end(key)
        if len(self._entries) > self._most:
            self._entries.popitem(last=False)

    def drop(self, key: K) -> None:
        self._entries.pop(key, None)
