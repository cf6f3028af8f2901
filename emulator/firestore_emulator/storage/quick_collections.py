"""What the documents of one collection share: the front of their keys, and how their index entries are made.

Names are checked once for each collection, and the entries of most indexes are joined from bytes that a walk over a
document found.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from firestore_emulator.documents import keys
from firestore_emulator.documents.fields import FieldPath
from firestore_emulator.documents.index_keys import MAX_INDEXED_BYTES, index_key
from firestore_emulator.documents.names import Location, parse_document
from firestore_emulator.documents.protos import Document, Value
from firestore_emulator.documents.quick_walk import STRING, TIMESTAMP, read_time
from firestore_emulator.queries.plan import DESCENDING, DocumentKeys, scope_of
from firestore_emulator.rpc.errors import RpcError
from firestore_emulator.storage.entries import Entries, Kept

LONGEST_ID = 375
"""Characters: never more bytes than an id may have."""
LONGEST_NAME = 1_500
"""Characters: never more bytes than a name may have."""
MOST_COLLECTIONS = 256
"""Collections that are remembered between commits; beyond it all are forgotten and learned again."""

Part = tuple[bytes, bool]
"""A top-level field of an index, and whether it is kept descending."""


class QuickCollection:
    """It holds for as long as the same indexes exist."""

    __slots__ = (
        *("_kept", "_segments", "_shapes", "collection_id", "database", "has_plain_entries", "key", "only_added"),
        "wanted",
    )

    def __init__(self, entries: Entries, first: Location) -> None:
        self.database = first.database
        self._segments = first.segments[:-1]
        self.collection_id = first.collection_id
        self.key = keys.name_key(Location(first.database, self._segments)) + keys.TEXT_SEGMENT
        self._kept: Sequence[Kept] = entries.kept_for(first)
        self._shapes: list[tuple[int, bytes, list[Part]]] | None = []
        for kept in self._kept:
            parts = [_plain_part(path, kind) for path, kind in kept.shape.parts]
            if None in parts:
                self._shapes = None  # array elements or fields of maps: their entries are made the usual way
                break
            self._shapes.append(
                (kept.number, scope_of(first, kept.shape), [part for part in parts if part is not None])
            )
        self.has_plain_entries = self._shapes is not None
        """Whether they depend on nothing but the `wanted` fields."""
        self.wanted = frozenset(name for _, _, parts in self._shapes or () for name, _ in parts)
        """The fields whose values `entries` needs."""
        self.only_added = 0
        """How many commits in a row added documents to it, and neither replaced nor deleted one."""

    def location(self, document_id: str) -> Location:
        return Location(self.database, (*self._segments, document_id))

    def entries(
        self, document_id: str, key: bytes, data: bytes, found: dict[bytes, bytes]
    ) -> list[tuple[int, Sequence[bytes]]]:
        """The numbers of all shapes, and the document's entries in each. `found`: its values of the `wanted` fields."""
        if self._shapes is None:
            document = DocumentKeys(self.location(document_id), Document.FromString(data))
            return [(number, shape.entries_of(document)) for shape, number, _ in self._kept]
        return [(number, _entry(scope, parts, found, key)) for number, scope, parts in self._shapes]


Named = tuple[QuickCollection, str, bytes]
"""A document's collection, id and key."""


class QuickCollections:
    def __init__(self, entries: Entries) -> None:
        self._entries = entries
        self._known: dict[str, QuickCollection] = {}
        """By the names of collections."""
        self._generation = entries.generation

    def named(self, database: str, names: Sequence[str]) -> list[Named] | None:
        """None if a name is unusual or stands twice."""
        if self._generation != self._entries.generation:
            self._generation = self._entries.generation
            self._known.clear()
        found: list[Named] = []
        for name in names:
            parent, _, document_id = name.rpartition("/")
            collection = self._known.get(parent) or self._learned(parent, name)
            if collection is None or collection.database != database or len(name) > LONGEST_NAME:
                return None
            if not 0 < len(document_id) <= LONGEST_ID or "\x00" in document_id or document_id in (".", ".."):
                return None
            if document_id.startswith("__"):
                return None
            found.append((collection, document_id, collection.key + document_id.encode() + keys.TEXT_END))
        if len(found) > 1 and len({key for _, _, key in found}) < len(found):
            return None
        return found

    def _learned(self, parent: str, name: str) -> QuickCollection | None:
        """The collection of a document with this name; None if the name is not valid."""
        try:
            first = parse_document(name)
        except RpcError:
            return None
        if len(self._known) >= MOST_COLLECTIONS:
            self._known.clear()
        collection = self._known[parent] = QuickCollection(self._entries, first)
        return collection


def _plain_part(path: FieldPath, kind: str) -> Part | None:
    return (path[0].encode(), kind == DESCENDING) if len(path) == 1 and kind != "contains" else None


def _entry(scope: bytes, parts: Sequence[Part], found: dict[bytes, bytes], name_key: bytes) -> Sequence[bytes]:
    """None, if the document lacks a field."""
    made = [scope]
    for name, is_descending in parts:
        value = found.get(name)
        if value is None:
            return ()
        key = value_key(value)
        made.append(keys.flipped(key) if is_descending else key)
    made.append(name_key + keys.END)
    return (b"".join(made),)


def value_key(value: bytes) -> bytes:
    """The index key of a serialized value."""
    if value[0] == TIMESTAMP:  # seldom the same twice
        return keys.time_key(*read_time(value))
    return _remembered_key(value)


@lru_cache(maxsize=8_192)
def _remembered_key(value: bytes) -> bytes:
    if value[0] == STRING and len(value) < 128 and b"\x00" not in value:  # so its length is one byte
        return keys.STRING_TAG + value[3:] + keys.TEXT_END
    return index_key(Value.FromString(value))


assert LONGEST_ID * 4 <= MAX_INDEXED_BYTES
