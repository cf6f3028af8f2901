"""Explain a refusal: the line of each rule, its decisive condition, and the values that the condition saw."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from firestore_emulator.rules import ast
from firestore_emulator.rules.evaluation import Closure, Evaluation
from firestore_emulator.rules.values import Failure, Value, printable, shown
from firestore_emulator.rules.walk import without_parens

_MOST_LINES = 40
_LONGEST_TEXT = 160
_NAMED = ast.Name | ast.Member | ast.Index | ast.Call | ast.MethodCall
"""Expressions whose values an explanation shows."""


@dataclass(slots=True)
class Step:
    """An evaluated expression: its value or failure, and the steps that led to it."""

    node: ast.Expression
    value: Value | Failure = None
    steps: list[Step] = field(default_factory=list)


def recording(node: ast.Expression, closure: Closure) -> Closure:
    """Return a closure that also leaves a `Step` in the trace of its evaluation."""

    def recorded(e: Evaluation) -> Value:
        outer = e.trace
        step = Step(node)
        outer.append(step)
        e.trace = step.steps
        try:
            step.value = value = closure(e)
        except Failure as failure:
            step.value = failure
            raise
        finally:
            e.trace = outer
        return value

    return recorded


def explained(source: str, trace: list[Step], allows: list[ast.Allow]) -> list[str]:
    """Return the lines of the explanation. `trace` has a step for each tried condition, `allows` their statements."""
    by_condition = {id(without_parens(allow.condition)): allow for allow in allows if allow.condition is not None}
    lines: list[str] = []
    for step in trace:
        allow = by_condition.get(id(step.node))
        if allow is None or step.value is True:
            continue
        methods = ", ".join(method.name for method in allow.methods)
        lines.append(f"line {allow.span.line}: allow {methods}: {_came_to(step.value)}")
        lines += [f"  {line}" for line in _reasons(source, step)]
    if len(lines) > _MOST_LINES:
        lines[_MOST_LINES:] = [f"… and {len(lines) - _MOST_LINES} lines more"]
    return lines


def _came_to(value: Value | Failure) -> str:
    return f"error: {printable(str(value))}" if isinstance(value, Failure) else shown(value)


def _reasons(source: str, step: Step) -> Iterator[str]:
    """The decisive parts of a condition that is not true."""
    node = step.node
    if isinstance(node, ast.Binary) and node.operator == "&&":
        for one in step.steps:
            if one.value is not True:
                yield from _reasons(source, one)
                if one.value is False:
                    return
        return
    if isinstance(node, ast.Binary) and node.operator == "||":
        for one in step.steps:
            yield from _reasons(source, one)
        return
    if isinstance(node, ast.Conditional) and len(step.steps) == 2:
        yield from _reasons(source, step.steps[1])
        return
    if isinstance(node, ast.Call) and step.steps and not _is_argument(node, step.steps[-1]):
        yield f"line {node.span.line}: {_text(source, node)} is {_came_to(step.value)}{_seen(source, step)}"
        yield from (f"  {line}" for line in _reasons(source, step.steps[-1]))
        return
    yield f"line {node.span.line}: {_text(source, node)} is {_came_to(step.value)}{_seen(source, step)}"


def _is_argument(node: ast.Call, step: Step) -> bool:
    """Whether the step is an argument of the call, and not the body of its function."""
    return any(without_parens(argument) is step.node for argument in node.arguments)


def _seen(source: str, step: Step) -> str:
    """The values inside an expression, without literals."""
    parts: dict[str, str] = {}
    _collect(source, step, parts)
    return f", with {'; '.join(f'{name} = {value}' for name, value in parts.items())}" if parts else ""


def _collect(source: str, step: Step, parts: dict[str, str]) -> None:
    for one in step.steps:
        if isinstance(step.node, ast.Call) and not _is_argument(step.node, one):
            continue  # what a function computes inside is shown below it
        if isinstance(one.node, _NAMED) and not isinstance(one.value, Failure):
            parts.setdefault(_text(source, one.node), shown(one.value))
        else:
            _collect(source, one, parts)


def _text(source: str, node: ast.Expression) -> str:
    text = printable(" ".join(source[node.span.start : node.span.end].split()))
    return text if len(text) <= _LONGEST_TEXT else f"{text[: _LONGEST_TEXT - 1]}…"
