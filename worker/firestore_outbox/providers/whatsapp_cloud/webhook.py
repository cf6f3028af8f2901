"""Meta's webhook body, read: `{"object", "entry": [{"changes": [{"field", "value": {"metadata", "statuses",
"messages"}}]}]}`.

`metadata.phone_number_id` names the number, and so the account, that the statuses and messages beside it belong to: one
app secret and one callback address serve all numbers of an app.

Every entry, change, status and message is walked; each stands for itself, and one that cannot be read is `Unrecognised`
while the others still count. Prices, conversations and contacts beside them are passed over.

    statuses   sent, delivered, read; `played` (a voice message) is read, too; failed, with a code
    messages   text and media as they are. A button or a choice becomes the text that was on it, a reaction its emoji, a
               place or a contact card a line of text. The rest (unsupported, orders, system notes) is Unrecognised.

A file that a person sent is a media part whose mediaId is `whatsapp_cloud:` and Meta's own id of it. The prefix tells
it from the files of ours, which were uploaded here. To see it, ask `GET {base}/{id}` with the account's
token for its address; Meta keeps it for some days only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from firestore_outbox.messages.correlation import Correlation
from firestore_outbox.messages.model import MediaPart, Part
from firestore_outbox.providers.answers import LONGEST_DETAIL
from firestore_outbox.providers.long_text import shortened, text_parts
from firestore_outbox.providers.protocol import InboundMessage, PartReceipt, Unrecognised, WebhookEvent, number_from
from firestore_outbox.providers.reading import NOT_JSON, event_in, json_in
from firestore_outbox.providers.whatsapp_cloud.codes import failure
from firestore_outbox.receipts.rules import Arrived, Bounced, Progress, Receipt

MAX_EVENTS = 1_000
"""Meta puts no more into one body."""
MEDIA_PREFIX = "whatsapp_cloud:"

PROGRESS: Mapping[str, Progress] = {
    "sent": Progress.SENT,
    "delivered": Progress.DELIVERED,
    "read": Progress.READ,
    "played": Progress.READ,
}
MEDIA = frozenset({"image", "video", "audio", "voice", "document", "sticker"})

_NAME = re.compile(r"[a-z_]{1,40}", re.ASCII)


def _seconds(value: Any) -> datetime:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 11:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 36:
        raise ValueError("no time")
    return datetime.fromtimestamp(value, UTC)


_Time = Annotated[datetime, BeforeValidator(_seconds)]
_Identity = Annotated[str, StringConstraints(min_length=1, max_length=512)]


class _Error(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")
    code: int | None = None
    title: str = ""


class _Status(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")
    id: _Identity
    status: Annotated[str, StringConstraints(max_length=40)]
    timestamp: _Time
    biz_opaque_callback_data: Annotated[str, StringConstraints(max_length=512)] | None = None
    errors: tuple[_Error, ...] | None = None


class _Message(BaseModel):
    """What all messages have; the rest is read by its type."""

    model_config = ConfigDict(frozen=True, extra="ignore")
    id: _Identity
    sender: Annotated[str, StringConstraints(pattern=r"^[^/\s]+$", max_length=256), Field(alias="from")]
    timestamp: _Time
    type: Annotated[str, StringConstraints(max_length=40)]


def events_in(raw_body: bytes) -> tuple[WebhookEvent, ...]:
    body = json_in(raw_body)
    if body is NOT_JSON:
        return (NOT_JSON,)
    if not isinstance(body, dict) or not isinstance(body.get("entry"), list):
        return (Unrecognised(detail="the body has no list of entries"),)
    events: list[WebhookEvent] = []
    for event in _walked(body["entry"]):
        if len(events) == MAX_EVENTS:
            events.append(Unrecognised(detail=f"the body has more than {MAX_EVENTS:,} events; the rest is left out"))
            break
        events.append(event)
    return tuple(events)


def _walked(entries: list[Any]) -> Iterator[WebhookEvent]:
    for entry in entries:
        changes = _list(entry, "changes")
        if changes is None:
            yield Unrecognised(detail="an entry has no list of changes")
            continue
        for change in changes:
            yield from _change(change)


def _change(change: Any) -> Iterator[WebhookEvent]:
    name, value = _field(change, "field"), _field(change, "value")
    if name != "messages" or not isinstance(value, dict):
        yield Unrecognised(detail=f"a change that is not used here: {_named(name)}")
        return
    number = number_from(_field(_field(value, "metadata"), "phone_number_id"))
    for kind, read in (("statuses", _status), ("messages", _message)):
        items = _list(value, kind)
        if items is None and kind in value:
            yield Unrecognised(detail=f"{kind} are no list")
        for item in items or ():
            event = event_in(read, item)
            yield event if isinstance(event, Unrecognised) else replace(event, number=number)
    for error in _list(value, "errors") or ():
        yield Unrecognised(detail=f"WhatsApp tells of an error: code {_code(error)}")


# --- receipts


def _status(item: Any) -> WebhookEvent:
    status = _Status.model_validate(item)
    echo = status.biz_opaque_callback_data
    correlation = Correlation.parse(echo) if echo else None
    if echo and correlation is None:
        return Unrecognised(detail="a receipt echoes a mark that is not ours")
    receipt = _receipt(status)
    if receipt is None:
        return Unrecognised(detail=f"a receipt of a kind that is not used here: {_named(status.status)}")
    return PartReceipt(receipt=receipt, correlation=correlation)


def _receipt(status: _Status) -> Receipt | None:
    if status.status in PROGRESS:
        return Arrived(progress=PROGRESS[status.status], at=status.timestamp, provider_message_id=status.id)
    if status.status != "failed":
        return None
    error = status.errors[0] if status.errors else _Error()
    said = error.title[:LONGEST_DETAIL] or "WhatsApp gave no reason"
    return Bounced(error=failure(error.code, said, status.timestamp), provider_message_id=status.id)


# --- inbound


def _message(item: Any) -> WebhookEvent:
    message = _Message.model_validate(item)
    content = _field(item, message.type)
    if message.type in MEDIA:
        parts: tuple[Part, ...] = (_media(content),)
    else:
        parts = text_parts(words) if (words := _words(message.type, content)).strip() else ()
    if not parts:
        return Unrecognised(detail=f"a message of a kind that is not used here: {_named(message.type)}")
    return InboundMessage(provider_message_id=message.id, sender=message.sender, at=message.timestamp, parts=parts)


def _media(content: Any) -> MediaPart:
    identity, caption = _text(content, "id"), _text(content, "caption")
    return MediaPart(
        type="media",
        mediaId=f"{MEDIA_PREFIX}{identity}" if identity else "",
        mimeType=_text(content, "mime_type") or "application/octet-stream",
        caption=shortened(caption) or None,
        filename=shortened(_text(content, "filename"), 512) or None,
    )


def _words(kind: str, content: Any) -> str:
    match kind:
        case "text":
            return _text(content, "body")
        case "button":
            return _text(content, "text")
        case "interactive":
            replies = (_field(content, name) for name in ("button_reply", "list_reply"))
            return next((title for reply in replies if (title := _text(reply, "title"))), "")
        case "reaction":
            return _text(content, "emoji")  # without one, a reaction was taken back
        case "location":
            return _place(content)
        case "contacts":
            return "\n".join(filter(None, map(_card, content[:100]))) if isinstance(content, list) else ""
        case _:
            return ""


def _place(content: Any) -> str:
    latitude, longitude = _field(content, "latitude"), _field(content, "longitude")
    if not isinstance(latitude, int | float) or not isinstance(longitude, int | float):
        return ""
    names = [_text(content, "name"), _text(content, "address"), f"{latitude}, {longitude}"]
    return "\n".join(filter(None, names))


def _card(contact: Any) -> str:
    phones = [_text(phone, "phone") for phone in (_list(contact, "phones") or ())[:20]]
    return " ".join(filter(None, (_text(_field(contact, "name"), "formatted_name"), *phones)))


# --- fields


def _field(fields: Any, name: str) -> Any:
    return fields.get(name) if isinstance(fields, dict) else None


def _list(fields: Any, name: str) -> list[Any] | None:
    value = _field(fields, name)
    return value if isinstance(value, list) else None


def _text(fields: Any, name: str) -> str:
    value = _field(fields, name)
    return value if isinstance(value, str) else ""


def _code(error: Any) -> str:
    code = _field(error, "code")
    return str(code) if isinstance(code, int) and 0 <= code < 1 << 31 else "unknown"


def _named(name: Any) -> str:
    return name if isinstance(name, str) and _NAME.fullmatch(name) else "without a name"
