"""Order-preserving keys: bytes that sort as Firestore sorts.

Two rules make everything else simple. A value's key is self-delimiting, so keys may be put one behind the other and
still compare field by field; and a key begins with a byte that is neither 0x00 nor 0xFF, so that `key + FF` lies behind
every key that starts with `key`. Descending order is the same key with every bit flipped.

Between types, in Firestore's order: null, booleans, numbers (NaN first, integers and doubles mixed by value),
timestamps, strings (by UTF-8), bytes, references, geo points, arrays, vectors, maps.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from functools import lru_cache

from firestore_emulator.documents.names import Location, escaped_id, numeric_id, unescaped
from firestore_emulator.documents.protos import Proto

NULL, BOOLEAN, NUMBER, TIMESTAMP, STRING, BYTES = 0x05, 0x0A, 0x0F, 0x14, 0x19, 0x1E
REFERENCE, GEO_POINT, ARRAY, VECTOR, MAP = 0x23, 0x28, 0x2D, 0x32, 0x37

AFTER = b"\xff"
"""`key + AFTER` sorts behind every key that starts with `key`."""

END = b"\x00"
"""Of an array, a map, a vector and a reference."""
TEXT_END = b"\x00\x01"
_NUMERIC_SEGMENT, TEXT_SEGMENT = b"\x01", b"\x02"
_FLIP = bytes(255 - byte for byte in range(256))
_NULL_KEY = bytes([NULL])
_FALSE_KEY, _TRUE_KEY = bytes([BOOLEAN, 1]), bytes([BOOLEAN, 2])
_NAN_KEY, _NUMBER_TAG = bytes([NUMBER, 1]), bytes([NUMBER, 2])
STRING_TAG, _BYTES_TAG, _REFERENCE_TAG = bytes([STRING]), bytes([BYTES]), bytes([REFERENCE])
_ARRAY_TAG, _MAP_TAG, _VECTOR_TAG = bytes([ARRAY]), bytes([MAP]), bytes([VECTOR])
_pack_timestamp = struct.Struct(">BQI").pack
_pack_double, _pack_bits, _unpack_bits = (
    struct.Struct(">d").pack,
    struct.Struct(">Q").pack,
    struct.Struct(">Q").unpack,
)


def flipped(key: bytes) -> bytes:
    """The key for descending order."""
    return key.translate(_FLIP)


def value_key(value: Proto) -> bytes:
    match value.WhichOneof("value_type"):
        case "string_value":
            data = value.string_value.encode()
            return STRING_TAG + text(data) if b"\x00" in data else STRING_TAG + data + TEXT_END
        case "integer_value":
            return _number_key(value.integer_value)
        case "double_value":
            return _number_key(value.double_value)
        case "timestamp_value":
            stamp = value.timestamp_value
            return time_key(stamp.seconds, stamp.nanos)
        case "boolean_value":
            return _TRUE_KEY if value.boolean_value else _FALSE_KEY
        case "null_value" | None:
            return _NULL_KEY
        case "map_value":
            return _map_key(value.map_value.fields)
        case "array_value":
            return _ARRAY_TAG + b"".join(map(value_key, value.array_value.values)) + END
        case "bytes_value":
            return _BYTES_TAG + text(value.bytes_value)
        case "reference_value":
            return _REFERENCE_TAG + reference_key(value.reference_value)
        case "geo_point_value":
            point = value.geo_point_value
            return bytes([GEO_POINT]) + _double_bits(point.latitude) + _double_bits(point.longitude)
    raise ValueError(f"no such value type: {value.WhichOneof('value_type')}")


def time_key(seconds: int, nanos: int) -> bytes:
    return _pack_timestamp(TIMESTAMP, seconds + (1 << 63), nanos)


def comparable_with(key: bytes) -> tuple[bytes, bytes]:
    """Between which two keys all values lie that an inequality may compare with this one; NaN is not among numbers.

    Both are bytes that no key begins with (or NaN's whole key), so they cut cleanly in either direction.
    """
    return _NAN_KEY if key[0] == NUMBER else bytes([key[0] - 1]), bytes([key[0] + 1])


def is_nan(value: Proto) -> bool:
    return value.WhichOneof("value_type") == "double_value" and math.isnan(value.double_value)


def is_vector(fields: Proto) -> bool:
    return "__type__" in fields and fields["__type__"].string_value == "__vector__" and "value" in fields


@lru_cache(maxsize=65_536)
def name_key(location: Location) -> bytes:
    """Sorts documents as Firestore does by `__name__`; a collection's key is a prefix of its documents'."""
    return database_key(location.database) + b"".join(map(segment_key, location.segments))


@lru_cache(maxsize=4_096)
def database_key(database: str) -> bytes:
    return b"".join(TEXT_SEGMENT + text(part.encode()) for part in database.split("/")[1::2])


def project_key(project: str) -> bytes:
    """What the keys of all databases of a project begin with."""
    return TEXT_SEGMENT + text(project.encode())


def ended(key: bytes) -> bytes:
    """A name's key made self-delimiting, to stand inside another key."""
    return key + END


def reference_key(name: str) -> bytes:
    """A reference may name a document of any database, so its key is made of all its segments."""
    return b"".join(map(segment_key, name.split("/"))) + END


def segment_key(segment: str) -> bytes:
    if segment.startswith("__"):
        number = numeric_id(segment)
        if number is not None:
            return _NUMERIC_SEGMENT + (number + (1 << 63)).to_bytes(8, "big")
        segment = unescaped(segment)
    return TEXT_SEGMENT + text(segment.encode())


def text(data: bytes) -> bytes:
    return escaped(data) + TEXT_END


def escaped(data: bytes) -> bytes:
    return data.replace(b"\x00", b"\x00\xff") if b"\x00" in data else data


def _number_key(number: float | int) -> bytes:
    """The nearest double not above the number, then what an integer has beyond it: exact over all of int64."""
    beyond = 0
    double = float(number)
    if number != number:
        return _NAN_KEY
    if isinstance(number, int) and not -(1 << 53) <= number <= (1 << 53):
        if int(double) > number:
            double = math.nextafter(double, -math.inf)
        beyond = number - int(double)
    elif double == 0.0:
        double = 0.0  # minus zero equals zero
    return _NUMBER_TAG + _double_bits(double) + beyond.to_bytes(2, "big")


def _double_bits(double: float) -> bytes:
    """Eight bytes that sort as doubles do, minus zero before zero."""
    (bits,) = _unpack_bits(_pack_double(double))
    return _pack_bits(bits ^ 0xFFFFFFFFFFFFFFFF if bits & (1 << 63) else bits | (1 << 63))


def _map_key(fields: Proto) -> bytes:
    if is_vector(fields):
        values = fields["value"].array_value.values
        return _VECTOR_TAG + len(values).to_bytes(4, "big") + b"".join(map(value_key, values)) + END
    return _MAP_TAG + _pairs(sorted((name.encode(), value_key(item)) for name, item in fields.items())) + END


def _pairs(pairs: Iterable[tuple[bytes, bytes]]) -> bytes:
    return b"".join(STRING_TAG + text(name) + key for name, key in pairs)


def split_segments(key: bytes) -> list[str]:
    """The collection and document ids in a document's key, read back."""
    texts: list[str] = []
    position = 0
    while position < len(key):
        if key[position] == _NUMERIC_SEGMENT[0]:
            number = int.from_bytes(key[position + 1 : position + 9], "big") - (1 << 63)
            texts.append(f"__id{number}__")
            position += 9
        else:
            end = position + 1
            while True:
                end = key.index(b"\x00", end)
                if key[end + 1] == 1:
                    break
                end += 2
            texts.append(escaped_id(key[position + 1 : end].replace(b"\x00\xff", b"\x00").decode()))
            position = end + 2
    return texts[2:]
