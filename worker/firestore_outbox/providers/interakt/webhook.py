"""Interakt's webhook body, read: `{"version", "timestamp", "type", "data": {"customer": {…}, "message": {…}}}`.

    message_api_sent, _delivered, _read, _failed    receipts, which echo `callbackData`
    message_received                                a person wrote
    anything else                                   campaigns, clicks, alerts: not ours

One body holds one event; a list of them is read as well. Nothing is promised about the types of fields, so each is
looked at before it is used, and times without a zone are UTC. A file is named by its address, which becomes the
mediaId, with its slashes escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from mimetypes import MimeTypes
from typing import Any
from urllib.parse import quote, urlsplit

from pydantic import ValidationError

from firestore_outbox.messages.correlation import Correlation
from firestore_outbox.messages.limits import MAX_PARTS, MAX_TEXT
from firestore_outbox.messages.model import MediaPart, Part, TextPart
from firestore_outbox.providers.answers import LONGEST_DETAIL
from firestore_outbox.providers.phone import international
from firestore_outbox.providers.protocol import InboundMessage, PartReceipt, Unrecognised, WebhookEvent
from firestore_outbox.providers.reading import NOT_JSON, cleaned, event_in, json_in
from firestore_outbox.providers.whatsapp_cloud.codes import failure
from firestore_outbox.receipts.rules import Arrived, Bounced, Progress, Receipt

MAX_EVENTS = 1_000
INBOUND = "message_received"
FAILED = "message_api_failed"

ARRIVALS: Mapping[str, tuple[Progress, str]] = {
    "message_api_sent": (Progress.SENT, ""),
    "message_api_delivered": (Progress.DELIVERED, "delivered_at_utc"),
    "message_api_read": (Progress.READ, "seen_at_utc"),
}
"""And which field of the message has the time; the event's own time is next."""

_LONGEST_ID = 512
_MILLISECONDS = 100_000_000_000
"""As seconds, that would be in the year 5138."""
_NAME = re.compile(r"[a-z0-9_]{1,60}", re.ASCII)
_MIME_TYPES = MimeTypes()
_USUAL_TYPES: Mapping[str, str] = {
    "image": "image/jpeg",
    "sticker": "image/webp",
    "video": "video/mp4",
    "audio": "audio/ogg",
    "voice": "audio/ogg",
}


def events_in(raw_body: bytes) -> tuple[WebhookEvent, ...]:
    body = json_in(raw_body)
    if body is NOT_JSON:
        return (NOT_JSON,)
    events = body if isinstance(body, list) else [body]
    if len(events) > MAX_EVENTS:
        return (Unrecognised(detail=f"the body has more than {MAX_EVENTS:,} events"),)
    return tuple(event_in(_event, event) for event in events)


def _event(event: Any) -> WebhookEvent:
    kind, data = _text(event, "type"), _object(event, "data")
    message = _object(data, "message")
    identity = _text(message, "id")
    if kind not in ARRIVALS and kind not in (INBOUND, FAILED):
        named = kind if _NAME.fullmatch(kind) else "without a name"
        return Unrecognised(detail=f"an event that is not used here: {named}")
    if not 1 <= len(identity) <= _LONGEST_ID:
        return Unrecognised(detail=f"{kind} without the id of a message")
    at = _time(_field(event, "timestamp"))
    if kind == INBOUND:
        return _inbound(data, message, identity, _time(message.get("received_at_utc")) or at)
    return _part_receipt(kind, message, identity, at)


# --- receipts


def _part_receipt(kind: str, message: Mapping[str, Any], identity: str, at: datetime | None) -> WebhookEvent:
    echo = _text(_object(_object(message, "meta_data"), "source_data"), "callback_data")
    correlation = Correlation.parse(echo) if echo else None
    if echo and correlation is None:
        return Unrecognised(detail="a receipt echoes a mark that is not ours")
    receipt = _receipt(kind, message, identity, at)
    if receipt is None:
        return Unrecognised(detail=f"{kind} without a time")
    return PartReceipt(receipt=receipt, correlation=correlation)


