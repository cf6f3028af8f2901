"""A message that is to be sent, checked before it is written, and the fields of its three documents.

What the rules or the worker would refuse is refused here, with a sentence that says which field is wrong and how. Of
the package, only modules that use the standard library alone are imported; the mark for the server's time is Google's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from google.cloud.firestore import SERVER_TIMESTAMP

from firestore_outbox.messages import faults, limits, new_documents
from firestore_outbox.messages.address import is_address
from firestore_outbox.messages.ids import is_account_id, is_request_id, thread_id_of
from firestore_outbox.messages.new_documents import Fields
from firestore_outbox.messages.priority import is_priority

MAX_UID = 128


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
    priority: str | None
    """None: normal."""

    @property
    def thread_id(self) -> str:
        return thread_id_of(self.account_id, self.to)

    @property
    def thread_fields(self) -> Fields:
        return new_documents.thread_fields(
            account_id=self.account_id, to=self.to, parts=self.parts, at=SERVER_TIMESTAMP
        )

    @property
    def message_fields(self) -> Fields:
        return new_documents.message_fields(self._identity, server_time=SERVER_TIMESTAMP)

    @property
    def outbox_fields(self) -> Fields:
        return new_documents.outbox_fields(
            self._identity,
            server_time=SERVER_TIMESTAMP,
            due=self.at or SERVER_TIMESTAMP,
            send_by=self.send_by,
            createdBy=self.uid,
            priority=self.priority,
        )

    @property
    def _identity(self) -> Fields:
        return new_documents.identity_fields(
            request_id=self.request_id, account_id=self.account_id, to=self.to, parts=self.parts
        )

    def is_same(self, stored: Mapping[str, Any]) -> bool:
        """Whether a stored message is this very one, however far it has come."""
        return new_documents.is_same(self._identity, stored)


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
    priority: str | None = None,
) -> NewMessage:
    """InvalidMessage, if anything is wrong."""
    require_request_id(request_id)
    _require_id("account_id", account_id, is_account_id, faults.ACCOUNT_ID)
    _require_id("to", to, is_address, faults.ADDRESS)
    _require_text("uid", uid, MAX_UID)
    _require((text is None) != (parts is None), faults.TEXT_OR_PARTS)
    if priority is not None:
        _require(isinstance(priority, str) and is_priority(priority), f"priority {faults.PRIORITY}")
    return NewMessage(
        request_id=request_id,
        account_id=account_id,
        to=to,
        parts=_checked_parts(parts) if text is None else (_checked_part({"type": "text", "text": text}, ""),),
        uid=uid,
        at=_checked_time(at, send_by, now),
        send_by=send_by,
        priority=priority,
    )


def require_request_id(request_id: str) -> None:
    _require_id("request_id", request_id, is_request_id, faults.REQUEST_ID)


def _checked_time(at: datetime | None, send_by: datetime | None, now: datetime) -> datetime | None:
    """A time that has passed means now: a caller that repeats an action after its time repeats the same action."""
    if send_by is not None:
        _require_time("send_by", send_by)
    if at is None:
        return None
    _require_time("at", at)
    _require(at - now <= limits.LONGEST_AHEAD, f"at {faults.TOO_FAR_AHEAD}")
    _require(send_by is None or send_by >= at, f"send_by {faults.before('at')}")
    return at.astimezone(UTC) if at > now else None


_TEXT, _NAME = (1, limits.MAX_TEXT), (1, limits.MAX_NAME)
_PARTS: dict[str, dict[str, tuple[int, int] | None]] = {
    "text": {"text": _TEXT},
    "media": {"mediaId": None, "mimeType": None, "caption": _TEXT, "filename": _NAME},
    "template": {"name": _NAME, "language": (limits.MIN_LANGUAGE, limits.MAX_LANGUAGE)},
    "sealed": {"keyVersion": None, "ciphertext": None},
}
"""The fields of each type of part, with the shortest and longest value; None: a rule of its own."""
_OPTIONAL = frozenset({"caption", "filename"})


def _checked_parts(parts: Any) -> tuple[Fields, ...]:
    is_list = isinstance(parts, Sequence) and not isinstance(parts, str | bytes)
    _require(is_list and 1 <= len(parts) <= limits.MAX_PARTS, f"parts {faults.PARTS}")
    good = tuple(_checked_part(part, f"parts[{index}].") for index, part in enumerate(parts))
    _require_bytes("parts", [text for part in good for text in _texts(part)], limits.MAX_PARTS_BYTES)
    return good


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from (text for one in value.values() for text in _texts(one))
    elif isinstance(value, list):
        yield from (text for one in value for text in _texts(one))


def _checked_part(part: Any, where: str) -> Fields:
    kind = part.get("type") if isinstance(part, Mapping) else None
    known = _PARTS.get(kind) if isinstance(kind, str) else None
    if known is None:
        raise InvalidMessage(f"{where}type {faults.PART_TYPE}")
    fields = {name: value for name, value in part.items() if not (name in _OPTIONAL and value is None)}
    for name in fields:
        is_known = name == "type" or name in known or (kind == "template" and name == "params")
        _require(is_known, f"{where}{name} {faults.no_field_of(str(kind))}")
    for name, lengths in known.items():
        if lengths is not None and (name in fields or name not in _OPTIONAL):
            _require_text(f"{where}{name}", fields.get(name), lengths[1], lengths[0])
    if kind == "media":
        _require_id(f"{where}mediaId", fields.get("mediaId"), limits.is_media_id, faults.MEDIA_ID)
        _require_id(f"{where}mimeType", fields.get("mimeType"), limits.is_media_type, faults.MEDIA_TYPE)
    if kind == "sealed":
        _require(limits.is_key_version(fields.get("keyVersion")), f"{where}keyVersion {faults.KEY_VERSION}")
        _require_id(f"{where}ciphertext", fields.get("ciphertext"), limits.is_ciphertext, faults.CIPHERTEXT)
    if kind == "template":
        fields["params"] = _checked_params(fields.get("params"), f"{where}params")
    return fields


def _checked_params(params: Any, where: str) -> list[str] | Fields:
    """Texts for the body; or `{header?, body?, buttons?}`, as messages/template_values.py has it."""
    good = _checked_values(params, where) if isinstance(params, Mapping) else _checked_texts(params, where)
    texts = list(_texts(good))
    _require(len(texts) <= limits.MAX_PARAMS, f"{where} {faults.too_many(len(texts), limits.MAX_PARAMS)}")
    _require_bytes(where, texts, limits.MAX_PARAMS_BYTES)
    return good


def _checked_values(params: Mapping[str, Any], where: str) -> Fields:
    for name in params:
        _require(name in ("header", "body", "buttons"), f"{where}.{name} {faults.UNKNOWN}")
    header = params.get("header")
    good = {name: _checked_texts(params[name], f"{where}.{name}") for name in ("body", "buttons") if name in params}
    if isinstance(header, Mapping):
        is_one = len(header) == 1 and set(header) <= {"image", "video", "document"}
        _require(is_one, f"{where}.header {faults.HEADER_FILE}")
        for kind, value in header.items():
            _require_text(f"{where}.header.{kind}", value, limits.MAX_PARAM, 0)
        return {"header": dict(header), **good}
    return good if "header" not in params else {"header": _checked_texts(header, f"{where}.header"), **good}


def _checked_texts(values: Any, where: str) -> list[str]:
    is_list = isinstance(values, Sequence) and not isinstance(values, str | bytes)
    _require(is_list, f"{where} {faults.NO_LIST_OF_TEXTS}")
    _require(len(values) <= limits.MAX_PARAMS, f"{where} {faults.too_many(len(values), limits.MAX_PARAMS)}")
    for index, value in enumerate(values):
        _require_text(f"{where}[{index}]", value, limits.MAX_PARAM, 0)
    return list(values)


def _require_bytes(name: str, texts: Iterable[str], most: int) -> None:
    size = sum(map(limits.bytes_of, texts))
    _require(size <= most, f"{name} {faults.too_many_bytes(size, most)}")


def _require_id(name: str, value: object, is_right: Callable[[str], bool], clause: str) -> None:
    if not isinstance(value, str):
        raise InvalidMessage(f"{name} {faults.NO_TEXT}")
    _require(is_right(value), f"{name} {clause}")


def _require_text(name: str, value: object, most: int, least: int = 1) -> None:
    if not isinstance(value, str):
        raise InvalidMessage(f"{name} {faults.NO_TEXT}")
    _require(len(value) >= least, f"{name} {faults.TOO_SHORT if value else faults.EMPTY}")
    _require(len(value) <= most, f"{name} {faults.too_long(len(value), most)}")


def _require_time(name: str, value: object) -> None:
    is_aware = isinstance(value, datetime) and value.utcoffset() is not None
    _require(is_aware, f"{name} {faults.NO_TIME}")


def _require(is_right: bool, sentence: str) -> None:
    if not is_right:
        raise InvalidMessage(sentence)
