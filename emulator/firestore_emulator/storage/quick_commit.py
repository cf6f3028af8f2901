"""The quick way for a commit that only makes new documents, as most batches of writes and many single writes do.

It does what `Engine.draft` and `Engine.store` do, without the steps that most documents do not need: names are checked
once for each collection, fields in one walk over their bytes, and no document is read, since none exists.
All other commits take the usual way: `QuickCommits.commit` then returns None, and has changed nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from firestore_emulator.documents import keys
from firestore_emulator.documents.fields import FieldPath
from firestore_emulator.documents.index_keys import MAX_INDEXED_BYTES, index_key
from firestore_emulator.documents.names import Location, parse_document
from firestore_emulator.documents.protos import CommitResponse, Document, Proto, Value
from firestore_emulator.documents.quick_walk import walk_document
from firestore_emulator.documents.times import stamp_of
from firestore_emulator.documents.values import MAX_DOCUMENT_BYTES
from firestore_emulator.queries.plan import DESCENDING, DocumentKeys, scope_of
from firestore_emulator.rpc.errors import RpcError
from firestore_emulator.storage.engine import Change, Engine
from firestore_emulator.storage.entries import Kept

LONGEST_ID = 375
"""Characters: never more bytes than an id may have."""
LONGEST_NAME = 1_500
"""Characters: never more bytes than a name may have."""
MOST_COLLECTIONS = 256
"""Collections that are remembered between commits; beyond it all are forgotten and learned again."""
COMMITS_AFTER_OVERWRITE = 50
"""Single writes that take the usual way at once, after one was found to overwrite a document: the next ones mostly do
the same, and a look costs them a read."""

Part = tuple[bytes, bool]
"""A top-level field of an index, and whether it is kept descending."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuickCommitted:
    answer: Proto
    """The `CommitResponse`."""
    writes: dict[str, int]
    """By collection id, for the bill."""


class _Collection:
    """What all documents of one collection share, as long as the same indexes exist."""

    __slots__ = ("collection_id", "database", "kept", "key", "segments", "shapes", "wanted")

    def __init__(self, engine: Engine, first: Location) -> None:
        self.database = first.database
        self.segments = first.segments[:-1]
        self.collection_id = first.collection_id
        self.key = keys.name_key(Location(first.database, self.segments)) + keys.TEXT_SEGMENT
        self.kept: Sequence[Kept] = engine.storage.entries.kept_for(first)
        self.shapes: list[tuple[int, bytes, list[Part]]] | None = []
        for kept in self.kept:
            parts = [_plain_part(path, kind) for path, kind in kept.shape.parts]
            if None in parts:
                self.shapes = None  # array elements or fields of maps: their entries are made the usual way
                break
            self.shapes.append((kept.number, scope_of(first, kept.shape), [part for part in parts if part is not None]))
        self.wanted = frozenset(name for _, _, parts in self.shapes or () for name, _ in parts)


_Named = tuple[_Collection, str, bytes]
"""A document's collection, its id, and its key."""
_Ready = tuple[_Collection, str, bytes, bytes, dict[bytes, bytes]]
"""The same, with its bytes and the values that indexes need."""


def _plain_part(path: FieldPath, kind: str) -> Part | None:
    return (path[0].encode(), kind == DESCENDING) if len(path) == 1 and kind != "contains" else None


