"""The filter of a structured query, checked and written out as alternatives.

An alternative is a conjunction of predicates; a document is found if it satisfies one of them. Some filters are true
of no document (a comparison with null). They stay in what comes out of here, as they count when it is checked what may
stand in one query together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import chain, product

from firestore_emulator.documents import keys
from firestore_emulator.documents.fields import NAME_PATH, FieldPath, parse_field_path
from firestore_emulator.documents.names import Location
from firestore_emulator.documents.protos import Proto, StructuredQuery, Value
from firestore_emulator.documents.values import check_value
from firestore_emulator.queries.operands import compared_key
from firestore_emulator.queries.query import NULL_KEY, Conjunction, Op, Predicate
from firestore_emulator.rpc.errors import RpcError, invalid_argument

MAX_DISJUNCTIONS = 30
MAX_WRITTEN_OUT = 10_000
"""Before equal alternatives are counted as one: beyond this no count is needed."""
MAX_NOT_IN = 10

_RANGES = {
    "LESS_THAN": Op.LESS,
    "LESS_THAN_OR_EQUAL": Op.LESS_OR_EQUAL,
    "GREATER_THAN": Op.GREATER,
    "GREATER_THAN_OR_EQUAL": Op.GREATER_OR_EQUAL,
}
_NAN_KEY = keys.value_key(Value(double_value=float("nan")))


def alternatives(query: Proto, parent: Location) -> tuple[Conjunction, ...]:
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
    # Equal filters side by side are one. Further apart they are not, and array-contains then counts twice.
    branches = [_disjunction(child, parent) for child in {_as_written(child): child for child in node.filters}.values()]
    match _composite_operator(node.op):
        case "OR":
            if not branches:
                raise invalid_argument("A composite filter with OR must have at least one sub-filter.")
            found = _distinct(one for branch in branches for one in branch)
        case "AND":
            count = 1
            for branch in branches:
                count *= len(branch)
            if count > MAX_WRITTEN_OUT:
                raise _too_many(count)
            found = _distinct(_joined(chain.from_iterable(choice)) for choice in product(*branches))
        case _:
            raise invalid_argument("A composite filter must be AND or OR.")
    if len(found) > MAX_DISJUNCTIONS:
        raise _too_many(len(found))
    return found


def _as_written(node: Proto) -> Hashable:
    """The filter as it was written, whatever the order in a composite one, or of the values of array-contains-any."""
    field = node.field_filter
    if node.WhichOneof("filter_type") == "field_filter" and _field_operator(field.op) == "ARRAY_CONTAINS_ANY":
        values = frozenset(value.SerializeToString(deterministic=True) for value in field.value.array_value.values)
        return field.field.field_path, field.op, values
    if node.WhichOneof("filter_type") != "composite_filter":
        written: bytes = node.SerializeToString(deterministic=True)
        return written
    return node.composite_filter.op, frozenset(map(_as_written, node.composite_filter.filters))


def _joined(predicates: Iterable[Predicate]) -> Conjunction:
    found: list[Predicate] = []
    for predicate in predicates:
        if predicate.contains or predicate not in found:
            found.append(predicate)
    return tuple(found)


def _distinct(conjunctions: Iterable[Conjunction]) -> list[Conjunction]:
    """Without those that say the same as another."""
    found = list(conjunctions)
    if len(found) < 2:
        return found
    return list({frozenset(Counter(one).items()): one for one in found}.values())


def _too_many(count: int) -> RpcError:
    return invalid_argument(
        f"Too many disjunctions after normalization. Result had {count} disjunctions "
        f"which is more than the maximum of {MAX_DISJUNCTIONS}"
    )


def _field_filter(node: Proto, parent: Location) -> list[Conjunction]:
    path = parse_field_path(node.field.field_path, is_asked=True)
    name = _field_operator(node.op)
    value = node.value
    if name in ("IN", "NOT_IN", "ARRAY_CONTAINS_ANY"):
        return _list_filter(path, name, value, parent)
    key = compared_key(path, value, parent, is_element=name == "ARRAY_CONTAINS")
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
    is_element = name == "ARRAY_CONTAINS_ANY"
    compared = [(element, compared_key(path, element, parent, is_element=is_element)) for element in elements]
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
        return Predicate(path, Op.NOT_EQUAL, NULL_KEY)
    return Predicate(path, null if _is_null_or_nan(value) else Op.NOT_EQUAL, key)


def _unary_filter(node: Proto) -> Predicate:
    path = parse_field_path(node.field.field_path, is_asked=True)
    if path == NAME_PATH:
        raise invalid_argument("__key__ filter value must be a Key")
    match _unary_operator(node.op):
        case "IS_NULL":
            return Predicate(path, Op.EQUAL, NULL_KEY)
        case "IS_NAN":
            return Predicate(path, Op.EQUAL, _NAN_KEY)
        case "IS_NOT_NULL":
            return Predicate(path, Op.NOT_EQUAL, NULL_KEY)
        case "IS_NOT_NAN":
            return Predicate(path, Op.NOT_EQUAL, _NAN_KEY)
    raise invalid_argument("A unary filter needs an operator.")


def _is_null_or_nan(value: Proto) -> bool:
    return value.WhichOneof("value_type") in ("null_value", None) or keys.is_nan(value)


def _names(operators: Proto) -> Callable[[int], str]:
    """An operator's name, or nothing for a number that this version of the API does not have."""
    by_number: dict[int, str] = {number: name for name, number in operators.items()}
    return lambda number: by_number.get(number, "")


_field_operator = _names(StructuredQuery.FieldFilter.Operator)
_unary_operator = _names(StructuredQuery.UnaryFilter.Operator)
_composite_operator = _names(StructuredQuery.CompositeFilter.Operator)
