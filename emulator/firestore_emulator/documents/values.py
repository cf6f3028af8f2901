"""What a document may hold: every value is checked, and brought to Firestore's precision, before it is stored."""

from __future__ import annotations

import math
import re
from functools import lru_cache

from firestore_emulator.documents import keys
from firestore_emulator.documents.fields import MAX_FIELD_NAME_BYTES
from firestore_emulator.documents.names import parse_document
from firestore_emulator.documents.protos import Proto
from firestore_emulator.rpc.errors import RpcError, invalid_argument

MAX_DOCUMENT_BYTES = 1_048_576
MAX_VALUE_BYTES = 1_048_487
MAX_DEPTH = 20
MIN_TIMESTAMP_SECONDS, MAX_TIMESTAMP_SECONDS = -62_135_596_800, 253_402_300_799
"""0001-01-01 to 9999-12-31"""

_RESERVED = re.compile(r"__.*__", re.DOTALL)
_NEVER_WRONG = frozenset({"integer_value", "boolean_value", "null_value", "double_value"})


def check_fields(fields: Proto) -> None:
    """Refuses fields that no document may have; truncates timestamps to microseconds, in place."""
    _check_map(fields, depth=1)


def check_document_size(document: Proto, stored_bytes: int) -> None:
    """Production counts by a rule of its own, which never gives three times the serialized size: that is the guard."""
    if stored_bytes > MAX_DOCUMENT_BYTES // 3 and document_size(document) > MAX_DOCUMENT_BYTES:
        raise invalid_argument(
            f"Document '{document.name}' cannot be written because its size ({document_size(document):,} bytes) "
            f"exceeds the maximum allowed size of {MAX_DOCUMENT_BYTES:,} bytes."
        )


def document_size(document: Proto) -> int:
    """As documented: the name (16 bytes and each segment + 1), the fields, and 32 bytes."""
    path = document.name.split("/documents/", 1)[-1].split("/")
    return 16 + sum(len(part.encode()) + 1 for part in path) + _fields_size(document.fields) + 32


def _fields_size(fields: Proto) -> int:
    return sum(len(name.encode()) + 1 + _value_size(value) for name, value in fields.items())


def _value_size(value: Proto) -> int:
    match value.WhichOneof("value_type"):
        case "string_value":
            return len(value.string_value.encode()) + 1
        case "bytes_value":
            return len(value.bytes_value)
        case "integer_value" | "double_value" | "timestamp_value":
            return 8
        case "geo_point_value":
            return 16
        case "reference_value":
            return 16 + sum(len(part.encode()) + 1 for part in value.reference_value.split("/")[5:])
        case "array_value":
            return sum(map(_value_size, value.array_value.values))
        case "map_value":
            return _fields_size(value.map_value.fields)
    return 1


def _check_map(fields: Proto, depth: int, above: int = 0) -> None:
    """`above`: the bytes of the path that leads here, with its last dot."""
    for name in fields:  # not items(), which is many times slower on these maps
        check_field_name(name)
        if above and above + len(name.encode()) > MAX_FIELD_NAME_BYTES:
            raise invalid_argument(f"The path of a nested field is longer than {MAX_FIELD_NAME_BYTES} bytes.")
        value = fields[name]
        kind = value.WhichOneof("value_type")
        # Most fields are one of these two kinds, and most of those cannot be wrong.
        if kind in _NEVER_WRONG or (kind == "string_value" and len(value.string_value) <= MAX_VALUE_BYTES // 4):
            continue
        check_value(value, depth, above=above + len(name.encode()) + 1)


@lru_cache(maxsize=4_096)
def check_field_name(name: str) -> None:
    if not name:
        raise invalid_argument("Document fields must not be empty.")
    if name.startswith("__") and _RESERVED.fullmatch(name):
        raise invalid_argument(f'The property "{name}" is reserved: field names must not match __.*__.')
    if len(name) > MAX_FIELD_NAME_BYTES // 4 and len(name.encode()) > MAX_FIELD_NAME_BYTES:
        raise invalid_argument(f"A field name is longer than {MAX_FIELD_NAME_BYTES} bytes.")


def check_value(value: Proto, depth: int = 1, *, in_array: bool = False, above: int = 0) -> None:
    kind = value.WhichOneof("value_type")
    match kind:
        case "integer_value" | "boolean_value" | "null_value" | "double_value":
            return
        case "string_value":
            text = value.string_value
            if len(text) > MAX_VALUE_BYTES // 4 and len(text.encode()) > MAX_VALUE_BYTES:
                raise _too_long()
        case "bytes_value":
            if len(value.bytes_value) > MAX_VALUE_BYTES:
                raise _too_long()
        case "timestamp_value":
            _check_timestamp(value.timestamp_value)
        case "map_value":
            if depth > MAX_DEPTH:
                raise too_deep()
            if keys.is_vector(value.map_value.fields):
                if in_array:
                    raise invalid_argument("Cannot convert a vector value in an array value.")
                _check_vector(value.map_value.fields)
            else:
                _check_map(value.map_value.fields, depth + 1, above)
        case "array_value":
            if in_array:
                raise invalid_argument("Cannot convert an array value in an array value.")
            if depth > MAX_DEPTH:
                raise too_deep()
            for element in value.array_value.values:
                check_value(element, depth + 1, in_array=True, above=above)
        case "geo_point_value":
            point = value.geo_point_value
            # Written so that NaN, which compares false with everything, is refused too.
            if not (-90 <= point.latitude <= 90 and -180 <= point.longitude <= 180):
                raise invalid_argument("A geo point's latitude must be in [-90, 90] and its longitude in [-180, 180].")
        case "reference_value":
            parse_document(value.reference_value)
        case None:
            raise invalid_argument("A value must have a type; to store nothing, use null_value.")
        case _:
            raise invalid_argument(f"A {kind} cannot be stored in a document.")


def _check_timestamp(stamp: Proto) -> None:
    nanos = stamp.nanos
    if not MIN_TIMESTAMP_SECONDS <= stamp.seconds <= MAX_TIMESTAMP_SECONDS or not 0 <= nanos < 10**9:
        raise invalid_argument(
            "A timestamp must lie between 0001-01-01 and 9999-12-31, with nanos from 0 to 999,999,999."
        )
    if nanos % 1000:
        stamp.nanos = nanos - nanos % 1000


def _check_vector(fields: Proto) -> None:
    values = fields["value"].array_value.values
    if len(fields) != 2 or any(item.WhichOneof("value_type") != "double_value" for item in values):
        raise invalid_argument("A vector is a map of __type__ and value, and its values are doubles.")
    if any(math.isnan(item.double_value) for item in values):
        raise invalid_argument("Vector cannot contain NaN values.")
    if not 1 <= len(values) <= 2048:
        raise invalid_argument("A vector has 1 to 2,048 dimensions.")


def _too_long() -> RpcError:
    return invalid_argument(f"A value is longer than {MAX_VALUE_BYTES} bytes.")


def too_deep() -> RpcError:
    return invalid_argument(f"A value is nested deeper than {MAX_DEPTH} levels.")
