"""Sealed messages, opened for the one call that sends them. sealing/service.py does it; adapters see clear parts alone.

What is opened stays in memory: the documents that are written after the attempt are those of the sealed message.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Protocol

from firestore_outbox.messages.model import OutboxMessage, SealedPart
from firestore_outbox.providers.outcome import ErrorCode, Postponed, Rejected

RETRY_AFTER = timedelta(seconds=60)
"""For a key that cannot be had now. The message stays queued, and no failure is counted."""


KEY_TOO_SLOW = "getting the account's key took the time of one attempt"


class Opener(Protocol):
    async def open_message(self, message: OutboxMessage) -> OutboxMessage | Rejected | Postponed:
        """The message with clear parts. Rejected: no key will ever open it. Postponed: the key is out of reach now."""
        ...


class NoKeys:
    """Stands for keys where none are configured. The message waits for a worker that has them."""

    async def open_message(self, message: OutboxMessage) -> OutboxMessage | Rejected | Postponed:
        detail = "this worker cannot open sealed messages: OUTBOX_KMS_KEY is not set (docs/privacy.md)"
        return Postponed(code=ErrorCode.CANNOT_OPEN, detail=detail, retry_after=RETRY_AFTER)


def is_sealed(message: OutboxMessage) -> bool:
    return any(isinstance(part, SealedPart) for part in message.parts)
