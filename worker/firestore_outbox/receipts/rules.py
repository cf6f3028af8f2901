"""A receipt from the provider: what it means for the message people see, and for the document we work on.

Receipts come late, twice, out of order, and before our own completion. Who is authoritative: the furthest news. The
status only moves forward; a time that is still empty may be filled later, each once. Two clocks set these times, the
worker's and the provider's, and they differ by some milliseconds or more. So a receipt's time is moved between those
that are set already: sentAt <= deliveredAt <= readAt always holds.

A receipt also proves that the message went out. So while the message is still shown as `queued`, the outbox document
has a say too:

    outbox document            good receipt        bad receipt
    sending, uncertain         sent                failed
    queued after an attempt    sent                ignored: it will be tried again; but failed, if it tells of a part
                                                   that will not
    queued, never claimed      ignored: not ours   ignored
    ended                      ignored             ignored

A receipt of an earlier series of sends is old news: all of them had failed before an operator put the message back.

From `sent` on, the outbox document need not be read, except for a bad receipt, which also marks it `failed` so that
an operator can find and redrive it. A crash before the writes (one commit) leaves nothing; the provider repeats itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import assert_never

from firestore_outbox.messages.correlation import Correlation
from firestore_outbox.messages.model import OutboxMessage
from firestore_outbox.messages.states import SHOWN_ENDS, MessageStatus, OutboxStatus, advances
from firestore_outbox.providers.outcome import DeliveryError, ErrorCode


class Progress(StrEnum):
    """How far a message got."""

    SENT = "sent"
    DELIVERED = "delivered"
    READ = "read"


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrived:
    """A good receipt: the message was sent, delivered or read."""

    progress: Progress
    at: datetime
    provider_message_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounced:
    """A bad receipt: the provider could not deliver the message."""

    error: DeliveryError
    provider_message_id: str | None = None

    @property
    def at(self) -> datetime:
        return self.error.at


Receipt = Arrived | Bounced


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownMessage:
    """What receipts can change of `threads/{threadId}/messages/{requestId}`. Each time is set once."""

    status: MessageStatus
    """Moves forward with completion and receipts."""
    series: int = 0
    """The series of sends that counts. Moves with the outbox document's."""
    provider_message_id: str | None = None
    """Set with `sent`, by the completion or by a receipt, the first of them."""
    sent_at: datetime | None = None
    delivered_at: datetime | None = None
    read_at: datetime | None = None
    failed_at: datetime | None = None
    error: DeliveryError | None = None
    """Set with `failed`."""


class Because(StrEnum):
    OLD_NEWS = "old_news"
    """Nothing in it that we did not know."""
    ENDED = "ended"
    """The message has ended; ends are ends."""
    NOT_OURS = "not_ours"
    """We never called the provider for this message."""
    WILL_RETRY = "will_retry"
    """An earlier attempt failed, and the next one is already due."""


@dataclass(frozen=True, slots=True)
class Advance:
    shown: ShownMessage
    """To be written."""
    outbox: OutboxMessage | None
    """To be written in the same commit, if not None."""


@dataclass(frozen=True, slots=True)
class Ignored:
    because: Because


def needs_outbox(shown: ShownMessage, receipt: Receipt) -> bool:
    """Whether the outbox document must be read too. Mostly it need not: one read, one write."""
    return shown.status is MessageStatus.QUEUED or (
        isinstance(receipt, Bounced) and advances(shown.status, MessageStatus.FAILED)
    )


def apply(
    shown: ShownMessage, receipt: Receipt, outbox: OutboxMessage | None = None, *, mark: Correlation | None = None
) -> Advance | Ignored:
    """`outbox` is None if it was not needed, or is gone; `mark` names the part and series it is about, if it came."""
    if mark is not None and mark.series < shown.series:
        return Ignored(Because.OLD_NEWS)
    if shown.status is MessageStatus.QUEUED:
        return _settle(shown, receipt, outbox, mark)
    moved = _moved(shown, receipt)
    if moved == shown:
        return Ignored(Because.ENDED if shown.status in SHOWN_ENDS else Because.OLD_NEWS)
    if isinstance(receipt, Bounced) and outbox is not None and outbox.status is OutboxStatus.SENT:
        return Advance(moved, _settled(outbox, receipt))
    return Advance(moved, None)


def _settle(
    shown: ShownMessage, receipt: Receipt, outbox: OutboxMessage | None, mark: Correlation | None
) -> Advance | Ignored:
    """A receipt that overtook our completion, or ends a doubt."""
    if outbox is None or outbox.attempts == 0:
        return Ignored(Because.NOT_OURS)
    is_done_with = mark is not None and mark.part < outbox.parts_sent
    match outbox.status:
        case OutboxStatus.QUEUED if isinstance(receipt, Bounced) and not is_done_with:
            return Ignored(Because.WILL_RETRY)
        case OutboxStatus.QUEUED | OutboxStatus.SENDING | OutboxStatus.UNCERTAIN:
            settled = _settled(outbox, receipt)
            moved = _moved(shown, receipt)
            return Advance(replace(moved, sent_at=moved.sent_at or settled.sent_at), settled)
        case OutboxStatus.SENT:
            return Advance(_moved(replace(shown, sent_at=shown.sent_at or outbox.sent_at), receipt), None)
        case OutboxStatus.FAILED | OutboxStatus.SKIPPED | OutboxStatus.CANCELLED:
            return Ignored(Because.ENDED)
        case _:
            assert_never(outbox.status)


def _settled(outbox: OutboxMessage, receipt: Receipt) -> OutboxMessage:
    match receipt:
        case Arrived():
            return outbox.sent(provider_message_id=receipt.provider_message_id, at=receipt.at)
        case Bounced(error=error) if error.code is ErrorCode.OUTCOME_UNKNOWN:
            return outbox.failed(error)  # a person's word: what is known of single parts stays known
        case Bounced(error=error):
            return outbox.bounced(error)
        case _:
            assert_never(receipt)


def _moved(shown: ShownMessage, receipt: Receipt) -> ShownMessage:
    match receipt:
        case Arrived():
            return _progressed(shown, receipt)
        case Bounced():
            if not advances(shown.status, MessageStatus.FAILED):
                return shown
            return replace(shown, status=MessageStatus.FAILED, failed_at=receipt.at, error=receipt.error)
        case _:
            assert_never(receipt)


def _progressed(shown: ShownMessage, receipt: Arrived) -> ShownMessage:
    if shown.status in SHOWN_ENDS:
        return shown
    to = MessageStatus(receipt.progress.value)
    status = to if advances(shown.status, to) else shown.status
    provider_message_id = shown.provider_message_id or receipt.provider_message_id
    sent_at, delivered_at, read_at = shown.sent_at, shown.delivered_at, shown.read_at
    match receipt.progress:
        case Progress.SENT:
            sent_at = sent_at or _between(None, receipt.at, delivered_at or read_at)
        case Progress.DELIVERED:
            delivered_at = delivered_at or _between(sent_at, receipt.at, read_at)
        case Progress.READ:
            read_at = read_at or _between(delivered_at or sent_at, receipt.at, None)
        case _:
            assert_never(receipt.progress)
    return replace(
        shown,
        status=status,
        provider_message_id=provider_message_id,
        sent_at=sent_at,
        delivered_at=delivered_at,
        read_at=read_at,
    )


def _between(earliest: datetime | None, at: datetime, latest: datetime | None) -> datetime:
    """The time, moved into the bounds that there are."""
    if earliest is not None and at < earliest:
        return earliest
    return latest if latest is not None and at > latest else at
