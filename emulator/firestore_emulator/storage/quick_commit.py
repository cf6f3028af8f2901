"""The quick way for a commit that puts and deletes whole documents, as most batches of writes do.

It does what `Engine.draft` and `Engine.store` do, without the steps that most writes do not need: names are checked
once for each collection, fields in one walk over their bytes, and what is stored is compared and replaced as bytes.
All other commits take the usual way: `QuickCommits.commit` then returns None, and has changed nothing. So does a
commit that is to be refused, since the usual way has the words of refusals.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from firestore_emulator.documents.names import Location
from firestore_emulator.documents.protos import CommitResponse, Document, Proto
from firestore_emulator.documents.quick_walk import read_stored, walk_document
from firestore_emulator.documents.times import stamp_of
from firestore_emulator.documents.values import MAX_DOCUMENT_BYTES
from firestore_emulator.storage.engine import Change, Engine
from firestore_emulator.storage.quick_collections import Named, QuickCollections
from firestore_emulator.storage.tables import Row, RowChanges

MOST_BYTES = 5 * 1024 * 1024
"""Of all documents: a commit of more may be larger than a request may be."""
MOST_BYTES_A_DOCUMENT = MAX_DOCUMENT_BYTES // 4
"""A larger one may be larger than a document may be."""
SURE_AFTER = 3
"""Commits in a row that only added documents to a collection. The next one is expected to do the same and is stored
without a look at what is there; if a document is there, SQLite refuses to store it twice."""
_NO_TIME = b"\x0a\x00"
"""The result of a delete, as a field of the answer."""

_Prepared = tuple[bytes | None, dict[bytes, bytes]]
"""A document without its times (None: it is deleted), and those of its values that indexes need.

A tuple, as `Named` is: an object for each write of a batch would take a tenth of the time of all the rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuickCommitted:
    answer: Proto
    """The `CommitResponse`."""
    counts: dict[str, list[int]]
    """The writes and the deletes, by collection id, for the bill."""


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
        may_only_add = True not in wanted and None not in documents
        collections = {collection for collection, _, _ in named}
        if may_only_add and all(collection.only_added >= SURE_AFTER for collection in collections):
            try:
                return _Commit(self._engine, {}).made(named, prepared)
            except sqlite3.IntegrityError:
                pass  # a document is there: nothing was stored
        rows = self._engine.storage.rows_of([key for _, _, key in named])
        for (_, _, key), must_exist in zip(named, wanted, strict=True):
            if must_exist is not None and must_exist != (key in rows):
                return None
        for collection in collections:
            collection.only_added = collection.only_added + 1 if may_only_add and not rows else 0
        return _Commit(self._engine, rows).made(named, prepared)


def _prepared(named: Sequence[Named], documents: Sequence[Proto | None]) -> list[_Prepared] | None:
    prepared: list[_Prepared] = []
    nothing: dict[bytes, bytes] = {}
    size = 0
    for (collection, _, key), document in zip(named, documents, strict=True):
        if document is None:
            prepared.append((None, nothing))
            size += len(key)
            continue
        front: bytes = document.SerializeToString(deterministic=True)
        found = walk_document(front, collection.wanted)
        if found is None or len(front) > MOST_BYTES_A_DOCUMENT:
            return None
        prepared.append((front, found))
        size += len(front)
    return prepared if size <= MOST_BYTES else None


class _States:
    """What documents were before a commit. History seldom looks, so their locations are made only when it does."""

    __slots__ = ("_before", "_named")

    def __init__(self) -> None:
        self._named: list[Named] = []
        self._before: list[bytes | None] = []

    def add(self, named: Named, before: bytes | None) -> None:
        self._named.append(named)
        self._before.append(before)

    def __len__(self) -> int:
        return len(self._named)

    def __iter__(self) -> Iterator[tuple[Location, bytes | None]]:
        for (collection, document_id, _), before in zip(self._named, self._before, strict=True):
            yield collection.location(document_id), before


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
        self._states = _States()
        self._changes: list[Change] = []
        self._commit_time = b"\x12" + stamped
        self._result = _result_of(stamped)

    def made(self, named: Sequence[Named], prepared: Sequence[_Prepared]) -> QuickCommitted | None:
        results: list[bytes] = []
        counts: dict[str, list[int]] = {}
        stored, result = self._stored, self._result
        for one, (front, found) in zip(named, prepared, strict=True):
            collection, _, key = one
            counts.setdefault(collection.collection_id, [0, 0])[front is None] += 1
            row = stored.get(key)
            if row is not None:
                replaced = self._replaced(one, front, found, row)
                if replaced is None:
                    return None
                results.append(replaced)
            elif front is not None:
                self._inserted(one, front, found)
                results.append(result)
            else:
                results.append(_NO_TIME)
        database = named[0][0].database
        self._engine.store_rows(database, self._micros, self._rows, self._states, self._changes)
        answer = CommitResponse.FromString(b"".join(results) + self._commit_time)
        return QuickCommitted(answer=answer, counts=counts)

    def _inserted(self, named: Named, front: bytes, found: dict[bytes, bytes]) -> None:
        collection, document_id, key = named
        rows, number = self._rows, self._next_number
        data = front + self._new_times
        self._next_number = number + 1
        rows.inserted.append((number, key, collection.collection_id, data))
        for shape, entries in collection.entries(document_id, key, data, found):
            for entry in entries:
                rows.added.append((shape, entry, number))
        self._states.add(named, None)
        if self._is_observed:
            self._changes.append(Change(collection.location(document_id), None, Document.FromString(data)))

    def _replaced(self, named: Named, front: bytes | None, found: dict[bytes, bytes], row: Row) -> bytes | None:
        """The write's result, serialized; None: what is stored is not as the quick way knows it."""
        collection, document_id, key = named
        before = read_stored(row.data, collection.wanted)
        if before is None:
            return None
        if front is None:
            self._rows.deleted.append((row.number,))
            for shape, were in collection.entries(document_id, key, row.data, before.found):
                self._rows.change_entries(shape, row.number, were, ())
            self._changed(named, row, None)
            return _NO_TIME
        if len(front) == before.end and row.data.startswith(front):
            return _result_of(before.updated[1:])  # a write that changes nothing does not move the update time
        data = front + before.created + self._updated
        self._rows.updated.append((data, row.number))
        if not collection.has_plain_entries or before.found != found:
            old = collection.entries(document_id, key, row.data, before.found)
            new = collection.entries(document_id, key, data, found)
            for (shape, earlier), (_, later) in zip(old, new, strict=True):
                self._rows.change_entries(shape, row.number, earlier, later)
        self._changed(named, row, data)
        return self._result

    def _changed(self, named: Named, row: Row, data: bytes | None) -> None:
        self._states.add(named, row.data)
        if self._is_observed:
            collection, document_id, _ = named
            new = None if data is None else Document.FromString(data)
            self._changes.append(Change(collection.location(document_id), Document.FromString(row.data), new))


def _result_of(stamped: bytes) -> bytes:
    """A `WriteResult` as a field of the answer, with a time that has its length before it."""
    result = b"\x0a" + stamped
    return b"\x0a" + bytes([len(result)]) + result
