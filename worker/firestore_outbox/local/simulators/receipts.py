"""Which receipts a delivered message gives, and when: late, twice, in any order, or never, as ordered."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Any

from firestore_outbox.local.simulators.faults import Faults


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    event: dict[str, Any]
    delay: timedelta
    """After the acceptance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A message that arrived at its recipient, and what the sender will be told of it."""

    account_id: str
    provider: str
    provider_message_id: str
    receipts: tuple[Planned, ...]
    in_order: bool
    """Each only when the one before it was taken; otherwise each by its own delay."""


def plan_receipts(
    provider_message_id: str, echo: str | None, faults: Faults, *, to: str = "", now: datetime, random: Random
) -> tuple[Planned, ...]:
    delay = timedelta(milliseconds=faults.receiptDelayMs)
    planned: list[Planned] = []
    for step, status in enumerate(_statuses(faults, random)):
        if _happens(faults.receiptLossRate, random):
            continue
        event = _receipt(provider_message_id, echo, status, now + delay + timedelta(milliseconds=step))
        if to:
            event["to"] = to
        if status == "failed" and faults.receiptFailedApiCode:
            event["error"]["apiCode"] = faults.receiptFailedApiCode
        for _ in range(2 if _happens(faults.receiptDuplicateRate, random) else 1):
            own = delay * random.random() if faults.receiptShuffle else delay
            planned.append(Planned(event=event, delay=own))
    if faults.receiptShuffle:
        random.shuffle(planned)
    return tuple(planned)


def _statuses(faults: Faults, random: Random) -> tuple[str, ...]:
    return ("sent", "failed") if _happens(faults.receiptFailedRate, random) else ("sent", "delivered", "read")


def _receipt(provider_message_id: str, echo: str | None, status: str, at: datetime) -> dict[str, Any]:
    event: dict[str, Any] = {
        "type": "receipt",
        "providerMessageId": provider_message_id,
        "status": status,
        "at": at.isoformat(),
    }
    if echo is not None:
        event["echo"] = echo
    if status == "failed":
        event["error"] = {"code": "recipient_invalid", "message": "The message could not be delivered."}
    return event


def _happens(rate: float, random: Random) -> bool:
    return rate > 0 and random.random() < rate
