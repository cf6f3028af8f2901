"""Closures of calls: functions of the file, functions and methods of the language, and document accesses."""

from __future__ import annotations

from collections.abc import Callable

from firestore_emulator.rules.evaluation import Closure, Evaluation
from firestore_emulator.rules.limits import MAX_EXPRESSIONS
from firestore_emulator.rules.methods import METHODS
from firestore_emulator.rules.operands import Raised, failing
from firestore_emulator.rules.scope import CompiledFunction
from firestore_emulator.rules.values import Exhausted, Failure, Value

DOCUMENT_FUNCTIONS = frozenset({"get", "exists", "getAfter", "existsAfter"})


def function_call(function: CompiledFunction, arguments: list[Closure]) -> Closure:
    """Call a function of the file. An argument that fails counts only if the body reads it."""
    expected = len(function.declared.parameters)
    if len(arguments) != expected:
        return _wrong_count(function.declared.name, len(arguments), expected)

    def call(e: Evaluation) -> Value:
        e.used += 1
        if e.used > MAX_EXPRESSIONS:
            raise Exhausted
        frame: list[Value] = []
        for argument in arguments:
            try:
                frame.append(argument(e))
            except Failure as failure:
                frame.append(Raised(failure))
        outer, e.frame = e.frame, frame
        try:
            for let in function.lets:
                e.used += 1
                try:
                    frame.append(let(e))
                except Failure as failure:
                    frame.append(Raised(failure))
            return function.result(e)
        finally:
            e.frame = outer

    return call


def document_access(name: str, arguments: list[Closure]) -> Closure:
    if len(arguments) != 1:
        return _wrong_count(name, len(arguments), 1)
    path = arguments[0]

    def exists(e: Evaluation) -> Value:
        e.used += 1
        return e.read(name, path(e)) is not None

    def get(e: Evaluation) -> Value:
        e.used += 1
        named = path(e)
        document = e.read(name, named)
        if document is None:
            raise Failure(f"{named} does not exist.")
        return document

    return exists if name.startswith("exists") else get


def _wrong_count(name: str, received: int, expected: int) -> Closure:
    return failing(f"Incorrect number of arguments. Received: {received}. Expected: {expected} for {name}().")


def built_in(function: Callable[..., Value], arguments: list[Closure]) -> Closure:
    def call(e: Evaluation) -> Value:
        e.used += 1
        return function(*[argument(e) for argument in arguments])

    return call


def method_call(target: Closure, name: str, arguments: list[Closure]) -> Closure:
    """Call a method of a value, whose type decides which method that is."""
    by_type = {kind: methods[name] for kind, methods in METHODS.items() if name in methods}

    def missing() -> Failure:
        return Failure(f"Function not found error: Name: [{name}].")

    def without_argument(e: Evaluation) -> Value:
        e.used += 1
        owner = target(e)
        method = by_type.get(type(owner))
        if method is None:
            raise missing()
        return method(owner)

    def with_one(e: Evaluation) -> Value:
        e.used += 1
        owner = target(e)
        value = first(e)
        method = by_type.get(type(owner))
        if method is None:
            raise missing()
        return method(owner, value)

    def with_several(e: Evaluation) -> Value:
        e.used += 1
        owner = target(e)
        values = [argument(e) for argument in arguments]
        method = by_type.get(type(owner))
        if method is None:
            raise missing()
        return method(owner, *values)

    if not arguments:
        return without_argument
    first = arguments[0]
    return with_one if len(arguments) == 1 else with_several
