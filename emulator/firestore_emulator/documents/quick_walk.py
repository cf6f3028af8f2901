"""One walk over a document's bytes: are its fields certainly valid, and where are those that an index needs?

Checking fields through protobuf's Python objects costs more than all the rest of a write. The canonical bytes have to
be made anyway, and a walk over them sees every value once. It knows the common kinds; whatever else it meets, it gives
up, and the write takes the usual way, which decides and finds the words of a refusal. So it may be strict, and must
never accept what `check_fields` refuses or changes.
"""

from __future__ import annotations

from typing import NamedTuple

from google.protobuf.timestamp_pb2 import Timestamp

from firestore_emulator.documents.values import (
    MAX_TIMESTAMP_SECONDS,
    MIN_TIMESTAMP_SECONDS,
    check_field_name,
)
from firestore_emulator.rpc.errors import RpcError

# The first byte of a serialized `Value`: field number and wire type.
BOOLEAN, INTEGER, DOUBLE, NULL, TIMESTAMP, STRING, BYTES, MAP, ARRAY = (
    *(0x08, 0x10, 0x19, 0x58, 0x52, 0x8A, 0x92, 0x32, 0x4A),
)
LONGEST_NAME = 127
"""Bytes. Longer names take the usual way; so their lengths are one byte here, and no path of them is too long."""
DEEPEST = 10
LONGEST_VALUE = 1_000_000
MOST_NAMES = 4_096

LONGEST_KNOWN, MOST_KNOWN = 255, 8_192
"""Bytes of an entry that is remembered as valid, and how many are."""

Field = tuple[bytes, bytes]
"""A field's name and its serialized value."""

_DOCUMENT_FIELD, _CREATED, _UPDATED = 0x12, 0x1A, 0x22
_NUMBERS = frozenset({INTEGER, BOOLEAN, NULL})
_MARKS, _FIVE_BYTES = 0x80_80_80_80_80, 0x80_80_80_80_00
_good_names: set[bytes] = set()
_known_entries: dict[bytes, Field] = {}


def walk_document(data: bytes, wanted: frozenset[bytes]) -> dict[bytes, bytes] | None:
    """The serialized values of the `wanted` top-level fields that the document has; None: the walk gives up.

    `data` is a serialized document. One that carries times is not walked: they would be stored in the place of ours.
    """
    if data[0] != 0x0A:
        return None
    length, at = _length(data, 1)
    at += length
    end = len(data)
    found: dict[bytes, bytes] = {}
    known_entries = _known_entries
    while at < end:
        if data[at] != _DOCUMENT_FIELD:
            return None
        size = data[at + 1]
        at += 2
        if size > 127:
            size, at = _length(data, at - 1)
        entry = data[at : at + size]
        # Documents of a batch share many entries to the byte: a status, an account, a type.
        known = known_entries.get(entry)
        if known is None:
            known = _short(entry, size) or _field(entry, 1)
            if known is None:
                return None
            if size <= LONGEST_KNOWN:
                if len(known_entries) >= MOST_KNOWN:
                    known_entries.clear()
                known_entries[entry] = known
        name, value = known
        if name in wanted:
            found[name] = value
        at += size
    return found if at == end else None


class Stored(NamedTuple):
    found: dict[bytes, bytes]
    """The serialized values of the wanted fields."""
    end: int
    """Where the fields end, and the times begin."""
    created: bytes
    """The create time as a field of the document; so is the update time."""
    updated: bytes


def read_stored(data: bytes, wanted: frozenset[bytes]) -> Stored | None:
    """A document as it is stored: it was checked when it was written. None: it holds something unusual."""
    length, at = _length(data, 1)
    at += length
    found: dict[bytes, bytes] = {}
    while data[at] == _DOCUMENT_FIELD:
        size = data[at + 1]
        at += 2
        if size > 127:
            size, at = _length(data, at - 1)
        stop = at + size
        value_at = at + 2 + data[at + 1]
        if data[at + 1] > LONGEST_NAME:
            return None
        if wanted and (name := data[at + 2 : value_at]) in wanted:
            _, value_at = _length(data, value_at + 1)
            found[name] = data[value_at:stop]
        at = stop
    updated_at = at + 2 + data[at + 1]
    if data[at] != _CREATED or data[updated_at] != _UPDATED or updated_at + 2 + data[updated_at + 1] != len(data):
        return None
    return Stored(found, at, data[at:updated_at], data[updated_at:])


