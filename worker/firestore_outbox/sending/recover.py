"""What a turn does without sending: it ends cancelled, expired and malformed documents, settles doubts whose wait has
passed, and settles what earlier holders left in flight.

A document that is `sending` under a claim older than our hold is in doubt. The turn looks for such documents after each
page that it reads, at the moment of that page: a late holder may still claim a document after our takeover, and give it
back. If the document was queued at that moment, the page has it, and our own claim of it fails; if not, the turn finds
it here. So nothing of its thread overtakes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from firestore_outbox.clock import Clock
from firestore_outbox.errors import Unwritable
from firestore_outbox.firestore.gateway import Conflict
from firestore_outbox.messages.model import OutboxMessage
from firestore_outbox.messages.outbox_document import Stored
from firestore_outbox.messages.store import MessageStore
from firestore_outbox.sending.candidates import Candidates
from firestore_outbox.sending.complete import Completer
from firestore_outbox.sending.decide import ABANDONED, TooEarly, Verdict
from firestore_outbox.sending.judge import Judge
from firestore_outbox.sending.plan import Cancel, Defer, Ending, Refuse, Skip
from firestore_outbox.sending.refuse import refuse, unwritable


class Recovery:
    def __init__(self, messages: MessageStore, candidates: Candidates, completer: Completer, clock: Clock) -> None:
        self._messages = messages
        self._candidates = candidates
        self._completer = completer
        self._clock = clock

    async def end(self, endings: Sequence[Ending]) -> None:
        for ending in endings:
            match ending:
                case Cancel(message=message) | Skip(message=message) | Defer(message=message):
                    stored = self._candidates.take_out(message.request_id)
                    try:
                        result = await self._messages.end(stored, message)
                    except Unwritable:
                        result = await refuse(self._messages, stored, unwritable(stored.valid, self._clock()))
                case Refuse(request_id=request_id, error=error):
                    result = await refuse(self._messages, self._candidates.take_out(request_id), error)
            if isinstance(result, Conflict):
                self._candidates.forget()
                return

    async def doubts(self, doubts: Sequence[OutboxMessage], judge: Judge) -> None:
        """Settle uncertain messages for which no receipt came in time."""
        for message in doubts:
            if message.request_id not in self._candidates:
                return  # something changed behind our back, and everything is read again
            verdict = judge.after_the_wait(message)
            if not isinstance(verdict, TooEarly):
                await self._settle(self._candidates.take_out(message.request_id), verdict)

    async def abandoned(self, account_id: str, by: datetime, judge: Judge) -> None:
        """Settle documents left `sending` under a lease that ended before `by`."""
        moment = self._candidates.moment
        assert moment is not None, "a page was read"
        for stored in await self._messages.abandoned(account_id, by, moment):
            if isinstance(stored.message, OutboxMessage):
                await self._settle(stored, judge(stored.message, ABANDONED))
            else:
                await refuse(self._messages, stored, stored.message.error(self._clock()))

    async def _settle(self, stored: Stored, verdict: Verdict) -> None:
        self._candidates.settled(await self._completer.complete(stored, verdict))
