"""Which match blocks a path falls into, and the values of their variables then."""

from __future__ import annotations

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
    """A match path, prepared so that a request compares as little as possible. It has one glob at most.

    `ahead` is what follows the glob in the path of an outer block, if anything does. Google's matcher looks for it
    behind the glob and does not consume it: the path of the inner block begins right behind the glob, too, and must be
    longer.
    """

    __slots__ = ("_fixed", "_glob_at", "_variables", "ahead", "parts")

    def __init__(self, parts: tuple[Part, ...], ahead: tuple[Part, ...] = ()) -> None:
        self.parts = parts
        self.ahead = ahead
        self._glob_at = next((at for at, part in enumerate(parts) if is_glob(part)), None)
        # From the end: every path begins with the same segments.
        self._fixed = [(at, part) for at, part in enumerate(parts) if isinstance(part, str)][::-1]
        self._variables = [(at, part.number) for at, part in enumerate(parts) if isinstance(part, Wildcard)]

    def bindings(self, path: tuple[Segment, ...], fewest: int) -> dict[int, Value] | None:
        """The variables if the pattern covers the whole path; None if it does not. A glob takes `fewest` segments."""
        if self._glob_at is not None:
            return self._with_glob(self._glob_at, path, fewest)
        if len(path) != len(self.parts):
            return None
        for at, part in self._fixed:
            if path[at] != part:
                return None
        found: dict[int, Value] = {}
        for at, number in self._variables:
            segment = path[at]
            if type(segment) is Unbound and segment.is_glob:
                return None
            found[number] = segment
        return found

    def _with_glob(self, at: int, path: tuple[Segment, ...], fewest: int) -> dict[int, Value] | None:
        glob, behind = self.parts[at], self.parts[at + 1 :]
        assert isinstance(glob, Wildcard)
        end = len(path) - len(behind)
        if end - at < fewest or (self.ahead and len(behind) <= len(self.ahead)):
            return None
        rest = path[end:]
        found: dict[int, Value] = {}
        for parts, segments in ((self.parts[:at], path), (self.ahead, rest), (behind, rest)):
            bound = _prefix(parts, segments)
            if bound is None:
                return None
            found |= bound
        taken = Path(path[at:end])
        # Version 1 has no open paths: there a condition cannot read the variable.
        found[glob.number] = ANY_NUMBER if fewest and taken.is_open else taken
        return found


def is_glob(part: Part) -> bool:
    return isinstance(part, Wildcard) and part.is_glob


def _prefix(parts: tuple[Part, ...], path: tuple[Segment, ...]) -> dict[int, Value] | None:
    """The variables of parts without a glob if the path begins with them; None if it does not."""
    if len(path) < len(parts):
        return None
    found: dict[int, Value] = {}
    for part, segment in zip(parts, path, strict=False):
        if isinstance(part, str):
            if part != segment:
                return None
        elif isinstance(segment, Unbound) and segment.is_glob:
            return None
        else:
            found[part.number] = segment
    return found
