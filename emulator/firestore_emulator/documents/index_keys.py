"""A value's key as an index holds it: cut after 1,500 bytes, so that longer values tie and go by name.

Production does not count the bytes of a key but a size of its own: a string is its UTF-8 and one byte, a number 8
bytes, a reference 16 and its segments, an array its elements, a map its names and values. A value is walked in its
order as long as anything is left of the 1,500. What has a fixed size goes in whole if a single byte is left; a string
is cut behind the character that takes the last byte. Where something was cut stands a mark, which sorts behind the end
of a value that was as long as this and not cut.
"""

from __future__ import annotations

from firestore_emulator.documents import keys
from firestore_emulator.documents.names import numeric_id, unescaped
from firestore_emulator.documents.protos import Proto

MAX_INDEXED_BYTES = 1_500

_TEXT_CUT = b"\x00\x02"
"""In the place of a text's end."""
_CUT = b"\x01"
"""In the place of an element, a map's entry or its value: below every type, above the end."""
_SEGMENT_CUT = b"\x03"
"""In the place of a reference's segment: above the end."""
_FIXED_SIZES = {"integer_value": 8, "double_value": 8, "timestamp_value": 8, "geo_point_value": 16}
_REFERENCE_SIZE, _NUMBER_SIZE = 16, 8


def index_key(value: Proto) -> bytes:
    key = keys.value_key(value)
    # No key is shorter than the size of its value, so a short key was certainly not cut.
    if len(key) <= MAX_INDEXED_BYTES or indexed_size(value) <= MAX_INDEXED_BYTES:
        return key
    return _Cutting().value(value)


def is_too_large(value: Proto) -> bool:
    """Whether a filter may not compare with the value."""
    return value.ByteSize() > MAX_INDEXED_BYTES // 8 and indexed_size(value) > MAX_INDEXED_BYTES


def indexed_size(value: Proto) -> int:
    kind = value.WhichOneof("value_type")
    match kind:
        case "string_value":
            return 1 + len(value.string_value.encode())
        case "bytes_value":
            return len(value.bytes_value)
        case "reference_value":
            return _REFERENCE_SIZE + sum(map(_segment_size, value.reference_value.split("/")[5:]))
        case "array_value":
            return sum(map(indexed_size, value.array_value.values))
        case "map_value":
            fields = value.map_value.fields
            if keys.is_vector(fields):
                return _NUMBER_SIZE * (1 + len(fields["value"].array_value.values))
            return sum(1 + len(name.encode()) + indexed_size(fields[name]) for name in fields)
    return _FIXED_SIZES.get(kind, 1)


def _segment_size(segment: str) -> int:
    return _NUMBER_SIZE if numeric_id(segment) is not None else 1 + len(unescaped(segment).encode())


class _Cutting:
    """One walk over a value."""

    def __init__(self) -> None:
        self._left = MAX_INDEXED_BYTES
        self._is_cut = False
        """Nothing that comes now is looked at."""

    def value(self, value: Proto) -> bytes:
        kind = value.WhichOneof("value_type")
        match kind:
            case "string_value":
                return bytes([keys.STRING]) + self._text(value.string_value.encode())
            case "bytes_value":
                return bytes([keys.BYTES]) + self._bytes(value.bytes_value)
            case "reference_value":
                return bytes([keys.REFERENCE]) + self._reference(value.reference_value.split("/"))
            case "array_value":
                return bytes([keys.ARRAY]) + self._elements(value.array_value.values) + keys.END
            case "map_value":
                fields = value.map_value.fields
                return self._vector(fields) if keys.is_vector(fields) else self._map(fields)
        self._left -= _FIXED_SIZES.get(kind, 1)
        return keys.value_key(value)

    def _text(self, data: bytes) -> bytes:
        room = self._left - 1
        self._left -= 1 + len(data)
        if len(data) > room:
            while room < len(data) and data[room] & 0xC0 == 0x80:
                room += 1  # the character that takes the last byte goes in whole
            if room < len(data):
                self._is_cut = True
                return keys.escaped(data[:room]) + _TEXT_CUT
        return keys.text(data)

    def _bytes(self, data: bytes) -> bytes:
        room = self._left
        self._left -= len(data)
        if len(data) > room:
            self._is_cut = True
            return keys.escaped(data[:room]) + _TEXT_CUT
        return keys.text(data)

    def _reference(self, segments: list[str]) -> bytes:
        """The names of project and database do not count: they are the 16 bytes."""
        parts = [keys.segment_key(segment) for segment in segments[:5]]
        self._left -= _REFERENCE_SIZE
        for segment in segments[5:]:
            if self._left <= 0:
                self._is_cut = True
                parts.append(_SEGMENT_CUT)
            elif numeric_id(segment) is not None:
                self._left -= _NUMBER_SIZE
                parts.append(keys.segment_key(segment))
            else:
                parts.append(keys.TEXT_SEGMENT + self._text(unescaped(segment).encode()))
            if self._is_cut:
                break
        return b"".join(parts) + keys.END

    def _elements(self, values: Proto) -> bytes:
        parts: list[bytes] = []
        for value in values:
            parts.append(self._whole_or_cut(value))
            if self._is_cut:
                break
        return b"".join(parts)

    def _whole_or_cut(self, value: Proto) -> bytes:
        if self._left <= 0:
            self._is_cut = True
            return _CUT
        return self.value(value)

    def _vector(self, fields: Proto) -> bytes:
        values = fields["value"].array_value.values
        self._left -= _NUMBER_SIZE
        return bytes([keys.VECTOR]) + len(values).to_bytes(4, "big") + self._elements(values) + keys.END

    def _map(self, fields: Proto) -> bytes:
        parts: list[bytes] = [bytes([keys.MAP])]
        for data, name in sorted((name.encode(), name) for name in fields):
            if self._left <= 0:
                self._is_cut = True
                parts.append(_CUT)
                break
            parts.append(bytes([keys.STRING]) + self._text(data))
            if not self._is_cut:
                parts.append(self._whole_or_cut(fields[name]))
            if self._is_cut:
                break
        return b"".join(parts) + keys.END
