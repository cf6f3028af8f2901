"""From the protocol's structured query to a `Query`: checked, and brought to its normal form."""

from __future__ import annotations

from firestore_emulator.documents import keys
from firestore_emulator.documents.fields import NAME_PATH, FieldPath, format_field_path, parse_field_path
from firestore_emulator.documents.index_keys import is_too_large
from firestore_emulator.documents.names import Location, check_id
from firestore_emulator.documents.protos import Proto, StructuredQuery
from firestore_emulator.queries.filters import alternatives
from firestore_emulator.queries.nearest import parse_nearest
from firestore_emulator.queries.operands import reference_key, typed_key
from firestore_emulator.queries.query import INEQUALITIES, Bound, Conjunction, Op, Order, Query
from firestore_emulator.rpc.errors import failed_precondition, invalid_argument

DESCENDING = StructuredQuery.Direction.Value("DESCENDING")


def parse_query(parent: Location, query: Proto, aggregated: frozenset[FieldPath] = frozenset()) -> Query:
    """Refuses what production refuses; what comes out is complete and consistent.

    `aggregated` are fields that are summed: only documents that have them count, as if they were ordered by.
    """
    nearest = parse_nearest(query)
    collection_id, descendants = _collection(query)
    written = alternatives(query, parent)
    orders, explicit = _orders(query, written)
    _check_scope(parent, collection_id, descendants, orders, written, aggregated)
    if query.offset < 0:
        raise invalid_argument("offset is negative")
    if query.HasField("limit") and query.limit.value < 0:
        raise invalid_argument("limit is negative")
    start = _cursor(query.start_at, orders, explicit, parent) if query.HasField("start_at") else None
    end = _cursor(query.end_at, orders, explicit, parent) if query.HasField("end_at") else None
    projection = _projection(query)
    is_by_name_alone = _is_by_name_alone(orders, written)
    if aggregated and is_by_name_alone and orders[0].descending:
        raise failed_precondition("Firestore does not support descending key scans")
    orders = _with_aggregated(orders, aggregated, explicit, written)
    return Query(
        parent=parent,
        collection_id=collection_id,
        descendants=descendants,
        # What no document can satisfy counts for the checks above, and for nothing else.
        alternatives=tuple(one for one in written if not any(predicate.op is Op.NEVER for predicate in one)),
        orders=orders,
        explicit_orders=explicit,
        start=start,
        end=end,
        offset=query.offset,
        limit=query.limit.value if query.HasField("limit") else None,
        projection=projection,
        is_by_name_alone=is_by_name_alone,
        nearest=nearest,
    )


def _collection(query: Proto) -> tuple[str | None, bool]:
    selectors = query.from_
    if len(selectors) > 1:
        raise invalid_argument("StructuredQuery.from cannot have more than one collection selector.")
    if not selectors:
        return None, False
    selector = selectors[0]
    if not selector.collection_id:
        return None, selector.all_descendants
    if "/" in selector.collection_id:
        raise invalid_argument(f'Collection id "{selector.collection_id}" is invalid because it contains "/".')
    check_id(selector.collection_id, "Collection")
    return selector.collection_id, selector.all_descendants


def _projection(query: Proto) -> tuple[FieldPath, ...] | None:
    if not query.HasField("select"):
        return None
    return tuple(parse_field_path(field.field_path) for field in query.select.fields)


# --- order and cursors -----------------------------------------------------------------------------------------------


