"""A doubt ended by a person, who has looked at the phone: a word in place of the receipt that did not come.

It goes the way of a receipt (receipts/rules.py), under the same preconditions. A receipt that comes first wins; one
that comes later still adds what it knows.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from firestore_outbox.clock import Clock
from firestore_outbox.firestore.compare_and_set import AGAIN, Again, Contended
from firestore_outbox.firestore.gateway import Conflict
from firestore_outbox.messages.message_document import StoredMessage
from firestore_outbox.messages.model import OutboxMessage
from firestore_outbox.messages.shown_store import ShownStore
from firestore_outbox.messages.states import OutboxStatus
from firestore_outbox.messages.store import MessageStore
from firestore_outbox.providers.outcome import DeliveryError, ErrorCode
from firestore_outbox.receipts.release_thread import ReleaseThread
from firestore_outbox.receipts.rules import Advance, Arrived, Bounced, Progress, Receipt, apply


class SettledAs(StrEnum):
    SENT = "sent"
    """It arrived."""
    FAILED = "failed"
    """It did not, or it does not matter any more. It can be redriven."""


@dataclass(frozen=True, slots=True)
class Settled:
    request_id: str
    status: SettledAs


@dataclass(frozen=True, slots=True)
class NotSettled:
    sentence: str


class Settle:
    def __init__(self, messages: MessageStore, shown: ShownStore, release_thread: ReleaseThread, clock: Clock) -> None:
        self._messages = messages
        self._shown = shown
        self._release_thread = release_thread
        self._clock = clock

    async def __call__(self, request_id: str, settled_as: SettledAs) -> Settled | NotSettled:
        async def attempt() -> OutboxMessage | NotSettled | Again:
            found = await self._messages.get([request_id])
            if not found:
                return NotSettled(f"there is no message {request_id}")
            stored, message = found[0], found[0].message
            if not isinstance(message, OutboxMessage) or message.status is not OutboxStatus.UNCERTAIN:
                return NotSettled(f"{request_id} is not uncertain: it is {stored.status}")
            shown = await self._shown.get(message.account_id, "requestId", request_id)
            if shown is None and message.run_id is None:
                return NotSettled(f"{request_id} has no message document in its thread")
            before = shown or StoredMessage.unshown(message)
            decision = apply(before.shown, self._word(settled_as), message)
            if not isinstance(decision, Advance) or decision.outbox is None:
                return NotSettled(f"{request_id} is shown as {before.shown.status.value} already")
            written = await self._shown.settle(before, decision.shown, (stored, decision.outbox))
            return AGAIN if isinstance(written, Conflict) else message

        try:
            settled: OutboxMessage | NotSettled = await self._messages.compare_and_set(attempt)
        except Contended:
            return NotSettled(f"{request_id} is being changed by others; try again")
        if isinstance(settled, NotSettled):
            return settled
        await self._release_thread(settled)
        return Settled(request_id, settled_as)

    def _word(self, settled_as: SettledAs) -> Receipt:
        now = self._clock()
        match settled_as:
            case SettledAs.SENT:
                return Arrived(progress=Progress.SENT, at=now)
            case SettledAs.FAILED:
                sentence = "It is unknown whether it was sent, and a person gave it up."
                return Bounced(
                    error=DeliveryError(code=ErrorCode.OUTCOME_UNKNOWN, message=sentence, retryable=False, at=now)
                )
            case _:
                assert_never(settled_as)
