"""Which functions of a file call which: a function must not call itself, nor lie too many calls deep."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from firestore_emulator.rules import ast
from firestore_emulator.rules.limits import MAX_CALL_DEPTH


class CallGraph:
    """Functions are told apart by identity: two blocks may declare the same function."""

    def __init__(self) -> None:
        self._called: dict[int, Sequence[ast.Function]] = {}
        self._declared: dict[int, ast.Function] = {}

    def add(self, function: ast.Function, called: Sequence[ast.Function]) -> None:
        self._declared[id(function)] = function
        self._called[id(function)] = called

    def faults(self) -> Iterator[tuple[ast.Function, str]]:
        """Yield each faulty function with its error. A file with a cycle is not searched for deep calls."""
        circular = [(function, message) for function in self._declared.values() if (message := self._cycle(function))]
        yield from circular
        if not circular:
            yield from self._too_deep()

    def _cycle(self, start: ast.Function) -> str | None:
        pending: list[tuple[ast.Function, tuple[str, ...]]] = [(start, (start.name,))]
        seen: set[int] = set()
        while pending:
            function, chain = pending.pop()
            for called in self._called[id(function)]:
                if called is start:
                    if len(chain) == 1:
                        return "Recursive call is not allowed."
                    return f"Detected a call cycle between [{','.join(sorted(chain))}] functions."
                if id(called) not in seen:
                    seen.add(id(called))
                    pending.append((called, (*chain, called.name)))
        return None

    def _too_deep(self) -> Iterator[tuple[ast.Function, str]]:
        depths: dict[int, int] = {}
        for number in self._declared:
            self._depth(number, depths)
        for number, depth in depths.items():
            if depth == MAX_CALL_DEPTH + 1:  # its callers are deeper still, and need no error of their own
                function = self._declared[number]
                yield function, f"Maximum allowed call depth of {MAX_CALL_DEPTH} is reached for [{function.name}]."

    def _depth(self, number: int, depths: dict[int, int]) -> int:
        """The longest chain of calls below this function."""
        if number not in depths:
            below = [self._depth(id(called), depths) + 1 for called in self._called[number]]
            depths[number] = max(below, default=0)
        return depths[number]
