"""The handler of `inbound` lanes: a conversation that has gone quiet is handed to the application, once for a burst."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from firestore_outbox.lane.holder import Session
from firestore_outbox.lane.state import Debounce, Nothing, Work

OnConversation = Callable[[str], Awaitable[None]]
"""Given a threadId. What it raises leaves the lane to be run again."""


async def nobody_listens(thread_id: str) -> None:
    """Where an application has nothing to do with inbound messages but show them."""


class InboundHandler:
    def __init__(self, debounce: Debounce, on_conversation: OnConversation = nobody_listens) -> None:
        self._debounce = debounce
        self._on_conversation = on_conversation

    @property
    def debounce(self) -> Debounce:
        return self._debounce

    async def run(self, session: Session) -> Work:
        await self._on_conversation(session.ref.key)
        return Nothing()
