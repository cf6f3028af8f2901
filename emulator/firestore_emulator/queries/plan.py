"""From a query to index scans: a query costs what it returns, not what its collection holds.

A **shape** is what an index is kept for: a collection id, whether it spans all collections of that id, the fields
compared for equality, and the fields ordered by. The entry of a document in a shape is one key:

    scope · equal fields · ordered fields · name

so each alternative of a query is one contiguous range of one shape, already in the order asked for. Shapes are made
when a query first needs them and kept up to date by every write from then on: a field that no query uses costs
nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Set
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b

from firestore_emulator.documents import keys
from firestore_emulator.documents.fields import NAME_PATH, FieldPath, get_field
from firestore_emulator.documents.index_keys import index_key
from firestore_emulator.documents.names import Location
from firestore_emulator.documents.protos import Proto
from firestore_emulator.queries.query import NULL_KEY, Bound, Conjunction, Op, Predicate, Query

EQUAL, CONTAINS, ASCENDING, DESCENDING = "equal", "contains", "ascending", "descending"

Part = tuple[FieldPath, str]


@dataclass(frozen=True, slots=True)
class Shape:
    collection_id: str | None
    descendants: bool
    parts: tuple[Part, ...]

    def definition(self) -> str:
        return json.dumps([self.collection_id, self.descendants, self.parts])

    @classmethod
    def from_definition(cls, text: str) -> Shape:
        collection_id, descendants, parts = json.loads(text)
        return cls(collection_id, descendants, tuple((tuple(path), kind) for path, kind in parts))

    def entries(self, location: Location, document: Proto) -> list[bytes]:
        """The document's keys in this shape: none if it lacks a field, several if it is indexed by array elements."""
        return self.entries_of(DocumentKeys(location, document))

    def entries_of(self, document: DocumentKeys) -> list[bytes]:
        parts: list[bytes] = [scope_of(document.location, self)]
        elements: tuple[bytes, ...] | None = None
        at = 0
        for path, kind in self.parts:
            if kind == CONTAINS:
                elements = document.elements(path)
                if elements is None:
                    return []
                at = len(parts)
                parts.append(b"")
            else:
                key = document[path]
                if key is None:
                    return []
                parts.append(keys.flipped(key) if kind == DESCENDING else key)
        parts.append(document.name)
        if elements is None:
            return [b"".join(parts)]
        front, back = b"".join(parts[:at]), b"".join(parts[at + 1 :])
        return [front + element + back for element in elements]

    @property
    def fields(self) -> frozenset[str]:
        """The top-level fields on which its entries depend."""
        return frozenset(path[0] for path, _ in self.parts)


class DocumentKeys(dict[FieldPath, bytes | None]):
    """What a document's fields are in indexes (None: it has no such field), each worked out when a shape first asks.

    A document that was changed takes over what it was `before`, except for the top-level fields that were `touched`.
    """

    __slots__ = ("_before", "_elements", "_fields", "_touched", "location", "name")

    def __init__(
        self, location: Location, document: Proto, before: DocumentKeys | None = None, touched: Set[str] | None = None
    ) -> None:
        self.location = location
        self.name: bytes = keys.ended(keys.name_key(location)) if before is None else before.name
        self._fields = document.fields
        self._before = None if touched is None else before
        self._touched: Set[str] = touched or frozenset()
        self._elements: dict[FieldPath, tuple[bytes, ...] | None] = {}

    def __missing__(self, path: FieldPath) -> bytes | None:
        if self._before is not None and path[0] not in self._touched:
            key = self[path] = self._before[path]
            return key
        value = get_field(self._fields, path)
        key = self[path] = None if value is None else index_key(value)
        return key

    def elements(self, path: FieldPath) -> tuple[bytes, ...] | None:
        """Of an array, each once; None: there is no array."""
        if path not in self._elements:
            value = get_field(self._fields, path)
            if value is None or value.WhichOneof("value_type") != "array_value":
                self._elements[path] = None
            else:
                self._elements[path] = tuple(dict.fromkeys(map(index_key, value.array_value.values)))
        return self._elements[path]


