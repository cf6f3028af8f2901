"""Index entries in SQLite: which query shapes have them, and how they are read.

A shape's entries are made when a query first needs them and kept up to date by each write from then on.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import NamedTuple

from firestore_emulator.database import Database
from firestore_emulator.documents.names import Location, location_of
from firestore_emulator.documents.protos import Document
from firestore_emulator.queries.plan import Scan, Shape

INSERT_ENTRY = "INSERT INTO entries(shape, key, document) VALUES(?, ?, ?)"
KEY_VERSION = 2
"""Of the keys in `entries`; kept in the file."""
MAX_SHAPES = 64
"""More distinct query shapes than this, and the one unused for longest is dropped; asked for again, it is made anew."""


class Kept(NamedTuple):
    """A shape whose entries are kept up to date."""

    shape: Shape
    number: int
    fields: frozenset[str]
    """The top-level fields on which its entries depend."""


class Entries:
    def __init__(self, database: Database) -> None:
        self._database = database
        self.generation = 0
        """Grows with each index that is made or dropped."""
        self._shapes: OrderedDict[Shape, int] = OrderedDict()
        self._by_collection: dict[str | None, list[Kept]] = {}
        self._drop_entries_of_earlier_versions()
        for number, definition in database.rows("SELECT id, definition FROM shapes ORDER BY id"):
            self._remember(Shape.from_definition(definition), number)

    def scan(self, scan: Scan, limit: int | None) -> Iterator[tuple[bytes, bytes]]:
        """(position in the query's stored order, document bytes), in the scan's direction, lazily."""
        direction = "DESC" if scan.backwards else "ASC"
        start = len(scan.prefix)
        found = self._database.execute(
            "SELECT e.key, d.data FROM entries e CROSS JOIN documents d ON d.id=e.document "
            f"WHERE e.shape=? AND e.key>=? AND e.key<? ORDER BY e.key {direction} LIMIT ?",
            (self._number(scan.shape), scan.lower, scan.upper, -1 if limit is None else limit),
        )
        for key, data in found:
            yield key[start:], data

    def count(self, scan: Scan, limit: int | None) -> int:
        sql = "SELECT count(*) FROM (SELECT 1 FROM entries WHERE shape=? AND key>=? AND key<? LIMIT ?)"
        bound = -1 if limit is None else limit
        (count,) = self._database.execute(sql, (self._number(scan.shape), scan.lower, scan.upper, bound)).fetchone()
        return int(count)

    def _number(self, shape: Shape) -> int:
        number = self._shapes.get(shape)
        if number is None:
            return self._make(shape)
        self._shapes.move_to_end(shape)
        return number

    def _make(self, shape: Shape) -> int:
        database = self._database
        with database.atomic():
            while len(self._shapes) >= MAX_SHAPES:
                self._drop_least_used()
            (number,) = database.execute(
                "INSERT INTO shapes(definition) VALUES(?) RETURNING id", (shape.definition(),)
            ).fetchone()
            where, bound = ("", ()) if shape.collection_id is None else (" WHERE collection=?", (shape.collection_id,))
            for document_number, data in database.execute(f"SELECT id, data FROM documents{where}", bound):
                document = Document.FromString(data)
                entries = shape.entries(location_of(document), document)
                database.executemany(INSERT_ENTRY, [(number, entry, document_number) for entry in set(entries)])
        self._remember(shape, number)
        return int(number)

    def _remember(self, shape: Shape, number: int) -> None:
        self.generation += 1
        self._shapes[shape] = number
        self._by_collection.setdefault(shape.collection_id, []).append(Kept(shape, number, shape.fields))

    def _drop_least_used(self) -> None:
        self.generation += 1
        shape, number = self._shapes.popitem(last=False)
        self._by_collection[shape.collection_id].remove(Kept(shape, number, shape.fields))
        self._database.execute("DELETE FROM entries WHERE shape=?", (number,))
        self._database.execute("DELETE FROM shapes WHERE id=?", (number,))

    def kept_for(self, location: Location) -> list[Kept]:
        own = self._by_collection.get(location.collection_id, [])
        anywhere = self._by_collection.get(None)
        return own if not anywhere else own + anywhere

    def _drop_entries_of_earlier_versions(self) -> None:
        """Earlier versions made other keys. A query makes the entries that it needs anew."""
        (version,) = self._database.execute("PRAGMA user_version").fetchone()
        if version != KEY_VERSION:
            with self._database.atomic():
                self._database.execute("DELETE FROM entries")
                self._database.execute("DELETE FROM shapes")
            self._database.execute(f"PRAGMA user_version={KEY_VERSION}")
