"""A document that cannot be sent, ended: it fails with the reason, and so does the message that people see of it.

It is malformed, or Firestore refuses what a worker has to write into it, for example because that would make it too
large. Such a document ends alone: it is written in a commit of its own, if need be without the fields that an ended
document does not need.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime

from worker import log
from worker.domain.message import KEEP_ENDED, OutboxMessage
from worker.domain.outcome import DeliveryError, ErrorCode, in_doubt_after
from worker.errors import Unwritable
from worker.store.gateway import Committed, Conflict
from worker.store.messages import MessageStore
from worker.store.outbox_document import Stored, refusal, without_ballast
from worker.store.shown_message import shown_refusals
from worker.store.writes import WriteOp


async def refuse(messages: MessageStore, document: Stored, error: DeliveryError) -> Committed | Conflict:
    """Both in one commit; the outbox document alone, if the message document is missing or cannot be written."""
    log.message_refused(document.account_id, document.request_id, error.message)
    marked = refusal(document, error, error.at + KEEP_ENDED)
    with suppress(Unwritable):
        return await _written(messages, marked, shown_refusals(document, error))
    return await _written(messages, without_ballast(document, marked), shown_refusals(document, error))


async def _written(messages: MessageStore, marked: WriteOp, shown: Sequence[WriteOp]) -> Committed | Conflict:
    for one in shown:
        with suppress(Unwritable):
            result = await messages.write([marked, one])
            if not isinstance(result, Conflict):
                return result
    return await messages.write([marked])


def unwritable(message: OutboxMessage, at: datetime) -> DeliveryError:
    """Why a message ends that Firestore refuses to write."""
    sentence = "Firestore refuses what the worker adds to this document: its fields are too many or too large."
    error = DeliveryError(code=ErrorCode.INVALID_MESSAGE, message=sentence, retryable=False, at=at)
    return in_doubt_after(error) if message.maybe_sent else error
