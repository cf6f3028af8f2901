"""What a message hears when its file is not ready, through no fault of its own."""

from __future__ import annotations

from datetime import timedelta

from firestore_outbox.providers.outcome import ErrorCode, Postponed

SOON = timedelta(seconds=2)
A_WHILE = timedelta(seconds=30)
"""For a place that does not answer: it has other things to do than to be asked for each message."""


def not_yet(detail: str, retry_after: timedelta = SOON) -> Postponed:
    """Back to the queue for a moment: no failure of the message, and only its own thread waits, since others may have
    no file, or another."""
    return Postponed(code=ErrorCode.PROVIDER_UNAVAILABLE, detail=detail, retry_after=retry_after)
