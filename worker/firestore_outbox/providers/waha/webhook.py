"""WAHA's webhook body, read: one event a request, `{"id", "timestamp", "event", "session", "payload"}`.

    message.ack, message.ack.group   what became of a message of ours
message, message.any             a person wrote; the second repeats the first, and tells of our own messages too
    session.status                   the session came up or went down

`session` names the account that an event belongs to. An acknowledgement of another sender's message, and news that say
nothing new (PENDING), give no event at all. Numbers may come as texts, and times in seconds or milliseconds. The sender
is named as an answer names the recipient: a person by the digits of the number, a group or a hidden person by the chat.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import unquote, urlsplit

from pydantic import ValidationError

from firestore_outbox.messages.limits import MAX_PARTS, MAX_TEXT
from firestore_outbox.messages.model import MediaPart, Part, TextPart
from firestore_outbox.providers.outcome import DeliveryError, ErrorCode
from firestore_outbox.providers.protocol import (
    InboundMessage,
    PartReceipt,
    SessionChanged,
    Unrecognised,
    WebhookEvent,
    number_from,
)
from firestore_outbox.providers.reading import NOT_JSON, cleaned, json_in
from firestore_outbox.providers.waha.codes import SESSION_STATES
from firestore_outbox.providers.waha.ids import address_of, is_from_me, message_id_in
from firestore_outbox.receipts.rules import Arrived, Bounced, Progress

ACKS: Mapping[int, Progress] = {
    1: Progress.SENT,
    2: Progress.DELIVERED,
    3: Progress.READ,
    4: Progress.READ,  # PLAYED: a voice message was heard
}
ACK_ERROR, ACK_PENDING = -1, 0
ACK_NAMES: Mapping[str, int] = {"ERROR": -1, "PENDING": 0, "SERVER": 1, "DEVICE": 2, "READ": 3, "PLAYED": 4}

OTHER_EVENTS = frozenset(
    {
        "message.reaction",
        "message.waiting",
        "message.edited",
        "message.revoked",
        "state.change",
        "presence.update",
        "chat.archive",
        "engine.event",
    }
)
OTHER_FAMILIES = ("group.", "poll.", "call.", "label.", "event.")
"""A subscription to everything brings these too; they are not used."""

_MILLISECONDS_FROM = 100_000_000_000
"""In seconds, this is the year 5138."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST = datetime(2200, 1, 1, tzinfo=UTC)
_LONGEST_MEDIA_ID = 512


def events_in(raw_body: bytes) -> tuple[WebhookEvent, ...]:
    body = json_in(raw_body)
    if body is NOT_JSON:
        return (NOT_JSON,)
    if not isinstance(body, dict) or not isinstance(payload := body.get("payload"), dict):
        return (Unrecognised(detail="the body is no event with a payload"),)
    name = body.get("event")
    found: WebhookEvent | None
    at = _time(body.get("timestamp")) or _time(payload.get("timestamp"))
    if name in ("message.ack", "message.ack.group"):
        found = _receipt(payload, at)
    elif name in ("message", "message.any"):
        found = _inbound(payload, at)
    elif name == "session.status":
        found = _session(payload, at)
    elif isinstance(name, str) and (name in OTHER_EVENTS or name.startswith(OTHER_FAMILIES)):
        found = None
    else:
        found = Unrecognised(detail="an event of a kind that we do not know")
    if found is None or isinstance(found, Unrecognised):
        return () if found is None else (found,)
    return (replace(found, number=number_from(body.get("session"))),)


def _receipt(payload: dict[str, Any], at: datetime | None) -> PartReceipt | Unrecognised | None:
    given = payload.get("id")
    if not isinstance(given, str) or (identity := message_id_in(given)) is None:
        return Unrecognised(detail="an acknowledgement names no message")
    if not _is_ours(payload, given):
        return None
    ack = _ack(payload)
    if ack is None or at is None:
        return Unrecognised(detail="an acknowledgement without its level or its time")
    if ack == ACK_PENDING:
        return None
    if ack == ACK_ERROR:
        error = DeliveryError(
            code=ErrorCode.REJECTED, message="WhatsApp did not take the message", retryable=False, at=at
        )
        return PartReceipt(receipt=Bounced(error=error, provider_message_id=identity), correlation=None)
    arrived = Arrived(progress=ACKS[ack], at=at, provider_message_id=identity)
    return PartReceipt(receipt=arrived, correlation=None)