def _short(entry: bytes, size: int) -> Field | None:
    """As `_field`, of the most common kinds: a known name, and a text or time so short that each length is one byte."""
    value_at = entry[1] + 4
    if (
        size < 128
        and value_at + 3 <= size
        and value_at + entry[value_at - 1] == size
        and entry[0] == 0x0A
        and entry[value_at - 2] == 0x12
        and (name := entry[2 : value_at - 2]) in _good_names
    ):
        kind = entry[value_at]
        if kind == STRING:
            if entry[value_at + 1] == 1 and value_at + 3 + entry[value_at + 2] == size:
                return name, entry[value_at:]
        elif kind == TIMESTAMP and _is_time(entry, value_at + 1, size):
            return name, entry[value_at:]
    return None


def _field(entry: bytes, depth: int) -> Field | None:
    """Name and value of an entry of a map, if both are certainly valid."""
    size = entry[1]
    if entry[0] != 0x0A or size > LONGEST_NAME:
        return None
    name = entry[2 : size + 2]
    at = size + 2
    if (name not in _good_names and not _is_good(name)) or entry[at] != 0x12:
        return None
    size, at = _length(entry, at + 1)
    if not size or at + size != len(entry) or not _value(entry, at, len(entry), entry[at], depth):
        return None
    return name, entry[at:]


def _fields(data: bytes, at: int, end: int, depth: int) -> bool:
    """The entries of a map value."""
    while at < end:
        if data[at] != 0x0A:
            return False
        size, at = _length(data, at + 1)
        if at + size > end or _field(data[at : at + size], depth) is None:
            return False
        at += size
    return at == end


def _value(data: bytes, at: int, stop: int, kind: int, depth: int) -> bool:
    if kind == STRING or kind == BYTES:  # noqa: SIM109 - this is the hottest line, and a tuple takes longer
        length, start = _length(data, at + 2)
        return data[at + 1] == 1 and start + length == stop and length <= LONGEST_VALUE
    if kind in _NUMBERS:
        return _is_varint(data, at + 1, stop)
    if kind == TIMESTAMP:
        return _is_time(data, at + 1, stop)
    if kind == DOUBLE:
        return stop - at == 9
    if kind == MAP or kind == ARRAY:  # noqa: SIM109
        length, start = _length(data, at + 1)
        if start + length != stop or depth >= DEEPEST:
            return False
        return (_fields if kind == MAP else _elements)(data, start, stop, depth + 1)
    return False


def _elements(data: bytes, at: int, end: int, depth: int) -> bool:
    while at < end:
        if data[at] != 0x0A:
            return False
        size, at = _length(data, at + 1)
        if not size or at + size > end or data[at] == ARRAY or not _value(data, at, at + size, data[at], depth):
            return False
        at += size
    return at == end


def _length(data: bytes, at: int) -> tuple[int, int]:
    """A varint, and the position behind it."""
    value = data[at]
    if value < 128:
        return value, at + 1
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 128:
            return value, at
        shift += 7


def _is_varint(data: bytes, at: int, stop: int) -> bool:
    """Whether one number is all there is."""
    return at < stop <= at + 10 and data[stop - 1] < 128 and all(byte > 127 for byte in data[at : stop - 1])


def _is_time(data: bytes, at: int, stop: int) -> bool:
    """In whole microseconds, and with nothing beside its seconds and nanoseconds."""
    if at + 1 + data[at] != stop:
        return False
    message = data[at + 1 : stop]
    # Whole seconds from 1978 on: five bytes follow the number of the field, and only the last has no continuation bit.
    if len(message) == 6 and message[0] == 0x08 and int.from_bytes(message, "big") & _MARKS == _FIVE_BYTES:
        return True
    stamp = Timestamp.FromString(message)
    if not MIN_TIMESTAMP_SECONDS <= stamp.seconds <= MAX_TIMESTAMP_SECONDS:
        return False
    if not 0 <= stamp.nanos < 10**9 or stamp.nanos % 1000:
        return False
    again: bytes = stamp.SerializeToString()
    return again == message


def read_time(value: bytes) -> tuple[int, int]:
    """Seconds and nanoseconds of a serialized value that is a time: so few bytes that its length is one."""
    stamp = Timestamp.FromString(value[2:])
    return stamp.seconds, stamp.nanos


def _is_good(name: bytes) -> bool:
    try:
        check_field_name(name.decode())
    except RpcError:
        return False
    if len(_good_names) >= MOST_NAMES:
        _good_names.clear()  # what is still in use comes again
    _good_names.add(name)
    return True
