"""Firestore's wire messages made from plain Python values, and answers read back as plain Python values.

Tests assert on raw protobuf answers, because the client library hides what matters here: absent fields, the type of a
number, the exact order of a stream. `shown` writes a value so that whatever differs on the wire differs in the text
(`1` and `1.0`, `0.0` and `-0.0`) and what is the same is equal (`nan`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from google.cloud.firestore_v1 import types
from google.protobuf import empty_pb2, timestamp_pb2

# Raw protobuf classes are made at run time from descriptors; there is no static type to name.
Proto = Any

Document: Proto = types.Document.pb()
Value: Proto = types.Value.pb()
ArrayValue: Proto = types.ArrayValue.pb()
Write: Proto = types.Write.pb()
FieldTransform: Proto = types.DocumentTransform.FieldTransform.pb()
DocumentTransform: Proto = types.DocumentTransform.pb()
DocumentMask: Proto = types.DocumentMask.pb()
Precondition: Proto = types.Precondition.pb()
StructuredQuery: Proto = types.StructuredQuery.pb()
Filter: Proto = StructuredQuery.Filter
Cursor: Proto = types.Cursor.pb()
TransactionOptions: Proto = types.TransactionOptions.pb()
Timestamp: Proto = timestamp_pb2.Timestamp

UNARY: dict[str, Proto] = {
    "GetDocument": Document,
    "ListDocuments": types.ListDocumentsResponse.pb(),
    "CreateDocument": Document,
    "UpdateDocument": Document,
    "DeleteDocument": empty_pb2.Empty,
    "BeginTransaction": types.BeginTransactionResponse.pb(),
    "Commit": types.CommitResponse.pb(),
    "Rollback": empty_pb2.Empty,
    "PartitionQuery": types.PartitionQueryResponse.pb(),
    "BatchWrite": types.BatchWriteResponse.pb(),
    "ListCollectionIds": types.ListCollectionIdsResponse.pb(),
}
SERVER_STREAMS: dict[str, Proto] = {
    "BatchGetDocuments": types.BatchGetDocumentsResponse.pb(),
    "RunQuery": types.RunQueryResponse.pb(),
    "RunAggregationQuery": types.RunAggregationQueryResponse.pb(),
}
CONVERSATIONS: dict[str, Proto] = {
    "Listen": types.ListenResponse.pb(),
    "Write": types.WriteResponse.pb(),
}
REQUESTS: dict[str, Proto] = {
    method: getattr(types, f"{method}Request").pb() for method in (*UNARY, *SERVER_STREAMS, *CONVERSATIONS)
}


class Ref(NamedTuple):
    """A reference value; `name` is the full resource name."""

    name: str


class Geo(NamedTuple):
    latitude: float
    longitude: float


class Stamp(NamedTuple):
    """A timestamp value, or a time in an answer."""

    seconds: int
    nanos: int = 0

    def proto(self) -> Proto:
        return Timestamp(seconds=self.seconds, nanos=self.nanos)


class Vector(NamedTuple):
    elements: tuple[float, ...]


class Unset:
    """A `Value` in which nothing is set, which is never valid."""


Plain = Any  # None | bool | int | float | str | bytes | Ref | Geo | Stamp | Vector | list[Plain] | dict[str, Plain]


def value(plain: Plain) -> Proto:
    message = Value()
    match plain:
        case None:
            message.null_value = 0
        case bool():
            message.boolean_value = plain
        case int():
            message.integer_value = plain
        case float():
            message.double_value = plain
        case Ref():
            message.reference_value = plain.name
        case Geo():
            message.geo_point_value.latitude = plain.latitude
            message.geo_point_value.longitude = plain.longitude
            message.geo_point_value.SetInParent()
        case Stamp():
            message.timestamp_value.CopyFrom(plain.proto())
        case Vector():
            return value({"__type__": "__vector__", "value": list(plain.elements)})
        case str():
            message.string_value = plain
        case bytes():
            message.bytes_value = plain
        case list():
            message.array_value.SetInParent()
            message.array_value.values.extend(value(item) for item in plain)
        case dict():
            message.map_value.SetInParent()
            for key, item in plain.items():
                message.map_value.fields[key].CopyFrom(value(item))
        case Unset():
            pass
        case _:
            raise TypeError(f"no Firestore value for {plain!r}")
    return message


def plain(message: Proto) -> Plain:
    """The Python value of a `Value`. Maps come with sorted keys, as their order means nothing on the wire."""
    match message.WhichOneof("value_type"):
        case "null_value":
            return None
        case "reference_value":
            return Ref(message.reference_value)
        case "geo_point_value":
            return Geo(message.geo_point_value.latitude, message.geo_point_value.longitude)
        case "timestamp_value":
            return stamp(message.timestamp_value)
        case "array_value":
            return [plain(item) for item in message.array_value.values]
        case "map_value":
            return fields_of(message.map_value)
        case None:
            return Unset
        case kind:
            return getattr(message, kind)


def stamp(message: Proto) -> Stamp:
    return Stamp(message.seconds, message.nanos)


def fields_of(message: Proto) -> dict[str, Plain]:
    """The fields of a `Document` or a `MapValue`."""
    return {key: plain(item) for key, item in sorted(message.fields.items())}


def shown(data: Plain) -> str:
    """Equal texts for equal wire values, different texts for different ones."""
    match data:
        case dict():
            return "{" + ", ".join(f"{key!r}: {shown(data[key])}" for key in sorted(data)) + "}"
        case list():
            return "[" + ", ".join(shown(item) for item in data) + "]"
        case _:
            return repr(data)


def document(name: str, data: Mapping[str, Plain] | None = None) -> Proto:
    message = Document(name=name)
    for key, item in (data or {}).items():
        message.fields[key].CopyFrom(value(item))
    return message


# --- writes


def set_(
    name: str,
    data: Mapping[str, Plain] | None = None,
    *,
    mask: Iterable[str] | None = None,
    transforms: Iterable[Proto] = (),
    exists: bool | None = None,
    update_time: Stamp | None = None,
) -> Proto:
    """Replaces the document, or merges into it the fields of `mask`; transforms follow."""
    message = Write(update=document(name, data), update_transforms=transforms)
    if mask is not None:
        message.update_mask.SetInParent()
        message.update_mask.field_paths.extend(mask)
    return _guarded(message, exists, update_time)


def delete(name: str, *, exists: bool | None = None, update_time: Stamp | None = None) -> Proto:
    return _guarded(Write(delete=name), exists, update_time)


def transform(name: str, *transforms: Proto, exists: bool | None = None) -> Proto:
    """The older way to transform: a write of its own."""
    return _guarded(Write(transform=DocumentTransform(document=name, field_transforms=transforms)), exists, None)


def verify(name: str, *, exists: bool | None = None, update_time: Stamp | None = None) -> Proto:
    """What clients send for a document that a transaction read and did not write: field 5, a name.

    The published protocol leaves it out, so it is written as bytes.
    """
    message = _guarded(Write(), exists, update_time)
    message.MergeFromString(_verify_field(name.encode()))
    return message


def _verify_field(name: bytes) -> bytes:
    low, high = len(name) & 127, len(name) >> 7
    assert high < 128
    return bytes([5 << 3 | 2, *((low,) if not high else (low | 128, high))]) + name


def _guarded(message: Proto, exists: bool | None, update_time: Stamp | None) -> Proto:
    if exists is not None:
        message.current_document.exists = exists
    if update_time is not None:
        message.current_document.update_time.CopyFrom(update_time.proto())
    return message


def increment(path: str, by: Plain) -> Proto:
    return FieldTransform(field_path=path, increment=value(by))


def maximum(path: str, with_: Plain) -> Proto:
    return FieldTransform(field_path=path, maximum=value(with_))


def minimum(path: str, with_: Plain) -> Proto:
    return FieldTransform(field_path=path, minimum=value(with_))


def append_missing(path: str, *items: Plain) -> Proto:
    return FieldTransform(field_path=path, append_missing_elements=ArrayValue(values=[value(item) for item in items]))


def remove_all(path: str, *items: Plain) -> Proto:
    return FieldTransform(field_path=path, remove_all_from_array=ArrayValue(values=[value(item) for item in items]))


def server_time(path: str) -> Proto:
    return FieldTransform(field_path=path, set_to_server_value=1)


# --- queries

OPERATORS = {
    "<": 1,
    "<=": 2,
    ">": 3,
    ">=": 4,
    "==": 5,
    "!=": 6,
    "array-contains": 7,
    "in": 8,
    "array-contains-any": 9,
    "not-in": 10,
}
UNARY_OPERATORS = {"is-nan": 2, "is-null": 3, "is-not-nan": 4, "is-not-null": 5}
AND, OR = 1, 2


def where(path: str, operator: str, operand: Plain = None) -> Proto:
    message = Filter()
    if operator in UNARY_OPERATORS:
        message.unary_filter.op = UNARY_OPERATORS[operator]
        message.unary_filter.field.field_path = path
    else:
        message.field_filter.op = OPERATORS[operator]
        message.field_filter.field.field_path = path
        message.field_filter.value.CopyFrom(value(operand))
    return message


def all_of(*filters: Proto) -> Proto:
    return Filter(composite_filter=StructuredQuery.CompositeFilter(op=AND, filters=filters))


def any_of(*filters: Proto) -> Proto:
    return Filter(composite_filter=StructuredQuery.CompositeFilter(op=OR, filters=filters))


def cursor(*values: Plain, before: bool) -> Proto:
    return Cursor(values=[value(item) for item in values], before=before)


def query(
    collection: str | None,
    filter_: Proto | None = None,
    *,
    order: Sequence[str] = (),
    start: Proto | None = None,
    end: Proto | None = None,
    limit: int | None = None,
    offset: int | None = None,
    select: Iterable[str] | None = None,
    group: bool = False,
    nearest: Proto | None = None,
) -> Proto:
    """A structured query. An order is a field path, with `-` in front of it when it descends."""
    message = StructuredQuery()
    if collection is not None:
        message.from_.add(collection_id=collection, all_descendants=group)
    if filter_ is not None:
        message.where.CopyFrom(filter_)
    for path in order:
        entry = message.order_by.add(direction=2 if path.startswith("-") else 1)
        entry.field.field_path = path.removeprefix("-")
    if start is not None:
        message.start_at.CopyFrom(start)
    if end is not None:
        message.end_at.CopyFrom(end)
    if limit is not None:
        message.limit.value = limit
    if offset is not None:
        message.offset = offset
    if select is not None:
        message.select.SetInParent()
        for path in select:
            message.select.fields.add(field_path=path)
    if nearest is not None:
        message.find_nearest.CopyFrom(nearest)
    return message


def find_nearest(
    path: str,
    vector: Plain,
    measure: int,
    limit: int | None,
    *,
    threshold: float | None = None,
    result: str = "",
) -> Proto:
    """A vector search, to be put into a query."""
    message = StructuredQuery.FindNearest(distance_measure=measure, distance_result_field=result)
    message.vector_field.field_path = path
    message.query_vector.CopyFrom(value(vector))
    if limit is not None:
        message.limit.value = limit
    if threshold is not None:
        message.distance_threshold.value = threshold
    return message
