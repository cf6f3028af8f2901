"""The names that an expression can see: functions and match variables, those of inner blocks before outer ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from firestore_emulator.rules import ast
from firestore_emulator.rules.evaluation import Closure, Evaluation
from firestore_emulator.rules.values import Failure, Value


def _not_compiled(e: Evaluation) -> Value:
    raise Failure("The function has no body.")


@dataclass(slots=True, eq=False)
class CompiledFunction:
    """A function of the file. The compiler fills in its body once every function around it is declared."""

    declared: ast.Function
    scope: Scope
    lets: Sequence[Closure] = ()
    result: Closure = _not_compiled


@dataclass(slots=True)
class Scope:
    outer: Scope | None = None
    functions: dict[str, CompiledFunction] = field(default_factory=dict)
    wildcards: dict[str, int] = field(default_factory=dict)
    """The number of each match variable in `Evaluation.wild`."""

    def function(self, name: str) -> CompiledFunction | None:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.functions:
                return scope.functions[name]
            scope = scope.outer
        return None

    def wildcard(self, name: str) -> Sequence[int]:
        """The numbers of the match variables of that name, the innermost first."""
        found: list[int] = []
        scope: Scope | None = self
        while scope is not None:
            if name in scope.wildcards:
                found.append(scope.wildcards[name])
            scope = scope.outer
        return found
