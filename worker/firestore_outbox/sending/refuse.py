"""A document that cannot be sent, ended: it fails with the reason, and so does the message that people see of it.

It is malformed, or Firestore refuses what a worker has to write into it, for example because that would make it too
large. Such a document ends alone: it is written in a commit of its own, if need be without the fields that an ended
document does not need.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime

from firestore_outbox import log
from firestore_outbox.errors import Unwritable
from firestore_outbox.firestore.gateway import Committed, Conflict
from firestore_outbox.firestore.writes import WriteOp
from firestore_outbox.messages.message_document import shown_refusals
from firestore_outbox.messages.model import KEEP_ENDED, OutboxMessage
from firestore_outbox.messages.outbox_document import Stored, refusal, without_ballast
from firestore_outbox.messages.store import MessageStore
from firestore_outbox.providers.outcome import DeliveryError, ErrorCode, in_doubt_after


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
