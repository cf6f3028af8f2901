"""A rules file, compiled: its match blocks in a row, each with its conditions as closures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count

from firestore_emulator.rules import ast
from firestore_emulator.rules.ast import SyntaxFault
from firestore_emulator.rules.compiler import Compiler, Wrap
from firestore_emulator.rules.evaluation import Closure
from firestore_emulator.rules.limits import MAX_SOURCE_BYTES
from firestore_emulator.rules.matching import Part, Pattern, Wildcard, is_glob
from firestore_emulator.rules.scope import Scope

SERVICE = "cloud.firestore"
_MEANS = {"read": ("get", "list"), "write": ("create", "update", "delete")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """An error or a warning about a rules file. Line and column count from 1; 0: the file as a whole."""

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
    """An `allow` with its condition; None: it allows without one."""

    declared: ast.Allow
    condition: Closure | None


@dataclass(frozen=True, slots=True)
class Block:
    """The statements of a match block that are about one method."""

    pattern: Pattern
    """The whole path, with those of the blocks around it."""
    statements: tuple[Statement, ...]


Blocks = Mapping[str, Sequence[Block]]
"""By method (get, list, create, update or delete), in the order of the file."""


@dataclass(frozen=True)
class Ruleset:
    source: str
    file: ast.File
    warnings: tuple[Issue, ...]

    @cached_property
    def blocks(self) -> Blocks:
        return self.compiled(None)

    @property
    def fewest_in_glob(self) -> int:
        """The fewest segments that `{name=**}` takes."""
        return 1 if self.file.version == "1" else 0

    def compiled(self, wrap: Wrap | None) -> Blocks:
        """Compile the file, with each closure wrapped in `wrap`."""
        blocks: dict[str, list[Block]] = {}
        for method, block in _blocks(self.file, Compiler(wrap)):
            blocks.setdefault(method, []).append(block)
        return blocks


def compile_rules(source: str) -> Ruleset:
    """Parse, check and keep the source; RulesRejected has the line and column of every error."""
    # Imported here: an emulator without rules should not wait for a parser.
    from firestore_emulator.rules.check import check
    from firestore_emulator.rules.grammar import parse

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


def _blocks(file: ast.File, compiler: Compiler) -> Iterator[tuple[str, Block]]:
    top = Scope()
    numbers = count()
    compiler.declare(file.functions, top)
    for service in file.services:
        scope = Scope(top)
        compiler.declare(service.functions, scope)
        if service.name == SERVICE:
            for match in service.matches:
                yield from _match(match, Pattern(()), scope, compiler, numbers, file.version)


def _match(
    match: ast.Match, before: Pattern, outer: Scope, compiler: Compiler, numbers: Iterator[int], version: str
) -> Iterator[tuple[str, Block]]:
    """The blocks of a match. `before` is the pattern that the paths of the blocks around it make."""
    scope = Scope(outer)
    parts: list[Part] = []
    for segment in match.segments:
        if isinstance(segment, str):
            parts.append(segment)
        else:
            number = scope.wildcards[segment.name] = next(numbers)
            parts.append(Wildcard(number, segment.is_glob))
    compiler.declare(match.functions, scope)
    by_method: dict[str, list[Statement]] = {}
    for allow in match.allows:
        condition = None if allow.condition is None else compiler.compile(allow.condition, scope, {})
        for method in dict.fromkeys(meant for one in allow.methods for meant in _MEANS.get(one.name, (one.name,))):
            by_method.setdefault(method, []).append(Statement(allow, condition))
    pattern = Pattern((*before.parts, *parts), before.ahead)
    for method, statements in by_method.items():
        yield method, Block(pattern, tuple(statements))
    glob = next((at for at, part in enumerate(parts) if is_glob(part)), None)
    if glob is not None:
        if version == "1":
            return  # no path reaches the blocks inside
        pattern = Pattern((*before.parts, *parts[: glob + 1]), tuple(parts[glob + 1 :]))
    for inner in match.matches:
        yield from _match(inner, pattern, scope, compiler, numbers, version)
