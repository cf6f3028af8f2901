"""What a stream watches: a set of documents or a query, and what a client comes to see of it.

A target answers three questions, each with a list of effects: what it shows at first, what became of it since a moment
in the past, and what a commit does to it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from firestore_emulator.documents.fields import project
from firestore_emulator.documents.names import Location, location_of, parse_document, parse_parent
from firestore_emulator.documents.protos import Proto
from firestore_emulator.queries.query import Query
from firestore_emulator.queries.structured_query import parse_query
from firestore_emulator.rpc.errors import invalid_argument
from firestore_emulator.storage.engine import Change, Engine


@dataclass(frozen=True, slots=True)
class Shown:
    """From now on the target shows the document like this."""

    target_id: int
    location: Location
    document: Proto


@dataclass(frozen=True, slots=True)
class Left:
    """From now on the target does not show the document, which exists."""

    target_id: int
    location: Location
    document: Proto | None
    """As it has become; None: it is as it was, and others pushed it out."""


@dataclass(frozen=True, slots=True)
class Deleted:
    """From now on the target does not show the document: there is none."""

    target_id: int
    location: Location


Effect = Shown | Left | Deleted


@dataclass(slots=True)
class DocumentsTarget:
    id: int
    locations: tuple[Location, ...]
    is_query = False

    @property
    def database(self) -> str:
        return self.locations[0].database

    @property
    def collection_id(self) -> str | None:
        """None: its documents are in several."""
        ids = {location.collection_id for location in self.locations}
        return ids.pop() if len(ids) == 1 else None

    def initial(self, engine: Engine) -> Iterator[Effect]:
        for location in self.locations:
            yield self._stands(location, engine.get(location))

    def changed_since(self, engine: Engine, since_micros: int) -> Iterator[Effect]:
        changed = _changed_since(engine, self.locations, since_micros)
        for location in self.locations:
            if location in changed:
                yield self._stands(location, engine.get(location))

    def committed(self, engine: Engine, changes: Sequence[Change], micros: int) -> Iterator[Effect]:
        for change in changes:
            if change.location in self.locations:
                yield self._stands(change.location, change.new)

    def matching(self, engine: Engine) -> Collection[Location]:
        return [location for location in self.locations if engine.get(location) is not None]

    def _stands(self, location: Location, document: Proto | None) -> Effect:
        if document is None:
            return Deleted(self.id, location)
        return Shown(self.id, location, document)


@dataclass(slots=True)
class QueryTarget:
    id: int
    query: Query
    shown: set[Location] = field(default_factory=set)
    """What the client has."""
    is_query = True

    @property
    def database(self) -> str:
        return self.query.parent.database

    @property
    def collection_id(self) -> str | None:
        return self.query.collection_id

    def initial(self, engine: Engine) -> Iterator[Effect]:
        for document in engine.run(self.query):
            location = location_of(document)
            self.shown.add(location)
            yield Shown(self.id, location, document)

    def changed_since(self, engine: Engine, since_micros: int) -> Iterator[Effect]:
        self.shown = {location_of(document) for document in engine.run(self.query, since_micros)}
        yield from self._run_again(engine, engine.history.changed_since(self.query.parent.database, since_micros), None)

    def committed(self, engine: Engine, changes: Sequence[Change], micros: int) -> Iterator[Effect]:
        touched = [change for change in changes if self.query.covers(change.location)]
        if not touched:
            return
        if self._is_windowed:
            yield from self._run_again(engine, {change.location for change in touched}, micros)
            return
        for change in touched:
            if change.new is not None and self.query.matches(change.location, change.new):
                self.shown.add(change.location)
                yield Shown(self.id, change.location, self._projected(change.new))
            elif change.location in self.shown:
                self.shown.discard(change.location)
                yield self._gone(change.location, change.new)

    def matching(self, engine: Engine) -> Collection[Location]:
        return self.shown

    @property
    def _is_windowed(self) -> bool:
        """With a limit or an offset, one document's change can bring in or push out another."""
        return self.query.limit is not None or self.query.offset > 0

    def _run_again(self, engine: Engine, changed: Collection[Location], at_micros: int | None) -> Iterator[Effect]:
        now = {location_of(document): document for document in engine.run(self.query, at_micros)}
        for location in self.shown - now.keys():
            if location in changed:
                yield self._gone(location, engine.get(location, at_micros))
            else:
                yield Left(self.id, location, None)
        for location, document in now.items():
            if location not in self.shown or location in changed:
                yield Shown(self.id, location, document)
        self.shown = set(now)

    def _gone(self, location: Location, document: Proto | None) -> Effect:
        return Deleted(self.id, location) if document is None else Left(self.id, location, self._projected(document))

    def _projected(self, document: Proto) -> Proto:
        return document if self.query.projection is None else project(document, self.query.projection)


def _changed_since(engine: Engine, locations: Sequence[Location], since_micros: int) -> set[Location]:
    """All locations of a target are in one database."""
    return engine.history.changed_since(locations[0].database, since_micros) if locations else set()


def reads_of_changes(effects: Sequence[Effect]) -> int:
    """What changes of a result are billed as: a document that is deleted, or pushed out by others, is no read."""
    return sum(isinstance(one, Shown) or (isinstance(one, Left) and one.document is not None) for one in effects)


Target = DocumentsTarget | QueryTarget


def parse_target(number: int, target: Proto, database: str) -> Target:
    match target.WhichOneof("target_type"):
        case "documents":
            locations = sorted(set(map(parse_document, target.documents.documents)), key=lambda one: one.segments)
            for location in locations:
                _check_database(location, database)
            return DocumentsTarget(number, tuple(locations))
        case "query":
            parent = parse_parent(target.query.parent)
            _check_database(parent, database)
            query = parse_query(parent, target.query.structured_query)
            _check_can_be_watched(query)
            return QueryTarget(number, query)
    raise invalid_argument("A target must be documents or a query.")


def _check_can_be_watched(query: Query) -> None:
    """Production answers these queries, and refuses to listen to them."""
    if query.nearest is not None:
        raise invalid_argument("Vector search is not supported by real-time queries.")
    if query.collection_id is None:
        raise invalid_argument("All-collection queries are not supported by real-time queries.")
    if query.descendants and query.parent.segments:
        raise invalid_argument(
            "'all_descendants' in CollectionSelector with document parent is not supported by real-time queries."
        )


def _check_database(location: Location, database: str) -> None:
    if location.database != database:
        raise invalid_argument(f'"{location.name}" is not in the database "{database}" of the request.')
