"""Closures of the expressions that produce values: literals, variables, members, indexes and ranges."""

from __future__ import annotations

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
    wildcard = scope.wildcard(name)
    if wildcard is not None:
        return _wildcard(name, wildcard)
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


def _wildcard(name: str, number: int) -> Closure:
    def wildcard(e: Evaluation) -> Value:
        e.used += 1
        value = e.wild[number]
        if type(value) is Unbound:
            raise Failure(f"{name} differs from document to document.")
        return value

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
    fixed = [None if callable(part) else part for part in parts]
    evaluated = [(number, part) for number, part in enumerate(parts) if callable(part)]

    def made(e: Evaluation) -> Value:
        e.used += 1
        segments = fixed.copy()
        for number, part in evaluated:
            segments[number] = text.string_of(part(e))
        return Path(tuple(segments))  # type: ignore[arg-type]  # every None has been replaced

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
