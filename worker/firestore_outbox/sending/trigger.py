"""A new outbox document: its lane is woken, or, if the document can never be sent, it is refused at once.

A lane finds its documents by account, status and time. A document without a usable one of these would never be found,
so this is where it ends, with a reason that people can read.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from firestore_outbox.clock import Clock
from firestore_outbox.lane.ref import outbox_lane
from firestore_outbox.lane.wake import Waker
from firestore_outbox.messages.model import OutboxMessage, OutboxStatus
from firestore_outbox.messages.store import MessageStore
from firestore_outbox.messages.validation import InvalidMessage, parse_message
from firestore_outbox.sending.refuse import refuse


class Trigger:
    def __init__(self, messages: MessageStore, waker: Waker, clock: Clock) -> None:
        self._messages = messages
        self._waker = waker
        self._clock = clock

    async def created(self, request_id: str, data: Mapping[str, Any]) -> None:
        """The event may come late and twice: whatever follows looks at what is stored."""
        message = parse_message(request_id, data)
        if isinstance(message, InvalidMessage):
            await self._refuse(request_id)
        elif message.status is OutboxStatus.QUEUED and message.run_id is None:  # a run wakes its account itself
            await self._waker.wake(outbox_lane(message.account_id), _later(message, self._clock))

    async def _refuse(self, request_id: str) -> None:
        for stored in await self._messages.get([request_id]):
            if isinstance(stored.message, InvalidMessage) and stored.status not in _TAKEN_UP:
                await refuse(self._messages, stored, stored.message.error(self._clock()))


_TAKEN_UP = frozenset(status.value for status in OutboxStatus) - {OutboxStatus.QUEUED.value}
"""Beyond the client's hands."""


def _later(message: OutboxMessage, clock: Clock) -> datetime | None:
    at = message.next_attempt_at
    return at if at is not None and at > clock() else None
