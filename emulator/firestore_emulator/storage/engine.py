"""The document engine: reads, queries and commits, each one synchronous step on one thread.

Theory of operation. SQLite holds the truth; nothing is cached that could disagree with it. A commit is decided purely
(`writes.py`) over drafts of the documents it names, then stored in one SQLite savepoint with its index entries and
the events it causes, so a crash leaves all of it or none of it. Commit times grow strictly, also over restarts and when
the machine's clock steps back. Who may commit when another transaction has read is decided before, in
`transactions.py`; the engine itself never waits.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from firestore_emulator.documents import keys
from firestore_emulator.documents.fields import project
from firestore_emulator.documents.names import Location, location_of
from firestore_emulator.documents.protos import Document, Proto, WriteResult
from firestore_emulator.documents.times import Clock, micros_at, micros_of, stamp_of, system_clock
from firestore_emulator.documents.values import check_document_size
from firestore_emulator.documents.writes import CheckedWrite, DraftState, apply_write
from firestore_emulator.meters.billing import BillingMeter
from firestore_emulator.meters.hot_spots import HotSpotMeter
from firestore_emulator.queries import plan
from firestore_emulator.queries.indexes import IndexRules
from firestore_emulator.queries.query import Query, satisfies
from firestore_emulator.rpc.errors import failed_precondition, invalid_argument
from firestore_emulator.storage.history import History, States
from firestore_emulator.storage.tables import Insert, Row, RowChanges, Storage, Update


class Change(NamedTuple):
    """One document before and after a commit; never equal."""

    location: Location
    old: Proto | None
    new: Proto | None


@dataclass(frozen=True, slots=True)
class Drafted:
    """A commit decided and not yet stored. It holds for as long as nothing else is committed."""

    drafts: dict[Location, DraftState]
    rows: dict[Location, Row | None]
    """What is stored of each, as it was read."""
    transform_results: list[list[Proto]]
    documents_of_writes: list[Location]


@dataclass(frozen=True, slots=True)
class Committed:
    commit_micros: int
    results: list[Proto]
    """One for each write; several may be the same message, so they are to be copied and not changed."""


Observer = Callable[[Sequence[Change], int], None]


class Engine:
    def __init__(
        self,
        path: Path | None = None,
        clock: Clock = system_clock,
        index_rules: IndexRules | None = None,
        *,
        survives_power_cuts: bool = False,
    ) -> None:
        self.storage = Storage(path, survives_power_cuts=survives_power_cuts)
        self.index_rules = index_rules
        self._clock = clock
        self._last_micros = self.storage.last_commit_micros()
        # A Firestore that has never been written is known from the beginning of time: it was empty.
        self.history = History(self.now_micros() if self._last_micros else 0)
        self.billing = BillingMeter()
        self.inside_commit: list[Observer] = []
        """Called inside the commit: what they write is stored with it or not at all."""
        self.after_commit: list[Observer] = []
        """Called when the commit is decided for good."""
        self.hot_spots = HotSpotMeter(self.after_commit, index_rules)

    def now_micros(self) -> int:
        """A time at which everything committed so far is visible."""
        return max(micros_at(self._clock()), self._last_micros)

    def moment(self) -> int:
        """A time to read at: everything committed so far is visible then, and nothing that is committed later."""
        self._last_micros = self.now_micros()
        return self._last_micros

    async def settled(self) -> None:
        await self.storage.database.settled()

    def close(self) -> None:
        self.storage.close()

    # --- reads -------------------------------------------------------------------------------------------------------

    def get(self, location: Location, at_micros: int | None = None) -> Proto | None:
        if at_micros is not None:
            changed, state = self.history.state_at(location, at_micros)
            if changed:
                return None if state is None else Document.FromString(state)
        data = self.storage.get(keys.name_key(location))
        return None if data is None else Document.FromString(data)

    def run(self, query: Query, at_micros: int | None = None) -> list[Proto]:
        """The result in order, with limit and offset applied; projection too."""
        return self.find(query, at_micros)[0]

    def find(self, query: Query, at_micros: int | None = None) -> tuple[list[Proto], int]:
        """As `run`, with the number of documents that the offset skipped."""
        self.check_indexes(query)
        if query.limit == 0:
            return [], 0
        stop = None if query.limit is None else query.offset + query.limit
        found: list[Proto] = []
        documents = self._matching(query, stop) if at_micros is None else self._matching_at(query, at_micros)
        for document in documents:
            found.append(document)
            if len(found) == stop:
                break
        skipped = min(query.offset, len(found))
        found = found[skipped:]
        if query.nearest is not None:
            found = query.nearest.found_in(found)
        if query.projection is not None:
            found = [project(document, query.projection) for document in found]
        return found, skipped

    def count(self, query: Query, up_to: int | None, at_micros: int | None = None) -> int:
        """How many documents `run` would return, at most `up_to`; without reading them where the index decides."""
        scans = list(plan.scans(query))
        limits = [bound for bound in (query.limit, up_to) if bound is not None]
        limit = min(limits, default=None)
        if (
            query.nearest is not None
            or at_micros is not None
            or len(scans) > 1
            or any(s.residual for s in scans)
            or _needs_ancestor_check(query)
        ):
            found = len(self.run(query, at_micros))
            return found if limit is None else min(found, limit)
        self.check_indexes(query)
        if not scans:
            return 0
        counted = self.storage.entries.count(scans[0], None if limit is None else query.offset + limit)
        return max(0, counted - query.offset)

    def check_indexes(self, query: Query) -> None:
        """Refuses a query that production has no index for."""
        if self.index_rules is not None:
            self.index_rules.check(query)
        elif query.is_by_name_alone and query.orders[0].descending:
            raise failed_precondition("Firestore does not support descending key scans")

    def _matching(self, query: Query, stop: int | None) -> Iterator[Proto]:
        scans = list(plan.scans(query))
        if len(scans) == 1:
            for _, document in self._filtered(query, scans[0], stop):
                yield document
            return
        streams = [self._filtered(query, scan, None) for scan in scans]
        backwards = query.orders[-1].descending
        last: bytes | None = None
        for position, document in heapq.merge(*streams, key=lambda item: item[0], reverse=backwards):
            # Positions end with the name: equal ones are one document, found by two alternatives.
            if position != last:
                last = position
                yield document

    def _filtered(self, query: Query, scan: plan.Scan, stop: int | None) -> Iterator[tuple[bytes, Proto]]:
        check_ancestor = _needs_ancestor_check(query)
        if not scan.residual and not check_ancestor:
            for position, data in self.storage.entries.scan(scan, stop):
                yield position, Document.FromString(data)
            return
        for position, data in self.storage.entries.scan(scan, None):
            document = Document.FromString(data)
            location = location_of(document)
            if (not check_ancestor or query.covers(location)) and satisfies(document, location, scan.residual):
                yield position, document

    def _matching_at(self, query: Query, at_micros: int) -> Iterator[Proto]:
        """As `_matching`, at an earlier time: what has changed since is replaced by what it was."""
        changed = {
            location
            for location in self.history.changed_since(query.parent.database, at_micros)
            if query.covers(location)
        }
        if not changed:
            yield from self._matching(query, None)
            return
        positioned: list[tuple[bytes, Proto]] = []
        for document in self._matching(query, None):
            location = location_of(document)
            if location not in changed:
                positioned.append((query.position(location, document) or b"", document))
        for location in changed:
            document = self.get(location, at_micros)
            if document is not None and query.matches(location, document):
                positioned.append((query.position(location, document) or b"", document))
        for _, document in sorted(positioned, key=lambda item: item[0]):
            yield document

    # --- writes ------------------------------------------------------------------------------------------------------

    def draft(self, writes: Sequence[CheckedWrite], request_micros: int | None = None) -> Drafted:
        """Decides a commit against what is stored now. Raises if a precondition does not hold.

        `request_micros` is when the request arrived, for server timestamps; None means now.
        """
        drafts: dict[Location, DraftState] = {}
        rows: dict[Location, Row | None] = {}
        results: list[list[Proto]] = []
        if request_micros is None:
            request_micros = self.now_micros()
        for write in writes:
            draft = drafts.get(write.location)
            if draft is None:
                row = rows[write.location] = self.storage.row(keys.name_key(write.location))
                stored = None if row is None else Document.FromString(row.data)
                draft = drafts[write.location] = DraftState(stored=stored, current=stored)
            results.append(apply_write(write, draft, request_micros))
        return Drafted(drafts, rows, results, [write.location for write in writes])

    def store(self, drafted: Drafted, *, with_triggers: bool = True) -> Committed:
        """Stores a commit that was drafted since the last one. `with_triggers`: it causes events."""
        commit_micros = self.next_commit_micros()
        stamp = stamp_of(commit_micros)
        changes: list[Change] = []
        inserts: list[Insert] = []
        updates: list[Update] = []
        for location, draft in drafted.drafts.items():
            change = _finished(location, draft, drafted.rows[location], stamp, inserts, updates)
            if change is not None:
                changes.append(change)
        rows = RowChanges()
        self.storage.insert(inserts, rows)
        self.storage.update(updates, rows)
        for location, old, new in changes:
            row = drafted.rows[location]
            if new is None and row is not None:
                self.storage.delete(location, row.number, old, rows)
        states = [
            (location, None if (row := drafted.rows[location]) is None else row.data) for location, _, _ in changes
        ]
        database = states[0][0].database if states else ""
        self.store_rows(database, commit_micros, rows, states, changes, with_triggers=with_triggers)
        usual = WriteResult(update_time=stamp)
        results = []
        for location, transform_results in zip(drafted.documents_of_writes, drafted.transform_results, strict=True):
            current = drafted.drafts[location].current
            if current is None:
                results.append(WriteResult())
            elif transform_results or current.update_time != stamp:
                results.append(WriteResult(update_time=current.update_time, transform_results=transform_results))
            else:
                results.append(usual)
        return Committed(commit_micros, results)

    def next_commit_micros(self) -> int:
        return max(micros_at(self._clock()), self._last_micros + 1)

    def store_rows(
        self,
        database: str,
        commit_micros: int,
        rows: RowChanges,
        states: States,
        changes: Sequence[Change],
        *,
        with_triggers: bool = True,
    ) -> None:
        """Stores a commit that was decided since the last one.

        `states` is what each changed document was; `changes` may be empty if there are no observers.
        """
        with self.storage.database.atomic():
            self.storage.apply(rows)
            if states:
                self.storage.set_last_commit_micros(commit_micros)
            for observer in self.inside_commit if with_triggers else ():
                observer(changes, commit_micros)
        self._last_micros = commit_micros
        if states:
            self.history.record(database, commit_micros, states)
            for observer in self.after_commit:
                observer(changes, commit_micros)

    def clear(self, database: str) -> None:
        """Deletes every document of a database, and reports each as deleted."""
        prefix = keys.database_key(database)
        stored = [
            data
            for (data,) in self.storage.database.rows(
                "SELECT data FROM documents WHERE key>=? AND key<? ORDER BY key",
                (prefix, prefix + keys.AFTER),
            )
        ]
        changes = [Change(location_of(document), document, None) for document in map(Document.FromString, stored)]
        self._last_micros = self.next_commit_micros()
        with self.storage.database.atomic():
            self.storage.clear(prefix)
            self.storage.set_last_commit_micros(self._last_micros)
            for observer in self.inside_commit:
                observer(changes, self._last_micros)
        if changes:
            states = list(zip((change.location for change in changes), stored, strict=True))
            self.history.record(database, self._last_micros, states)
            for observer in self.after_commit:
                observer(changes, self._last_micros)

    def check_read_time(self, stamp: Proto, database: str) -> int:
        """A read time a client asks for, in microseconds."""
        if stamp.nanos % 1000:
            raise invalid_argument("timestamp cannot have more than microseconds precision")
        micros = micros_of(stamp)
        now = self.now_micros()
        if micros > now:
            raise invalid_argument("The requested 'read_time' cannot be in the future.")
        self.history.check(database, micros, now)
        self._last_micros = max(self._last_micros, micros)  # what is committed from here on comes later
        return micros


def _finished(
    location: Location, draft: DraftState, row: Row | None, stamp: Proto, inserts: list[Insert], updates: list[Update]
) -> Change | None:
    """Gives a draft its times, and adds what must be stored of it; None if the commit leaves the document as it was."""
    old, new = draft.stored, draft.current
    if new is None:
        return None if old is None else Change(location, old, None)
    new.create_time.CopyFrom(stamp if old is None or draft.was_deleted else old.create_time)
    # Serialized once: the update time is a document's last field, so it can be put behind the rest.
    new.ClearField("update_time")
    front: bytes = new.SerializeToString(deterministic=True)
    if row is not None and old is not None and row.data == front + _update_time(old.update_time):
        new.update_time.CopyFrom(old.update_time)
        return None  # a write that changes nothing does not move the update time
    new.update_time.CopyFrom(stamp)
    data = front + _update_time(stamp)
    check_document_size(new, len(data))
    if row is None or old is None:
        inserts.append(Insert(location, keys.name_key(location), new, data))
    else:
        updates.append(Update(location, row.number, old, new, data, draft.touched))
    return Change(location, old, new)


def _update_time(stamp: Proto) -> bytes:
    """As it stands at the end of a serialized document: tag, length, value."""
    data: bytes = stamp.SerializeToString()
    return b"\x22" + bytes([len(data)]) + data


def _needs_ancestor_check(query: Query) -> bool:
    """Only a query over descendants of one document: its shape spans the whole database."""
    return query.descendants and bool(query.parent.segments)
