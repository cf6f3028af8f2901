"""A message that is to be sent, checked before it is written, and the fields of its three documents.

What the rules or the worker would refuse is refused here, with a sentence that says which field is wrong and how. The
standard library is enough for it; only the mark for the server's time comes from Google's client.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from google.cloud.firestore import SERVER_TIMESTAMP

Fields = dict[str, Any]

SHOWN_TEXT = 200
MAX_TEXT = 4096
MAX_PARTS = 10
MAX_PARAMS = 100
MAX_PARAM = 1024
MAX_PARAMS_BYTES = 32 * 1024
MAX_PARTS_BYTES = 240 * 1024
"""The worker fails documents above 256 KiB; the rest is for ids, field names and what the worker writes."""
LONGEST_AHEAD = timedelta(days=365)


class InvalidMessage(ValueError):
    """A field is wrong. The text names the field and the problem."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMessage:
    """Valid by construction: made by `checked`. None of it ever changes."""

    request_id: str
    account_id: str
    to: str
    parts: tuple[Fields, ...]
    uid: str
    at: datetime | None
    """None: as soon as the account's pace allows."""
    send_by: datetime | None

    @property
    def thread_id(self) -> str:
        return thread_id_of(self.account_id, self.to)

    @property
    def thread_fields(self) -> Fields:
        return {
            "accountId": self.account_id,
            "to": self.to,
            "lastMessageAt": SERVER_TIMESTAMP,
            "lastMessageText": shown_text(self.parts),
        }

    @property
    def message_fields(self) -> Fields:
        return {**self._identity, "direction": "outbound", "status": "queued", "createdAt": SERVER_TIMESTAMP}

    @property
    def outbox_fields(self) -> Fields:
        fields = {
            **self._identity,
            "status": "queued",
            "createdAt": SERVER_TIMESTAMP,
            "createdBy": self.uid,
            "nextAttemptAt": self.at or SERVER_TIMESTAMP,
            "attempts": 0,
        }
        return fields if self.send_by is None else {**fields, "sendBy": self.send_by}

    @property
    def _identity(self) -> Fields:
        """What the documents agree on, and what makes two messages the same one."""
        return {
            "requestId": self.request_id,
            "accountId": self.account_id,
            "threadId": self.thread_id,
            "to": self.to,
            "parts": list(self.parts),
        }

    def is_same(self, stored: Mapping[str, Any]) -> bool:
        """Whether a stored message is this very one, however far it has come."""
        return all(stored.get(name) == value for name, value in self._identity.items())


def thread_id_of(account_id: str, to: str) -> str:
    """The id of the conversation of an account with an address."""
    return f"{account_id}__{to}"


def shown_text(parts: Sequence[Mapping[str, Any]]) -> str:
    """What the list of conversations shows of it."""
    texts = (part.get("text") or part.get("caption") for part in parts)
    return next((str(text)[:SHOWN_TEXT] for text in texts if text), "")


def checked(
    *,
    request_id: str,
    account_id: str,
    to: str,
    text: str | None,
    parts: Sequence[Mapping[str, Any]] | None,
    uid: str,
    at: datetime | None,
    send_by: datetime | None,
    now: datetime,
) -> NewMessage:
    """InvalidMessage, if anything is wrong."""
    require_request_id(request_id)
    _require_text("account_id", account_id, 128)
    _require("/" not in account_id and "__" not in account_id, "account_id must have no slash and no '__'")
    _require_text("to", to, 256)
    _require(re.search(r"^_|[/\s]", to) is None, "to must have no slashes, no blanks and no underscore in front")
    _require_text("uid", uid, 128)
    _require((text is None) != (parts is None), "a message has either text or parts")
    return NewMessage(
        request_id=request_id,
        account_id=account_id,
        to=to,
        parts=_checked_parts(parts) if text is None else (_checked_part({"type": "text", "text": text}, ""),),
        uid=uid,
        at=_checked_time(at, send_by, now),
        send_by=send_by,
    )


def require_request_id(request_id: str) -> None:
    _require_text("request_id", request_id, 128)
    _require(
        re.fullmatch(r"[A-Za-z0-9_-]{8,128}", request_id) is not None,
        "request_id must be 8 to 128 of A-Z, a-z, 0-9, _ and -",
    )
    _require(
        not (request_id.startswith("__") and request_id.endswith("__")),
        "request_id must not begin and end with two underscores",
    )


