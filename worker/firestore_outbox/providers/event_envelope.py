"""Our own form of a webhook's body, read: `{"events": [{"type": "receipt" | "inbound" | "session", …}]}`.

It is what the simulator posts, and what a receiver of signed webhooks posts back (docs/providers.md). Each event stands
for itself: one that cannot be read is `Unrecognised`, and the others still count.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, assert_never

from pydantic import (
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
)

from firestore_outbox.messages.correlation import Correlation
from firestore_outbox.messages.limits import MAX_PARTS, MAX_TEXT
from firestore_outbox.messages.model import Part
from firestore_outbox.providers.long_text import text_parts
from firestore_outbox.providers.outcome import DeliveryError, ErrorCode
from firestore_outbox.providers.protocol import (
    InboundMessage,
    PartReceipt,
    SessionChanged,
    Unrecognised,
    WebhookEvent,
)
from firestore_outbox.providers.reading import NOT_JSON, cleaned, event_in, json_in
from firestore_outbox.receipts.rules import Arrived, Bounced, Progress, Receipt

MAX_EVENTS = 1_000
_WRITTEN = frozenset({"text", "caption", "filename"})
"""The fields of a part that hold what a person wrote."""

_Identity = Annotated[str, StringConstraints(min_length=1, max_length=512)]


class _Event(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")
    at: AwareDatetime


class _Failure(BaseModel):
    code: Annotated[str, StringConstraints(max_length=100)] = ""
    message: Annotated[str, StringConstraints(max_length=500)] = ""


class _Receipt(_Event):
    type: Literal["receipt"]
    providerMessageId: _Identity
    status: Progress | Literal["failed"]
    echo: Annotated[str, StringConstraints(max_length=512)] | None = None
    error: _Failure | None = None


def _within_limits(parts: Any) -> Any:
    """The parts as a document can store them: a text that is too long for one part becomes several."""
    if not isinstance(parts, list) or not 1 <= len(parts) <= MAX_PARTS:
        return parts
    made: list[Any] = []
    for number, given in enumerate(parts):
        part = _with_clean_texts(given)
        text = part.get("text") if isinstance(part, dict) and part.get("type") == "text" else None
        if isinstance(text, str) and len(text) > MAX_TEXT:
            room = MAX_PARTS - len(made) - (len(parts) - number - 1)
            made += [piece.model_dump() for piece in text_parts(text, room)]
        else:
            made.append(part)
    return made


def _with_clean_texts(part: Any) -> Any:
    if not isinstance(part, dict):
        return part
    return {
        name: cleaned(value) if name in _WRITTEN and isinstance(value, str) else value for name, value in part.items()
    }


class _Inbound(_Event):
    type: Literal["inbound"]
    providerMessageId: _Identity
    sender: Annotated[str, StringConstraints(pattern=r"^[^/\s]+$", max_length=256), Field(alias="from")]
    parts: Annotated[
        tuple[Annotated[Part, Field(discriminator="type")], ...],
        Field(min_length=1, max_length=MAX_PARTS),
        BeforeValidator(_within_limits),
    ]


class _Session(_Event):
    type: Literal["session"]
    status: Literal["up", "down"]


_ANY: TypeAdapter[_Receipt | _Inbound | _Session] = TypeAdapter(
    Annotated[_Receipt | _Inbound | _Session, Field(discriminator="type")]
)


def events_in(raw_body: bytes) -> tuple[WebhookEvent, ...]:
    body = json_in(raw_body)
    if body is NOT_JSON:
        return (NOT_JSON,)
    events = body.get("events") if isinstance(body, dict) else None
    if not isinstance(events, list):
        return (Unrecognised(detail="the body has no list of events"),)
    if len(events) > MAX_EVENTS:
        return (Unrecognised(detail=f"the body has more than {MAX_EVENTS:,} events"),)
    return tuple(event_in(_event, event) for event in events)


def _event(raw: Any) -> WebhookEvent:
    event = _ANY.validate_python(raw)
    match event:
        case _Receipt():
            return _part_receipt(event)
        case _Inbound():
            return InboundMessage(
                provider_message_id=event.providerMessageId, sender=event.sender, at=event.at, parts=event.parts
            )
        case _Session():
            return SessionChanged(connected=event.status == "up", at=event.at)
        case _:
            assert_never(event)


def _part_receipt(event: _Receipt) -> PartReceipt | Unrecognised:
    correlation = None if event.echo is None else Correlation.parse(event.echo)
    if event.echo is not None and correlation is None:
        return Unrecognised(detail="a receipt echoes a mark that is not ours")
    return PartReceipt(receipt=_receipt(event), correlation=correlation)


def _receipt(event: _Receipt) -> Receipt:
    if event.status != "failed":
        return Arrived(progress=event.status, at=event.at, provider_message_id=event.providerMessageId)
    failure = event.error or _Failure()
    code = ErrorCode(failure.code) if failure.code in set(ErrorCode) else ErrorCode.REJECTED
    error = DeliveryError(code=code, message=failure.message, retryable=False, at=event.at)
    return Bounced(error=error, provider_message_id=event.providerMessageId)
