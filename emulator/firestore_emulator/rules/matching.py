"""Which match blocks a path falls into, and the values of their variables then."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from firestore_emulator.rules.values import Path, Unbound, Value

Segment = str | Unbound
"""A segment of a request's path. Unbound: any one id; a glob: any number of them, for a query over descendants."""

ANY = Unbound("")
ANY_NUMBER = Unbound("", is_glob=True)


@dataclass(frozen=True, slots=True)
class Wildcard:
    """A variable of a match path. `number` is its place in `Evaluation.wild`."""

    number: int
    is_glob: bool


Part = str | Wildcard


class Pattern:
    """A match path, prepared so that a request compares as little as possible."""

    __slots__ = ("_fixed", "_has_glob", "_variables", "parts")

    def __init__(self, parts: tuple[Part, ...]) -> None:
        self.parts = parts
        self._has_glob = any(isinstance(part, Wildcard) and part.is_glob for part in parts)
        # From the end: every path begins with the same segments.
        self._fixed = [(at, part) for at, part in enumerate(parts) if isinstance(part, str)][::-1]
        self._variables = [(at, part.number) for at, part in enumerate(parts) if isinstance(part, Wildcard)]

    def bindings(self, path: tuple[Segment, ...], fewest: int) -> Iterable[dict[int, Value]]:
        """Each way in which the pattern covers the whole path. A glob takes at least `fewest` segments."""
        if self._has_glob:
            return _bindings(self.parts, path, fewest, {})
        if len(path) != len(self.parts):
            return ()
        for at, part in self._fixed:
            if path[at] != part:
                return ()
        found: dict[int, Value] = {}
        for at, number in self._variables:
            segment = path[at]
            if type(segment) is Unbound and segment.is_glob:
                return ()
            found[number] = segment
        return (found,)


def _bindings(
    parts: tuple[Part, ...], path: tuple[Segment, ...], fewest: int, found: dict[int, Value]
) -> Iterator[dict[int, Value]]:
    if not parts:
        if not path:
            yield found
        return
    part, rest = parts[0], parts[1:]
    if isinstance(part, Wildcard) and part.is_glob:
        for length in range(fewest, len(path) + 1):
            taken = {**found, part.number: Path(path[:length])}
            yield from _bindings(rest, path[length:], fewest, taken)
        return
    if not path:
        return
    segment = path[0]
    if isinstance(part, str):
        if part == segment:
            yield from _bindings(rest, path[1:], fewest, found)
    elif not (isinstance(segment, Unbound) and segment.is_glob):
        yield from _bindings(rest, path[1:], fewest, {**found, part.number: segment})
