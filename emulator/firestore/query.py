"""A structured query, checked and brought to one normal form.

The normal form is what the rest of the engine reads:
- the filter as a disjunction of conjunctions of simple predicates (`in` and `or` become alternatives);
- the complete order: what was asked for, then the fields of inequalities, then the name, so that no two documents tie;
- the cursors as keys in that order.

`Query.matches` and `Query.position` are the definition of the language; an index scan is only a fast way to the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from itertools import chain, product

from emulator.firestore import keys
from emulator.firestore.fields import NAME_PATH, FieldPath, format_field_path, get_field, parse_field_path
from emulator.firestore.names import Location, check_id, parse_document
from emulator.firestore.protos import Proto, StructuredQuery, Value
from emulator.firestore.values import check_value
from emulator.rpc.errors import RpcError, failed_precondition, invalid_argument, unimplemented

MAX_DISJUNCTIONS = 30
MAX_WRITTEN_OUT = 10_000
"""Before equal alternatives are counted as one: beyond this nobody needs to count."""
MAX_NOT_IN = 10
DESCENDING = StructuredQuery.Direction.Value("DESCENDING")


class Op(Enum):
    EQUAL = auto()
    LESS = auto()
    LESS_OR_EQUAL = auto()
    GREATER = auto()
    GREATER_OR_EQUAL = auto()
    NOT_EQUAL = auto()
    """The field exists, is not null, and is another value."""
    CONTAINS = auto()
    UNDEFINED = auto()
    """True of no document, but an inequality all the same: being something else than null."""
    NEVER = auto()
    """True of no document: a comparison with null or NaN."""


INEQUALITIES = frozenset({Op.LESS, Op.LESS_OR_EQUAL, Op.GREATER, Op.GREATER_OR_EQUAL, Op.NOT_EQUAL, Op.UNDEFINED})
_RANGES = {
    "LESS_THAN": Op.LESS,
    "LESS_THAN_OR_EQUAL": Op.LESS_OR_EQUAL,
    "GREATER_THAN": Op.GREATER,
    "GREATER_THAN_OR_EQUAL": Op.GREATER_OR_EQUAL,
}
_NULL_KEY = bytes([keys.NULL])


@dataclass(frozen=True, slots=True)
class Predicate:
    path: FieldPath
    op: Op
    key: bytes
    """The key of the value compared with."""
    written: bytes = b""
    """How: two filters are one, when alternatives are counted, only if they were written alike (1 is not 1.0 then)."""
    contains: bool = False
    """Written as array-contains or array-contains-any."""

    def accepts(self, found: bytes | None, elements: frozenset[bytes] | None) -> bool:
        """`found`: the key of the field's value, or None without one; `elements`: of an array, its elements' keys."""
        if found is None or self.op in (Op.NEVER, Op.UNDEFINED):
            return False
        match self.op:
            case Op.EQUAL:
                return found == self.key
            case Op.NOT_EQUAL:
                return found != self.key and found != _NULL_KEY
            case Op.CONTAINS:
                return elements is not None and self.key in elements
        low, high = keys.comparable_with(self.key)
        if not low < found < high:
            return False
        match self.op:
            case Op.LESS:
                return found < self.key
            case Op.LESS_OR_EQUAL:
                return found <= self.key
            case Op.GREATER:
                return found > self.key
        return found >= self.key


Conjunction = tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Order:
    path: FieldPath
    descending: bool


@dataclass(frozen=True, slots=True)
class Bound:
    """A cut in the order: before or behind everything that starts with `key`."""

    key: bytes
    behind: bool

    def edge(self) -> bytes:
        return self.key + keys.AFTER if self.behind else self.key

    def flipped(self) -> Bound:
        return Bound(keys.flipped(self.key), not self.behind)


@dataclass(frozen=True, slots=True)
class Query:
    parent: Location
    collection_id: str | None
    """None: every collection (a query with no `from`)."""
    descendants: bool
    alternatives: tuple[Conjunction, ...]
    orders: tuple[Order, ...]
    """Complete: ends with the name."""
    explicit_orders: int
    """How many of the orders were asked for."""
    start: Bound | None
    end: Bound | None
    offset: int
    limit: int | None
    projection: tuple[FieldPath, ...] | None

    def covers(self, location: Location) -> bool:
        """Whether the document lies in a collection that is asked."""
        own = self.parent.segments
        if location.database != self.parent.database or location.segments[: len(own)] != own:
            return False
        if self.collection_id is not None and location.segments[-2] != self.collection_id:
            return False
        return len(location.segments) > len(own) if self.descendants else len(location.segments) == len(own) + 2

    def matches(self, location: Location, document: Proto) -> bool:
        """Whether the document is in the result, limit and offset aside."""
        if not self.covers(location):
            return False
        position = self.position(location, document)
        if position is None:
            return False
        if self.start is not None and position < self.start.edge():
            return False
        if self.end is not None and position >= self.end.edge():
            return False
        return any(satisfies(document, location, alternative) for alternative in self.alternatives)

    def position(self, location: Location, document: Proto) -> bytes | None:
        """Where the document stands in the order; None if it lacks a field that is ordered by."""
        parts: list[bytes] = []
        for order in self.orders:
            key = field_key(document, location, order.path)
            if key is None:
                return None
            parts.append(keys.flipped(key) if order.descending else key)
        return b"".join(parts)


def _field_operator(number: int) -> str:
    return _name(StructuredQuery.FieldFilter.Operator, number)


def _unary_operator(number: int) -> str:
    return _name(StructuredQuery.UnaryFilter.Operator, number)


def _composite_operator(number: int) -> str:
    return _name(StructuredQuery.CompositeFilter.Operator, number)


def _name(operators: Proto, number: int) -> str:
    """The operator's name, or nothing for a number that this version of the API does not have."""
    return str(operators.Name(number)) if number in operators.values() else ""