class QuickCommits:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._collections: dict[str, _Collection] = {}
        """By the names of collections."""
        self._generation = engine.storage.entries.generation
        self._usual_commits = 0
        """How many of the next single writes take the usual way without a look."""

    def is_worth_trying(self, writes: Sequence[Proto]) -> bool:
        """Ask once for each commit, before anything that takes time."""
        if self._usual_commits and len(writes) == 1:
            self._usual_commits -= 1
            return False
        return True

    def commit(self, database: str, writes: Sequence[Proto]) -> QuickCommitted | None:
        """None: the writes are not all of the kind that can be made quickly."""
        for write in writes:
            if write.WhichOneof("operation") != "update" or write.HasField("update_mask") or write.update_transforms:
                return None
            if write.HasField("current_document"):
                condition = write.current_document
                if condition.WhichOneof("condition_type") != "exists" or condition.exists:
                    return None
        named = self._named(database, [write.update.name for write in writes])
        if not named:
            return None
        documents: list[_Ready] = []
        for (collection, document_id, key), write in zip(named, writes, strict=True):
            front: bytes = write.update.SerializeToString(deterministic=True)
            found = walk_document(front, collection.wanted)
            if found is None or len(front) > MAX_DOCUMENT_BYTES // 4:
                return None
            documents.append((collection, document_id, key, front, found))
        return _stored(self._engine, database, documents)

    def _named(self, database: str, names: Sequence[str]) -> list[_Named] | None:
        """Where the documents will be; None if a name is unusual, stands twice, or is taken."""
        storage = self._engine.storage
        if self._generation != storage.entries.generation:
            self._generation = storage.entries.generation
            self._collections.clear()
        looked_at: set[str] = set()
        named: list[_Named] = []
        for name in names:
            parent, _, document_id = name.rpartition("/")
            collection = self._collections.get(parent) or self._learned(parent, name)
            if collection is None or collection.database != database:
                return None
            if not _is_plain_id(document_id) or len(name) > LONGEST_NAME:
                return None
            key = collection.key + document_id.encode() + keys.TEXT_END
            named.append((collection, document_id, key))
            if parent not in looked_at:
                looked_at.add(parent)
                # Where one document is overwritten, most are: the others need not be looked at.
                if storage.has_any([key]):
                    self._usual_commits = COMMITS_AFTER_OVERWRITE
                    return None
        if len(named) == 1:
            return named
        taken = [key for _, _, key in named]
        return None if len(set(taken)) < len(taken) or storage.has_any(taken) else named

    def _learned(self, parent: str, name: str) -> _Collection | None:
        """The collection of a document with this name; None if the name is not valid."""
        try:
            first = parse_document(name)
        except RpcError:
            return None
        if len(self._collections) >= MOST_COLLECTIONS:
            self._collections.clear()
        collection = self._collections[parent] = _Collection(self._engine, first)
        return collection


def _stored(engine: Engine, database: str, documents: Sequence[_Ready]) -> QuickCommitted:
    commit_micros = engine.next_commit_micros()
    stamp: bytes = stamp_of(commit_micros).SerializeToString()
    size = bytes([len(stamp)])
    times = b"\x1a" + size + stamp + b"\x22" + size + stamp
    rows: list[tuple[int, bytes, str, bytes]] = []
    entries: list[tuple[int, bytes, int]] = []
    locations: list[Location] = []
    number = engine.storage.next_number
    for collection, document_id, key, front, found in documents:
        data = front + times
        rows.append((number, key, collection.collection_id, data))
        location = Location(collection.database, (*collection.segments, document_id))
        locations.append(location)
        if collection.shapes is None:
            after = DocumentKeys(location, Document.FromString(data))
            for shape, shape_number, _ in collection.kept:
                entries += [(shape_number, entry, number) for entry in shape.entries_of(after)]
        else:
            for shape_number, scope, parts in collection.shapes:
                entry = _entry(scope, parts, found, key)
                if entry is not None:
                    entries.append((shape_number, entry, number))
        number += 1
    changes: list[Change] = []
    if engine.inside_commit or engine.after_commit:
        changes = [
            Change(location, None, Document.FromString(row[3])) for location, row in zip(locations, rows, strict=True)
        ]
    engine.store_new(database, commit_micros, rows, entries, locations, changes)
    result = b"\x0a" + size + stamp
    answer = (b"\x0a" + bytes([len(result)]) + result) * len(rows) + b"\x12" + size + stamp
    writes: dict[str, int] = {}
    for collection, *_ in documents:
        writes[collection.collection_id] = writes.get(collection.collection_id, 0) + 1
    return QuickCommitted(answer=CommitResponse.FromString(answer), writes=writes)


def _entry(scope: bytes, parts: Sequence[Part], found: dict[bytes, bytes], name_key: bytes) -> bytes | None:
    """None: the document lacks a field, so it is not in the index."""
    made = [scope]
    for name, is_descending in parts:
        value = found.get(name)
        if value is None:
            return None
        key = _value_key(value)
        made.append(keys.flipped(key) if is_descending else key)
    made.append(keys.ended(name_key))
    return b"".join(made)


@lru_cache(maxsize=8_192)
def _value_key(value: bytes) -> bytes:
    """The index key of a serialized value."""
    return index_key(Value.FromString(value))


def _is_plain_id(document_id: str) -> bool:
    return (
        0 < len(document_id) <= LONGEST_ID
        and not document_id.startswith("__")
        and document_id not in (".", "..")
        and "\x00" not in document_id
    )


assert LONGEST_ID * 4 <= MAX_INDEXED_BYTES
