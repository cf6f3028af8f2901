"""What a provider tells us: its webhook verified, and everything in it applied.

Nothing is read before the signature is checked over the raw bytes, and nothing is written from a body that failed.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import assert_never

from worker import log, metrics
from worker.clock import Clock
from worker.inbound.receive import Receive
from worker.outbox.receipt import Applied, Receipts
from worker.providers.protocol import InboundMessage, PartReceipt, SessionChanged, Unrecognised, WebhookEvent
from worker.providers.registry import Providers, Received, Refused, TryLater


class Answer(Enum):
    """The HTTP status to answer with."""

    TAKEN = 200
    REFUSED = 401
    TRY_LATER = 503


class Webhook:
    def __init__(self, providers: Providers, receipts: Receipts, receive: Receive, clock: Clock) -> None:
        self._providers = providers
        self._receipts = receipts
        self._receive = receive
        self._clock = clock

    async def take(self, provider: str, account_id: str, headers: Mapping[str, str], body: bytes) -> Answer:
        received = await self._providers.receive(provider, account_id, headers, body, now=self._clock())
        match received:
            case Refused():
                return Answer.REFUSED
            case TryLater():
                return Answer.TRY_LATER
            case Received(events=events):
                for event in events:
                    await self._apply(account_id, event)
                return Answer.TAKEN
            case _:
                assert_never(received)

    async def _apply(self, account_id: str, event: WebhookEvent) -> None:
        match event:
            case PartReceipt():
                applied = await self._receipts.apply(account_id, event)
                metrics.receipt(applied)
                if applied is Applied.UNMATCHED:
                    log.receipt_unmatched(account_id, event.receipt.provider_message_id)
            case InboundMessage():
                await self._receive(account_id, event)
            case SessionChanged() | Unrecognised():
                metrics.receipt(type(event).__name__)
            case _:
                assert_never(event)
