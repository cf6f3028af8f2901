"""What the emulator says about the rules' expressions: which values each had, and where it stands.

Before it has read what it needs, the emulator evaluates with unknown values; those say nothing and are left out. A
value can be an error, which refuses as false does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_CLOSED_BY = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True)
class Expression:
    line: int
    start: int
    end: int
    text: str
    was_evaluated: bool
    was_true: bool
    was_false: bool
    was_error: bool

    @property
    def is_condition(self) -> bool:
        return self.was_true or self.was_false

    @property
    def went_both_ways(self) -> bool:
        return self.was_true and self.was_false

    def __str__(self) -> str:
        return f"line {self.line}: {' '.join(self.text.split())}"


def expressions(report: list[dict[str, Any]], source: str) -> Iterator[Expression]:
    for node in report:
        yield from _expressions(node, source)


def _expressions(node: dict[str, Any], source: str) -> Iterator[Expression]:
    position = node["sourcePosition"]
    start = position["currentOffset"]
    end = _end(source, start, position["endOffset"] + 1)
    values = [value["value"] for value in node.get("values", [])]
    yield Expression(
        line=position["line"],
        start=start,
        end=end,
        text=source[start:end],
        was_evaluated=bool(values),
        was_true=any(value.get("boolValue") is True for value in values),
        was_false=any(value.get("boolValue") is False for value in values),
        was_error=any(value.get("undefined") for value in values),
    )
    for child in node.get("children", []):
        yield from _expressions(child, source)


def _end(source: str, start: int, end: int) -> int:
    """The emulator leaves out the brackets that close an expression."""
    awaited: list[str] = []
    quoted = False
    at = start
    while at < len(source) and (at < end or awaited or quoted):
        letter = source[at]
        if letter == "\\":
            at += 1
        elif letter == "'":
            quoted = not quoted
        elif not quoted and letter in _CLOSED_BY:
            awaited.append(_CLOSED_BY[letter])
        elif not quoted and awaited and letter == awaited[-1]:
            awaited.pop()
        at += 1
    return at
