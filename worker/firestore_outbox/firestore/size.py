"""The size of a document as Firestore counts it against its limit of 1 MiB.

https://firebase.google.com/docs/firestore/storage-size has the rules. The size on the wire is another number: an
integer in a list is 4 bytes there and 8 here, an empty string 4 bytes there and 1 here.
"""

from __future__ import annotations

from firestore_outbox.firestore.protos import Proto

NAME_OVERHEAD = 16
DOCUMENT_OVERHEAD = 32
WIRE_FACTOR = 4
"""A document's fields count at most this many times their bytes on the wire: the origin as a geographical point."""


def document_size(path: str, fields: Proto) -> int:
    """The size of the document at `path`, which is relative to the database's root."""
    return _name_size(path) + _fields_size(fields) + DOCUMENT_OVERHEAD


def _name_size(path: str) -> int:
    return NAME_OVERHEAD + sum(_string_size(segment) for segment in path.split("/"))


def _string_size(text: str) -> int:
    return len(text.encode()) + 1


def _fields_size(fields: Proto) -> int:
    return sum(_string_size(name) + _value_size(value) for name, value in fields.items())


def _value_size(value: Proto) -> int:
    match value.WhichOneof("value_type"):
        case "string_value":
            return _string_size(value.string_value)
        case "integer_value" | "double_value" | "timestamp_value":
            return 8
        case "map_value":
            return _fields_size(value.map_value.fields)
        case "array_value":
            return sum(map(_value_size, value.array_value.values))
        case "bytes_value":
            return len(value.bytes_value)
        case "geo_point_value":
            return 16
        case "reference_value":
            return _name_size(value.reference_value.partition("/documents/")[2])
    return 1  # true, false and null
