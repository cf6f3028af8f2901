"""Which match blocks a path falls into, and what their variables then are."""

from __future__ import annotations

from collections.abc import Iterator
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


Pattern = tuple[str | Wildcard, ...]


def bindings(pattern: Pattern, path: tuple[Segment, ...], fewest: int) -> Iterator[dict[int, Value]]:
    """Each way in which the pattern covers the whole path. A glob takes at least `fewest` segments."""
    if not any(isinstance(part, Wildcard) and part.is_glob for part in pattern):
        if len(pattern) == len(path):
            found = _straight(pattern, path)
            if found is not None:
                yield found
        return
    yield from _bindings(pattern, path, fewest, {})


def _straight(pattern: Pattern, path: tuple[Segment, ...]) -> dict[int, Value] | None:
    found: dict[int, Value] = {}
    for part, segment in zip(pattern, path, strict=True):
        if type(part) is str:
            if part != segment:
                return None
        elif isinstance(segment, Unbound) and segment.is_glob:
            return None
        else:
            found[part.number] = segment  # type: ignore[union-attr]  # it is no string
    return found


def _bindings(
    pattern: Pattern, path: tuple[Segment, ...], fewest: int, found: dict[int, Value]
) -> Iterator[dict[int, Value]]:
    if not pattern:
        if not path:
            yield found
        return
    part, rest = pattern[0], pattern[1:]
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
