"""Closures of the operators. `&&` and `||` absorb a failure on either side; every other operator passes it on."""

from __future__ import annotations

from collections.abc import Callable

from firestore_emulator.rules import arithmetic
from firestore_emulator.rules.evaluation import Closure, Evaluation
from firestore_emulator.rules.values import Failure, Value, type_name

OPERATIONS: dict[str, Callable[[Value, Value], Value]] = {
    "==": arithmetic.equals,
    "!=": arithmetic.differs,
    "<": arithmetic.less,
    "<=": arithmetic.less_or_equal,
    ">": arithmetic.greater,
    ">=": arithmetic.greater_or_equal,
    "+": arithmetic.add,
    "-": arithmetic.subtract,
    "*": arithmetic.multiply,
    "/": arithmetic.divide,
    "%": arithmetic.remainder,
    "in": arithmetic.contained,
}


def binary(operator: str, left: Closure, right: Closure) -> Closure:
    if operator == "&&":
        return _logic(left, right, decisive=False)
    if operator == "||":
        return _logic(left, right, decisive=True)
    operation = OPERATIONS[operator]

    def binary(e: Evaluation) -> Value:
        e.used += 1
        return operation(left(e), right(e))

    return binary


def _logic(left: Closure, right: Closure, *, decisive: bool) -> Closure:
    """`&&`, which false decides, or `||`, which true decides, even if the other side fails."""

    def logic(e: Evaluation) -> Value:
        e.used += 1
        try:
            value = left(e)
        except Failure as failure:
            return _after_failure(right, e, failure, decisive)
        if value is decisive:
            return value
        if value is not True and value is not False:
            return _after_failure(right, e, _not_bool(value), decisive)
        e.used += 1
        value = right(e)
        if value is True or value is False:
            return value
        raise _not_bool(value)

    return logic


def _after_failure(right: Closure, e: Evaluation, failure: Failure, decisive: bool) -> Value:
    """The value if the left side failed: only a decisive right side absorbs that."""
    e.used += 1
    try:
        value = right(e)
    except Failure:
        raise failure from None
    if value is decisive:
        return value
    raise failure


def _not_bool(value: Value) -> Failure:
    return Failure(f"A condition must be bool, not {type_name(value)}.")


def negation(operand: Closure) -> Closure:
    def negated(e: Evaluation) -> Value:
        e.used += 1
        value = operand(e)
        if value is True:
            return False
        if value is False:
            return True
        raise Failure(f"Unsupported operation error. Received: !{type_name(value)}.")

    return negated


def minus(operand: Closure) -> Closure:
    def negated(e: Evaluation) -> Value:
        e.used += 1
        return arithmetic.negate(operand(e))

    return negated


def type_test(operand: Closure, kinds: tuple[type, ...]) -> Closure:
    def tested(e: Evaluation) -> Value:
        e.used += 2
        return type(operand(e)) in kinds

    return tested


def conditional(condition: Closure, when_true: Closure, when_false: Closure) -> Closure:
    def chosen(e: Evaluation) -> Value:
        e.used += 1
        value = condition(e)
        if value is True:
            return when_true(e)
        if value is False:
            return when_false(e)
        raise _not_bool(value)

    return chosen
