"""Python values to Firestore values and back."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from firestore_outbox.firestore.protos import Proto, Value

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Version = tuple[int, int]
"""A document's update time, seconds and nanoseconds: what a write may demand to find."""


def to_proto(value: Any, into: Proto | None = None) -> Proto:
    """`value` as a Firestore value, written into an existing message where one is given."""
    proto = Value() if into is None else into
    kind = type(value)
    if kind is str:  # the three that nearly every field is
        proto.string_value = value
        return proto
    if kind is datetime:
        set_timestamp(proto.timestamp_value, value)
        return proto
    if kind is int:
        proto.integer_value = value
        return proto
    match value:
        case None:
            proto.null_value = 0
        case bool():
            proto.boolean_value = value
        case str():
            proto.string_value = str(value)  # an enum's own text
        case int():
            proto.integer_value = value
        case float():
            proto.double_value = value
        case datetime():
            set_timestamp(proto.timestamp_value, value)
        case bytes():
            proto.bytes_value = value
        case Mapping():
            proto.map_value.SetInParent()
            for name, item in value.items():
                to_proto(item, proto.map_value.fields[name])
        case list() | tuple():
            proto.array_value.SetInParent()
            for item in value:
                to_proto(item, proto.array_value.values.add())
        case _:
            raise TypeError(f"{type(value).__name__} cannot be stored in Firestore")
    return proto


def from_proto(proto: Proto) -> Any:
    match proto.WhichOneof("value_type"):
        case "string_value":
            return proto.string_value
        case "integer_value":
            return proto.integer_value
        case "timestamp_value":
            return from_timestamp(proto.timestamp_value)
        case "map_value":
            return from_fields(proto.map_value.fields)
        case "boolean_value":
            return proto.boolean_value
        case "array_value":
            return [from_proto(item) for item in proto.array_value.values]
        case "double_value":
            return proto.double_value
        case "bytes_value":
            return proto.bytes_value
        case "reference_value":
            return proto.reference_value
        case "geo_point_value":
            return {"latitude": proto.geo_point_value.latitude, "longitude": proto.geo_point_value.longitude}
    return None


def from_fields(fields: Proto) -> dict[str, Any]:
    return {name: from_proto(value) for name, value in fields.items()}


def scalars_of(fields: Proto) -> dict[str, Any]:
    """All fields, with None for each list and map."""
    nested = ("array_value", "map_value")
    return {
        name: None if value.WhichOneof("value_type") in nested else from_proto(value) for name, value in fields.items()
    }


def set_timestamp(stamp: Proto, moment: datetime) -> None:
    if moment.tzinfo is None:
        raise TypeError("a time without a zone cannot be stored")
    since = moment - _EPOCH
    stamp.seconds = since.days * 86_400 + since.seconds
    stamp.nanos = since.microseconds * 1000


def from_timestamp(stamp: Proto) -> datetime:
    return _EPOCH + timedelta(seconds=stamp.seconds, microseconds=stamp.nanos // 1000)


def time_of(version: Version) -> datetime:
    return _EPOCH + timedelta(seconds=version[0], microseconds=version[1] // 1000)
