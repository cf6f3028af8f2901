"""A query as the rules see it: `request.query`, its path, and its filters as alternatives."""

from __future__ import annotations

from itertools import chain, product

from firestore_emulator.documents.fields import NAME_PATH, format_field_path, parse_field_path
from firestore_emulator.documents.names import Location, parse_document
from firestore_emulator.documents.protos import Proto, StructuredQuery
from firestore_emulator.queries.structured_query import DESCENDING
from firestore_emulator.rules.guard_values import document_path, value_of
from firestore_emulator.rules.matching import ANY, ANY_NUMBER, Segment
from firestore_emulator.rules.prove import Filter
from firestore_emulator.rules.values import Value

Alternative = tuple[Filter, ...]

_FIELD = {number: name for name, number in StructuredQuery.FieldFilter.Operator.items()}
_UNARY = {number: name for name, number in StructuredQuery.UnaryFilter.Operator.items()}
_AND = StructuredQuery.CompositeFilter.Operator.Value("AND")
_SIMPLE = {
    "EQUAL": "==",
    "LESS_THAN": "<",
    "LESS_THAN_OR_EQUAL": "<=",
    "GREATER_THAN": ">",
    "GREATER_THAN_OR_EQUAL": ">=",
    "NOT_EQUAL": "!=",
    "ARRAY_CONTAINS": "array-contains",
    "NOT_IN": "not-in",
}
_EACH = {"IN": "==", "ARRAY_CONTAINS_ANY": "array-contains"}
_NAN = float("nan")
_TESTS = {"IS_NULL": ("==", None), "IS_NAN": ("==", _NAN), "IS_NOT_NULL": ("!=", None), "IS_NOT_NAN": ("!=", _NAN)}


def alternatives(query: Proto) -> list[Alternative]:
    """The filter of a query that has passed `parse_query`, as a disjunction of conjunctions."""
    return _alternatives(query.where) if query.HasField("where") else [()]


def _alternatives(node: Proto) -> list[Alternative]:
    match node.WhichOneof("filter_type"):
        case "composite_filter":
            branches = [_alternatives(child) for child in node.composite_filter.filters]
            if node.composite_filter.op == _AND:
                return [tuple(chain.from_iterable(choice)) for choice in product(*branches)]
            return list(chain.from_iterable(branches))
        case "unary_filter":
            operator, value = _TESTS[_UNARY[node.unary_filter.op]]
            return [(Filter(parse_field_path(node.unary_filter.field.field_path), operator, value),)]
    path = parse_field_path(node.field_filter.field.field_path)
    operator = _FIELD[node.field_filter.op]
    if operator in _EACH:
        values = [value_of(one) for one in node.field_filter.value.array_value.values]
        return [(_filter(path, _EACH[operator], value),) for value in values]
    return [(_filter(path, _SIMPLE[operator], value_of(node.field_filter.value)),)]


def _filter(path: tuple[str, ...], operator: str, value: Value) -> Filter:
    """Google's evaluator takes null and NaN from unary filters only; in another filter they prove nothing."""
    is_special = value is None or value != value
    return Filter(path, "exists" if is_special else operator, value)


def named_document(alternative: Alternative, database: str) -> Location | None:
    """The document that an alternative names, if it has that one filter on names; None: its documents are unknown."""
    named = [one for one in alternative if one.path == NAME_PATH]
    if len(named) != 1 or named[0].operator != "==":
        return None
    project = database.rpartition("/")[0].rpartition("/")[0]
    return parse_document(f"{project}{named[0].value}")


def asked_path(parent: Location, query: Proto) -> tuple[Segment, ...]:
    selector = query.from_[0] if query.from_ else None
    collection: Segment = selector.collection_id if selector is not None and selector.collection_id else ANY
    between = (ANY_NUMBER,) if selector is not None and selector.all_descendants else ()
    return (*parent.segments, *between, collection, ANY)


def query_map(parent: Location, query: Proto) -> dict[str, Value]:
    """`request.query`"""
    selector = query.from_[0] if query.from_ else None
    descendants = selector is not None and selector.all_descendants
    above = None if not parent.segments else document_path(parent)
    orders: dict[str, Value] = {
        format_field_path(parse_field_path(order.field.field_path)): "DESC" if order.direction == DESCENDING else "ASC"
        for order in query.order_by
    }
    found: dict[str, Value] = {
        "allDescendants": descendants,
        "distinct": False,
        "groupBy": {},
        "kind": selector.collection_id if selector is not None else None,
        "limit": query.limit.value if query.HasField("limit") else None,
        "offset": query.offset,
        "orderBy": orders,
        "selectOnlyKeys": False,
    }
    if not descendants:
        found["parent"] = above
    elif above is not None:
        found["ancestor"] = above
    return found


def selected_fields(query: Proto) -> Value:
    """`request.fields`; null where whole documents are asked for."""
    if not query.HasField("select"):
        return None
    return [field.field_path for field in query.select.fields if field.field_path != "__name__"]
