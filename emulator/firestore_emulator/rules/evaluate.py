"""Expressions to Python closures, once for each rules file: a request then runs no tree.

A closure takes the `Evaluation` and returns a value, or raises Failure where the expression has none. Each counts what
Google's evaluator counts: an expression is one, `&&` and `||` one more if they look at their right side, a type test
one more for its type, a `let` one more for itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from firestore_emulator.rules import arithmetic, ast, methods, text
from firestore_emulator.rules.limits import MAX_ACCESSES, MAX_BATCH_ACCESSES, MAX_EXPRESSIONS
from firestore_emulator.rules.values import TYPES, Exhausted, Failure, Path, Unbound, Value, type_name

Closure = Callable[["Evaluation"], Value]
Wrap = Callable[[ast.Expression, Closure], Closure]
"""What each closure is wrapped in: nothing, or what records the values."""

DOCUMENT_FUNCTIONS = frozenset({"get", "exists", "getAfter", "existsAfter"})
UNDEFINED = object()
"""What a variable is that has no value in this request: reading it is a Failure."""


class Documents(Protocol):
    """What the rules may read of the database. `segments` are those below `documents`, ids included."""

    def document(self, segments: tuple[str, ...], *, after: bool) -> dict[str, Value] | None:
        """The document as rules see it (`data`, `id`, `__name__`), or None. `after`: as the commit leaves it."""


@dataclass(slots=True)
class Accesses:
    """The documents that one request has asked for, over all its operations."""

    keys: set[tuple[str, tuple[str, ...]]] = field(default_factory=set)


class Evaluation:
    """One operation under one ruleset: what the closures read, and what they have used."""

    __slots__ = (
        "accessed",
        "accesses",
        "database",
        "documents",
        "frame",
        "request",
        "resource",
        "trace",
        "used",
        "wild",
    )

    def __init__(
        self,
        *,
        request: dict[str, Value],
        resource: Value,
        database: str,
        documents: Documents,
        accesses: Accesses,
    ) -> None:
        self.request = request
        self.resource = resource
        self.database = database
        self.documents = documents
        self.accesses = accesses
        self.accessed: set[tuple[str, tuple[str, ...]]] = set()
        self.frame: list[Value] = []
        self.wild: Mapping[int, Value] = {}
        self.used = 0
        self.trace: list[Any] = []

    def read(self, function: str, path: Value) -> dict[str, Value] | None:
        """The document that a function asks for, within the limits."""
        segments = self._segments(path)
        key = (function, segments)
        if key not in self.accessed:
            if len(self.accessed) >= MAX_ACCESSES:
                raise Failure(f"{function}() would be document access {MAX_ACCESSES + 1} of this operation.")
            if key not in self.accesses.keys:
                if len(self.accesses.keys) >= MAX_BATCH_ACCESSES:
                    raise Failure(f"{function}() would be document access {MAX_BATCH_ACCESSES + 1} of this request.")
                self.accesses.keys.add(key)
            self.accessed.add(key)
        return self.documents.document(segments, after=function.endswith("After"))

    def _segments(self, path: Value) -> tuple[str, ...]:
        if type(path) is not Path:
            raise Failure(f"A document is named by a path, not by a {type_name(path)}.")
        segments = path.segments
        if len(segments) < 5 or len(segments) % 2 == 0 or any(isinstance(part, Unbound) for part in segments):
            raise Failure(f"{path} is no document's path.")
        if segments[:3] != ("databases", self.database, "documents"):
            raise Failure(f"{path} is not in this database.")
        named: tuple[str, ...] = segments[3:]  # type: ignore[assignment]  # no part of it is Unbound
        if any(not part for part in named) or any("/" in part for part in named[::2]):
            raise Failure(f"{path} is no document's path.")
        return named


class _Raised:
    """A let or an argument that failed: an expression that reads it fails too."""

    __slots__ = ("failure",)

    def __init__(self, failure: Failure) -> None:
        self.failure = failure


@dataclass(slots=True)
class Scope:
    """The names that an expression can see. Functions and variables of inner scopes hide those of outer ones."""

    outer: Scope | None = None
    functions: dict[str, CompiledFunction] = field(default_factory=dict)
    wildcards: dict[str, int] = field(default_factory=dict)
    """Of the match: each variable's number in `Evaluation.wild`."""

    def function(self, name: str) -> CompiledFunction | None:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.functions:
                return scope.functions[name]
            scope = scope.outer
        return None

    def wildcard(self, name: str) -> int | None:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.wildcards:
                return scope.wildcards[name]
            scope = scope.outer
        return None


class CompiledFunction:
    """A function of the file. Its body is compiled when all functions around it are known."""

    def __init__(self, declared: ast.Function, scope: Scope) -> None:
        self.declared = declared
        self.scope = scope
        self.lets: Sequence[Closure] = ()
        self.result: Closure = _nothing

    def compile(self, compiler: Compiler) -> None:
        names = {parameter.name: number for number, parameter in enumerate(self.declared.parameters)}
        lets: list[Closure] = []
        for let in self.declared.lets:
            lets.append(compiler.compile(let.value, self.scope, dict(names)))
            names[let.name] = len(names)
        self.lets = tuple(lets)
        self.result = compiler.compile(self.declared.result, self.scope, names)


