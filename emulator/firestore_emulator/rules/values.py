"""The values that rules compute with, and when two of them are equal.

null, bool, int, float, string, bytes, list and map are Python's own None, bool, int, float, str, bytes, list and dict.
Two kinds of equality exist, as in Google's evaluator. `==` compares two numbers by value and everything else strictly,
so that `1 == 1.0` and `[1] != [1.0]`. Sets and map diffs compare loosely: numbers by value at any depth.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

Value: TypeAlias = Any
"""One of the types above or below. Python has no closed union that could hold `dict` and be cheap to check."""

SMALLEST, LARGEST = -(2**63), 2**63 - 1


class Failure(Exception):
    """An expression has no value. `&&` and `||` can absorb the failure; a condition that ends in one refuses."""


class Exhausted(Exception):
    """The request has used up its expressions. Nothing absorbs it."""


@dataclass(frozen=True, slots=True)
class Timestamp:
    nanos: int
    """Since 1970."""


@dataclass(frozen=True, slots=True)
class Duration:
    nanos: int


@dataclass(frozen=True, slots=True)
class LatLng:
    latitude: float
    longitude: float


@dataclass(frozen=True, slots=True)
class Unbound:
    """A segment `{name}` of a path without a value."""

    name: str
    is_glob: bool = False


@dataclass(frozen=True, slots=True)
class Path:
    """A path. With an unbound segment it is open: equal to nothing, and without segments that could be read."""

    segments: tuple[str | Unbound, ...]

    @property
    def is_open(self) -> bool:
        return Unbound in map(type, self.segments)

    def __str__(self) -> str:
        return "/" + "/".join(part if isinstance(part, str) else f"{{{part.name}}}" for part in self.segments)


@dataclass(frozen=True, slots=True)
class Vector:
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class MapDiff:
    """The difference that `after.diff(before)` describes."""

    after: dict[str, Value]
    before: dict[str, Value]

    def added(self) -> list[str]:
        return [key for key in self.after if key not in self.before]

    def removed(self) -> list[str]:
        return [key for key in self.before if key not in self.after]

    def changed(self) -> list[str]:
        return [
            key for key in self.after if key in self.before and not loosely_equal(self.after[key], self.before[key])
        ]

    def unchanged(self) -> list[str]:
        return [key for key in self.after if key in self.before and loosely_equal(self.after[key], self.before[key])]

    def affected(self) -> list[str]:
        return [*self.added(), *self.removed(), *self.changed()]


class RulesSet:
    """A set: each value once, compared loosely."""

    __slots__ = ("_strings", "items")

    def __init__(self, items: Iterable[Value]) -> None:
        self.items: list[Value] = []
        self._strings: frozenset[str] | None = None
        found = list(items)
        if all(type(item) is str for item in found):
            self.items = list(dict.fromkeys(found))
            self._strings = frozenset(self.items)
            return
        for item in found:
            if item not in self:
                self.items.append(item)

    def __contains__(self, wanted: Value) -> bool:
        if self._strings is not None and type(wanted) is not Constraint:
            return type(wanted) is str and wanted in self._strings
        return any(loosely_equal(item, wanted) for item in self.items)

    def __len__(self) -> int:
        return len(self.items)


@dataclass(frozen=True, slots=True)
class Constraint:
    """What a query's filters prove about a field whose value differs from document to document."""

    bounds: tuple[tuple[str, Value], ...] = ()
    """Operator and value, each true of every document: `<`, `<=`, `>`, `>=` or `!=`, and `==` beside others."""
    contains: tuple[Value, ...] = ()
    """Values that the array holds in every document."""
    excludes_null: bool = True


def equal(left: Value, right: Value) -> bool:
    """`==`."""
    kind = type(left)
    if kind is type(right):
        if kind is str or kind is int or kind is bool or kind is float:
            return bool(left == right)
        return same_item(left, right)
    if is_number(left) and is_number(right):
        return float(left) == float(right)
    return False


def same_item(left: Value, right: Value) -> bool:
    """Whether a list that holds `left` holds `right`: strict, but 0.0 is -0.0.

    Open paths and constraints are in no list, though lists of them can be equal.
    """
    kind = type(left)
    if kind is not type(right):
        return False
    if kind is float:
        return bool(left == right)
    return kind is not Constraint and not (kind is Path and left.is_open) and strictly_equal(left, right)


