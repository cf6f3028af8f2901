"""A new outbox document: it is sent at once if it came alone, or its lane is woken; and if it can never be sent, it is
refused.

A lane finds its documents by account, status and time. A document without a usable one of these would never be found,
so this is where it ends, with a reason that people can read.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from firestore_outbox.clock import Clock
from firestore_outbox.lane.marks import Mark
from firestore_outbox.lane.ref import outbox_lane
from firestore_outbox.lane.wake import Waker
from firestore_outbox.messages.model import OutboxMessage
from firestore_outbox.messages.priority import Priority
from firestore_outbox.messages.states import OutboxStatus
from firestore_outbox.messages.store import MessageStore
from firestore_outbox.messages.validation import InvalidMessage, parse_message
from firestore_outbox.sending.express import may_be_short
from firestore_outbox.sending.refuse import refuse
from firestore_outbox.sending.short_turns import ShortTurns


class Trigger:
    def __init__(self, messages: MessageStore, waker: Waker, clock: Clock, short: ShortTurns | None) -> None:
        """`short` is None if short turns are switched off."""
        self._messages = messages
        self._waker = waker
        self._clock = clock
        self._short = short

    async def created(self, request_id: str, data: Mapping[str, Any]) -> None:
        """The event may come late and twice: whatever follows looks at what is stored."""
        message = parse_message(request_id, data)
        if isinstance(message, InvalidMessage):
            await self._refuse(request_id)
        elif message.status is OutboxStatus.QUEUED and message.run_id is None:  # a run wakes its account itself
            lane, later = outbox_lane(message.account_id), _later(message, self._clock)
            mark = _mark(message, later)
            if self._short is not None and later is None and may_be_short(message):
                await self._short.created(lane, request_id, mark)
            else:
                await self._waker.wake(lane, later, mark=mark)

    async def _refuse(self, request_id: str) -> None:
        for stored in await self._messages.get([request_id]):
            if isinstance(stored.message, InvalidMessage) and stored.status not in _TAKEN_UP:
                await refuse(self._messages, stored, stored.message.error(self._clock()))


_TAKEN_UP = frozenset(status.value for status in OutboxStatus) - {OutboxStatus.QUEUED.value}
"""Beyond the client's hands."""


def _mark(message: OutboxMessage, later: datetime | None) -> Mark | None:
    """What the holder is to know. A normal message for later takes its place by its time."""
    is_urgent = message.priority is Priority.URGENT
    if message.priority is Priority.BULK or (later is not None and not is_urgent):
        return None
    at = message.next_attempt_at or message.created_at
    return Mark(urgent_at=at) if is_urgent else Mark(normal_at=at)


def _later(message: OutboxMessage, clock: Clock) -> datetime | None:
    at = message.next_attempt_at
    return at if at is not None and at > clock() else None
