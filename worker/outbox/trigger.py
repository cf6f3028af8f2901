"""A new outbox document: its lane is woken, or, if the document can never be sent, it is refused at once.

A lane finds its documents by account, status and time. A document without a usable one of these would never be found,
so this is where it ends, with a reason that people can read.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from worker import log
from worker.clock import Clock
from worker.domain.message import KEEP_ENDED, OutboxMessage, OutboxStatus
from worker.domain.validation import InvalidMessage, parse_message
from worker.lane.waking import Waker
from worker.store.lanes import LaneRef
from worker.store.messages import MessageStore, refusal, shown_refusal

KIND = "outbox"


def lane_of(account_id: str) -> LaneRef:
    return LaneRef(KIND, account_id)


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
        elif message.status is OutboxStatus.QUEUED:
            await self._waker.wake(lane_of(message.account_id), _later(message, self._clock))

    async def _refuse(self, request_id: str) -> None:
        for stored in await self._messages.get([request_id]):
            if not isinstance(stored.message, InvalidMessage) or stored.status != OutboxStatus.QUEUED.value:
                return
            error = stored.message.error(self._clock())
            log.message_refused(request_id, error.message)
            await self._messages.write(refusal(stored, error, error.at + KEEP_ENDED))
            shown = None if stored.account_id is None else shown_refusal(stored, stored.account_id, error)
            if shown is not None:
                await self._messages.write([shown])


def _later(message: OutboxMessage, clock: Clock) -> datetime | None:
    at = message.next_attempt_at
    return at if at is not None and at > clock() else None
