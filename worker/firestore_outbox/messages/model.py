"""A message: its parts, its outbox document, its states.

Who is authoritative: the outbox document says whether the message is still to be sent; the thread's message document
shows people how far it came. The client writes both once, as `queued`; from then on only the worker writes, but for
`cancelRequested`.

The life of an outbox document is TRANSITIONS below: a pair that is not in the table is an error in the program, and
raises. What a crash leaves behind in each state:

    queued      nothing is in doubt; the sweep wakes the lane
    sending     perhaps sent: an unknown outcome, settled by the lane's next holder (attempt.py) or a receipt
    uncertain   perhaps sent, and known to be so: settled by a receipt, or by the account's `onUncertain`
    the others  ends; nothing is left to do, except that a provider may fail what it had accepted, and an operator
                may put a failed message back into the queue

The message document's status moves forward only: queued < sent < delivered < read; failed, skipped and cancelled are
ends, and a failure does not undo a delivery (`advances`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from enum import StrEnum
from operator import attrgetter
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, field_validator

from firestore_outbox.accounts.window import Window
from firestore_outbox.messages import faults
from firestore_outbox.messages.checked_fields import MediaId, MediaType, fault
from firestore_outbox.messages.limits import (
    MAX_LANGUAGE,
    MAX_NAME,
    MAX_PARAM,
    MAX_PARAMS,
    MAX_PARAMS_BYTES,
    MAX_PARTS,
    MAX_PARTS_BYTES,
    MAX_TEXT,
    MIN_LANGUAGE,
    bytes_of,
)
from firestore_outbox.providers.outcome import DeliveryError, ErrorCode

KEEP_ENDED = timedelta(days=30)
"""How long a document stays after its end, for the TTL policy."""

Text = Annotated[str, StringConstraints(min_length=1, max_length=MAX_TEXT)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=MAX_NAME)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")


class TextPart(_Part):
    type: Literal["text"]
    text: Text


class MediaPart(_Part):
    type: Literal["media"]
    mediaId: MediaId
    mimeType: MediaType
    caption: Text | None = None
    filename: Name | None = None


class TemplatePart(_Part):
    type: Literal["template"]
    name: Name
    language: Annotated[str, StringConstraints(min_length=MIN_LANGUAGE, max_length=MAX_LANGUAGE)]
    params: Annotated[
        tuple[Annotated[str, StringConstraints(max_length=MAX_PARAM)], ...],
        Field(strict=False, max_length=MAX_PARAMS, fail_fast=True),
    ]
    """The values of the template's placeholders, in order."""

    @field_validator("params")
    @classmethod
    def _fit_together(cls, params: tuple[str, ...]) -> tuple[str, ...]:
        size = sum(map(bytes_of, params))
        if size > MAX_PARAMS_BYTES:
            raise fault(faults.too_many_bytes(size, MAX_PARAMS_BYTES))
        return params


Part = TextPart | MediaPart | TemplatePart


def _are_small_enough(parts: list[Part]) -> list[Part]:
    size = sum(bytes_of(text) for part in parts for text in _texts(part))
    if size > MAX_PARTS_BYTES:
        raise fault(faults.too_many_bytes(size, MAX_PARTS_BYTES))
    return parts


def _texts(part: Part) -> Iterator[str]:
    for value in part.__dict__.values():
        if isinstance(value, str):
            yield value
        elif value is not None:
            yield from value


Parts = Annotated[
    list[Annotated[Part, Field(discriminator="type")]],
    Field(min_length=1, max_length=MAX_PARTS, fail_fast=True),
    AfterValidator(_are_small_enough),
]
"""The parts of a message. Validation stops at the first one that is wrong: a document may have very many."""


class OutboxStatus(StrEnum):
    QUEUED = "queued"
    SENDING = "sending"
    SENT = "sent"
    FAILED = "failed"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"
    UNCERTAIN = "uncertain"


class MessageStatus(StrEnum):
    """The status of a thread's message document."""

    QUEUED = "queued"
    SENT = "sent"
    DELIVERED = "delivered"
    READ = "read"
    FAILED = "failed"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"