def strictly_equal(left: Value, right: Value) -> bool:
    kind = type(left)
    if kind is not type(right):
        return False
    if kind is str:
        return bool(left == right)
    if kind is list:
        return len(left) == len(right) and all(map(strictly_equal, left, right))
    if kind is dict:
        return left.keys() == right.keys() and all(strictly_equal(left[key], right[key]) for key in left)
    if kind is float:
        return not math.isnan(left) and _bits(left) == _bits(right)
    if kind is RulesSet:
        return len(left) == len(right) and all(item in right for item in left.items)
    if kind is MapDiff or kind is Constraint:
        return left is right
    return bool(left == right)


def loosely_equal(left: Value, right: Value) -> bool:
    """Numbers by value, and NaN equal to itself. A constraint has no value that could be compared."""
    kind = type(left)
    if kind is Constraint or type(right) is Constraint:
        raise Failure("The field differs from document to document.")
    if is_number(left) and is_number(right):
        if kind is type(right):
            return bool(left == right) or (left != left and right != right)
        return float(left) == float(right)
    if kind is not type(right):
        return False
    if kind is list:
        return len(left) == len(right) and all(map(loosely_equal, left, right))
    if kind is dict:
        return left.keys() == right.keys() and all(loosely_equal(left[key], right[key]) for key in left)
    return strictly_equal(left, right)


def paired(text: str) -> str:
    """Strings are UTF-16, as in Java: two halves of a surrogate pair that come together are one character."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def printable(text: str) -> str:
    """The text with a question mark for each half of a surrogate pair, which no protocol can carry."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def is_number(value: Value) -> bool:
    return type(value) is int or type(value) is float


def _bits(value: float) -> bytes:
    return struct.pack(">d", value)


TYPES: dict[str, tuple[type, ...]] = {
    "bool": (bool,),
    "bytes": (bytes,),
    "constraint": (Constraint,),
    "duration": (Duration,),
    "float": (float,),
    "int": (int,),
    "latlng": (LatLng,),
    "list": (list,),
    "map": (dict,),
    "map_diff": (MapDiff,),
    "number": (int, float),
    "path": (Path,),
    "set": (),
    "string": (str,),
    "timestamp": (Timestamp,),
    "vector": (Vector,),
}
"""The types that `is` tests for. `is set` is false even for a set, as in Google's emulator."""

_NAMES: dict[type, str] = {kind: name for name, kinds in TYPES.items() if len(kinds) == 1 for kind in kinds}


def type_name(value: Value) -> str:
    if value is None:
        return "null"
    if isinstance(value, RulesSet):
        return "set"
    return _NAMES.get(type(value), type(value).__name__)


def shown(value: Value, longest: int = 120) -> str:
    """A value for people, cut where it is long."""
    text = printable(_shown(value))
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _shown(value: Value) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return "'" + value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n") + "'"
        case Path():
            return str(value)
        case list():
            return f"[{', '.join(map(_shown, value))}]"
        case RulesSet():
            return f"set({', '.join(map(_shown, value.items))})"
        case dict():
            return "{" + ", ".join(f"'{key}': {_shown(item)}" for key, item in value.items()) + "}"
        case Timestamp():
            return _moment(value.nanos)
        case Duration():
            return f"{value.nanos / 1e9:g} s"
        case LatLng():
            return f"latlng({value.latitude:g}, {value.longitude:g})"
        case MapDiff():
            return _shown_diff(value)
        case Constraint():
            return "unknown(" + " and ".join(_limits(value)) + ")"
    return repr(value)


def _shown_diff(value: MapDiff) -> str:
    try:
        return f"diff(affected {sorted(value.affected())})"
    except Failure:  # a query: its documents differ in these fields
        return "diff(affected fields unknown)"


def _limits(value: Constraint) -> Sequence[str]:
    bounds = [f"{operator} {_shown(bound)}" for operator, bound in value.bounds]
    return bounds + [f"contains {_shown(item)}" for item in value.contains]


def _moment(nanos: int) -> str:
    from datetime import UTC, datetime, timedelta

    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=nanos // 1000)
    except OverflowError:
        return f"timestamp({nanos} ns)"
    return moment.isoformat().replace("+00:00", "Z")
