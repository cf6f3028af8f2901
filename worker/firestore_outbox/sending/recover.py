"""What a turn does without sending: it ends cancelled, expired and malformed documents, settles doubts whose wait has
passed, and settles what earlier holders left in flight.

A document that is `sending` under a claim older than our hold is in doubt. The first page of a turn shows such
documents beside what waits. After a takeover a late holder may still claim a document, and give it back; so, until the
lane's `doubtUntil`, the turn looks for claims after each page, at the moment of that page. If the document was queued
at that moment, the page has it, and our own claim of it fails; if not, the turn finds it here. So nothing of its thread
overtakes it. docs/lane.md has the argument.
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

    async def abandoned(
        self, account_id: str, by: datetime, judge: Judge, *, in_doubt: bool, is_new_page: bool
    ) -> None:
        """Settle documents left `sending` under a lease that ended before `by`. `in_doubt`: claims may still arrive."""
        shown = self._candidates.in_flight
        if in_doubt:
            looks = shown is not None or is_new_page
        else:  # a full page may end before a claim, and of a malformed one it does not show whose it is
            is_whole = self._candidates.is_last_page and all(
                isinstance(one.message, OutboxMessage) for one in shown or ()
            )
            looks = shown is not None and not is_whole
        if looks:
            moment = self._candidates.moment
            assert moment is not None, "a page was read"
            left = await self._messages.abandoned(account_id, by, moment)
        else:
            left = [one for one in shown or () if one.valid.lease_until is None or one.valid.lease_until <= by]
        for stored in left:
            if isinstance(stored.message, OutboxMessage):
                await self._settle(stored, judge(stored.message, ABANDONED))
            else:
                await refuse(self._messages, stored, stored.message.error(self._clock()))

    async def _settle(self, stored: Stored, verdict: Verdict) -> None:
        self._candidates.settled(await self._completer.complete(stored, verdict))