def _checked_time(at: datetime | None, send_by: datetime | None, now: datetime) -> datetime | None:
    """A time that has passed means now: whoever repeats an action after its time repeats the same action."""
    if send_by is not None:
        _require_time("send_by", send_by)
    if at is None:
        return None
    _require_time("at", at)
    _require(at - now <= LONGEST_AHEAD, f"at is more than {LONGEST_AHEAD.days} days ahead")
    _require(send_by is None or send_by >= at, "send_by is before at: it could never be sent")
    return at.astimezone(UTC) if at > now else None


_PARTS: dict[str, dict[str, tuple[int, int]]] = {
    "text": {"text": (1, MAX_TEXT)},
    "media": {"mediaId": (1, 512), "mimeType": (1, 200), "caption": (1, MAX_TEXT), "filename": (1, 512)},
    "template": {"name": (1, 512), "language": (2, 35)},
}
"""What each type of part has, and the shortest and longest value of each field."""
_OPTIONAL = frozenset({"caption", "filename"})


def _checked_parts(parts: Any) -> tuple[Fields, ...]:
    is_list = isinstance(parts, Sequence) and not isinstance(parts, str | bytes)
    _require(is_list and 1 <= len(parts) <= MAX_PARTS, f"a message has 1 to {MAX_PARTS} parts")
    good = tuple(_checked_part(part, f"parts[{index}].") for index, part in enumerate(parts))
    texts = [
        text for part in good for value in part.values() for text in ([value] if isinstance(value, str) else value)
    ]
    _require_bytes("parts", texts, MAX_PARTS_BYTES)
    return good


def _checked_part(part: Any, where: str) -> Fields:
    kind = part.get("type") if isinstance(part, Mapping) else None
    known = _PARTS.get(kind) if isinstance(kind, str) else None
    if known is None:
        raise InvalidMessage(f"{where}type must be text, media or template")
    fields = {name: value for name, value in part.items() if not (name in _OPTIONAL and value is None)}
    for name in fields:
        is_known = name == "type" or name in known or (kind == "template" and name == "params")
        _require(is_known, f"{where}{name} is no field of a {kind} part")
    for name, (least, most) in known.items():
        if name in fields or name not in _OPTIONAL:
            _require_text(f"{where}{name}", fields.get(name), most, least)
    if kind == "media":
        _require("/" not in fields["mediaId"], f"{where}mediaId must have no slash")
        is_media_type = re.fullmatch(r"[\w.+-]+/[\w.+-]+(;.*)?", fields["mimeType"], re.ASCII) is not None
        _require(is_media_type, f"{where}mimeType is no media type such as image/png")
    if kind == "template":
        fields["params"] = _checked_params(fields.get("params"), f"{where}params")
    return fields


def _checked_params(params: Any, where: str) -> list[str]:
    is_list = isinstance(params, Sequence) and not isinstance(params, str | bytes)
    _require(is_list, f"{where} must be a list of texts")
    _require(len(params) <= MAX_PARAMS, f"{where} has {len(params)} entries; at most {MAX_PARAMS} are allowed")
    for index, value in enumerate(params):
        _require_text(f"{where}[{index}]", value, MAX_PARAM, 0)
    _require_bytes(where, params, MAX_PARAMS_BYTES)
    return list(params)


def _require_bytes(name: str, texts: Iterable[str], most: int) -> None:
    size = sum(len(text.encode(errors="surrogatepass")) for text in texts)
    _require(size <= most, f"{name} has {size} bytes of text; at most {most} are allowed")


def _require_text(name: str, value: object, most: int, least: int = 1) -> None:
    if not isinstance(value, str):
        raise InvalidMessage(f"{name} must be a text")
    _require(len(value) >= least, f"{name} is too short" if value else f"{name} is empty")
    _require(len(value) <= most, f"{name} has {len(value)} characters; at most {most} are allowed")


def _require_time(name: str, value: object) -> None:
    is_aware = isinstance(value, datetime) and value.utcoffset() is not None
    _require(is_aware, f"{name} must be a datetime with a time zone")


def _require(is_right: bool, sentence: str) -> None:
    if not is_right:
        raise InvalidMessage(sentence)
