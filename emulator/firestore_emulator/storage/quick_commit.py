"""The quick way for a commit that puts and deletes whole documents, as most batches of writes do.

It does what `Engine.draft` and `Engine.store` do, without the steps that most writes do not need: names are checked
once for each collection, fields in one walk over their bytes, and what is stored is compared and replaced as bytes.
All other commits take the usual way: `QuickCommits.commit` then returns None, and has changed nothing. So does a
commit that is to be refused, since the usual way has the words of refusals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from firestore_emulator.documents.names import Location
from firestore_emulator.documents.protos import CommitResponse, Document, Proto
from firestore_emulator.documents.quick_walk import read_stored, walk_document
from firestore_emulator.documents.times import stamp_of
from firestore_emulator.documents.values import MAX_DOCUMENT_BYTES
from firestore_emulator.storage.engine import Change, Engine
from firestore_emulator.storage.quick_collections import QuickCollection, QuickCollections
from firestore_emulator.storage.tables import Row, RowChanges

MOST_BYTES = 5 * 1024 * 1024
"""Of all documents: a commit of more may be larger than a request may be."""
MOST_BYTES_A_DOCUMENT = MAX_DOCUMENT_BYTES // 4
"""A larger one may be larger than a document may be."""
_NO_TIME = b"\x0a\x00"
"""The result of a delete, as a field of the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuickCommitted:
    answer: Proto
    """The `CommitResponse`."""
    counts: dict[str, list[int]]
    """The writes and the deletes, by collection id, for the bill."""


@dataclass(slots=True)
class _Write:
    collection: QuickCollection
    document_id: str
    key: bytes
    front: bytes | None
    """The document without its times; None: it is deleted."""
    found: dict[bytes, bytes]
    """Its values that indexes need."""


class QuickCommits:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._collections = QuickCollections(engine.storage.entries)

    def commit(self, database: str, writes: Sequence[Proto]) -> QuickCommitted | None:
        """None: the writes are not all of the kind that can be made quickly."""
        names: list[str] = []
        documents: list[Proto | None] = []
        wanted: list[bool | None] = []
        for write in writes:
            operation = write.WhichOneof("operation")
            if operation == "update":
                document = write.update
                names.append(document.name)
                documents.append(document)
            elif operation == "delete":
                names.append(write.delete)
                documents.append(None)
            else:
                return None
            if write.HasField("update_mask") or write.update_transforms:
                return None
            if write.HasField("current_document"):
                condition = write.current_document
                if condition.WhichOneof("condition_type") != "exists":
                    return None
                wanted.append(condition.exists)
            else:
                wanted.append(None)
        named = self._collections.named(database, names)
        if not named:
            return None
        prepared = _prepared(named, documents)
        if prepared is None:
            return None
        rows = self._engine.storage.rows_of([write.key for write in prepared])
        for write, must_exist in zip(prepared, wanted, strict=True):
            if must_exist is not None and must_exist != (write.key in rows):
                return None
        return _Commit(self._engine, rows).made(prepared)


def _prepared(
    named: Sequence[tuple[QuickCollection, str, bytes]], documents: Sequence[Proto | None]
) -> list[_Write] | None:
    prepared: list[_Write] = []
    nothing: dict[bytes, bytes] = {}
    size = 0
    for (collection, document_id, key), document in zip(named, documents, strict=True):
        if document is None:
            prepared.append(_Write(collection, document_id, key, None, nothing))
            size += len(key)
            continue
        front: bytes = document.SerializeToString(deterministic=True)
        found = walk_document(front, collection.wanted)
        if found is None or len(front) > MOST_BYTES_A_DOCUMENT:
            return None
        prepared.append(_Write(collection, document_id, key, front, found))
        size += len(front)
    return prepared if size <= MOST_BYTES else None


class _Commit:
    """One commit, decided write by write, then stored."""

    def __init__(self, engine: Engine, stored: dict[bytes, Row]) -> None:
        self._engine = engine
        self._stored = stored
        self._micros = engine.next_commit_micros()
        stamp: bytes = stamp_of(self._micros).SerializeToString()
        stamped = bytes([len(stamp)]) + stamp
        self._updated = b"\x22" + stamped
        self._new_times = b"\x1a" + stamped + self._updated
        self._next_number = engine.storage.next_number
        self._is_observed = bool(engine.inside_commit or engine.after_commit)
        self._rows = RowChanges()
        self._states: list[tuple[Location, bytes | None]] = []
        self._changes: list[Change] = []
        self._commit_time = b"\x12" + stamped
        self._result = _result_of(stamped)

    def made(self, writes: Sequence[_Write]) -> QuickCommitted | None:
        results: list[bytes] = []
        counts: dict[str, list[int]] = {}
        stored = self._stored
        for write in writes:
            row = stored.get(write.key)
            if row is not None:
                result = self._replaced(write, row)
                if result is None:
                    return None
                results.append(result)
            elif write.front is not None:
                self._inserted(write, write.front)
                results.append(self._result)
            else:
                results.append(_NO_TIME)
        for write in writes:
            counts.setdefault(write.collection.collection_id, [0, 0])[write.front is None] += 1
        self._engine.store_rows(self._micros, self._rows, self._states, self._changes)
        answer = CommitResponse.FromString(b"".join(results) + self._commit_time)
        return QuickCommitted(answer=answer, counts=counts)

    def _inserted(self, write: _Write, front: bytes) -> None:
        collection, key, rows = write.collection, write.key, self._rows
        location = Location(collection.database, (*collection.segments, write.document_id))
        data = front + self._new_times
        number = self._next_number
        self._next_number += 1
        rows.inserted.append((number, key, collection.collection_id, data))
        for shape, entries in collection.entries(location, key, data, write.found):
            for entry in entries:
                rows.added.append((shape, entry, number))
        self._states.append((location, None))
        if self._is_observed:
            self._changes.append(Change(location, None, Document.FromString(data)))

    def _replaced(self, write: _Write, row: Row) -> bytes | None:
        """The write's result, serialized; None: what is stored is not as the quick way knows it."""
        collection, key, front = write.collection, write.key, write.front
        before = read_stored(row.data, collection.wanted)
        if before is None:
            return None
        location = Location(collection.database, (*collection.segments, write.document_id))
        if front is None:
            self._rows.deleted.append((row.number,))
            for shape, were in collection.entries(location, key, row.data, before.found):
                self._rows.change_entries(shape, row.number, were, ())
            self._changed(location, row, None)
            return _NO_TIME
        if len(front) == before.end and row.data.startswith(front):
            return _result_of(before.updated[1:])  # a write that changes nothing does not move the update time
        data = front + before.created + self._updated
        self._rows.updated.append((data, row.number))
        if not collection.has_plain_entries or before.found != write.found:
            old = collection.entries(location, key, row.data, before.found)
            new = collection.entries(location, key, data, write.found)
            for (shape, earlier), (_, later) in zip(old, new, strict=True):
                self._rows.change_entries(shape, row.number, earlier, later)
        self._changed(location, row, data)
        return self._result

    def _changed(self, location: Location, row: Row, data: bytes | None) -> None:
        self._states.append((location, row.data))
        if self._is_observed:
            new = None if data is None else Document.FromString(data)
            self._changes.append(Change(location, Document.FromString(row.data), new))


def _result_of(stamped: bytes) -> bytes:
    """A `WriteResult` as a field of the answer, with a time that has its length before it."""
    result = b"\x0a" + stamped
    return b"\x0a" + bytes([len(result)]) + result