def field_key(document: Proto, location: Location, path: FieldPath) -> bytes | None:
    if path == NAME_PATH:
        return keys.ended(keys.name_key(location))
    value = get_field(document.fields, path)
    return None if value is None else keys.index_key(value)


def satisfies(document: Proto, location: Location, conjunction: Conjunction) -> bool:
    for predicate in conjunction:
        found = field_key(document, location, predicate.path)
        elements = element_keys(document, predicate.path) if predicate.op is Op.CONTAINS else None
        if not predicate.accepts(found, elements):
            return False
    return True


def element_keys(document: Proto, path: FieldPath) -> frozenset[bytes] | None:
    value = get_field(document.fields, path)
    if value is None or value.WhichOneof("value_type") != "array_value":
        return None
    return frozenset(map(keys.value_key, value.array_value.values))


def parse_query(parent: Location, query: Proto, aggregated: frozenset[FieldPath] = frozenset()) -> Query:
    """Refuses what production refuses; what comes out is complete and consistent.

    `aggregated` are fields that are summed: only documents that have them count, as if they were ordered by.
    """
    if query.HasField("find_nearest"):
        raise unimplemented("Nearest-neighbour search (find_nearest) is not supported by this emulator.")
    collection_id, descendants = _collection(query)
    written = _alternatives(query, parent)
    orders, explicit = _orders(query, written)
    _check_scope(parent, collection_id, descendants, orders, written, aggregated)
    if query.offset < 0:
        raise invalid_argument("offset is negative")
    if query.HasField("limit") and query.limit.value < 0:
        raise invalid_argument("limit is negative")
    start = _cursor(query.start_at, orders, explicit, parent) if query.HasField("start_at") else None
    end = _cursor(query.end_at, orders, explicit, parent) if query.HasField("end_at") else None
    _check_scan_direction(orders, written)
    by_name = any(predicate.path == NAME_PATH for alternative in written for predicate in alternative)
    if collection_id is not None or explicit or by_name:
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
        projection=_projection(query),
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


# --- filters ---------------------------------------------------------------------------------------------------------


def _alternatives(query: Proto, parent: Location) -> tuple[Conjunction, ...]:
    if not query.HasField("where"):
        return ((),)
    _check_operators(query.where)
    found = _disjunction(query.where, parent)
    for alternative in found:
        # A comparison with null or NaN counts as the operator it was written with.
        if sum(predicate.contains for predicate in alternative) > 1:
            raise invalid_argument("A maximum of 1 'ARRAY_CONTAINS' filter is allowed per disjunction.")
    # Set semantics: an alternative that stands twice would give its documents twice.
    return tuple(dict.fromkeys(found))


def _check_operators(where: Proto) -> None:
    """Rules about which operators may stand in one query together, wherever they stand."""
    used = list(_operators(where))
    negative = [name for name in used if name in ("NOT_EQUAL", "NOT_IN", "IS_NOT_NAN", "IS_NOT_NULL")]
    if len(negative) > 1:
        raise invalid_argument(
            "Only a single 'NOT_EQUAL', 'NOT_IN', 'IS_NOT_NAN', or 'IS_NOT_NULL' filter allowed per query."
        )
    if "NOT_IN" in used and any(name in used for name in ("IN", "ARRAY_CONTAINS_ANY", "OR")):
        raise invalid_argument("'NOT_IN' cannot be used in the same query with 'IN', 'ARRAY_CONTAINS_ANY' or 'OR'.")


