"""Whether runs kept to what their recipients want: told by the documents of their targets and the lists of addresses.

    opted out    a target that waits is not for an address on the list, and none was sent long after the address got
                 there
    hours        nothing of a run was sent outside its recipient's hours

Only targets that were tried once at most tell of opt-outs: what an operator put back may go. Slack for clocks and for
the longest calls is taken off, so what is found is certain.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from datetime import datetime, timedelta

from firestore_outbox.accounts.account import Account
from firestore_outbox.accounts.store import AccountStore
from firestore_outbox.accounts.window import are_open
from firestore_outbox.consent.suppressions import suppressed_collection
from firestore_outbox.consent.words import key_of
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.gateway import Gateway, Snapshot
from firestore_outbox.messages.model import OutboxMessage
from firestore_outbox.messages.states import OutboxStatus
from firestore_outbox.operations.audit.finding import Finding
from firestore_outbox.operations.audit.history import CLOCKS, CREDIBLE, LONGEST_CALL
from firestore_outbox.operations.audit.pages import pages

TAKES_EFFECT_WITHIN = timedelta(seconds=20)
LATE = timedelta(minutes=3)


class Consent:
    def __init__(self) -> None:
        self._targets: defaultdict[str, list[tuple[str, str, datetime | None]]] = defaultdict(list)
        """accountId -> (the address's key, requestId, when it went at the earliest; None: it waits)."""

    def add(self, snapshot: Snapshot, message: OutboxMessage) -> Iterator[Finding]:
        if message.run_id is None:
            return
        sent_at = message.sent_at if message.status is OutboxStatus.SENT else None
        began = None if sent_at is None else sent_at - LONGEST_CALL * len(message.parts) - CLOCKS
        if began is not None and sent_at is not None and abs(snapshot.updated - sent_at) <= CREDIBLE:
            ends = (began, sent_at + CLOCKS)
            if message.hours and not any(are_open(message.hours, at) for at in ends):
                zones = ", ".join(window.zone.key for window in message.hours)
                sentence = f"sent at {sent_at:%Y-%m-%d %H:%M:%S} UTC, outside the recipient's hours in {zones}"
                yield Finding("hours", snapshot.path, sentence)
        waits = message.status is OutboxStatus.QUEUED
        if (waits or began is not None) and message.attempts <= 1 and message.series == 0:
            self._targets[message.account_id].append((key_of(message.to), message.request_id, began))

    async def opted_out(self, gateway: Gateway, accounts: AccountStore, now: datetime) -> AsyncIterator[Finding]:
        """Reads the list of each account that has one, and once more each target that should not be there."""
        for account_id, targets in self._targets.items():
            account = await accounts.read(account_id)
            if not isinstance(account, Account) or not account.is_suppressing:
                continue
            since = await _listed_since(gateway, account_id)
            for key, request_id, began in targets:
                at = since.get(key)
                if at is None:
                    continue
                if began is None and at + LATE < now and await _still_waits(gateway, request_id):
                    sentence = f"waits, and its recipient opted out at {at:%Y-%m-%d %H:%M:%S} UTC"
                    yield Finding("opted out", paths.outbox(request_id), sentence)
                if began is not None and began > at + TAKES_EFFECT_WITHIN:
                    sentence = f"sent after {began:%Y-%m-%d %H:%M:%S} UTC, and its recipient opted out at {at:%H:%M:%S}"
                    yield Finding("opted out", paths.outbox(request_id), sentence)


async def _listed_since(gateway: Gateway, account_id: str) -> dict[str, datetime]:
    """An address's key -> since when."""
    listed = [one async for page in pages(gateway, suppressed_collection(account_id)) for one in page]
    return {str(one.data.get("key")): one.data.get("at", one.created) for one in listed}


async def _still_waits(gateway: Gateway, request_id: str) -> bool:
    found = await gateway.get(paths.outbox(request_id))
    return found is not None and found.data.get("status") == OutboxStatus.QUEUED.value
