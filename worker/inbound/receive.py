"""An inbound message, stored: the message, and its thread's last message and unread count, in one commit, once."""

from __future__ import annotations

from hashlib import sha256
from urllib.parse import quote

from worker.domain.message import shown_text, thread_id_of
from worker.lane.waking import Waker
from worker.providers.protocol import InboundMessage
from worker.store import paths
from worker.store.gateway import Conflict, Gateway
from worker.store.lanes import LaneRef
from worker.store.writes import Increment, create, upsert

KIND = "inbound"
LONGEST_ID = 500
"""Firestore takes 1,500 bytes; nobody's real ids are near either."""


def lane_of(thread_id: str) -> LaneRef:
    return LaneRef(KIND, thread_id)


class Receive:
    def __init__(self, gateway: Gateway, waker: Waker) -> None:
        self._gateway = gateway
        self._waker = waker

    async def __call__(self, account_id: str, inbound: InboundMessage) -> bool:
        """False: it had come before."""
        is_new = await self.store(account_id, inbound)
        # Also if it had come before: whoever stored it may have died before the wake.
        await self.wake(account_id, inbound.sender)
        return is_new

    async def wake(self, account_id: str, sender: str) -> None:
        await self._waker.wake(lane_of(thread_id_of(account_id, sender)))

    async def store(self, account_id: str, inbound: InboundMessage) -> bool:
        thread_id = thread_id_of(account_id, inbound.sender)
        parts = [part.model_dump(exclude_none=True) for part in inbound.parts]
        message = {
            "requestId": message_id_of(inbound),
            "accountId": account_id,
            "threadId": thread_id,
            "to": inbound.sender,
            "direction": "inbound",
            "parts": parts,
            "status": "delivered",
            "providerMessageId": inbound.provider_message_id,
            "createdAt": inbound.at,
            "deliveredAt": inbound.at,
        }
        thread = {
            "accountId": account_id,
            "to": inbound.sender,
            "lastMessageAt": inbound.at,
            "lastMessageText": shown_text(parts),
            "unreadCount": Increment(1),
        }
        result = await self._gateway.commit(
            [
                create(paths.message(thread_id, message_id_of(inbound)), message),
                upsert(paths.thread(thread_id), thread),
            ]
        )
        return not isinstance(result, Conflict)


def message_id_of(inbound: InboundMessage) -> str:
    """The provider's id, made safe for a path."""
    safe = quote(inbound.provider_message_id, safe="")
    if len(safe) > LONGEST_ID:
        return sha256(inbound.provider_message_id.encode()).hexdigest()
    return safe if not (safe.startswith("__") and safe.endswith("__")) and safe not in (".", "..") else f"m{safe}"
