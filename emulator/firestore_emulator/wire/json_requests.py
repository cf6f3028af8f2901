"""A request's JSON made a message, with the one operation that the published protocol leaves out.

The web SDK sends `{"verify": NAME, "currentDocument": ...}` for a document that a transaction read and did not write.
`Write` has no such field here, so protobuf's own mapping would refuse it. The operation is taken out of the JSON before
the mapping, and put into the message afterwards as the unnamed field that gRPC has.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import json_format

from firestore_emulator.documents.protos import Proto, Write
from firestore_emulator.documents.writes import VERIFY_FIELD
from firestore_emulator.rpc.errors import invalid_argument

_OPERATIONS = ("update", "delete", "transform")


def message_of(content: dict[str, Any], kind: Proto, *, ignore_unknown_fields: bool = False) -> Proto:
    """The message of type `kind` that the JSON stands for, or INVALID_ARGUMENT. `content` is used up."""
    verified = _taken_out(content) if _has_writes(kind) else {}
    try:
        message = json_format.ParseDict(content, kind(), ignore_unknown_fields=ignore_unknown_fields)
    except (json_format.ParseError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise invalid_argument(f"Invalid request: {error}") from None
    for index, name in verified.items():
        message.writes[index].MergeFromString(_verify_field(name))
    return message


def _has_writes(kind: Proto) -> bool:
    field = kind.DESCRIPTOR.fields_by_name.get("writes")
    return field is not None and field.message_type is Write.DESCRIPTOR


def _taken_out(content: dict[str, Any]) -> dict[int, str]:
    """The documents to verify, each by the position of its write."""
    writes = content.get("writes")
    found: dict[int, str] = {}
    for index, write in enumerate(writes if isinstance(writes, list) else ()):
        name = write.pop("verify", None) if isinstance(write, dict) else None
        if name is None:
            continue
        if not isinstance(name, str):
            raise invalid_argument(f"Invalid request: writes[{index}].verify must be the name of a document.")
        if any(write.get(operation) is not None for operation in _OPERATIONS):
            raise invalid_argument(f"Invalid request: writes[{index}] has verify and another operation.")
        found[index] = name
    return found


def _verify_field(name: str) -> bytes:
    """The field as it is on the wire: tag, length, text."""
    try:
        data = name.encode()
    except UnicodeEncodeError:
        raise invalid_argument("Invalid request: verify is no valid Unicode text.") from None
    return bytes([VERIFY_FIELD << 3 | 2]) + _varint(len(data)) + data


def _varint(number: int) -> bytes:
    data = bytearray()
    while number > 0x7F:
        data.append(number & 0x7F | 0x80)
        number >>= 7
    data.append(number)
    return bytes(data)
