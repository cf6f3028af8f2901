"""The signatures of methods and functions: a call with other types or another number of arguments is a Failure."""

from __future__ import annotations

from collections.abc import Callable

from firestore_emulator.rules.values import Failure, Value, type_name

Function = Callable[..., Value]


class _AnyType(frozenset[type]):
    def __contains__(self, kind: object) -> bool:
        return True


ANY = _AnyType()
"""In a signature: an argument of any type."""


def typed(function: Function, *kinds: type | tuple[type, ...] | frozenset[type]) -> Function:
    """Return the function, restricted to arguments of these types. A method's first argument is its owner."""
    allowed = [frozenset({kind}) if isinstance(kind, type) else kind for kind in kinds]
    expected = len(allowed)
    first, second = allowed[0], allowed[-1]

    # Most functions take one or two arguments, and every request calls them often: those have no loop.

    def with_one(*values: Value) -> Value:
        if len(values) == 1 and type(values[0]) in first:
            return function(*values)
        raise _mismatch(values, 1)

    def with_two(*values: Value) -> Value:
        if len(values) == 2 and type(values[0]) in first and type(values[1]) in second:
            return function(*values)
        raise _mismatch(values, 2)

    def with_several(*values: Value) -> Value:
        if len(values) == expected and all(type(value) in kind for value, kind in zip(values, allowed, strict=True)):
            return function(*values)
        raise _mismatch(values, expected)

    return with_one if expected == 1 else with_two if expected == 2 else with_several


def _mismatch(values: tuple[Value, ...], expected: int) -> Failure:
    if len(values) != expected:
        return Failure(f"Incorrect number of arguments. Received: {len(values)}. Expected: {expected}.")
    return Failure(f"Unsupported operation error. Received: {', '.join(map(type_name, values))}.")