class Event(StrEnum):
    CLAIM = "claim"
    CONFIRM = "confirm"
    """The provider accepted it, by its answer or by a receipt."""
    RETRY = "retry"
    REJECT = "reject"
    EXPIRE = "expire"
    """Too late to send: the deadline passed or the window closed."""
    CANCEL = "cancel"
    DOUBT = "doubt"
    REDRIVE = "redrive"
    DEFER = "defer"
    """Its window closed, and it goes on when the window opens again."""


_S, _E = OutboxStatus, Event

TRANSITIONS: dict[tuple[OutboxStatus, Event], OutboxStatus] = {
    (_S.QUEUED, _E.CLAIM): _S.SENDING,
    (_S.QUEUED, _E.CANCEL): _S.CANCELLED,
    (_S.QUEUED, _E.EXPIRE): _S.SKIPPED,
    (_S.QUEUED, _E.DEFER): _S.QUEUED,
    (_S.QUEUED, _E.REJECT): _S.FAILED,
    (_S.QUEUED, _E.CONFIRM): _S.SENT,  # a receipt of an earlier attempt
    (_S.SENDING, _E.CONFIRM): _S.SENT,
    (_S.SENDING, _E.RETRY): _S.QUEUED,
    (_S.SENDING, _E.REJECT): _S.FAILED,
    (_S.SENDING, _E.EXPIRE): _S.SKIPPED,
    (_S.SENDING, _E.DOUBT): _S.UNCERTAIN,
    (_S.UNCERTAIN, _E.CONFIRM): _S.SENT,
    (_S.UNCERTAIN, _E.REJECT): _S.FAILED,
    (_S.UNCERTAIN, _E.RETRY): _S.QUEUED,
    (_S.UNCERTAIN, _E.DOUBT): _S.UNCERTAIN,  # the wait is over: held for a person
    (_S.SENT, _E.REJECT): _S.FAILED,  # accepted, and failed by the provider later
    (_S.FAILED, _E.REDRIVE): _S.QUEUED,
    (_S.UNCERTAIN, _E.REDRIVE): _S.QUEUED,  # a person decided to send it again
}

ENDED = frozenset({_S.SENT, _S.FAILED, _S.SKIPPED, _S.CANCELLED})

SHOWN_AS: dict[OutboxStatus, MessageStatus] = {
    _S.QUEUED: MessageStatus.QUEUED,
    _S.SENDING: MessageStatus.QUEUED,
    _S.UNCERTAIN: MessageStatus.QUEUED,
    _S.SENT: MessageStatus.SENT,
    _S.FAILED: MessageStatus.FAILED,
    _S.SKIPPED: MessageStatus.SKIPPED,
    _S.CANCELLED: MessageStatus.CANCELLED,
}
"""What people see of an outbox status: a message in flight or in doubt is still `queued` to them."""

SHOWN_ENDS = frozenset({MessageStatus.FAILED, MessageStatus.SKIPPED, MessageStatus.CANCELLED})

_RANK = {MessageStatus.QUEUED: 0, MessageStatus.SENT: 1, MessageStatus.DELIVERED: 2, MessageStatus.READ: 3}


class IllegalTransition(Exception):
    """A pair that TRANSITIONS does not have: an error in the program, never in the data."""