def _orders(query: Proto, alternatives: tuple[Conjunction, ...]) -> tuple[tuple[Order, ...], int]:
    orders: list[Order] = []
    for item in query.order_by:
        path = parse_field_path(item.field.field_path, is_asked=True)
        if any(order.path == path for order in orders):
            raise invalid_argument(f"order by clause cannot contain duplicate fields {format_field_path(path)}")
        orders.append(Order(path, item.direction == DESCENDING))
    explicit = len(orders)
    descending = orders[-1].descending if orders else False
    seen = {order.path for order in orders}
    predicates = [predicate for alternative in alternatives for predicate in alternative]
    unequal = {p.path for p in predicates if p.op in INEQUALITIES} - {NAME_PATH}
    on_name = {p.op for p in predicates if p.path == NAME_PATH}
    if unequal and Op.EQUAL in on_name and not on_name & INEQUALITIES:
        raise invalid_argument(
            "Equality on key is not allowed if there are other inequality fields and key does not appear in "
            "inequalities."
        )
    for path in sorted(unequal - seen, key=format_field_path):
        orders.append(Order(path, descending))
    paths = [order.path for order in orders]
    if NAME_PATH not in paths:
        orders.append(Order(NAME_PATH, descending))
    elif paths[-1] != NAME_PATH:
        raise invalid_argument("order by clause cannot contain more fields after the key")
    return tuple(orders), explicit


def _with_aggregated(
    orders: tuple[Order, ...],
    aggregated: frozenset[FieldPath],
    explicit: int,
    alternatives: tuple[Conjunction, ...],
) -> tuple[Order, ...]:
    """Summed fields are ordered by too, before the name; which is too late if the name itself was asked for."""
    missing = sorted(aggregated - {order.path for order in orders}, key=format_field_path)
    if not missing:
        return orders
    names_filtered = any(p.path == NAME_PATH for alternative in alternatives for p in alternative)
    if names_filtered or NAME_PATH in {order.path for order in orders[:explicit]}:
        fields = ", ".join(format_field_path(path) for path in missing)
        raise invalid_argument(
            f"This query requires an index with fields [{fields}] after __name__ and Firestore does not "
            "currently support such an index. Please try the query again with additional ordering on those fields."
        )
    *front, name = orders
    return (*front, *(Order(path, name.descending) for path in missing), name)


def _check_scope(
    parent: Location,
    collection_id: str | None,
    descendants: bool,
    orders: tuple[Order, ...],
    alternatives: tuple[Conjunction, ...],
    aggregated: frozenset[FieldPath],
) -> None:
    """What spans collections of several ids, or hangs below a document, can only be read by name."""
    filtered = [p.path for alternative in alternatives for p in alternative if p.path != NAME_PATH]
    by_name_alone = not filtered and all(order.path == NAME_PATH for order in orders)
    if descendants and parent.segments and (aggregated or not by_name_alone):
        raise invalid_argument("collection group queries are only allowed at the root parent")
    if collection_id is None and filtered:
        raise invalid_argument(f"kind is required for filter: {format_field_path(filtered[0])}")
    if collection_id is None and (not by_name_alone or orders[0].descending):
        raise invalid_argument("kind is required for all orders except __key__ ascending")


def _is_by_name_alone(orders: tuple[Order, ...], alternatives: tuple[Conjunction, ...]) -> bool:
    filtered = (predicate for alternative in alternatives for predicate in alternative)
    return len(orders) == 1 and all(predicate.path == NAME_PATH for predicate in filtered)


def _cursor(cursor: Proto, orders: tuple[Order, ...], explicit: int, parent: Location) -> Bound:
    if len(cursor.values) > explicit:
        raise invalid_argument("Cursor has too many values.")
    parts: list[bytes] = []
    for value, order in zip(cursor.values, orders, strict=False):
        if order.path == NAME_PATH:
            if value.WhichOneof("value_type") != "reference_value":
                raise invalid_argument("Cursor position for __name__ must be a reference to a document.")
            key = reference_key(value.reference_value, parent)
        else:
            key = typed_key(value)
            if is_too_large(value) and key == keys.value_key(value):
                # A larger value is cut, and then taken; only one that exceeds the limit without being cut is refused.
                raise invalid_argument("the cursor value is too large")
        parts.append(keys.flipped(key) if order.descending else key)
    return Bound(b"".join(parts), behind=not cursor.before)
