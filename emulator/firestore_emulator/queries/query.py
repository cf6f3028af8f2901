"""What a query means.

A `Query` is a structured query in the normal form that the rest of the engine reads (`structured_query.py` makes it):
- the filter as a disjunction of conjunctions of simple predicates (`in` and `or` become alternatives);
- the complete order: what was asked for, then the fields of inequalities, then the name, so that no two documents tie;
- the cursors as keys in that order.

`Query.matches` and `Query.position` are the definition of the language; an index scan is only a fast way to the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from firestore_emulator.documents import keys
from firestore_emulator.documents.fields import NAME_PATH, FieldPath, get_field
from firestore_emulator.documents.index_keys import index_key
from firestore_emulator.documents.names import Location
from firestore_emulator.documents.protos import Proto
from firestore_emulator.queries.nearest import Nearest


class Op(Enum):
    EQUAL = auto()
    LESS = auto()
    LESS_OR_EQUAL = auto()
    GREATER = auto()
    GREATER_OR_EQUAL = auto()
    NOT_EQUAL = auto()
    """The field exists, is not null, and is another value."""
    CONTAINS = auto()
    UNDEFINED = auto()
    """True of no document, but an inequality all the same: being something else than null."""
    NEVER = auto()
    """True of no document: a comparison with null or NaN."""


INEQUALITIES = frozenset({Op.LESS, Op.LESS_OR_EQUAL, Op.GREATER, Op.GREATER_OR_EQUAL, Op.NOT_EQUAL, Op.UNDEFINED})
NULL_KEY = bytes([keys.NULL])


@dataclass(frozen=True, slots=True)
class Predicate:
    path: FieldPath
    op: Op
    key: bytes
    """The key of the value compared with."""
    written: bytes = b""
    """How: two filters are one, when alternatives are counted, only if they were written alike (1 is not 1.0 then)."""
    contains: bool = False
    """Written as array-contains or array-contains-any."""

    def accepts(self, found: bytes | None, elements: frozenset[bytes] | None) -> bool:
        """`found`: the key of the field's value, or None without one; `elements`: of an array, its elements' keys."""
        if found is None or self.op in (Op.NEVER, Op.UNDEFINED):
            return False
        match self.op:
            case Op.EQUAL:
                return found == self.key
            case Op.NOT_EQUAL:
                return found != self.key and found != NULL_KEY
            case Op.CONTAINS:
                return elements is not None and self.key in elements
        low, high = keys.comparable_with(self.key)
        if not low < found < high:
            return False
        match self.op:
            case Op.LESS:
                return found < self.key
            case Op.LESS_OR_EQUAL:
                return found <= self.key
            case Op.GREATER:
                return found > self.key
        return found >= self.key


Conjunction = tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Order:
    path: FieldPath
    descending: bool


@dataclass(frozen=True, slots=True)
class Bound:
    """A cut in the order: before or behind everything that starts with `key`."""

    key: bytes
    behind: bool

    def edge(self) -> bytes:
        return self.key + keys.AFTER if self.behind else self.key

    def flipped(self) -> Bound:
        return Bound(keys.flipped(self.key), not self.behind)


@dataclass(frozen=True, slots=True)
class Query:
    parent: Location
    collection_id: str | None
    """None: every collection (a query with no `from`)."""
    descendants: bool
    alternatives: tuple[Conjunction, ...]
    orders: tuple[Order, ...]
    """Complete: ends with the name."""
    explicit_orders: int
    """How many of the orders were asked for."""
    start: Bound | None
    end: Bound | None
    offset: int
    limit: int | None
    projection: tuple[FieldPath, ...] | None
    nearest: Nearest | None = None
    """The search among what is found; None: all of it is the result."""
    is_by_name_alone: bool = False
    """Nothing but the name is filtered or ordered by: only an index of names can serve it, and it is kept ascending."""

    def covers(self, location: Location) -> bool:
        """Whether the document lies in a collection that is asked."""
        own = self.parent.segments
        if location.database != self.parent.database or location.segments[: len(own)] != own:
            return False
        if self.collection_id is not None and location.segments[-2] != self.collection_id:
            return False
        return len(location.segments) > len(own) if self.descendants else len(location.segments) == len(own) + 2

    def matches(self, location: Location, document: Proto) -> bool:
        """Whether the document is in the result, limit and offset aside."""
        if not self.covers(location):
            return False
        position = self.position(location, document)
        if position is None:
            return False
        if self.start is not None and position < self.start.edge():
            return False
        if self.end is not None and position >= self.end.edge():
            return False
        return any(satisfies(document, location, alternative) for alternative in self.alternatives)

    def position(self, location: Location, document: Proto) -> bytes | None:
        """Where the document stands in the order; None if it lacks a field that is ordered by."""
        parts: list[bytes] = []
        for order in self.orders:
            key = field_key(document, location, order.path)
            if key is None:
                return None
            parts.append(keys.flipped(key) if order.descending else key)
        return b"".join(parts)


def field_key(document: Proto, location: Location, path: FieldPath) -> bytes | None:
    if path == NAME_PATH:
        return keys.ended(keys.name_key(location))
    value = get_field(document.fields, path)
    return None if value is None else index_key(value)


def satisfies(document: Proto, location: Location, conjunction: Conjunction) -> bool:
    for predicate in conjunction:
        found = field_key(document, location, predicate.path)
        elements = element_keys(document, predicate.path) if predicate.op is Op.CONTAINS else None
        if not predicate.accepts(found, elements):
            return False
    return True


def element_keys(document: Proto, path: FieldPath) -> frozenset[bytes] | None:
    value = get_field(document.fields, path)
    if value is None or value.WhichOneof("value_type") != "array_value":
        return None
    return frozenset(map(index_key, value.array_value.values))
