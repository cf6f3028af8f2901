"""A message taken back at once, and not at the next sweep: by an operator, or by its author.

An author sets `cancelRequested` on the outbox document and creates `cancels/{requestId}` in the same batch. The first
is the wish, which every turn and every sweep grants. The second calls a function, which grants it now and deletes the
document; should the function fail, Eventarc tries again, and the sweep finds the wish in any case.
"""

from __future__ import annotations

from dataclasses import replace

from firestore_outbox.clock import Clock
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.compare_and_set import AGAIN, Again, Contended
from firestore_outbox.firestore.gateway import Conflict
from firestore_outbox.firestore.writes import delete
from firestore_outbox.messages.model import OutboxMessage
from firestore_outbox.messages.states import OutboxStatus
from firestore_outbox.messages.store import MessageStore
from firestore_outbox.sending.plan import Cancel, ending_of


class CancelMessage:
    def __init__(self, messages: MessageStore, clock: Clock) -> None:
        self._messages = messages
        self._clock = clock

    async def asked_for(self, request_id: str) -> None:
        """`cancels/{requestId}` exists. It counts only where the outbox document has the wish: the rules of that
        document say who may cancel it."""
        found = await self._messages.get([request_id])
        if found and isinstance(message := found[0].message, OutboxMessage) and message.cancel_requested:
            await self(request_id)
        await self._messages.write([delete(paths.cancel(request_id))])

    async def __call__(self, request_id: str) -> str | None:
        """What the message is afterwards; None: there is none. One that is on its way stays on its way."""
        status: str | None = None

        async def attempt() -> str | Again | None:
            nonlocal status
            found = await self._messages.get([request_id])
            if not found:
                return None
            stored, message = found[0], found[0].message
            status = stored.status or "malformed"
            if not isinstance(message, OutboxMessage) or message.status is not OutboxStatus.QUEUED:
                return status
            ending = ending_of(replace(message, cancel_requested=True), self._clock())
            assert isinstance(ending, Cancel), "a queued message whose cancel is requested ends"
            ended = await self._messages.end(stored, ending.message)
            return AGAIN if isinstance(ended, Conflict) else ending.message.status.value

        try:
            return await self._messages.compare_and_set(attempt)
        except Contended:
            return status
