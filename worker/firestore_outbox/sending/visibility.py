"""How long a document took from its server timestamp until readers could see it.

Firestore's own create time is the end of the commit; `createdAt` is the arrival of the request. The difference is the
gap that the overlap of pages has to cover (page_cursor.py).
"""

from __future__ import annotations

from datetime import datetime, timedelta

from firestore_outbox.messages.model import OutboxMessage

_NO_TIME = timedelta(0)


def gap_of(message: OutboxMessage, visible_at: datetime) -> timedelta | None:
    """The gap of a document that became visible at `visible_at`. None: its times were not set by the server.

    A client's batch sets `createdAt` and `nextAttemptAt` to the same server timestamp; a retry or a schedule moves the
    second."""
    if message.next_attempt_at != message.created_at or visible_at < message.created_at:
        return None
    return max(_NO_TIME, visible_at - message.created_at)


def is_near(gap: timedelta, overlap: timedelta) -> bool:
    """Whether a gap uses up half of the overlap or more: the next one may be longer than all of it."""
    return 2 * gap >= overlap > _NO_TIME