def advances(current: MessageStatus, to: MessageStatus) -> bool:
    """Whether `to` is forward of `current`. Ends are left by nothing; a delivery is not undone by a failure."""
    if current not in _RANK:
        return False
    if to not in _RANK:
        return _RANK[current] <= _RANK[MessageStatus.SENT]
    return _RANK[to] > _RANK[current]


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxMessage:
    """A valid `outbox/{requestId}` document. validation.py makes it; only the methods below change it."""

    # Chosen by the client; these never change.
    request_id: str
    account_id: str
    thread_id: str
    to: str
    parts: tuple[Part, ...]
    created_at: datetime
    created_by: str | None = None
    window: Window | None = None
    """Set on the messages of a run that goes on when its window opens again."""
    run_id: str | None = None
    target_id: str | None = None

    status: OutboxStatus = OutboxStatus.QUEUED
    """Moves with each event in TRANSITIONS."""
    next_attempt_at: datetime | None
    """The earliest time of the next attempt. Moves with each retry. While uncertain: when the wait for a receipt ends;
    None if an operator must decide. While queued: None if its run is paused."""
    send_by: datetime | None = None
    """The deadline. Set at creation; moves only with the window of a run that goes on the next day."""
    cancel_requested: bool = False
    """Set once, by the client, at any time."""
    attempts: int = 0
    """The number of claims. Never shrinks."""
    failures: int = 0
    """Attempts that failed because of the message, not of a throttle or of the account. Back to 0 on redrive."""
    parts_sent: int = 0
    """Parts accepted in earlier attempts. Grows when an attempt ends half-way; back to 0 when the provider fails a part
    that it had accepted."""
    series: int = 0
    """Grows on redrive of a message whose sends had all failed. Each part carries it to the provider, in its mark and
    in its key: receipts of an earlier series do not count for this one, and a provider that delivers each key once
    delivers again. It stays if the outcome of an earlier send is unknown: a late receipt may then prove that the
    message arrived, and the same key keeps it from arriving twice."""
    doubted: bool = False
    """Set when the outcome of an attempt of this series is unknown. A later failure does not clear it; `sent` makes it
    irrelevant."""
    claimed_by: str | None = None
    """Owner and fence of the claim. Set by the claim, cleared by the next event."""
    lease_until: datetime | None = None
    """Set and cleared with claimed_by."""
    provider_message_id: str | None = None
    """Set with `sent`, or with an unknown outcome if the adapter knows it in advance. Cleared by a new series."""
    sent_at: datetime | None = None
    """Set with `sent`; cleared on redrive."""
    last_error: DeliveryError | None = None
    """Set by each attempt that did not end in `sent`; stays afterwards."""
    expire_at: datetime | None = None
    """Set at an end; cleared on redrive."""

    @property
    def order(self) -> tuple[datetime, datetime, str]:
        """The order within its thread and its lane; the claim query sorts in the same way."""
        return (self.next_attempt_at or self.created_at, self.created_at, self.request_id)

    @property
    def is_in_doubt(self) -> bool:
        """Whether the outcome of the last attempt is unknown."""
        is_unknown = self.last_error is not None and self.last_error.code is ErrorCode.OUTCOME_UNKNOWN
        return self.status is OutboxStatus.UNCERTAIN or is_unknown

    @property
    def maybe_sent(self) -> bool:
        """Whether an attempt may have reached the recipient."""
        return self.doubted or self.is_in_doubt

    def claimed(self, *, by: str, lease_until: datetime) -> OutboxMessage:
        return _evolved(
            self,
            status=_next(self, Event.CLAIM),
            attempts=self.attempts + 1,
            claimed_by=by,
            lease_until=lease_until,
        )

    def unclaimed(self) -> OutboxMessage:
        """Give the claim back unused: no call was made, and the order is unchanged."""
        return _evolved(self, status=_next(self, Event.RETRY), claimed_by=None, lease_until=None)

    def sent(self, *, provider_message_id: str | None, at: datetime) -> OutboxMessage:
        return _evolved(
            self,
            status=_next(self, Event.CONFIRM),
            provider_message_id=provider_message_id or self.provider_message_id,
            sent_at=at,
            claimed_by=None,
            lease_until=None,
            expire_at=at + KEEP_ENDED,
        )

    def requeued(
        self,
        *,
        at: datetime,
        error: DeliveryError,
        failures: int,
        parts_sent: int = 0,
        send_by: datetime | None = None,
    ) -> OutboxMessage:
        """Back to the queue for an attempt at `at`. `failures` is the new count, `parts_sent` this attempt's share;
        `send_by` is given if the deadline moved too."""
        return _evolved(
            self,
            status=_next(self, Event.RETRY),
            next_attempt_at=at,
            send_by=send_by or self.send_by,
            last_error=error,
            doubted=self.doubted or error.code is ErrorCode.OUTCOME_UNKNOWN,
            failures=failures,
            parts_sent=self.parts_sent + parts_sent,
            claimed_by=None,
            lease_until=None,
        )

    def failed(self, error: DeliveryError, *, parts_sent: int = 0) -> OutboxMessage:
        return self._ended(Event.REJECT, error, parts_sent=parts_sent)

    def bounced(self, error: DeliveryError) -> OutboxMessage:
        """The provider failed what it had accepted. It tells of a part; if the message goes again, it goes whole."""
        return _evolved(self.failed(error), parts_sent=0)

    def skipped(self, error: DeliveryError, *, parts_sent: int = 0) -> OutboxMessage:
        return self._ended(Event.EXPIRE, error, parts_sent=parts_sent)

    def cancelled(self, *, at: datetime) -> OutboxMessage:
        return _evolved(self, status=_next(self, Event.CANCEL), expire_at=at + KEEP_ENDED)

    def foretold(self, provider_message_id: str) -> OutboxMessage:
        """In doubt, but if it was sent, then under this id."""
        return _evolved(self, provider_message_id=provider_message_id)

    def deferred(self, *, to: datetime, send_by: datetime) -> OutboxMessage:
        """To the next opening of its window, still in the queue."""
        return _evolved(self, status=_next(self, Event.DEFER), next_attempt_at=to, send_by=send_by)

    def parked(self) -> OutboxMessage:
        """Out of sight of every lane, until its run is resumed."""
        return _evolved(self, status=_next(self, Event.DEFER), next_attempt_at=None)

    def unparked(self, *, at: datetime, send_by: datetime | None) -> OutboxMessage:
        return _evolved(self, status=_next(self, Event.DEFER), next_attempt_at=at, send_by=send_by)

    def in_doubt(
        self, *, resolve_at: datetime | None, error: DeliveryError, failures: int, parts_sent: int = 0
    ) -> OutboxMessage:
        """Perhaps sent. `resolve_at` is when to stop waiting for a receipt; None leaves it to a person."""
        return _evolved(
            self,
            status=_next(self, Event.DOUBT),
            next_attempt_at=resolve_at,
            last_error=error,
            doubted=True,
            failures=failures,
            parts_sent=self.parts_sent + parts_sent,
            claimed_by=None,
            lease_until=None,
        )

    def redriven(self, *, at: datetime) -> OutboxMessage:
        """An operator puts it back, with all its attempts before it."""
        again = _evolved(
            self,
            status=_next(self, Event.REDRIVE),
            next_attempt_at=at,
            failures=0,
            cancel_requested=False,
            sent_at=None,
            expire_at=None,
        )
        if self.is_in_doubt:
            return again
        return _evolved(again, series=self.series + 1, doubted=False, provider_message_id=None)

    def _ended(self, event: Event, error: DeliveryError, *, parts_sent: int) -> OutboxMessage:
        return _evolved(
            self,
            status=_next(self, event),
            last_error=error,
            parts_sent=self.parts_sent + parts_sent,
            claimed_by=None,
            lease_until=None,
            expire_at=error.at + KEEP_ENDED,
        )


_FIELDS = tuple(field.name for field in fields(OutboxMessage))
_values = attrgetter(*_FIELDS)
_set = object.__setattr__


def _evolved(message: OutboxMessage, **changes: Any) -> OutboxMessage:
    """As `dataclasses.replace`, in a third of the time: every message is changed several times on its way."""
    new = object.__new__(OutboxMessage)
    for name, value in zip(_FIELDS, _values(message), strict=True):
        _set(new, name, value)
    for name, value in changes.items():
        _set(new, name, value)
    return new


def _next(message: OutboxMessage, event: Event) -> OutboxStatus:
    try:
        return TRANSITIONS[message.status, event]
    except KeyError:
        raise IllegalTransition(f"{message.request_id}: no {event} from {message.status}") from None
