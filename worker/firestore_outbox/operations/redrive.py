"""Back into the queue because a person says so: what failed, and what has an unknown outcome.

A run's messages are not put back one by one: its counts were taken when it ended. `outbox runs retry-failed` makes a
new run of its failed targets instead.

Each message is a commit of its own, so a redrive that is cut short has put back whole messages, and can be repeated.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

from firestore_outbox.clock import Clock
from firestore_outbox.errors import Unwritable
from firestore_outbox.lane.ref import outbox_lane
from firestore_outbox.lane.wake import Waker
from firestore_outbox.messages.model import OutboxMessage
from firestore_outbox.messages.outbox_document import Stored
from firestore_outbox.messages.states import OutboxStatus
from firestore_outbox.messages.store import MessageStore

PAGE = 100
CAN_BE_REDRIVEN = (OutboxStatus.FAILED, OutboxStatus.UNCERTAIN)


@dataclass(frozen=True, slots=True)
class Redriven:
    request_id: str


@dataclass(frozen=True, slots=True)
class NotRedriven:
    request_id: str
    sentence: str


class Redrive:
    def __init__(self, messages: MessageStore, waker: Waker, clock: Clock) -> None:
        self._messages = messages
        self._waker = waker
        self._clock = clock

    async def one(self, request_id: str) -> Redriven | NotRedriven:
        found = await self._messages.get([request_id])
        if not found:
            return NotRedriven(request_id, "there is no such message")
        result = await self._put_back(found[0])
        if isinstance(result, Redriven) and found[0].account_id is not None:
            await self._waker.wake(outbox_lane(found[0].account_id))
        return result

    async def failed_of(self, account_id: str) -> AsyncIterator[list[Redriven | NotRedriven]]:
        """All failed messages of an account, page by page."""
        after: str | None = None
        while page := await self._messages.in_status(
            OutboxStatus.FAILED, account_id=account_id, limit=PAGE, after=after
        ):
            results = [await self._put_back(stored) for stored in page]
            if any(isinstance(result, Redriven) for result in results):
                await self._waker.wake(outbox_lane(account_id))
            yield results
            after = page[-1].request_id

    async def _put_back(self, stored: Stored) -> Redriven | NotRedriven:
        message = stored.message
        if not isinstance(message, OutboxMessage):
            return NotRedriven(stored.request_id, f"it is malformed: {message.sentence}")
        if message.status not in CAN_BE_REDRIVEN:
            return NotRedriven(stored.request_id, f"it is {message.status.value}, neither failed nor uncertain")
        if message.run_id is not None:
            sentence = f"it belongs to a run; see outbox runs retry-failed {message.run_id}"
            return NotRedriven(stored.request_id, sentence)
        try:
            is_back = await self._messages.put_back(stored, message.redriven(at=self._clock()))
        except Unwritable:
            return NotRedriven(stored.request_id, "Firestore refuses to store it: its fields are too many or too large")
        if not is_back:
            return NotRedriven(stored.request_id, "it was changed at the same moment, or its message was deleted")
        return Redriven(stored.request_id)
