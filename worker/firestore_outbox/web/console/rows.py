"""A message as a row of the console's lists: what it says comes first, its id second."""

from __future__ import annotations

from typing import Any

from firestore_outbox.messages.model import OutboxMessage
from firestore_outbox.messages.outbox_document import Stored
from firestore_outbox.operations.listing import row_of
from firestore_outbox.web.console.words import preview


def shown_row(stored: Stored) -> dict[str, Any]:
    message = stored.message
    parts = message.parts if isinstance(message, OutboxMessage) else ()
    return {**row_of(stored), "text": preview([part.model_dump() for part in parts])}
