"""A message: its parts and its outbox document. Its states are in messages/states.py.

Who is authoritative: the outbox document says whether the message is still to be sent; the thread's message document
shows people how far it came. The client writes both once, as `queued`; from then on only the worker writes, except for
`cancelRequested`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from firestore_outbox.accounts.window import Window
from firestore_outbox.messages import faults
from firestore_outbox.messages.checked_fields import Ciphertext, KeyVersion, MediaId, MediaType, fault
from firestore_outbox.messages.limits import (
    MAX_LANGUAGE,
    MAX_NAME,
    MAX_PARTS,
    MAX_PARTS_BYTES,
    MAX_TEXT,
    MIN_LANGUAGE,
    bytes_of,
)
from firestore_outbox.messages.priority import Priority
from firestore_outbox.messages.states import TRANSITIONS, Event, IllegalTransition, OutboxStatus
from firestore_outbox.messages.template_values import Params, TemplateValues, texts_of
from firestore_outbox.providers.outcome import DeliveryError, ErrorCode

KEEP_ENDED = timedelta(days=30)
"""How long a document stays after its end, for the TTL policy."""

Text = Annotated[str, StringConstraints(min_length=1, max_length=MAX_TEXT)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=MAX_NAME)]
Language = Annotated[str, StringConstraints(min_length=MIN_LANGUAGE, max_length=MAX_LANGUAGE)]


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
    language: Language
    params: Params
    """The values of the template's placeholders: the body's in order, or those of header, body and buttons."""

    @property
    def values(self) -> TemplateValues:
        """The same in one form."""
        return self.params if isinstance(self.params, TemplateValues) else TemplateValues(body=self.params)


class SealedPart(_Part):
    """A text or a template that only the account's private key opens. sealing/envelope.py has its form."""

    type: Literal["sealed"]
    keyVersion: KeyVersion
    """Which of the account's keys opens it."""
    ciphertext: Ciphertext


Part = TextPart | MediaPart | TemplatePart
"""What an adapter sends."""
StoredPart = Part | SealedPart
"""What a document may hold."""


P = TypeVar("P", bound=StoredPart)


def _are_small_enough(parts: list[P]) -> list[P]:
    size = sum(bytes_of(text) for part in parts for text in _texts(part))
    if size > MAX_PARTS_BYTES:
        raise fault(faults.too_many_bytes(size, MAX_PARTS_BYTES))
    return parts


def _texts(part: StoredPart) -> Iterator[str]:
    for value in part.__dict__.values():
        if isinstance(value, str):
            yield value
        elif isinstance(value, tuple | TemplateValues):
            yield from texts_of(value)


Parts = Annotated[
    list[Annotated[StoredPart, Field(discriminator="type")]],
    Field(min_length=1, max_length=MAX_PARTS, fail_fast=True),
    AfterValidator(_are_small_enough),
]
"""The parts of a message. Validation stops at the first one that is wrong: a document may have very many."""
ClearParts = Annotated[
    list[Annotated[Part, Field(discriminator="type")]],
    Field(min_length=1, max_length=MAX_PARTS, fail_fast=True),
    AfterValidator(_are_small_enough),
]
"""The parts of a run's messages. None is sealed: a ciphertext belongs to one message, and a run makes many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxMessage:
    """A valid `outbox/{requestId}` document. validation.py makes it; only the methods below change it."""

    # Chosen by the client; these never change.
    request_id: str
    account_id: str
    thread_id: str
    to: str
    parts: tuple[StoredPart, ...]
    created_at: datetime
    created_by: str | None = None
    window: Window | None = None
    """Set on the messages of a run that goes on when its window opens again."""
    hours: tuple[Window, ...] = ()
    """The recipient's hours, on each clock that it may have: all must be open. Set on the messages of a run."""
    run_id: str | None = None
    target_id: str | None = None
    priority: Priority = Priority.NORMAL
    """Its place among the messages of its account."""

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
    instead: TemplatePart | None = None
    """What goes in place of its parts. Set once, when the provider refused them because the recipient has not written
    lately; stays afterwards."""
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

    @property
    def as_sent(self) -> OutboxMessage:
        """With the parts that go to the provider."""
        return self if self.instead is None else _evolved(self, parts=(self.instead,))

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

    def postponed(self, *, to: datetime, send_by: datetime | None, error: DeliveryError) -> OutboxMessage:
        """To a later day, still in the queue. `error` says why, unless an earlier attempt left a doubt."""
        last_error = self.last_error if self.maybe_sent else error
        return _evolved(
            self, status=_next(self, Event.DEFER), next_attempt_at=to, send_by=send_by, last_error=last_error
        )

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
