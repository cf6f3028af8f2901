"""A smaller case that still fails, found by leaving out one thing after another."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass, replace
from enum import Enum
from typing import Any

from tests.conformance.operations import Case

MOST_ATTEMPTS = 400
"""Each attempt runs a case on both emulators; with these a case of ten steps comes down to two or three."""


async def shrunk(case: Case, fails: Callable[[Case], Awaitable[bool]]) -> Case:
    """The smallest failing case found within MOST_ATTEMPTS; `case` itself fails."""
    attempts = 0
    found = True
    while found:
        found = False
        for smaller in smaller_cases(case):
            attempts += 1
            if attempts > MOST_ATTEMPTS:
                return case
            if await fails(smaller):
                case, found = smaller, True
                break
    return case


def smaller_cases(case: Case) -> Iterator[Case]:
    """Cases with one thing less, those that lose most first."""
    if len(case) > 2:  # half of the steps at once
        yield case[len(case) // 2 :]
        yield case[: len(case) // 2]
    yield from _smaller(case)


def _smaller(value: Any) -> Iterator[Any]:
    match value:
        case tuple() if hasattr(value, "_fields"):
            return  # a value of Firestore, such as a geopoint
        case tuple() | list():
            same = type(value)
            for index in reversed(range(len(value))):
                yield same((*value[:index], *value[index + 1 :]))
            for index, part in enumerate(value):
                for smaller in _smaller(part):
                    yield same((*value[:index], smaller, *value[index + 1 :]))
        case dict():
            for key in value:
                yield {name: part for name, part in value.items() if name != key}
            for key, part in value.items():
                for smaller in _smaller(part):
                    yield {**value, key: smaller}
        case Enum():
            return
        case _ if is_dataclass(value) and not isinstance(value, type):
            yield from _smaller_parts(value)


def _smaller_parts(value: Any) -> Iterator[Any]:
    for part in fields(value):
        held = getattr(value, part.name)
        # An operand belongs to its operator: without one it may not even be an operation.
        if part.default is not MISSING and held != part.default and part.name != "operand":
            yield replace(value, **{part.name: part.default})
        for smaller in _smaller(held):
            yield replace(value, **{part.name: smaller})
