"""A rules file, compiled: its match blocks in a row, each with its conditions as closures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import count

from firestore_emulator.rules import ast
from firestore_emulator.rules.evaluate import Closure, CompiledFunction, Compiler, Scope, Wrap
from firestore_emulator.rules.limits import MAX_SOURCE_BYTES
from firestore_emulator.rules.matching import Pattern, Wildcard

SERVICE = "cloud.firestore"
_MEANS = {"read": ("get", "list"), "write": ("create", "update", "delete")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """Something that a file's author should know. Line and column count from 1; 0: the file as a whole."""

    line: int
    column: int
    start: int
    end: int
    message: str
    is_error: bool

    def __str__(self) -> str:
        return f"L{self.line}:{self.column} {self.message}"


class RulesRejected(Exception):
    """The rules do not compile. `issues` has every error that was found."""

    def __init__(self, issues: list[Issue]) -> None:
        super().__init__("\n".join(["Error compiling rules:", *(str(issue) for issue in issues if issue.is_error)]))
        self.issues = issues


@dataclass(frozen=True, slots=True)
class Statement:
    """An `allow`: for which methods, and on which condition."""

    declared: ast.Allow
    methods: frozenset[str]
    condition: Closure | None


@dataclass(frozen=True, slots=True)
class Block:
    """A match block with its whole path, those around it included."""

    pattern: Pattern
    statements: tuple[Statement, ...]


@dataclass(frozen=True)
class Ruleset:
    source: str
    file: ast.File
    warnings: tuple[Issue, ...]

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        return self.compiled(None)

    @property
    def fewest_in_glob(self) -> int:
        """How many segments `{name=**}` takes at least."""
        return 1 if self.file.version == "1" else 0

    def compiled(self, wrap: Wrap | None) -> tuple[Block, ...]:
        """The blocks, each closure wrapped in `wrap`."""
        return tuple(_blocks(self.file, Compiler(wrap)))


def compile_rules(source: str) -> Ruleset:
    """RulesRejected if the source is no rules file, with every error's line and column."""
    # Imported here: an emulator without rules should not wait for a parser.
    from firestore_emulator.rules.check import check
    from firestore_emulator.rules.grammar import SyntaxFault, parse

    if len(source.encode(errors="replace")) > MAX_SOURCE_BYTES:
        message = f"The rules are longer than {MAX_SOURCE_BYTES // 1024} KiB."
        raise RulesRejected([Issue(line=0, column=0, start=0, end=0, message=message, is_error=True)])
    try:
        file = parse(source)
        found = check(file)
    except SyntaxFault as fault:
        start = _offset(source, fault.line, fault.column)
        issue = Issue(
            line=fault.line, column=fault.column, start=start, end=start, message=fault.message, is_error=True
        )
        raise RulesRejected([issue]) from None
    except RecursionError:
        message = "Expression is too complex to evaluate safely."
        raise RulesRejected([Issue(line=0, column=0, start=0, end=0, message=message, is_error=True)]) from None
    issues = [
        Issue(
            line=0 if one.span is None else one.span.line,
            column=0 if one.span is None else one.span.column,
            start=0 if one.span is None else one.span.start,
            end=0 if one.span is None else one.span.end,
            message=one.message,
            is_error=one.is_error,
        )
        for one in found
    ]
    if any(issue.is_error for issue in issues):
        raise RulesRejected(issues)
    return Ruleset(source, file, tuple(issues))


def _offset(source: str, line: int, column: int) -> int:
    lines = source.split("\n")
    return sum(len(one) + 1 for one in lines[: max(0, line - 1)]) + max(0, column - 1)


def _blocks(file: ast.File, compiler: Compiler) -> Iterator[Block]:
    top = Scope()
    numbers = count()
    _declare(file.functions, top, compiler)
    for service in file.services:
        scope = Scope(top)
        _declare(service.functions, scope, compiler)
        if service.name == SERVICE:
            for match in service.matches:
                yield from _match(match, (), scope, compiler, numbers)


def _match(
    match: ast.Match, before: Pattern, outer: Scope, compiler: Compiler, numbers: Iterator[int]
) -> Iterator[Block]:
    pattern = before
    scope = Scope(outer)
    for segment in match.segments:
        if isinstance(segment, str):
            pattern = (*pattern, segment)
        else:
            number = next(numbers)
            scope.wildcards[segment.name] = number
            pattern = (*pattern, Wildcard(number, segment.is_glob))
    _declare(match.functions, scope, compiler)
    statements = tuple(
        Statement(
            allow,
            frozenset(meant for method in allow.methods for meant in _MEANS.get(method.name, (method.name,))),
            None if allow.condition is None else compiler.compile(allow.condition, scope, {}),
        )
        for allow in match.allows
    )
    if statements:
        yield Block(pattern, statements)
    for inner in match.matches:
        yield from _match(inner, pattern, scope, compiler, numbers)


def _declare(functions: tuple[ast.Function, ...], scope: Scope, compiler: Compiler) -> None:
    compiled = [CompiledFunction(function, scope) for function in functions]
    for one in compiled:
        scope.functions[one.declared.name] = one
    for one in compiled:
        one.compile(compiler)
