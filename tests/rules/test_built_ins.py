"""Every operator, method and function of the rules takes every value: it returns a value of the rules, or fails."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import product

import pytest

from firestore_emulator.rules import arithmetic, text
from firestore_emulator.rules.methods import METHODS
from firestore_emulator.rules.operators import OPERATIONS
from firestore_emulator.rules.packages import FUNCTIONS, PACKAGES
from firestore_emulator.rules.values import (
    LARGEST,
    SMALLEST,
    Constraint,
    Duration,
    Failure,
    LatLng,
    MapDiff,
    Path,
    RulesSet,
    Timestamp,
    Unbound,
    Value,
    Vector,
    shown,
)

NUMBERS: tuple[Value, ...] = (
    *(0, 1, -1, 3, 2**53 + 1, LARGEST, SMALLEST),
    *(0.0, -0.0, 0.5, -2.5, 3.0, 1e19, 1e308, 5e-324, math.inf, -math.inf, math.nan),
)
TEXTS: tuple[Value, ...] = (
    "",
    "a",
    "é😀",
    "\ud800",
    "(",
    "a*",
    "(a)(b)?",
    "$1",
    "${x}",
    "\\",
    "1e400",
    "0x1p9999",
    "w",
)
OTHERS: tuple[Value, ...] = (
    *(None, True, False, b"", b"\xff", [], [1, "a", None, [math.nan]], {}, {"a": 1}, {"x": "", "a": None}),
    *(RulesSet([]), RulesSet(["a", 1, 1.0, []]), MapDiff({"a": 1}, {"b": math.nan})),
    *(Timestamp(0), Timestamp(arithmetic.EARLIEST), Timestamp(arithmetic.LATEST - 1)),
    *(Duration(0), Duration(-1), Duration(arithmetic.LONGEST), Duration(-arithmetic.LONGEST)),
    *(LatLng(90.0, 180.0), LatLng(-90.0, -180.0), LatLng(math.nan, 0.0), Vector((1.0,)), Vector(())),
    *(Path(()), Path(("a", "b")), Path(("a", Unbound("x"))), Path((Unbound("x", True),))),
    *(Constraint((("<", 1),)), Constraint((("!=", "a"), (">=", 2.5))), Constraint((), ("a", 1))),
)
VALUES = (*NUMBERS, *TEXTS, *OTHERS)


def calls() -> Iterator[tuple[str, Callable[..., Value]]]:
    yield from OPERATIONS.items()
    yield from ((f"{name}()", function) for name, function in FUNCTIONS.items())
    for package, functions in PACKAGES.items():
        yield from ((f"{package}.{name}", function) for name, function in functions.items())
    for methods in METHODS.values():
        yield from ((f".{name}", method) for name, method in methods.items())
    yield "[]", arithmetic.indexed
    yield "[:]", arithmetic.sliced
    yield "unary -", arithmetic.negate
    yield "string", text.string_of


def arguments() -> Iterator[tuple[Value, ...]]:
    yield ()
    yield from ((value,) for value in VALUES)
    yield from product(VALUES, repeat=2)
    yield from product(TEXTS, repeat=3)
    yield from product(({"a": 1}, {}), VALUES, (None, 1))
    yield from product(("abc", "é😀", [1, 2], Path(("a", "b"))), (*NUMBERS, None, "a"), (*NUMBERS, None, "a"))
    yield from product((1972, -1, 9999, LARGEST), (2, 13, SMALLEST), (29, 0, LARGEST))
    yield from product((0, 59, LARGEST, SMALLEST), repeat=4)


@pytest.mark.parametrize(("name", "function"), [*calls()])
def test_it_returns_a_value_or_fails(name: str, function: Callable[..., Value]) -> None:
    returned = 0
    for values in arguments():
        if name in {*OPERATIONS, "[]"} and len(values) != 2:
            continue
        if (name in ("unary -", "string") and len(values) != 1) or (name == "[:]" and len(values) != 3):
            continue
        try:
            value = function(*values)
        except Failure:
            continue
        assert shown(value), f"{name}{values}"
        returned += 1
    assert returned
