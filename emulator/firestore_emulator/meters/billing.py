"""What Google would bill for the calls so far: documents read, written and deleted, per project, call and collection.

The rules, as Google documents them for the Standard edition:

- a document that is read is a read, whether it exists or not;
- a query is a read for each document that it returns or skips (`offset`), and one at least;
- an aggregation is a read for each 1,000 index entries that it counts, and one at least;
- a listener is a query when it begins; then a read for each document that is added to its result, changes in it, or
  leaves it because it changed. A deletion is no read, and a listener taken up again pays only for what changed;
- each document that security rules read is a read, once for each request, even if the rules refuse it; for a listener
  again with each change of its result;
- a listing of collection ids, a page of partitions and a plan without analysis are one read each;
- a write and a delete count, whether they change anything or not; a commit that is refused costs nothing.

Index entries that a query passes over, storage and traffic are not counted.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from firestore_emulator.documents.names import Location
from firestore_emulator.documents.writes import CheckedWrite

ENTRIES_PER_READ = 1_000
"""An aggregation is billed by index entries, this many to a read."""
KEPT_CALLS = 1_000
"""Of all projects together: what `recent` looks at."""
RULES = "security rules"
"""Stands for a call in the bill: what rules read."""
ALL_COLLECTIONS = "*"


@dataclass(slots=True)
class Operations:
    """What one kind of call has cost in one collection."""

    calls: int = 0
    reads: int = 0
    writes: int = 0
    deletes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line of a bill."""

    call: str
    """The name of the call, or `RULES`."""
    collection: str
    """The id of the collection; `*` for calls that ask of all."""
    calls: int
    reads: int
    writes: int
    deletes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """What a project has spent: the most expensive line first."""

    lines: tuple[Line, ...]

    @property
    def reads(self) -> int:
        return sum(line.reads for line in self.lines)

    @property
    def writes(self) -> int:
        return sum(line.writes for line in self.lines)

    @property
    def deletes(self) -> int:
        return sum(line.deletes for line in self.lines)


class BilledCall(NamedTuple):
    project: str
    call: str
    collection: str
    reads: int
    writes: int
    deletes: int


class BillingMeter:
    def __init__(self) -> None:
        self._projects: dict[str, dict[tuple[str, str], Operations]] = {}
        self._spent: dict[tuple[str, str, str], Operations] = {}
        """The lines of all projects by call, database and collection, so that a call finds its own at once."""
        self._recent: deque[tuple[str, str, str, int, int, int]] = deque(maxlen=KEPT_CALLS)

    def read(self, call: str, locations: Collection[Location]) -> None:
        """Documents of one database that were read, or were found to be missing."""
        if len(locations) == 1:
            (location,) = locations
            self.add(call, location.database, location.segments[-2], reads=1)
            return
        for collection, reads in Counter(location.segments[-2] for location in locations).items():
            self.add(call, next(iter(locations)).database, collection, reads=reads)

    def committed(self, call: str, database: str, writes: Sequence[CheckedWrite]) -> None:
        if len(writes) == 1:
            (write,) = writes
            if not write.is_verify:
                is_delete = write.is_delete
                self.add(call, database, write.location.segments[-2], writes=not is_delete, deletes=is_delete)
            return
        deletes = Counter(write.location.segments[-2] for write in writes if write.is_delete)
        others = Counter(write.location.segments[-2] for write in writes if not write.is_delete and not write.is_verify)
        for collection in dict.fromkeys((*others, *deletes)):
            self.add(call, database, collection, writes=others[collection], deletes=deletes[collection])

    def add(
        self, call: str, database: str, collection: str | None, *, reads: int = 0, writes: int = 0, deletes: int = 0
    ) -> None:
        """`collection`: None for a call that asks of all."""
        collection = collection or ALL_COLLECTIONS
        key = (call, database, collection)
        spent = self._spent.get(key)
        if spent is None:
            spent = self._spent[key] = self._line(database, call, collection)
        spent.calls += 1
        spent.reads += reads
        spent.writes += writes
        spent.deletes += deletes
        self._recent.append((database, call, collection, reads, writes, deletes))

    def _line(self, database: str, call: str, collection: str) -> Operations:
        """Databases of one project share their lines."""
        lines = self._projects.setdefault(database.split("/", 2)[1], {})
        return lines.setdefault((call, collection), Operations())

    def bill(self, project: str) -> Bill:
        lines = [
            Line(
                call=call,
                collection=collection,
                calls=spent.calls,
                reads=spent.reads,
                writes=spent.writes,
                deletes=spent.deletes,
            )
            for (call, collection), spent in self._projects.get(project, {}).items()
        ]
        return Bill(lines=tuple(sorted(lines, key=_by_cost)))

    def recent(self, project: str) -> list[BilledCall]:
        """The last calls, oldest first, as far as they are kept."""
        start = f"projects/{project}/"
        return [BilledCall(project, *one[1:]) for one in self._recent if one[0].startswith(start)]

    def reset(self, project: str) -> None:
        start = f"projects/{project}/"
        self._projects.pop(project, None)
        self._spent = {key: spent for key, spent in self._spent.items() if not key[1].startswith(start)}
        self._recent = deque((one for one in self._recent if not one[0].startswith(start)), maxlen=KEPT_CALLS)


def reads_of_query(returned: int, skipped: int) -> int:
    return max(1, returned + skipped)


def reads_of_aggregation(entries: int) -> int:
    return max(1, -(-entries // ENTRIES_PER_READ))


def _by_cost(line: Line) -> tuple[int, str, str]:
    return -(line.reads + line.writes + line.deletes), line.call, line.collection
