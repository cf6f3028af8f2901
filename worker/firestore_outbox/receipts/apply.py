"""A receipt, applied: normally one read and one write, and never a step back.

A receipt that ends a doubt also frees the thread that waited for it.
"""

from __future__ import annotations

from enum import StrEnum

from firestore_outbox import log
from firestore_outbox.errors import Unwritable
from firestore_outbox.firestore.compare_and_set import AGAIN, Again
from firestore_outbox.firestore.gateway import Conflict
from firestore_outbox.messages.message_document import StoredMessage
from firestore_outbox.messages.model import OutboxMessage
from firestore_outbox.messages.outbox_document import Stored
from firestore_outbox.messages.shown_store import ShownStore
from firestore_outbox.messages.states import OutboxStatus
from firestore_outbox.messages.store import MessageStore
from firestore_outbox.providers.protocol import PartReceipt
from firestore_outbox.receipts.release_thread import ReleaseThread
from firestore_outbox.receipts.rules import Ignored, apply, needs_outbox


class Applied(StrEnum):
    ADVANCED = "advanced"
    IGNORED = "ignored"
    UNMATCHED = "unmatched"
    """No message of ours has this id, or not yet: worth another look later."""


class Receipts:
    def __init__(self, messages: MessageStore, shown: ShownStore, release_thread: ReleaseThread) -> None:
        self._messages = messages
        self._shown = shown
        self._release_thread = release_thread

    async def apply(self, account_id: str, event: PartReceipt) -> Applied:
        if not event.tells_of_message:
            return Applied.IGNORED
        try:
            return await self._apply(account_id, event)
        except (Unwritable, ValueError, TypeError, OverflowError):  # no document will ever hold its time or text
            log.receipt_ignored(account_id, event.request_id, "unwritable")
            return Applied.IGNORED

    async def _apply(self, account_id: str, event: PartReceipt) -> Applied:
        async def attempt() -> Applied | Again:
            found = await self._find(account_id, event)
            if found is None:
                return Applied.UNMATCHED
            outbox: Stored | None = None
            if needs_outbox(found.shown, event.receipt):
                outbox = next(iter(await self._messages.get([found.request_id])), None)
            document = outbox.message if outbox is not None and isinstance(outbox.message, OutboxMessage) else None
            decision = apply(found.shown, event.receipt, document, mark=event.correlation)
            if isinstance(decision, Ignored):
                log.receipt_ignored(account_id, found.request_id, decision.because)
                return Applied.IGNORED
            settled = None if decision.outbox is None or outbox is None else (outbox, decision.outbox)
            if isinstance(await self._shown.settle(found, decision.shown, settled), Conflict):
                return AGAIN
            if settled is not None and document is not None:
                await self._release_thread(document)
            return Applied.ADVANCED

        return await self._messages.compare_and_set(attempt)

    async def _find(self, account_id: str, event: PartReceipt) -> StoredMessage | None:
        if event.request_id is not None:
            shown = await self._shown.get(account_id, "requestId", event.request_id)
            return shown or await self._not_shown_yet(account_id, event.request_id)
        provider_message_id = event.receipt.provider_message_id
        if provider_message_id is None:
            return None
        return await self._shown.get(account_id, "providerMessageId", provider_message_id)

    async def _not_shown_yet(self, account_id: str, request_id: str) -> StoredMessage | None:
        """A run's message has no document in its thread before it is sent, and that may be what the receipt tells. One
        that was sent has had it: a receipt that comes after the account's `retentionDays` does not bring it back."""
        for stored in await self._messages.get([request_id]):
            message = stored.message
            if not isinstance(message, OutboxMessage) or message.account_id != account_id or message.run_id is None:
                continue
            if message.status is not OutboxStatus.SENT:
                return StoredMessage.unshown(message)
        return None