def _is_ours(payload: dict[str, Any], identity: str) -> bool:
    stated = payload.get("fromMe")
    return stated if isinstance(stated, bool) else bool(is_from_me(identity))


def _ack(payload: dict[str, Any]) -> int | None:
    ack = _number(payload.get("ack"))
    if ack is not None and ack in ACK_NAMES.values():
        return int(ack)
    name = payload.get("ackName")
    return ACK_NAMES.get(name) if isinstance(name, str) else None


def _inbound(payload: dict[str, Any], at: datetime | None) -> InboundMessage | Unrecognised | None:
    given, chat = payload.get("id"), payload.get("from")
    if not isinstance(given, str) or message_id_in(given) is None:
        return Unrecognised(detail="an inbound message has no id")
    if _is_ours(payload, given):
        return None
    sender = address_of(chat) if isinstance(chat, str) else None
    if sender is None:
        return Unrecognised(detail="an inbound message comes from no chat that can be answered")
    written_at = _time(payload.get("timestamp")) or at
    if written_at is None:
        return Unrecognised(detail="an inbound message has no time")
    parts = _parts(payload, given)
    if not parts:
        return Unrecognised(detail="an inbound message has neither text nor a file")
    return InboundMessage(provider_message_id=given, sender=sender, at=written_at, parts=parts)


def _parts(payload: dict[str, Any], identity: str) -> tuple[Part, ...]:
    text = payload.get("body")
    texts = _pieces(cleaned(text)) if isinstance(text, str) else ()
    media = payload.get("media")
    if isinstance(media, dict) and payload.get("hasMedia") is not False:
        file = _file(media, identity, caption=texts[0] if texts else None)
        if file is not None:
            return (file, *(TextPart(type="text", text=piece) for piece in texts[1:MAX_PARTS]))
    return tuple(TextPart(type="text", text=piece) for piece in texts[:MAX_PARTS])


def _pieces(text: str) -> tuple[str, ...]:
    """WhatsApp's texts may be longer than one of our parts."""
    return tuple(text[start : start + MAX_TEXT] for start in range(0, len(text), MAX_TEXT)) if text.strip() else ()


def _file(media: dict[str, Any], identity: str, *, caption: str | None) -> MediaPart | None:
    """Named as the gateway names it under `/api/files`, or by the message if it kept no file."""
    mime_type, filename = media.get("mimetype"), media.get("filename")
    fields = {
        "type": "media",
        "mediaId": _file_name(media.get("url")) or identity,
        "mimeType": mime_type if isinstance(mime_type, str) else "application/octet-stream",
        "caption": caption,
        "filename": cleaned(filename) if isinstance(filename, str) and filename else None,
    }
    try:
        return MediaPart.model_validate(fields)
    except ValidationError:
        return None


def _file_name(url: Any) -> str:
    try:
        path = urlsplit(url).path if isinstance(url, str) else ""
    except ValueError:
        return ""
    name = unquote(path.rsplit("/", 1)[-1])
    return name if 0 < len(name) <= _LONGEST_MEDIA_ID and "/" not in name else ""


def _session(payload: dict[str, Any], at: datetime | None) -> SessionChanged | Unrecognised:
    status = payload.get("status")
    if not isinstance(status, str) or status not in SESSION_STATES or at is None:
        return Unrecognised(detail="news of a session without a status that we know, or without a time")
    return SessionChanged(connected=status == "WORKING", at=at, detail=status)


def _time(value: Any) -> datetime | None:
    number = _number(value)
    if number is None or number <= 0:
        return None
    seconds = number / 1000 if number >= _MILLISECONDS_FROM else number
    try:
        at = _EPOCH + timedelta(seconds=seconds)
    except OverflowError:
        return None
    return at if at < _LATEST else None


def _number(value: Any) -> float | None:
    """A finite number, also if it is written as a text."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if isinstance(value, str) and len(value) > 30:
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if abs(number) < 1e18 else None
