"""The handler of `inbound` lanes: a conversation that has gone quiet is handed to the application, once for a burst."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from firestore_outbox.lane.holder import Holder
from firestore_outbox.lane.state import Nothing, Work

OnConversation = Callable[[str], Awaitable[None]]
"""Given a threadId. What it raises leaves the lane to be run again."""


async def nobody_listens(thread_id: str) -> None:
    """Where an application has nothing to do with inbound messages but show them."""


class InboundHandler:
    def __init__(self, on_conversation: OnConversation = nobody_listens) -> None:
        self._on_conversation = on_conversation

    async def run(self, holder: Holder) -> Work:
        await self._on_conversation(holder.ref.key)
        return Nothing()