def _receipt(kind: str, message: Mapping[str, Any], identity: str, at: datetime | None) -> Receipt | None:
    if kind in ARRIVALS:
        progress, field = ARRIVALS[kind]
        when = _time(message.get(field)) or at
        return None if when is None else Arrived(progress=progress, at=when, provider_message_id=identity)
    if at is None:
        return None
    words = _text(message, "channel_failure_reason")[:LONGEST_DETAIL] or "Interakt gives no reason"
    return Bounced(error=failure(_whatsapp_code(message), words, at), provider_message_id=identity)


def _whatsapp_code(message: Mapping[str, Any]) -> int | None:
    """Interakt hands on WhatsApp's own code, as a number or as digits."""
    given = message.get("channel_error_code")
    code = str(given) if isinstance(given, int | str) else ""
    return int(code) if code.isascii() and code.isdigit() and len(code) <= 9 else None


# --- inbound


def _inbound(data: Mapping[str, Any], message: Mapping[str, Any], identity: str, at: datetime | None) -> WebhookEvent:
    sender, parts = _sender(_object(data, "customer")), tuple(_parts(message))
    if sender is None:
        return Unrecognised(detail=f"{INBOUND} without the sender's number")
    if at is None:
        return Unrecognised(detail=f"{INBOUND} without a time")
    if not parts:
        return Unrecognised(detail=f"{INBOUND} without anything to show")
    return InboundMessage(provider_message_id=identity, sender=sender, at=at, parts=parts)


def _sender(customer: Mapping[str, Any]) -> str | None:
    """In the form that we send to, so that an answer finds its thread."""
    code, national = (_digits(customer, name) for name in ("country_code", "phone_number"))
    return international(f"+{code}{national}" if code and national else f"+{_digits(customer, 'channel_phone_number')}")


def _digits(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    return str(value).removeprefix("+") if isinstance(value, int | str) else ""


def _parts(message: Mapping[str, Any]) -> Iterator[Part]:
    kind, words, url = (_text(message, name) for name in ("message_content_type", "message", "media_url"))
    words = words if kind.lower() in ("", "text") else _chosen(words)
    if url and (media := _media(url, kind.lower(), words)):
        yield media
        return
    text = "\n".join(filter(None, (words, url)))
    if text.strip():
        starts = range(0, min(len(text), MAX_TEXT * MAX_PARTS), MAX_TEXT)
        yield from (TextPart(type="text", text=text[start : start + MAX_TEXT]) for start in starts)


def _media(url: str, kind: str, caption: str) -> MediaPart | None:
    """None if its address is none, or too long for an id: it is shown as text then."""
    try:
        address = urlsplit(url)
        if address.scheme not in ("http", "https"):
            return None
        found = _MIME_TYPES.guess_type(address.path)[0]
        return MediaPart(
            type="media",
            mediaId=quote(url, safe=""),
            mimeType=found or _USUAL_TYPES.get(kind, "application/octet-stream"),
            caption=caption[:MAX_TEXT] or None,
        )
    except (ValueError, ValidationError):
        return None


def _chosen(words: str) -> str:
    """The title of the button or line that was chosen; anything else as it is."""
    reply = json_in(words.encode())
    return _text(_object(reply, "button_reply"), "title") or _text(_object(reply, "list_reply"), "title") or words


# --- fields


def _field(fields: Any, name: str) -> Any:
    return fields.get(name) if isinstance(fields, dict) else None


def _object(fields: Any, name: str) -> dict[str, Any]:
    value = _field(fields, name)
    return value if isinstance(value, dict) else {}


def _text(fields: Any, name: str) -> str:
    """Empty for anything else."""
    value = _field(fields, name)
    return cleaned(value) if isinstance(value, str) else ""


def _time(value: Any) -> datetime | None:
    """ISO 8601, UTC where it names no zone; or seconds, or milliseconds, since 1970."""
    try:
        if isinstance(value, str) and not value.strip().isdigit():
            moment = datetime.fromisoformat(value.strip())
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
        if isinstance(value, int | str) and not isinstance(value, bool):
            number = int(value)
            return datetime.fromtimestamp(number / 1000 if number > _MILLISECONDS else number, UTC)
    except (ValueError, OverflowError, OSError):
        pass
    return None
