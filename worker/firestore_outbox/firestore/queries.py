"""Queries: what to find, in which order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from firestore_outbox.firestore import protos
from firestore_outbox.firestore.protos import Proto
from firestore_outbox.firestore.values import to_proto

MOST_IN_A_QUERY = 30
"""Values that one `in` filter of Firestore takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Find:
    """A query over one collection, or over all collections of one id."""

    collection: str
    """`outbox`, or `threads/x/messages`; for a group its id alone."""
    where: tuple[tuple[str, str, Any], ...] = ()
    """(field, one of == < <= > >= in, value)"""
    order_by: tuple[str, ...] = ()
    """Field names; a minus in front means descending."""
    limit: int | None = None
    start_after: tuple[Any, ...] | None = None
    group: bool = False
    select: tuple[str, ...] | None = None
    most_bytes: int | None = None
    """Stop reading after this many bytes; `Found.is_cut` then says that more may follow. None: read to the end."""
    hollow_above: int | None = None
    """Documents above this size in bytes come hollow (see `Snapshot.is_hollow`). None: all come whole."""


_OPERATORS = {
    "==": "EQUAL",
    "<": "LESS_THAN",
    "<=": "LESS_THAN_OR_EQUAL",
    ">": "GREATER_THAN",
    ">=": "GREATER_THAN_OR_EQUAL",
    "in": "IN",
}
_operator = protos.StructuredQuery.FieldFilter.Operator.Value
_AND = protos.StructuredQuery.CompositeFilter.Operator.Value("AND")
_ASCENDING = protos.StructuredQuery.Direction.Value("ASCENDING")
_DESCENDING = protos.StructuredQuery.Direction.Value("DESCENDING")


def fill(request: Proto, root: str, query: Find) -> None:
    """A request that has a parent and a structured query, for documents below that root."""
    *above, collection_id = query.collection.split("/")
    request.parent = "/".join((root, *above))
    structured = request.structured_query
    structured.from_.add(collection_id=collection_id, all_descendants=query.group)
    filters = []
    for name, operator, value in query.where:
        one = protos.StructuredQuery.Filter()
        one.field_filter.field.field_path = name
        one.field_filter.op = _operator(_OPERATORS[operator])
        to_proto(value, one.field_filter.value)
        filters.append(one)
    if len(filters) == 1:
        structured.where.CopyFrom(filters[0])
    elif filters:
        structured.where.composite_filter.op = _AND
        structured.where.composite_filter.filters.extend(filters)
    for name in query.order_by:
        order = structured.order_by.add()
        order.field.field_path = name.removeprefix("-")
        order.direction = _DESCENDING if name.startswith("-") else _ASCENDING
    if query.limit is not None:
        structured.limit.value = query.limit
    if query.start_after is not None:
        structured.start_at.before = False
        for name, value in zip(query.order_by, query.start_after, strict=False):
            cursor = structured.start_at.values.add()
            if name.removeprefix("-") == "__name__":
                cursor.reference_value = f"{root}/{value}"
            else:
                to_proto(value, cursor)
    if query.select is not None:
        structured.select.SetInParent()
        for name in query.select:
            structured.select.fields.add(field_path=name)
