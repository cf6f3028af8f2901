"""How often each expression of a rules file had which value, in the form in which Google's emulator reports it."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

from emulator.firestore.rules import ast
from emulator.firestore.rules.explain import Step
from emulator.firestore.rules.ruleset import Ruleset
from emulator.firestore.rules.values import (
    Duration,
    Failure,
    LatLng,
    Path,
    RulesSet,
    Timestamp,
    Value,
    shown,
)

MOST_VALUES = 20
"""Different values that are kept of one expression; the others are counted with the last of them."""


class Coverage:
    def __init__(self, ruleset: Ruleset) -> None:
        self._ruleset = ruleset
        self._seen: dict[int, dict[Any, list[Any]]] = {}
        """By expression: a key of each value, the value, and how often it came."""

    def add(self, trace: list[Step]) -> None:
        pending = list(trace)
        seen = self._seen
        while pending:
            step = pending.pop()
            value = step.value
            values = seen.get(id(step.node))
            if values is None:
                values = seen[id(step.node)] = {}
            key = value if value is True or value is False else _key(value)
            entry = values.get(key)
            if entry is not None:
                entry[1] += 1
            elif len(values) < MOST_VALUES:
                values[key] = [value, 1]
            if step.steps:
                pending += step.steps

    def report(self) -> dict[str, Any]:
        """The body of an answer to `:ruleCoverage`."""
        files = [{"name": "security.rules", "content": self._ruleset.source}]
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
        values = self._seen.get(id(node), {})
        if values:
            entry["values"] = [{"value": _as_json(value), "count": count} for value, count in values.values()]
        children = [self._node(child) for child in _children(node)]
        if children:
            entry["children"] = children
        return entry


def _key(value: Value) -> Any:
    """Equal for equal values; values with parts are all one, since telling them apart would cost too much."""
    kind = type(value)
    if kind is str or kind is int or value is None:
        return kind, value
    return kind


def _as_json(value: Value) -> dict[str, Any]:
    match value:
        case Failure():
            return {"undefined": {"causeMessage": str(value)}}
        case None:
            return {"nullValue": None}
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"floatValue": value if value == value and abs(value) != float("inf") else str(value)}
        case str():
            return {"stringValue": value}
        case bytes():
            return {"bytesValue": base64.b64encode(value).decode()}
        case list():
            return {"listValue": {"values": [_as_json(item) for item in value]}}
        case RulesSet():
            return {"setValue": {"values": [_as_json(item) for item in value.items]}}
        case dict():
            return {"mapValue": {"fields": {name: _as_json(item) for name, item in value.items()}}}
        case Path():
            return {
                "pathValue": {
                    "segments": [
                        {"simple": part} if isinstance(part, str) else {"capture": {}} for part in value.segments
                    ]
                }
            }
        case Timestamp():
            return {"timestampValue": shown(value)}
        case Duration():
            return {"durationValue": f"{value.nanos / 1e9}s"}
        case LatLng():
            return {"latlngValue": {"latitude": value.latitude, "longitude": value.longitude}}
    return {"stringValue": shown(value)}


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
        yield _inside(let.value)
    yield _inside(function.result)


def _of_match(match: ast.Match) -> Iterator[ast.Expression]:
    for function in match.functions:
        yield from _of_function(function)
    for allow in match.allows:
        if allow.condition is not None:
            yield _inside(allow.condition)
    for inner in match.matches:
        yield from _of_match(inner)


def _inside(node: ast.Expression) -> ast.Expression:
    while isinstance(node, ast.Paren):
        node = node.inner
    return node


def _children(node: ast.Expression) -> Iterator[ast.Expression]:
    from emulator.firestore.rules.check import steps

    for child, _ in steps(node):
        if isinstance(_inside(child), ast.Literal):
            continue  # as in Google's report
        if not (isinstance(node, ast.MethodCall) and child is node.target and _is_package(child)):
            yield _inside(child)


def _is_package(node: ast.Expression) -> bool:
    from emulator.firestore.rules.methods import PACKAGES

    return isinstance(node, ast.Name) and node.name in PACKAGES
