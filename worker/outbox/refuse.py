"""A malformed document, ended: it is marked as failed with the reason, and so is the message that people see of it."""

from __future__ import annotations

from contextlib import suppress

from worker import log
from worker.domain.message import KEEP_ENDED
from worker.domain.outcome import DeliveryError
from worker.errors import Unwritable
from worker.store.gateway import Committed, Conflict
from worker.store.messages import MessageStore
from worker.store.outbox_document import Stored, refusal
from worker.store.shown_message import shown_refusals


async def refuse(messages: MessageStore, document: Stored, error: DeliveryError) -> Committed | Conflict:
    """Both in one commit; the outbox document alone, if there is no message document to write to."""
    log.message_refused(document.account_id, document.request_id, error.message)
    marked = refusal(document, error, error.at + KEEP_ENDED)
    for shown in shown_refusals(document, error):
        with suppress(Unwritable):
            result = await messages.write([marked, shown])
            if not isinstance(result, Conflict):
                return result
    return await messages.write([marked])