def _nothing(e: Evaluation) -> Value:
    raise Failure("The function has no body.")


class Compiler:
    def __init__(self, wrap: Wrap | None = None) -> None:
        self._wrap = wrap

    def compile(self, node: ast.Expression, scope: Scope, names: dict[str, int]) -> Closure:
        """`names` are the parameters and lets of the function that the expression stands in."""

        def sub(child: ast.Expression) -> Closure:
            return self.compile(child, scope, names)

        if isinstance(node, ast.Paren):
            return sub(node.inner)
        closure = self._closure(node, scope, names, sub)
        if self._wrap is None or isinstance(node, ast.Literal):
            return closure  # a literal says itself
        return self._wrap(node, closure)

    def _closure(
        self, node: ast.Expression, scope: Scope, names: dict[str, int], sub: Callable[[ast.Expression], Closure]
    ) -> Closure:
        match node:
            case ast.Literal():
                return _constant(node.value)
            case ast.Name():
                return _variable(node.name, scope, names)
            case ast.ListLiteral():
                return _list([sub(item) for item in node.items])
            case ast.MapLiteral():
                return _map([(sub(key), sub(value)) for key, value in node.entries])
            case ast.PathLiteral():
                return _path(
                    [
                        part
                        if isinstance(part, str)
                        else Unbound(part.name, part.is_glob)
                        if isinstance(part, ast.Variable)
                        else sub(part)
                        for part in node.segments
                    ]
                )
            case ast.Member():
                return _member(sub(node.target), node.name)
            case ast.Index():
                return _index(sub(node.target), sub(node.index))
            case ast.Slice():
                low = None if node.low is None else sub(node.low)
                high = None if node.high is None else sub(node.high)
                return _slice(sub(node.target), low, high)
            case ast.Call():
                arguments = [sub(argument) for argument in node.arguments]
                function = scope.function(node.name)
                if function is not None:
                    return _call(function, arguments)
                if node.name in DOCUMENT_FUNCTIONS:
                    return _document(node.name, arguments)
                if node.name in methods.FUNCTIONS:
                    return _plain(methods.FUNCTIONS[node.name], arguments)
                return _failing(f"Function not found error: Name: [{node.name}].")
            case ast.MethodCall():
                arguments = [sub(argument) for argument in node.arguments]
                if isinstance(node.target, ast.Name) and _is_package(node.target.name, scope, names):
                    package = methods.PACKAGES[node.target.name]
                    if node.name in package:
                        return _plain(package[node.name], arguments)
                    return _failing(f"Function not found error: Name: [{node.target.name}.{node.name}].")
                return _method(sub(node.target), node.name, arguments)
            case ast.Unary():
                return _not(sub(node.operand)) if node.operator == "!" else _minus(sub(node.operand))
            case ast.Binary(operator="&&"):
                return _logic(sub(node.left), sub(node.right), decisive=False)
            case ast.Binary(operator="||"):
                return _logic(sub(node.left), sub(node.right), decisive=True)
            case ast.Binary():
                return _binary(_OPERATORS[node.operator], sub(node.left), sub(node.right))
            case ast.TypeTest():
                return _type_test(sub(node.operand), TYPES[node.type_name])
            case ast.Conditional():
                return _conditional(sub(node.condition), sub(node.when_true), sub(node.when_false))
        raise AssertionError(f"no such expression: {node}")  # the grammar makes no other


def _is_package(name: str, scope: Scope, names: dict[str, int]) -> bool:
    return name in methods.PACKAGES and name not in names and scope.wildcard(name) is None


_OPERATORS: dict[str, Callable[[Value, Value], Value]] = {
    "==": arithmetic.equals,
    "!=": arithmetic.differs,
    "<": arithmetic.less,
    "<=": arithmetic.less_or_equal,
    ">": arithmetic.greater,
    ">=": arithmetic.greater_or_equal,
    "+": arithmetic.add,
    "-": arithmetic.subtract,
    "*": arithmetic.multiply,
    "/": arithmetic.divide,
    "%": arithmetic.remainder,
    "in": arithmetic.contained,
}


# --- one function for each kind of expression


def _constant(value: Value) -> Closure:
    def constant(e: Evaluation) -> Value:
        e.used += 1
        return value

    return constant


def _failing(message: str) -> Closure:
    def failing(e: Evaluation) -> Value:
        e.used += 1
        raise Failure(message)

    return failing


def _variable(name: str, scope: Scope, names: dict[str, int]) -> Closure:
    if name in names:
        number = names[name]

        def local(e: Evaluation) -> Value:
            e.used += 1
            value = e.frame[number]
            if type(value) is _Raised:
                raise value.failure
            return value

        return local
    wildcard = scope.wildcard(name)
    if wildcard is not None:
        key = wildcard

        def segment(e: Evaluation) -> Value:
            e.used += 1
            value = e.wild[key]
            if type(value) is Unbound:
                raise Failure(f"{name} differs from document to document.")
            return value

        return segment
    if name == "request":

        def request(e: Evaluation) -> Value:
            e.used += 1
            return e.request

        return request
    if name == "resource":

        def resource(e: Evaluation) -> Value:
            e.used += 1
            if e.resource is UNDEFINED:
                raise Failure("resource is undefined.")
            return e.resource

        return resource
    return _failing(f"Variable {name} is undefined.")