def _operators(node: Proto) -> Iterator[str]:
    match node.WhichOneof("filter_type"):
        case "composite_filter":
            yield _composite_operator(node.composite_filter.op)
            for child in node.composite_filter.filters:
                yield from _operators(child)
        case "field_filter":
            yield _field_operator(node.field_filter.op)
        case "unary_filter":
            yield _unary_operator(node.unary_filter.op)


def _disjunction(node: Proto, parent: Location) -> list[Conjunction]:
    match node.WhichOneof("filter_type"):
        case "composite_filter":
            return _composite(node.composite_filter, parent)
        case "field_filter":
            return _field_filter(node.field_filter, parent)
        case "unary_filter":
            return [(_unary_filter(node.unary_filter),)]
    raise invalid_argument("A filter must be a composite, field or unary filter.")


def _composite(node: Proto, parent: Location) -> list[Conjunction]:
    branches = [_disjunction(child, parent) for child in node.filters]
    match _composite_operator(node.op):
        case "OR":
            if not branches:
                raise invalid_argument("A composite filter with OR must have at least one sub-filter.")
            found = list({frozenset(one): one for branch in branches for one in branch}.values())
        case "AND":
            count = 1
            for branch in branches:
                count *= len(branch)
            if count > MAX_WRITTEN_OUT:
                raise _too_many(count)
            choices = (tuple(dict.fromkeys(chain.from_iterable(choice))) for choice in product(*branches))
            found = list({frozenset(one): one for one in choices}.values())
        case _:
            raise invalid_argument("A composite filter must be AND or OR.")
    if len(found) > MAX_DISJUNCTIONS:
        raise _too_many(len(found))
    return found


def _too_many(count: int) -> RpcError:
    return invalid_argument(
        f"Too many disjunctions after normalization. Result had {count} disjunctions "
        f"which is more than the maximum of {MAX_DISJUNCTIONS}"
    )


def _field_filter(node: Proto, parent: Location) -> list[Conjunction]:
    path = parse_field_path(node.field.field_path)
    name = _field_operator(node.op)
    value = node.value
    if name in ("IN", "NOT_IN", "ARRAY_CONTAINS_ANY"):
        return _list_filter(path, name, value, parent)
    key = _compared_key(path, value, parent)
    empty = _is_null_or_nan(value) and path != NAME_PATH
    if name == "EQUAL":
        return [(Predicate(path, Op.NEVER if empty else Op.EQUAL, key, _written(name, value)),)]
    if name == "ARRAY_CONTAINS":
        if path == NAME_PATH:
            raise invalid_argument("the name __key__ is reserved")
        return [(Predicate(path, Op.NEVER if empty else Op.CONTAINS, key, _written(name, value), contains=True),)]
    if name == "NOT_EQUAL":
        return [(_not_equal(path, value, key, Op.NEVER),)]
    if name in _RANGES:
        return [(Predicate(path, Op.NEVER if empty else _RANGES[name], key),)]
    raise invalid_argument("A field filter needs an operator.")


def _list_filter(path: FieldPath, name: str, value: Proto, parent: Location) -> list[Conjunction]:
    if value.WhichOneof("value_type") != "array_value":
        raise invalid_argument(f"'{name}' requires an ArrayValue.")
    elements = value.array_value.values
    if not elements:
        raise invalid_argument(f"'{name}' requires an non-empty ArrayValue.")
    most = MAX_NOT_IN if name == "NOT_IN" else MAX_DISJUNCTIONS
    if len(elements) > most:
        raise invalid_argument(f"'{name}' supports up to {most} comparison values.")
    for element in elements:
        check_value(element)  # which cuts times to microseconds, here as in what is stored
    compared = [(element, _compared_key(path, element, parent)) for element in elements]
    if name == "NOT_IN":
        return [tuple(_not_equal(path, element, key, Op.UNDEFINED) for element, key in compared)]
    if name == "ARRAY_CONTAINS_ANY" and path == NAME_PATH:
        raise invalid_argument("the name __key__ is reserved")
    op = Op.EQUAL if name == "IN" else Op.CONTAINS
    found = [
        (
            Predicate(
                path,
                Op.NEVER if _is_null_or_nan(element) else op,
                key,
                _written("EQUAL" if op is Op.EQUAL else name, element),
                contains=op is Op.CONTAINS,
            ),
        )
        for element, key in compared
    ]
    return list(dict.fromkeys(found))


def _written(operator: str, value: Proto) -> bytes:
    data: bytes = value.SerializeToString(deterministic=True)
    return operator.encode() + data


