"""What the methods of lists, sets, maps and paths compute. List methods compare strictly, set methods loosely."""

from __future__ import annotations

from firestore_emulator.rules import text
from firestore_emulator.rules.values import Failure, Path, RulesSet, Unbound, Value, paired, same_item

_STRING = {str}

# --- lists


def _has(items: list[Value], wanted: Value) -> bool:
    return any(same_item(item, wanted) for item in items)


def _are_strings(items: list[Value]) -> bool:
    return set(map(type, items)) <= _STRING


def has_any(items: list[Value], wanted: list[Value]) -> bool:
    return any(_has(items, one) for one in wanted)


def has_all(items: list[Value], wanted: list[Value]) -> bool:
    if _are_strings(items) and _are_strings(wanted):
        return set(wanted) <= set(items)
    return all(_has(items, one) for one in wanted)


def has_only(items: list[Value], wanted: list[Value]) -> bool:
    if _are_strings(items) and _are_strings(wanted):
        return set(items) <= set(wanted)
    return all(_has(wanted, one) for one in items)


def join(items: list[Value], separator: str) -> str:
    return paired(separator.join(map(text.string_of, items)))


def remove_all(own: list[Value], other: list[Value]) -> list[Value]:
    return [one for one in own if not _has(other, one)]


# --- sets; `other` is a set or a list


def set_has_any(own: RulesSet, other: Value) -> bool:
    return any(item in own for item in _items(other))


def set_has_all(own: RulesSet, other: Value) -> bool:
    return all(item in own for item in _items(other))


def set_has_only(own: RulesSet, other: Value) -> bool:
    wanted = other if type(other) is RulesSet else RulesSet(other)
    return all(item in wanted for item in own.items)


def _items(other: Value) -> list[Value]:
    items: list[Value] = other.items if type(other) is RulesSet else other
    return items


def union(own: RulesSet, other: RulesSet) -> RulesSet:
    return RulesSet([*own.items, *other.items])


def intersection(own: RulesSet, other: RulesSet) -> RulesSet:
    return RulesSet(one for one in own.items if one in other)


def difference(own: RulesSet, other: RulesSet) -> RulesSet:
    return RulesSet(one for one in own.items if one not in other)


# --- maps


def get(own: dict[str, Value], key: Value, default: Value) -> Value:
    """The value of a key, or of a list of keys that lead into nested maps; the default if a step is missing."""
    if type(key) is str:
        return own.get(key, default)
    found: Value = own
    for step in key:
        if type(step) is not str:
            raise Failure("The steps of get() must be strings.")
        if type(found) is not dict or step not in found:
            return default
        found = found[step]
    return found


# --- paths


def bind(own: Path, bound: dict[str, Value]) -> Path:
    """Give variables their values. The result leaves out the segments of variables that have none."""
    names = {part.name for part in own.segments if isinstance(part, Unbound)}
    for name in bound:
        if name not in names:
            raise Failure(f"The path has no variable {name}.")
    filled = {name: text.string_of(value) for name, value in bound.items()}
    if not all(filled.values()):
        raise Failure("A segment of a path cannot be empty.")
    segments = (filled.get(part.name) if isinstance(part, Unbound) else part for part in own.segments)
    return Path(tuple(segment for segment in segments if segment is not None))


def path_of(source: str) -> Path:
    """`path()`: `{name}` and `{name=**}` are variables that bind() can fill."""
    segments = source.removeprefix("/").split("/")
    if not all(segments):
        raise Failure(f"path() cannot read '{source[:100]}'.")
    return Path(tuple(_segment(segment) for segment in segments))


def _segment(segment: str) -> str | Unbound:
    if len(segment) > 2 and segment[0] == "{" and segment[-1] == "}":
        return Unbound(segment[1:-1].removesuffix("=**"), segment.endswith("=**}"))
    return segment