def _list(items: list[Closure]) -> Closure:
    def made(e: Evaluation) -> Value:
        e.used += 1
        return [item(e) for item in items]

    return made


def _map(entries: list[tuple[Closure, Closure]]) -> Closure:
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


def _path(parts: list[str | Unbound | Closure]) -> Closure:
    def made(e: Evaluation) -> Value:
        e.used += 1
        return Path(tuple(text.string_of(part(e)) if callable(part) else part for part in parts))

    return made


def _member(target: Closure, name: str) -> Closure:
    def read(e: Evaluation) -> Value:
        e.used += 1
        owner = target(e)
        if type(owner) is dict and name in owner:
            return owner[name]
        return arithmetic.member(owner, name)

    return read


def _index(target: Closure, index: Closure) -> Closure:
    def read(e: Evaluation) -> Value:
        e.used += 1
        return arithmetic.indexed(target(e), index(e))

    return read


def _slice(target: Closure, low: Closure | None, high: Closure | None) -> Closure:
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


def _call(function: CompiledFunction, arguments: list[Closure]) -> Closure:
    expected = len(function.declared.parameters)
    if len(arguments) != expected:
        name = function.declared.name
        return _failing(
            f"Incorrect number of arguments. Received: {len(arguments)}. Expected: {expected} for {name}()."
        )

    def call(e: Evaluation) -> Value:
        e.used += 1
        if e.used > MAX_EXPRESSIONS:
            raise Exhausted
        frame: list[Value] = []
        for argument in arguments:
            try:
                frame.append(argument(e))
            except Failure as failure:
                frame.append(_Raised(failure))
        outer, e.frame = e.frame, frame
        try:
            for let in function.lets:
                e.used += 1
                try:
                    frame.append(let(e))
                except Failure as failure:
                    frame.append(_Raised(failure))
            return function.result(e)
        finally:
            e.frame = outer

    return call


def _document(name: str, arguments: list[Closure]) -> Closure:
    if len(arguments) != 1:
        return _failing(f"Incorrect number of arguments. Received: {len(arguments)}. Expected: 1 for {name}().")
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


def _plain(function: Callable[..., Value], arguments: list[Closure]) -> Closure:
    def call(e: Evaluation) -> Value:
        e.used += 1
        return function(*[argument(e) for argument in arguments])

    return call


def _method(target: Closure, name: str, arguments: list[Closure]) -> Closure:
    def call(e: Evaluation) -> Value:
        e.used += 1
        return methods.call_method(target(e), name, [argument(e) for argument in arguments])

    return call


def _not(operand: Closure) -> Closure:
    def negated(e: Evaluation) -> Value:
        e.used += 1
        value = operand(e)
        if value is True:
            return False
        if value is False:
            return True
        raise Failure(f"Unsupported operation error. Received: !{type_name(value)}.")

    return negated


def _minus(operand: Closure) -> Closure:
    def negated(e: Evaluation) -> Value:
        e.used += 1
        return arithmetic.negate(operand(e))

    return negated


def _logic(left: Closure, right: Closure, *, decisive: bool) -> Closure:
    """`&&`, which false decides, and `||`, which true decides: also beside an error, on either side."""

    def logic(e: Evaluation) -> Value:
        e.used += 1
        first: Failure | None = None
        try:
            value = left(e)
            if value is decisive:
                return value
            if type(value) is not bool:
                first = Failure(f"A condition must be bool, not {type_name(value)}.")
        except Failure as failure:
            first = failure
        e.used += 1
        value = right(e) if first is None else _or_first(right, e, first)
        if value is decisive:
            return value
        if first is not None:
            raise first
        if type(value) is not bool:
            raise Failure(f"A condition must be bool, not {type_name(value)}.")
        return value

    return logic


def _or_first(right: Closure, e: Evaluation, first: Failure) -> Value:
    """The right side's value; if both sides fail, the left one's failure."""
    try:
        return right(e)
    except Failure:
        raise first from None


def _binary(operation: Callable[[Value, Value], Value], left: Closure, right: Closure) -> Closure:
    def binary(e: Evaluation) -> Value:
        e.used += 1
        return operation(left(e), right(e))

    return binary


def _type_test(operand: Closure, kinds: tuple[type, ...]) -> Closure:
    def tested(e: Evaluation) -> Value:
        e.used += 2
        return type(operand(e)) in kinds

    return tested


def _conditional(condition: Closure, when_true: Closure, when_false: Closure) -> Closure:
    def chosen(e: Evaluation) -> Value:
        e.used += 1
        value = condition(e)
        if value is True:
            return when_true(e)
        if value is False:
            return when_false(e)
        raise Failure(f"A condition must be bool, not {type_name(value)}.")

    return chosen
