"""How often each expression of a rules file had which value, in the format of Google's emulator."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

from firestore_emulator.rules import ast
from firestore_emulator.rules.evaluation import Closure, Evaluation
from firestore_emulator.rules.packages import PACKAGES
from firestore_emulator.rules.ruleset import Ruleset
from firestore_emulator.rules.values import (
    Duration,
    Failure,
    LatLng,
    Path,
    RulesSet,
    Timestamp,
    Unbound,
    Value,
    printable,
    shown,
)
from firestore_emulator.rules.walk import steps, without_parens

MOST_VALUES = 20
"""Values other than true and false that are kept for one expression. Further ones are only counted."""


class _Seen:
    """The values that one expression has had."""

    __slots__ = ("failed", "failures", "other", "true", "untrue", "values")

    def __init__(self) -> None:
        self.true = self.untrue = self.other = self.failed = 0
        self.values: list[Value] = []
        self.failures: list[str] = []


class Coverage:
    """The values of a ruleset's expressions, counted by the closures that `counting` makes."""

    def __init__(self, ruleset: Ruleset) -> None:
        self._ruleset = ruleset
        self._seen: dict[int, _Seen] = {}

    def counting(self, node: ast.Expression, closure: Closure) -> Closure:
        """Return a closure that also counts the values. Every request pays for it, so it does little."""
        seen = self._seen[id(node)] = _Seen()
        keep = seen.values.append

        def counted(e: Evaluation) -> Value:
            try:
                value = closure(e)
            except Failure as failure:
                seen.failed += 1
                if not seen.failures:
                    seen.failures.append(str(failure))
                raise
            if value is True:
                seen.true += 1
            elif value is False:
                seen.untrue += 1
            else:
                seen.other += 1
                if seen.other <= MOST_VALUES:
                    keep(value)
            return value

        return counted

    def report(self) -> dict[str, Any]:
        """The body of an answer to `:ruleCoverage`."""
        files = [{"name": "security.rules", "content": printable(self._ruleset.source)}]
        return {"rules": {"files": files}, "report": [self._node(node) for node in _roots(self._ruleset.file)]}

    def _node(self, node: ast.Expression) -> dict[str, Any]:
        span = node.span
        entry: dict[str, Any] = {
            "sourcePosition": {
                "line": span.line,
                "column": span.column,
                "currentOffset": span.start,
                "endOffset": span.end - 1,
            }
        }
        seen = self._seen.get(id(node))
        values = [] if seen is None else list(_counts(seen))
        if values:
            entry["values"] = values
        children = [self._node(child) for child in _children(node)]
        if children:
            entry["children"] = children
        return entry


def _counts(seen: _Seen) -> Iterator[dict[str, Any]]:
    if seen.failed:
        yield {"value": {"undefined": {"causeMessage": printable(seen.failures[0])}}, "count": seen.failed}
    if seen.true:
        yield {"value": {"boolValue": True}, "count": seen.true}
    if seen.untrue:
        yield {"value": {"boolValue": False}, "count": seen.untrue}
    found: dict[str, dict[str, Any]] = {}
    for value in seen.values:
        entry = found.setdefault(shown(value, 10_000), {"value": _as_json(value), "count": 0})
        entry["count"] += 1
    if found:  # those beyond the limit are counted with the last one
        list(found.values())[-1]["count"] += seen.other - len(seen.values)
    yield from found.values()


def _as_json(value: Value) -> dict[str, Any]:
    match value:
        case None:
            return {"nullValue": None}
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"floatValue": value if value == value and abs(value) != float("inf") else str(value)}
        case str():
            return {"stringValue": printable(value)}
        case bytes():
            return {"bytesValue": base64.b64encode(value).decode()}
        case list():
            return {"listValue": {"values": [_as_json(item) for item in value]}}
        case RulesSet():
            return {"setValue": {"values": [_as_json(item) for item in value.items]}}
        case dict():
            return {"mapValue": {"fields": {printable(name): _as_json(item) for name, item in value.items()}}}
        case Path():
            return {"pathValue": {"segments": [_segment(part) for part in value.segments]}}
        case Timestamp():
            return {"timestampValue": shown(value)}
        case Duration():
            return {"durationValue": f"{value.nanos / 1e9}s"}
        case LatLng():
            return {"latlngValue": {"latitude": value.latitude, "longitude": value.longitude}}
    return {"stringValue": shown(value)}


def _segment(part: str | Unbound) -> dict[str, Any]:
    return {"simple": printable(part)} if isinstance(part, str) else {"capture": {}}


def _roots(file: ast.File) -> Iterator[ast.Expression]:
    for function in file.functions:
        yield from _of_function(function)
    for service in file.services:
        for function in service.functions:
            yield from _of_function(function)
        for match in service.matches:
            yield from _of_match(match)


def _of_function(function: ast.Function) -> Iterator[ast.Expression]:
    for let in function.lets:
        yield without_parens(let.value)
    yield without_parens(function.result)


def _of_match(match: ast.Match) -> Iterator[ast.Expression]:
    for function in match.functions:
        yield from _of_function(function)
    for allow in match.allows:
        if allow.condition is not None:
            yield without_parens(allow.condition)
    for inner in match.matches:
        yield from _of_match(inner)


def _children(node: ast.Expression) -> Iterator[ast.Expression]:
    for child, _ in steps(node):
        if isinstance(without_parens(child), ast.Literal):
            continue  # as in Google's report
        if not (isinstance(node, ast.MethodCall) and child is node.target and _is_package(child)):
            yield without_parens(child)


def _is_package(node: ast.Expression) -> bool:
    return isinstance(node, ast.Name) and node.name in PACKAGES