def _not_equal(path: FieldPath, value: Proto, key: bytes, null: Op) -> Predicate:
    """`null` is what the comparison with null is, which no document satisfies."""
    if keys.is_nan(value):
        # Nothing equals NaN, so nothing is left out.
        return Predicate(path, Op.NOT_EQUAL, _NULL_KEY)
    return Predicate(path, null if _is_null_or_nan(value) else Op.NOT_EQUAL, key)


def _unary_filter(node: Proto) -> Predicate:
    path = parse_field_path(node.field.field_path)
    if path == NAME_PATH:
        raise invalid_argument("__key__ filter value must be a Key")
    nan_key = keys.value_key(_NAN)
    match _unary_operator(node.op):
        case "IS_NULL":
            return Predicate(path, Op.EQUAL, _NULL_KEY)
        case "IS_NAN":
            return Predicate(path, Op.EQUAL, nan_key)
        case "IS_NOT_NULL":
            return Predicate(path, Op.NOT_EQUAL, _NULL_KEY)
        case "IS_NOT_NAN":
            return Predicate(path, Op.NOT_EQUAL, nan_key)
    raise invalid_argument("A unary filter needs an operator.")


def _is_null_or_nan(value: Proto) -> bool:
    return value.WhichOneof("value_type") in ("null_value", None) or keys.is_nan(value)


def _compared_key(path: FieldPath, value: Proto, parent: Location) -> bytes:
    if path != NAME_PATH:
        key = _typed_key(value)
        if key != keys.value_key(value):
            raise invalid_argument(f"value for {format_field_path(path)} is too large to be used in a query")
        return key
    if value.WhichOneof("value_type") != "reference_value":
        raise invalid_argument("__key__ filter value must be a Key")
    return _reference_key(value.reference_value, parent)


def _copy(value: Proto) -> Proto:
    """Checking cuts a time to microseconds, as stored ones are; compared by itself it keeps its digits."""
    copy = Value()
    copy.CopyFrom(value)
    return copy


def _typed_key(value: Proto) -> bytes:
    if value.WhichOneof("value_type") == "array_value":
        # An array of arrays cannot be stored, but may be asked for.
        for element in value.array_value.values:
            check_value(element)
    elif value.WhichOneof("value_type") == "timestamp_value":
        check_value(_copy(value))
    else:
        check_value(value)
    return keys.index_key(value)


def _reference_key(name: str, parent: Location) -> bytes:
    location = parse_document(name)
    if location.database != parent.database:
        raise invalid_argument(
            f"The request was for database '{parent.database}' but was attempting to access database "
            f"'{location.database}'"
        )
    return keys.ended(keys.name_key(location))


# --- order and cursors -----------------------------------------------------------------------------------------------


def _orders(query: Proto, alternatives: tuple[Conjunction, ...]) -> tuple[tuple[Order, ...], int]:
    orders: list[Order] = []
    for item in query.order_by:
        path = parse_field_path(item.field.field_path)
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
        raise invalid_argument("A query that names its documents cannot also have an inequality on another field.")
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
            f"This query requires an index that has fields [{fields}] after __name__ and Firestore does not "
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
    paths = [order.path for order in orders] + [p.path for alternative in alternatives for p in alternative]
    by_name_alone = all(path == NAME_PATH for path in paths)
    if descendants and parent.segments and (aggregated or not by_name_alone):
        raise invalid_argument("collection group queries are only allowed at the root parent")
    if collection_id is None and not (by_name_alone and not orders[0].descending):
        raise invalid_argument("kind is required for all filters and orders except __key__ ascending")


def _check_scan_direction(orders: tuple[Order, ...], alternatives: tuple[Conjunction, ...]) -> None:
    by_name_alone = len(orders) == 1 and orders[0].descending
    if by_name_alone and all(p.path == NAME_PATH for alternative in alternatives for p in alternative):
        raise failed_precondition("Firestore does not support descending key scans")


def _cursor(cursor: Proto, orders: tuple[Order, ...], explicit: int, parent: Location) -> Bound:
    if len(cursor.values) > explicit:
        raise invalid_argument("Cursor has too many values.")
    parts: list[bytes] = []
    for value, order in zip(cursor.values, orders, strict=False):
        if order.path == NAME_PATH:
            if value.WhichOneof("value_type") != "reference_value":
                raise invalid_argument("Cursor position for __name__ must be a reference to a document.")
            key = _reference_key(value.reference_value, parent)
        else:
            key = _typed_key(value)
        parts.append(keys.flipped(key) if order.descending else key)
    return Bound(b"".join(parts), behind=not cursor.before)


_NAN = StructuredQuery.FieldFilter().value
_NAN.double_value = float("nan")