@dataclass(frozen=True, slots=True)
class Scan:
    """One alternative of a query as a range of a shape."""

    shape: Shape
    prefix: bytes
    """Scope and equal fields; what follows in a key is the document's position in the query's order."""
    lower: bytes
    """Inclusive, with the prefix."""
    upper: bytes
    """Exclusive, with the prefix."""
    backwards: bool
    residual: Conjunction
    """What the range does not decide by itself."""


def scope_of(location: Location, shape: Shape) -> bytes:
    """A shape's scope is the document's collection, a document with all its collections, or the database."""
    if shape.descendants:
        return _scope(location.database, ())
    up = 1 if shape.collection_id is not None else 2
    return _scope(location.database, location.segments[:-up])


@lru_cache(maxsize=65_536)
def _scope(database: str, segments: tuple[str, ...]) -> bytes:
    """Eight bytes that stand for it, so that keys stay short."""
    return blake2b(keys.name_key(Location(database, segments)), digest_size=8).digest()


def scans(query: Query) -> Iterator[Scan]:
    for alternative in query.alternatives:
        scan = _scan(query, alternative)
        if scan is not None:
            yield scan


def _scan(query: Query, alternative: Conjunction) -> Scan | None:
    backwards = query.orders[-1].descending
    equal: dict[FieldPath, Predicate] = {}
    contains: Predicate | None = None
    left: list[Predicate] = []
    first = query.orders[0]
    ranged: list[Predicate] = []
    for predicate in alternative:
        path, op = predicate.path, predicate.op
        if op is Op.EQUAL and path != NAME_PATH and path not in equal:
            equal[path] = predicate
        elif op is Op.CONTAINS and contains is None:
            contains = predicate
        else:
            if path == first.path and op is not Op.CONTAINS:
                ranged.append(predicate)
            if path != first.path or op in (Op.CONTAINS, Op.NOT_EQUAL):
                left.append(predicate)

    parts: list[Part] = [(path, EQUAL) for path in sorted(equal)]
    prefix = [equal[path].key for path in sorted(equal)]
    if contains is not None:
        parts.append((contains.path, CONTAINS))
        prefix.append(contains.key)
    for order in query.orders[:-1]:
        # Stored so that names always ascend; a query with descending names reads backwards.
        parts.append((order.path, DESCENDING if order.descending != backwards else ASCENDING))

    lower, upper = Bound(b"", behind=False), Bound(b"", behind=True)
    for predicate in ranged:
        low, high = _range(predicate)
        if first.descending:
            low, high = high.flipped(), low.flipped()
        lower, upper = max(lower, low, key=Bound.edge), min(upper, high, key=Bound.edge)
    if query.start is not None:
        lower = max(lower, query.start, key=Bound.edge)
    if query.end is not None:
        upper = min(upper, query.end, key=Bound.edge)
    if lower.edge() >= upper.edge():
        return None
    if backwards:
        lower, upper = upper.flipped(), lower.flipped()

    shape = Shape(query.collection_id, query.descendants, tuple(parts))
    inside = () if query.collection_id is None else (query.collection_id,)
    scope = _scope(query.parent.database, () if query.descendants else query.parent.segments + inside)
    front = scope + b"".join(prefix)
    return Scan(shape, front, front + lower.edge(), front + upper.edge(), backwards, tuple(left))


def _range(predicate: Predicate) -> tuple[Bound, Bound]:
    """The values that a predicate may accept, ascending."""
    key = predicate.key
    low, high = keys.comparable_with(key)
    match predicate.op:
        case Op.LESS:
            return Bound(low, behind=True), Bound(key, behind=False)
        case Op.LESS_OR_EQUAL:
            return Bound(low, behind=True), Bound(key, behind=True)
        case Op.GREATER:
            return Bound(key, behind=True), Bound(high, behind=False)
        case Op.GREATER_OR_EQUAL:
            return Bound(key, behind=False), Bound(high, behind=False)
        case Op.UNDEFINED:
            return Bound(b"", behind=False), Bound(b"", behind=False)
        case Op.NOT_EQUAL if predicate.path == NAME_PATH:
            return Bound(b"", behind=False), Bound(b"", behind=True)
        case Op.NOT_EQUAL:
            return Bound(NULL_KEY, behind=True), Bound(b"", behind=True)
    return Bound(key, behind=False), Bound(key, behind=True)
