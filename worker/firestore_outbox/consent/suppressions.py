"""The account's list of addresses that get nothing of a run: `accounts/{accountId}/suppressed/{address}`.

Nothing is read at a claim. An address that is added has its queued targets skipped at once; a run that makes its
targets asks the list, and asks once more, when it has made them all, for addresses that were added meanwhile. An
account that never had such an address says so by the absence of `suppressing`, and its runs do not ask at all.

    the address is written, then its targets are looked for
    a run looks for addresses, writes targets, and at the end looks for addresses that were written since it began

So whichever comes second sees the first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from typing import Any

from firestore_outbox import log
from firestore_outbox.clock import Clock
from firestore_outbox.consent.words import forms_of, key_of
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.gateway import Conflict, Gateway, Snapshot
from firestore_outbox.firestore.queries import MOST_IN_A_QUERY, Find
from firestore_outbox.firestore.writes import SERVER_TIME, delete, update, upsert
from firestore_outbox.messages.ids import is_document_id, thread_id_of
from firestore_outbox.messages.model import OutboxMessage
from firestore_outbox.messages.outbox_document import LARGEST_BYTES, Stored, read
from firestore_outbox.messages.states import OutboxStatus
from firestore_outbox.messages.store import MessageStore
from firestore_outbox.providers.outcome import DeliveryError, ErrorCode

FLAG = "suppressing"
"""On the account: it has, or had, suppressed addresses."""
OPEN = (OutboxStatus.QUEUED, OutboxStatus.SENDING, OutboxStatus.UNCERTAIN)
MOST = 200
"""Open messages of one address that are looked at in one step."""
TRIES = 5


class Source:
    """Why an address is on the list."""

    ASKED = "asked"
    """The person wrote one of the words."""
    API = "api"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True, kw_only=True)
class Suppressed:
    address: str
    because: str
    at: datetime
    by: str | None


class Suppressions:
    def __init__(self, gateway: Gateway, messages: MessageStore, clock: Clock) -> None:
        self._gateway = gateway
        self._messages = messages
        self._clock = clock

    async def add(self, account_id: str, address: str, because: str, by: str | None = None) -> int | None:
        """The number of targets that were skipped; None: there is no such account."""
        fields: dict[str, Any] = {"address": address, "key": key_of(address), "because": because, "at": SERVER_TIME}
        if by is not None:
            fields["by"] = by
        flag = update(paths.account(account_id), {FLAG: True}, version=None)
        if isinstance(await self._gateway.commit([flag, upsert(_path(account_id, address), fields)]), Conflict):
            return None
        skipped = await self.skip_open(account_id, address)
        log.opted_out(account_id, because, skipped)
        return skipped

    async def remove(self, account_id: str, address: str) -> bool:
        """False: it was not on the list. What was skipped stays skipped."""
        query = Find(collection=suppressed_collection(account_id), where=(("key", "==", key_of(address)),))
        found = await self._gateway.find(query)
        if found:
            await self._gateway.commit([delete(one.path) for one in found])
        return bool(found)

    async def page(self, account_id: str, limit: int, after: str | None = None) -> list[Suppressed]:
        """In the order of their names; `after` is the address to go on behind."""
        query = Find(
            collection=suppressed_collection(account_id),
            order_by=("__name__",),
            limit=limit,
            start_after=None if after is None else (_path(account_id, after),),
        )
        return [_suppressed(one) for one in await self._gateway.find(query)]

    async def among(self, account_id: str, addresses: Collection[str]) -> frozenset[str]:
        """Those of the addresses that are on the list. One read for thirty of them that are not."""
        keys = {address: key_of(address) for address in addresses}
        wanted = list(dict.fromkeys(keys.values()))
        pages = [wanted[start : start + MOST_IN_A_QUERY] for start in range(0, len(wanted), MOST_IN_A_QUERY)]
        found = await asyncio.gather(*(self._in(account_id, page) for page in pages))
        listed = {key for page in found for key in page}
        return frozenset(address for address, key in keys.items() if key in listed)

    async def _in(self, account_id: str, keys: Sequence[str]) -> Iterable[str]:
        query = Find(collection=suppressed_collection(account_id), where=(("key", "in", list(keys)),))
        return [str(one.data["key"]) for one in await self._gateway.find(query)]

    async def skip_added_since(self, account_id: str, at: datetime) -> None:
        """For a run that began to make its targets then: skip what it made for addresses that came later."""
        query = Find(collection=suppressed_collection(account_id), where=(("at", ">=", at),), order_by=("at",))
        for one in await self._gateway.find(query):
            await self.skip_open(account_id, str(one.data["address"]))

    async def skip_open(self, account_id: str, address: str) -> int:
        """The address's queued targets are skipped, and what is in flight is not tried again. What people write to it
        in person goes on."""
        return sum([await self._skip(account_id, form) for form in forms_of(address)])

    async def _skip(self, account_id: str, address: str) -> int:
        skipped = 0
        for _ in range(TRIES):
            found = [stored for stored in await self._open(account_id, address) if _is_target(stored)]
            changes = [(stored, changed) for stored in found if (changed := self._kept_out(stored.valid)) is not None]
            if not changes:
                break
            await self._messages.move(changes)
            skipped += sum(new.status is OutboxStatus.SKIPPED for _, new in changes)
        return skipped

    async def _open(self, account_id: str, address: str) -> list[Stored]:
        query = Find(
            collection=paths.OUTBOX,
            where=(
                ("accountId", "==", account_id),
                ("threadId", "==", thread_id_of(account_id, address)),
                ("status", "in", [status.value for status in OPEN]),
            ),
            limit=MOST,
            hollow_above=LARGEST_BYTES,
        )
        return [read(snapshot) for snapshot in await self._gateway.find(query)]

    def _kept_out(self, message: OutboxMessage) -> OutboxMessage | None:
        """None: nothing is left to change."""
        if message.status is OutboxStatus.QUEUED:
            return message.skipped(opted_out(self._clock()))
        return None if message.cancel_requested else replace(message, cancel_requested=True)


def opted_out(at: datetime) -> DeliveryError:
    sentence = "the recipient asked for no more messages of this kind"
    return DeliveryError(code=ErrorCode.OPTED_OUT, message=sentence, retryable=False, at=at)


def _is_target(stored: Stored) -> bool:
    return isinstance(stored.message, OutboxMessage) and stored.message.run_id is not None


def suppressed_collection(account_id: str) -> str:
    return f"{paths.account(account_id)}/suppressed"


def _path(account_id: str, address: str) -> str:
    name = address if is_document_id(address) else sha256(address.encode()).hexdigest()
    return f"{suppressed_collection(account_id)}/{name}"


def _suppressed(snapshot: Snapshot) -> Suppressed:
    data = snapshot.data
    return Suppressed(
        address=data["address"], because=data.get("because", ""), at=data.get("at", snapshot.created), by=data.get("by")
    )
