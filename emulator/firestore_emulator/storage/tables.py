"""Documents and index entries in SQLite tables. It knows keys and bytes; what they mean is the engine's business."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from firestore_emulator.database import Database
from firestore_emulator.documents import keys
from firestore_emulator.documents.names import Location
from firestore_emulator.documents.protos import Proto
from firestore_emulator.queries.plan import DocumentKeys
from firestore_emulator.storage.entries import INSERT_ENTRY, Entries

SCHEMA = """
CREATE TABLE IF NOT EXISTS documents(
    id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, collection TEXT NOT NULL, data BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS documents_by_collection ON documents(collection);
CREATE TABLE IF NOT EXISTS shapes(id INTEGER PRIMARY KEY AUTOINCREMENT, definition TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS entries(
    shape INTEGER NOT NULL, key BLOB NOT NULL, document INTEGER NOT NULL, PRIMARY KEY(shape, key)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS meta(name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT OR IGNORE INTO meta(name, value) VALUES('last_commit_micros', 0);
CREATE TABLE IF NOT EXISTS databases(
    project TEXT NOT NULL, id TEXT NOT NULL, PRIMARY KEY(project, id)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS triggers(
    project TEXT NOT NULL, name TEXT NOT NULL, definition TEXT NOT NULL, PRIMARY KEY(project, name)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS events(
    id INTEGER PRIMARY KEY AUTOINCREMENT, project TEXT NOT NULL, trigger TEXT NOT NULL, type TEXT NOT NULL,
    document TEXT NOT NULL, micros INTEGER NOT NULL, payload BLOB NOT NULL);
"""

_INSERT = "INSERT INTO documents(id, key, collection, data) VALUES(?, ?, ?, ?)"
_UPDATE = "UPDATE documents SET data=? WHERE id=?"
_DELETE = "DELETE FROM documents WHERE id=?"
_MOVE_ENTRY = "UPDATE entries SET key=? WHERE shape=? AND key=?"
_REMOVE_ENTRY = "DELETE FROM entries WHERE shape=? AND key=?"
_MOST_PARAMETERS = 500
"""Of one statement: every SQLite takes this many."""


class Row(NamedTuple):
    """A document as it is stored."""

    number: int
    data: bytes


class Insert(NamedTuple):
    """A document that is not stored yet."""

    location: Location
    key: bytes
    new: Proto
    data: bytes
    """`new`, serialized."""


class Update(NamedTuple):
    """A stored document that gets other fields."""

    location: Location
    number: int
    old: Proto
    """What is stored now, so that its entries can be taken out."""
    new: Proto
    data: bytes
    """`new`, serialized."""
    touched: Set[str] | None
    """The top-level fields in which the two may differ; None: in all."""


@dataclass(slots=True)
class RowChanges:
    """What a commit changes in the tables, gathered, since each call of SQLite has its price."""

    inserted: list[tuple[int, bytes, str, bytes]] = field(default_factory=list)
    """Documents with the numbers from `Storage.next_number` on: number, key, collection, data."""
    updated: list[tuple[bytes, int]] = field(default_factory=list)
    """Data and number."""
    deleted: list[tuple[int]] = field(default_factory=list)
    added: list[tuple[int, bytes, int]] = field(default_factory=list)
    """Entries: the number of the shape, the key, the number of the document."""
    moved: list[tuple[bytes, int, bytes]] = field(default_factory=list)
    removed: list[tuple[int, bytes]] = field(default_factory=list)

    def change_entries(self, shape: int, document: int, were: Sequence[bytes], are: Sequence[bytes]) -> None:
        """The entries of one document in one shape."""
        if were == are:
            return
        if len(were) == len(are) == 1:
            self.moved.append((are[0], shape, were[0]))
        else:
            self.removed += [(shape, entry) for entry in set(were).difference(are)]
            self.added += [(shape, entry, document) for entry in set(are).difference(were)]


class Storage:
    def __init__(self, path: Path | None, *, survives_power_cuts: bool = False) -> None:
        self.database = Database(path, SCHEMA, survives_power_cuts=survives_power_cuts)
        (last,) = self.database.execute("SELECT coalesce(max(id), 0) FROM documents").fetchone()
        self.next_number: int = last + 1
        """Numbers are given out here, so that a commit's documents and their entries can be written in two calls."""
        self.entries = Entries(self.database)

    # --- documents ---------------------------------------------------------------------------------------------------

    def get(self, key: bytes) -> bytes | None:
        row = self.database.execute("SELECT data FROM documents WHERE key=?", (key,)).fetchone()
        return None if row is None else row[0]

    def row(self, key: bytes) -> Row | None:
        found = self.database.execute("SELECT id, data FROM documents WHERE key=?", (key,)).fetchone()
        return None if found is None else Row._make(found)

    def rows_of(self, keys: Sequence[bytes]) -> dict[bytes, Row]:
        """Those of these documents that are stored, by their keys."""
        if len(keys) == 1:
            row = self.row(keys[0])
            return {} if row is None else {keys[0]: row}
        found: dict[bytes, Row] = {}
        for start in range(0, len(keys), _MOST_PARAMETERS):
            some = keys[start : start + _MOST_PARAMETERS]
            sql = f"SELECT key, id, data FROM documents WHERE key IN ({','.join('?' * len(some))})"
            for key, number, data in self.database.execute(sql, some):
                found[key] = Row(number, data)
        return found

    def insert(self, inserts: Sequence[Insert], rows: RowChanges) -> None:
        for number, (location, key, new, data) in enumerate(inserts, self.next_number + len(rows.inserted)):
            rows.inserted.append((number, key, location.collection_id, data))
            shapes = self.entries.kept_for(location)
            if shapes:
                after = DocumentKeys(location, new)
                for shape, shape_number, _ in shapes:
                    rows.added += [(shape_number, entry, number) for entry in shape.entries_of(after)]

    def update(self, updates: Sequence[Update], rows: RowChanges) -> None:
        """Each document once."""
        for location, number, old, new, data, touched in updates:
            rows.updated.append((data, number))
            concerned = self.entries.kept_for(location)
            if touched is not None:
                concerned = [kept for kept in concerned if not touched.isdisjoint(kept.fields)]
            if not concerned:
                continue
            before = DocumentKeys(location, old)
            after = DocumentKeys(location, new, before, touched)
            for shape, shape_number, _ in concerned:
                rows.change_entries(shape_number, number, shape.entries_of(before), shape.entries_of(after))

    def delete(self, location: Location, number: int, old: Proto, rows: RowChanges) -> None:
        rows.deleted.append((number,))
        shapes = self.entries.kept_for(location)
        if shapes:
            before = DocumentKeys(location, old)
            for shape, shape_number, _ in shapes:
                rows.change_entries(shape_number, number, shape.entries_of(before), ())

    def apply(self, rows: RowChanges) -> None:
        """Inside `database.atomic()`. Entries go before others come, which may be in their places."""
        self.next_number += len(rows.inserted)
        for sql, changed in (
            (_INSERT, rows.inserted),
            (_UPDATE, rows.updated),
            (_DELETE, rows.deleted),
            (_REMOVE_ENTRY, rows.removed),
            (_MOVE_ENTRY, rows.moved),
            (INSERT_ENTRY, rows.added),
        ):
            if changed:
                self.database.executemany(sql, changed)

    def clear(self, prefix: bytes) -> None:
        """Everything below a key, without a change being reported."""
        below = (prefix, prefix + keys.AFTER)
        with self.database.atomic():
            self.database.execute(
                "DELETE FROM entries WHERE document IN (SELECT id FROM documents WHERE key>=? AND key<?)",
                below,
            )
            self.database.execute("DELETE FROM documents WHERE key>=? AND key<?", below)

    def first_below(self, lower: bytes, upper: bytes) -> bytes | None:
        """The first document key in a range: with it, children are found by leaps, however deep the tree is."""
        row = self.database.execute(
            "SELECT key FROM documents WHERE key>=? AND key<? ORDER BY key LIMIT 1", (lower, upper)
        ).fetchone()
        return None if row is None else row[0]

    def last_commit_micros(self) -> int:
        (micros,) = self.database.execute("SELECT value FROM meta WHERE name='last_commit_micros'").fetchone()
        return int(micros)

    def set_last_commit_micros(self, micros: int) -> None:
        if self.database.is_durable:  # in memory no client will come back to ask
            self.database.execute("UPDATE meta SET value=? WHERE name='last_commit_micros'", (micros,))

    def close(self) -> None:
        self.database.close()
