"""Closures of the expressions that produce values: literals, variables, members, indexes and ranges."""

from __future__ import annotations

from collections.abc import Sequence

from firestore_emulator.rules import arithmetic, text
from firestore_emulator.rules.evaluation import UNDEFINED, Closure, Evaluation
from firestore_emulator.rules.scope import Scope
from firestore_emulator.rules.values import Failure, Path, Unbound, Value, type_name


class Raised:
    """A let or an argument that failed. An expression that reads it fails with the same failure."""

    __slots__ = ("failure",)

    def __init__(self, failure: Failure) -> None:
        self.failure = failure


def constant(value: Value) -> Closure:
    def constant(e: Evaluation) -> Value:
        e.used += 1
        return value

    return constant


def failing(message: str) -> Closure:
    def failing(e: Evaluation) -> Value:
        e.used += 1
        raise Failure(message)

    return failing


def variable(name: str, scope: Scope, names: dict[str, int]) -> Closure:
    """A parameter or let, a variable of the match path, `request` or `resource`; any other name fails."""
    if name in names:
        return _local(names[name])
    if wildcards := scope.wildcard(name):
        return _wildcard(name, wildcards)
    if name == "request":
        return _request
    if name == "resource":
        return _resource
    return failing(f"Variable {name} is undefined.")


def _local(number: int) -> Closure:
    def local(e: Evaluation) -> Value:
        e.used += 1
        value = e.frame[number]
        if type(value) is Raised:
            raise value.failure
        return value

    return local


def _wildcard(name: str, numbers: Sequence[int]) -> Closure:
    """A variable of the match path. A query leaves some without a value; then one of the same name outside counts."""
    innermost, *outer = numbers

    def wildcard(e: Evaluation) -> Value:
        e.used += 1
        value = e.wild[innermost]
        if type(value) is not Unbound:
            return value
        for number in outer:
            value = e.wild[number]
            if type(value) is not Unbound:
                return value
        raise Failure(f"{name} differs from document to document.")

    return wildcard


def _request(e: Evaluation) -> Value:
    e.used += 1
    return e.request


def _resource(e: Evaluation) -> Value:
    e.used += 1
    if e.resource is UNDEFINED:
        raise Failure("resource is undefined.")
    return e.resource


def list_of(items: list[Closure]) -> Closure:
    def made(e: Evaluation) -> Value:
        e.used += 1
        return [item(e) for item in items]

    return made


def map_of(entries: list[tuple[Closure, Closure]]) -> Closure:
    def made(e: Evaluation) -> Value:
        e.used += 1
        found: dict[str, Value] = {}
        for key, value in entries:
            name = key(e)
            if type(name) is not str:
                raise Failure(f"The keys of a map are strings, not of type {type_name(name)}.")
            found[name] = value(e)
        return found

    return made


def path_of(parts: list[str | Unbound | Closure]) -> Closure:
    """A path literal. `$(...)` adds one segment, whatever it holds, or all segments of a path."""

    def made(e: Evaluation) -> Value:
        e.used += 1
        segments: list[str | Unbound] = []
        for part in parts:
            if not callable(part):
                segments.append(part)
                continue
            value = part(e)
            if type(value) is str:
                segments.append(value)
            elif type(value) is Path:
                segments += value.segments
            else:
                segments.append(text.string_of(value))
        return Path(tuple(segments))

    return made


def member(target: Closure, name: str) -> Closure:
    def read(e: Evaluation) -> Value:
        e.used += 1
        owner = target(e)
        try:
            return owner[name]
        except (KeyError, TypeError):  # no such key, or no map
            return arithmetic.member(owner, name)

    return read


def index(target: Closure, index: Closure) -> Closure:
    def read(e: Evaluation) -> Value:
        e.used += 1
        return arithmetic.indexed(target(e), index(e))

    return read


def slice_of(target: Closure, low: Closure | None, high: Closure | None) -> Closure:
    def read(e: Evaluation) -> Value:
        e.used += 1
        owner = target(e)
        first = 0 if low is None else low(e)
        if first is None:
            raise Failure("The bounds of a range must be integers.")
        last = None if high is None else high(e)
        if high is not None and last is None:
            raise Failure("The bounds of a range must be integers.")
        return arithmetic.sliced(owner, first, last)

    return read
