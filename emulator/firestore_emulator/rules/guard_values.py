"""Firestore's values, documents and tokens as the rules see them."""

from __future__ import annotations

from typing import Any

from firestore_emulator.documents import keys
from firestore_emulator.documents.names import Location
from firestore_emulator.documents.protos import Proto
from firestore_emulator.rules.values import LARGEST, SMALLEST, LatLng, Path, Timestamp, Value, Vector


def document_map(location: Location, document: Proto) -> dict[str, Value]:
    """The value of `resource` and of `get()`."""
    return {"__name__": document_path(location), "data": fields_map(document.fields), "id": location.segments[-1]}


def document_path(location: Location) -> Path:
    return Path(("databases", location.database.rpartition("/")[2], "documents", *location.segments))


def fields_map(fields: Proto) -> dict[str, Value]:
    return {name: value_of(value) for name, value in sorted(fields.items())}


def value_of(value: Proto) -> Value:
    kind = value.WhichOneof("value_type")
    match kind:
        case "string_value" | "integer_value" | "boolean_value" | "double_value" | "bytes_value":
            return getattr(value, kind)
        case "timestamp_value":
            stamp = value.timestamp_value
            return Timestamp(stamp.seconds * 10**9 + stamp.nanos)
        case "map_value":
            fields = value.map_value.fields
            if keys.is_vector(fields):
                return Vector(tuple(item.double_value for item in fields["value"].array_value.values))
            return fields_map(fields)
        case "array_value":
            return [value_of(item) for item in value.array_value.values]
        case "geo_point_value":
            return LatLng(value.geo_point_value.latitude, value.geo_point_value.longitude)
        case "reference_value":
            return Path(tuple(value.reference_value.split("/")[2:]))
    return None


def claim_value(claim: Any) -> Value:
    """A token's JSON as a value. A number beyond 64 bits is a float."""
    if isinstance(claim, dict):
        return {name: claim_value(item) for name, item in claim.items()}
    if isinstance(claim, list):
        return [claim_value(item) for item in claim]
    if type(claim) is int and not SMALLEST <= claim <= LARGEST:
        return float(claim) if abs(claim) < 2**1000 else None
    return claim
