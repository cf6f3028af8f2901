"""Receipts that cannot be applied yet: they travel as Cloud Tasks and are looked at again.

Two kinds come here. One is of a message that we do not know: the provider was faster than our own `sent`, or another
sender uses the account. It is looked at again after 2 s, 10 s, 60 s and 10 min (RECEIPT_RETRY_SECONDS), and then
logged, counted and dropped. The other is what a webhook has no time for: it is looked at as soon as a worker can.

Each look is a task of its own. A task that answered "try again" would make Cloud Tasks slow down the whole queue, and
with it every lane. Tasks may come twice and in any order; so may receipts.

    {accountId, looks, receipts: [{status, at, echo?, providerMessageId?, error?}]}

A task holds no text of anybody's message and no secret. What the provider says of a failure is in it, cut short.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any, Literal, assert_never

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from firestore_outbox import log, metrics
from firestore_outbox.clock import Clock
from firestore_outbox.lane.tasks import RECEIPT_TASK, Tasks
from firestore_outbox.messages.checked_fields import AccountId
from firestore_outbox.messages.correlation import Correlation
from firestore_outbox.providers.outcome import DeliveryError, ErrorCode
from firestore_outbox.providers.protocol import PartReceipt
from firestore_outbox.receipts.apply import Applied
from firestore_outbox.receipts.batch import ReceiptBatch
from firestore_outbox.receipts.rules import Arrived, Bounced, Progress

MOST_IN_A_TASK = 100
LARGEST_TASK_BYTES = 48_000
"""The worker takes 64 KiB."""
LONGEST_REASON = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class LateBatch:
    """A task's body, read."""

    account_id: str
    looks: int
    """How often a worker looked for their messages in vain."""
    receipts: tuple[PartReceipt, ...]


class BadBatch(ValueError):
    """A body that no repetition corrects."""


class LateReceipts:
    def __init__(self, receipts: ReceiptBatch, tasks: Tasks, clock: Clock, waits: Sequence[timedelta]) -> None:
        self._receipts = receipts
        self._tasks = tasks
        self._clock = clock
        self._waits = tuple(waits)

    async def hand_on(self, account_id: str, receipts: Sequence[PartReceipt], *, looks: int = 0) -> None:
        """To a worker: at once, or after the wait that follows this number of looks in vain. Returns when Cloud Tasks
        has them; raises if it does not take them."""
        if looks > len(self._waits):
            for receipt in receipts:
                self._drop(account_id, receipt)
            return
        at = self._clock() + (self._waits[looks - 1] if looks else timedelta(0))
        for chunk in self._chunks(account_id, receipts):
            body = {"accountId": account_id, "looks": looks, "receipts": chunk}
            await self._tasks.enqueue(RECEIPT_TASK, body, at)
            metrics.receipt("waiting" if looks else "handed_on", len(chunk))

    async def run(self, batch: LateBatch) -> int:
        """How many are still unknown."""
        unknown: list[PartReceipt] = []

        def done(number: int, applied: Applied) -> None:
            metrics.receipt(applied)
            if applied is Applied.UNMATCHED:
                unknown.append(batch.receipts[number])

        try:
            await self._receipts.apply(batch.account_id, batch.receipts, done)
        except ExceptionGroup as group:
            raise group.exceptions[0] from None  # one is enough: Cloud Tasks repeats the task
        await self.hand_on(batch.account_id, unknown, looks=batch.looks + 1)
        return len(unknown)

    def _chunks(self, account_id: str, receipts: Sequence[PartReceipt]) -> Iterator[list[dict[str, Any]]]:
        chunk: list[dict[str, Any]] = []
        size = 0
        for receipt in receipts:
            entry = _entry(receipt)
            length = len(json.dumps(entry)) + 2
            if length > LARGEST_TASK_BYTES:  # no provider's ids are like that
                self._drop(account_id, receipt)
                continue
            if len(chunk) == MOST_IN_A_TASK or size + length > LARGEST_TASK_BYTES:
                yield chunk
                chunk, size = [], 0
            chunk.append(entry)
            size += length
        if chunk:
            yield chunk

    def _drop(self, account_id: str, receipt: PartReceipt) -> None:
        log.receipt_dropped(account_id, receipt.receipt.provider_message_id, receipt.request_id)
        metrics.receipt("dropped")


# --- a receipt in a task's body


def _entry(receipt: PartReceipt) -> dict[str, Any]:
    what = receipt.receipt
    entry: dict[str, Any] = {"at": what.at.isoformat()}
    if receipt.correlation is not None:
        entry["echo"] = str(receipt.correlation)
    if what.provider_message_id is not None:
        entry["providerMessageId"] = what.provider_message_id
    match what:
        case Arrived():
            entry["status"] = what.progress.value
        case Bounced(error=error):
            entry["status"] = "failed"
            reason = error.message[:LONGEST_REASON]
            entry["error"] = {"code": error.code.value, "message": reason, "retryable": error.retryable}
        case _:
            assert_never(what)
    return entry


class _Model(BaseModel):
    model_config = ConfigDict(extra="ignore")


class _Error(_Model):
    code: ErrorCode = ErrorCode.REJECTED
    message: str = ""
    retryable: bool = False


class _Receipt(_Model):
    status: Progress | Literal["failed"]
    at: AwareDatetime
    echo: str | None = None
    providerMessageId: Annotated[str, StringConstraints(min_length=1)] | None = None
    error: _Error = _Error()


class _Batch(_Model):
    accountId: AccountId
    looks: Annotated[int, Field(ge=0, le=100)] = 0
    receipts: Annotated[tuple[_Receipt, ...], Field(min_length=1, max_length=MOST_IN_A_TASK)]


def parse_batch(body: dict[str, Any]) -> LateBatch:
    """Raises `BadBatch`."""
    try:
        batch = _Batch.model_validate(body)
    except (ValidationError, RecursionError) as error:
        raise BadBatch(_fault(error)) from None
    receipts = tuple(_part_receipt(receipt) for receipt in batch.receipts)
    return LateBatch(account_id=batch.accountId, looks=batch.looks, receipts=receipts)


def _part_receipt(raw: _Receipt) -> PartReceipt:
    correlation = None if raw.echo is None else Correlation.parse(raw.echo)
    if raw.echo is not None and correlation is None:
        raise BadBatch("a receipt task echoes a mark that is not ours")
    if raw.status != "failed":
        arrived = Arrived(progress=raw.status, at=raw.at, provider_message_id=raw.providerMessageId)
        return PartReceipt(receipt=arrived, correlation=correlation)
    reason = raw.error
    error = DeliveryError(code=reason.code, message=reason.message, retryable=reason.retryable, at=raw.at)
    return PartReceipt(receipt=Bounced(error=error, provider_message_id=raw.providerMessageId), correlation=correlation)


def _fault(error: ValidationError | RecursionError) -> str:
    if isinstance(error, RecursionError):
        return "a receipt task is nested too deeply"
    fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return f"a receipt task has a fault at {'.'.join(map(str, fault['loc'])) or 'its top'}: {fault['type']}"
