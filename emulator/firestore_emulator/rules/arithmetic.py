"""Operators over values: a wrong type, an overflow or a division of integers by zero is a Failure."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

from firestore_emulator.rules import constraints, text
from firestore_emulator.rules.values import (
    LARGEST,
    SMALLEST,
    Constraint,
    Duration,
    Failure,
    Path,
    RulesSet,
    Timestamp,
    Value,
    equal,
    is_number,
    paired,
    same_item,
    type_name,
)

EARLIEST, LATEST = -62_135_596_800 * 10**9, 253_402_300_800 * 10**9
"""Years 1 to 9999, in nanoseconds; the end is exclusive."""
LONGEST = 315_576_000_000 * 10**9
"""10,000 years, in nanoseconds."""


def whole(value: int) -> int:
    if SMALLEST <= value <= LARGEST:
        return value
    raise Failure("Integer overflow.")


def timestamp(nanos: int) -> Timestamp:
    if EARLIEST <= nanos < LATEST:
        return Timestamp(nanos)
    raise Failure("The timestamp is outside the years 1 to 9999.")


def duration(nanos: int) -> Duration:
    if -LONGEST <= nanos <= LONGEST:
        return Duration(nanos)
    raise Failure("The duration is longer than 10,000 years.")


def mismatch(sign: str, left: Value, right: Value) -> Failure:
    return Failure(f"Unsupported operation error. Received: {type_name(left)} {sign} {type_name(right)}.")


def add(left: Value, right: Value) -> Value:
    kinds = type(left), type(right)
    if kinds == (int, int):
        return whole(left + right)
    if is_number(left) and is_number(right):
        return float(left) + float(right)
    if kinds == (str, str):
        return paired(left + right)
    if kinds in ((Timestamp, Duration), (Duration, Timestamp)):
        return timestamp(left.nanos + right.nanos)
    if kinds == (Duration, Duration):
        return duration(left.nanos + right.nanos)
    raise mismatch("+", left, right)


def subtract(left: Value, right: Value) -> Value:
    kinds = type(left), type(right)
    if kinds == (int, int):
        return whole(left - right)
    if is_number(left) and is_number(right):
        return float(left) - float(right)
    if kinds == (Timestamp, Duration):
        return timestamp(left.nanos - right.nanos)
    if kinds in ((Timestamp, Timestamp), (Duration, Duration)):
        return duration(left.nanos - right.nanos)
    raise mismatch("-", left, right)


def multiply(left: Value, right: Value) -> Value:
    if type(left) is int and type(right) is int:
        return whole(left * right)
    if is_number(left) and is_number(right):
        return float(left) * float(right)
    raise mismatch("*", left, right)


def divide(left: Value, right: Value) -> Value:
    if type(left) is int and type(right) is int:
        if right == 0:
            raise Failure("Division by zero.")
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        return quotient if quotient <= LARGEST else SMALLEST
    if is_number(left) and is_number(right):
        numerator, denominator = float(left), float(right)
        if denominator == 0:
            if numerator == 0 or math.isnan(numerator):
                return math.nan
            return math.copysign(math.inf, numerator) * math.copysign(1, denominator)
        return numerator / denominator
    raise mismatch("/", left, right)


def remainder(left: Value, right: Value) -> Value:
    if type(left) is int and type(right) is int:
        if right == 0:
            raise Failure("Division by zero.")
        return abs(left) % abs(right) * (1 if left >= 0 else -1)
    if is_number(left) and is_number(right):
        try:
            return math.fmod(left, right)
        except (ValueError, OverflowError):
            return math.nan
    raise mismatch("%", left, right)


def negate(value: Value) -> Value:
    if type(value) is int:
        return whole(-value)
    if type(value) is float:
        return -value
    if type(value) is Duration:
        return duration(-value.nanos)
    raise Failure(f"Unsupported operation error. Received: -{type_name(value)}.")


# --- comparisons


def equals(left: Value, right: Value) -> bool:
    if type(left) is str and type(right) is str:
        return left == right
    if type(left) is Constraint or type(right) is Constraint:
        return constraints.equals(left, right)
    return equal(left, right)


def differs(left: Value, right: Value) -> bool:
    if type(left) is Constraint or type(right) is Constraint:
        return constraints.differs(left, right)
    return not equal(left, right)


def _comparison(sign: str, holds: Callable[[Value, Value], bool]) -> Callable[[Value, Value], bool]:
    def compare(left: Value, right: Value) -> bool:
        kind = type(left)
        if kind is type(right):
            if kind is str:
                return holds(text.ordered(left), text.ordered(right))
            if kind in (int, float, bytes):
                return holds(left, right)
        if is_number(left) and is_number(right):
            return holds(float(left), float(right))
        if kind is type(right) and kind in (Timestamp, Duration):
            return holds(left.nanos, right.nanos)
        if kind is Constraint or type(right) is Constraint:
            return constraints.compares(sign, left, right)
        raise mismatch(sign, left, right)

    return compare


less = _comparison("<", operator.lt)
less_or_equal = _comparison("<=", operator.le)
greater = _comparison(">", operator.gt)
greater_or_equal = _comparison(">=", operator.ge)


def contained(item: Value, container: Value) -> bool:
    """`in`."""
    kind = type(container)
    if kind is list:
        if type(item) is str:
            return item in container  # a string equals nothing but the same string
        return any(same_item(item, one) for one in container)
    if kind is dict:
        if type(item) is str:
            return item in container
    elif kind is RulesSet:
        return item in container
    elif kind is Constraint:
        return constraints.holds_item(item, container)
    raise mismatch("in", item, container)


# --- parts


def member(target: Value, name: str) -> Value:
    """`target.name` and `target['name']`."""
    if type(target) is dict:
        try:
            return target[name]
        except KeyError:
            raise Failure(f"Property {name} is undefined on object.") from None
    raise Failure(f"Property {name} is undefined on a {type_name(target)}.")


def indexed(target: Value, index: Value) -> Value:
    kind = type(target)
    if kind is dict and type(index) is str:
        return member(target, index)
    _refuse_open(target)
    if kind in (list, str, Path) and type(index) is int:
        if kind is str:
            if 0 <= index < text.size(target):
                return text.part(target, index, index + 1)
            raise Failure("Index out of range.")
        items = target.segments if kind is Path else target
        if 0 <= index < len(items):
            return items[index]
        raise Failure("Index out of range.")
    raise Failure(f"A {type_name(target)} has no index of type {type_name(index)}.")


def _refuse_open(target: Value) -> None:
    if type(target) is Path and target.is_open:
        raise Failure(f"{target} has segments without a value.")


def sliced(target: Value, low: Value, high: Value) -> Value:
    """`target[low:high]`; None stands for a bound that was left out."""
    kind = type(target)
    if kind not in (list, str, Path):
        raise Failure(f"A {type_name(target)} has no range.")
    _refuse_open(target)
    length = text.size(target) if kind is str else len(target.segments) if kind is Path else len(target)
    first = 0 if low is None else low
    last = length if high is None else high
    if type(first) is not int or type(last) is not int:
        raise Failure("The bounds of a range must be integers.")
    if not (0 <= first <= last <= length and first < length):
        raise Failure("Range out of bounds.")
    if kind is str:
        return text.part(target, first, last)
    return Path(target.segments[first:last]) if kind is Path else target[first:last]
