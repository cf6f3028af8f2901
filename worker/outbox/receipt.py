"""A receipt, applied: one read and one write in the usual course, and never a step back.

A receipt that ends a doubt also frees the thread that waited for it.
"""

from __future__ import annotations

from enum import StrEnum

from worker import log
from worker.domain.account import Account
from worker.domain.lane import Lane, ThreadHold
from worker.domain.message import OutboxMessage, OutboxStatus
from worker.domain.receipt import Ignored, apply, needs_outbox
from worker.errors import Unwritable
from worker.lane.waking import Waker
from worker.outbox.trigger import lane_of
from worker.providers.protocol import PartReceipt
from worker.store.accounts import AccountStore
from worker.store.gateway import Conflict
from worker.store.lanes import LaneStore
from worker.store.messages import MessageStore, Stored, StoredMessage

TRIES = 8


class Applied(StrEnum):
    ADVANCED = "advanced"
    IGNORED = "ignored"
    UNMATCHED = "unmatched"
    """No message of ours has this id, or not yet: worth another look later."""


class Receipts:
    def __init__(self, messages: MessageStore, lanes: LaneStore, accounts: AccountStore, waker: Waker) -> None:
        self._messages = messages
        self._lanes = lanes
        self._accounts = accounts
        self._waker = waker

    async def apply(self, account_id: str, event: PartReceipt) -> Applied:
        if not event.tells_of_message:
            return Applied.IGNORED
        try:
            return await self._apply(account_id, event)
        except (Unwritable, UnicodeError, OverflowError):  # a time or a text that no document holds: nor will it later
            log.receipt_ignored(event.request_id, "unwritable")
            return Applied.IGNORED

    async def _apply(self, account_id: str, event: PartReceipt) -> Applied:
        for _ in range(TRIES):
            found = await self._find(account_id, event)
            if found is None:
                return Applied.UNMATCHED
            outbox: Stored | None = None
            if needs_outbox(found.shown, event.receipt):
                outbox = next(iter(await self._messages.get([found.request_id])), None)
            document = outbox.message if outbox is not None and isinstance(outbox.message, OutboxMessage) else None
            decision = apply(found.shown, event.receipt, document)
            if isinstance(decision, Ignored):
                log.receipt_ignored(found.request_id, decision.because)
                return Applied.IGNORED
            settled = None if decision.outbox is None or outbox is None else (outbox, decision.outbox)
            if isinstance(await self._messages.settle(found, decision.shown, settled), Conflict):
                continue
            if settled is not None and document is not None:
                await self._free_thread(document)
            return Applied.ADVANCED
        raise RuntimeError(f"{event.request_id} is written by too many at once")

    async def _find(self, account_id: str, event: PartReceipt) -> StoredMessage | None:
        if event.request_id is not None:
            shown = await self._messages.shown(account_id, "requestId", event.request_id)
            return shown or await self._not_shown_yet(account_id, event.request_id)
        provider_message_id = event.receipt.provider_message_id
        if provider_message_id is None:
            return None
        return await self._messages.shown(account_id, "providerMessageId", provider_message_id)

    async def _not_shown_yet(self, account_id: str, request_id: str) -> StoredMessage | None:
        """A run's message has no document in its thread before it is sent, and that may be what the receipt tells."""
        for stored in await self._messages.get([request_id]):
            message = stored.message
            if isinstance(message, OutboxMessage) and message.account_id == account_id and message.run_id is not None:
                return StoredMessage.unshown(message)
        return None

    async def _free_thread(self, before: OutboxMessage) -> None:
        """The thread need not wait for the message any longer, if that is what it waits for."""
        if before.status is OutboxStatus.SENDING:
            return  # its holder is at work, and will see it
        ref = lane_of(before.account_id)
        while True:
            stored = await self._lanes.read(ref)
            hold = stored.lane.holds.get(before.thread_id)
            if hold is None or hold.request_id != before.request_id:
                return
            freed = await self._without(hold, before, stored.lane)
            if await self._lanes.write(ref, freed, stored) is not None:
                await self._waker.wake(ref)
                return

    async def _without(self, hold: ThreadHold, before: OutboxMessage, lane: Lane) -> Lane:
        """The hold has two reasons in it: the message, which is settled, and the recipient's pace, which is not."""
        account = await self._accounts.read(before.account_id)
        if isinstance(account, Account) and account.per_recipient and before.last_error is not None:
            spared_until = min(hold.until, before.last_error.at + account.per_recipient)
            return lane.holding(before.thread_id, ThreadHold(until=spared_until))
        return lane.without_holds(frozenset({before.thread_id}))
