"""What a query's filters prove about every document that it can find.

`in`, `or` and `array-contains-any` split a query into alternatives, and the rules must allow each. In an alternative, a
field with an `==` filter has that value, a field with other filters is a `Constraint`, and every other field is
missing, so reading it fails. Rules are not filters: they refuse what is not proven, whatever the collection holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from firestore_emulator.rules.values import Constraint, Timestamp, Value, strictly_equal

_ORDER = frozenset({"<", "<=", ">", ">="})
COMPARISONS = _ORDER | {"!="}
_ORDERED = frozenset({int, float, str, bytes, Timestamp})
"""The types whose order proves something. Of the others Google's evaluator does not even conclude that they are set."""


@dataclass(frozen=True, slots=True)
class Filter:
    """A condition that holds of every document of an alternative."""

    path: tuple[str, ...]
    operator: str
    """`==`, a comparison, `not-in`, `array-contains`, or `exists` if the filter proves nothing about the value"""
    value: Value


class Unprovable(Exception):
    """The filters contradict each other, or say more than can be represented."""


def known_data(filters: Sequence[Filter]) -> dict[str, Value]:
    """The fields that every document of the alternative has."""
    by_path: dict[tuple[str, ...], list[Filter]] = {}
    for one in filters:
        by_path.setdefault(one.path, []).append(one)
    data: dict[str, Value] = {}
    for path in sorted(by_path):
        _put(data, path, _known(by_path[path]))
    return data


def _known(filters: Sequence[Filter]) -> Value:
    values: list[Value] = []
    bounds: list[tuple[str, Value]] = []
    contains: list[Value] = []
    is_known = True
    for one in filters:
        if one.operator == "==":
            if not any(strictly_equal(value, one.value) for value in values):
                values.append(one.value)
        elif one.operator == "not-in":
            bounds += [("!=", value) for value in one.value]
        elif one.operator == "array-contains":
            contains.append(one.value)
        elif one.operator in COMPARISONS:
            bounds.append((one.operator, one.value))
        elif one.operator == "exists":
            is_known = False
        else:
            raise Unprovable(one.operator)
    if len(values) == 1 and is_known and not bounds and not contains:
        return values[0]
    excludes_null = any(one.operator not in _ORDER or type(one.value) in _ORDERED for one in filters)
    return Constraint((*(("==", value) for value in values), *bounds), tuple(contains), excludes_null)


def _put(data: dict[str, Value], path: tuple[str, ...], value: Value) -> None:
    *parents, last = path
    for name in parents:
        inner = data.setdefault(name, {})
        if type(inner) is not dict:
            raise Unprovable(".".join(path))
        data[name] = data = dict(inner)
    if last in data:
        raise Unprovable(".".join(path))
    data[last] = value
