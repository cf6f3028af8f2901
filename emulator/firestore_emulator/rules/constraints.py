"""Operators on a field that is known by the query's filters only, not by a document.

They prove exactly what Google's evaluator proves: a comparison is true if one filter implies it, and fails otherwise;
`!=` is true if a filter excludes the value.
"""

from __future__ import annotations

from typing import Any

from firestore_emulator.rules import text
from firestore_emulator.rules.values import (
    Constraint,
    Duration,
    Failure,
    Timestamp,
    Value,
    equal,
    is_number,
)

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _unproven(what: str) -> Failure:
    return Failure(f"The query's filters do not prove {what}.")


def _sides(left: Value, right: Value) -> tuple[Constraint, Value, bool]:
    """The constraint, the value, and whether the value stands on the left."""
    if type(left) is Constraint:
        if type(right) is Constraint:
            raise _unproven("how two fields compare")
        return left, right, False
    return right, left, True


def compares(operator: str, left: Value, right: Value) -> bool:
    field, value, mirrored = _sides(left, right)
    wanted = _MIRRORED[operator] if mirrored else operator
    for known, bound in field.bounds:
        if _implies(known, bound, wanted, value):
            return True
    raise _unproven(f"the comparison {wanted}")


def _implies(known: str, bound: Value, wanted: str, value: Value) -> bool:
    """Whether `x known bound` makes `x wanted value` true for every x."""
    if not _is_comparable(bound, value):
        return False
    if known == "==":
        return _ordered(bound, wanted, value)
    if known in ("<", "<="):
        if wanted not in ("<", "<="):
            return False
        strict = known == "<=" and wanted == "<"
        return _ordered(bound, "<" if strict else "<=", value)
    if known in (">", ">="):
        if wanted not in (">", ">="):
            return False
        strict = known == ">=" and wanted == ">"
        return _ordered(bound, ">" if strict else ">=", value)
    return False


def _is_comparable(bound: Value, value: Value) -> bool:
    if is_number(bound) and is_number(value):
        return type(bound) is int or type(value) is float  # a filter on a double proves nothing about integers
    return type(bound) is type(value) and type(bound) in (str, bytes, Timestamp, Duration)


def _has_type_of(bound: Value, value: Value) -> bool:
    return type(bound) is type(value) or (is_number(bound) and is_number(value))


def _is_same(bound: Value, value: Value) -> bool:
    """Whether a filter's value is the value that a condition names."""
    return equal(bound, value) and (type(bound) is not float or type(value) is float)


def _ordered(left: Value, operator: str, right: Value) -> bool:
    first: Any = text.ordered(left) if type(left) is str else getattr(left, "nanos", left)
    second: Any = text.ordered(right) if type(right) is str else getattr(right, "nanos", right)
    if is_number(first) and type(first) is not type(second):
        first, second = float(first), float(second)
    match operator:
        case "<":
            return bool(first < second)
        case "<=":
            return bool(first <= second)
        case ">":
            return bool(first > second)
    return bool(first >= second)


def equals(left: Value, right: Value) -> bool:
    field, value, _ = _sides(left, right)
    if any(known == "==" and _is_same(bound, value) for known, bound in field.bounds):
        return True
    raise _unproven("an equality")


def differs(left: Value, right: Value) -> bool:
    field, value, _ = _sides(left, right)
    if value is None and field.excludes_null:
        return True
    for known, bound in field.bounds:
        if known == "!=" and _is_same(bound, value):
            return True
        if known == "==" and _has_type_of(bound, value) and not _is_same(bound, value):
            return True
        if known in ("<", ">") and _implies(known, bound, {"<": "<=", ">": ">="}[known], value):
            return True
        if known in ("<=", ">=") and _implies(known, bound, known[0], value):
            return True
    raise _unproven("an inequality")


def holds_item(item: Value, field: Constraint) -> bool:
    """`item in field`."""
    if has_any(field, [item]):
        return True
    raise _unproven("what the array holds")


def has_any(field: Constraint, items: list[Value]) -> bool:
    return any(_is_same(one, item) for item in items for one in field.contains)
