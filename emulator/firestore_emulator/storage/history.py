"""What documents were a short while ago, so that a reader may stand still while writers go on.

Each change leaves the document's earlier state here, with the time from which it no longer held. A read at time T
takes the first state left behind after T, or, if there is none, what is stored now. History is in memory and short, an
hour as in production unless much is written: a time before its beginning is refused, never answered with something
newer.

Each database has a history of its own, so that a flood of writes in one does not shorten that of another. All of them
together have a bound too: beyond it, the database that was changed the longest ago loses its history.

Most of what is written is never read in the past. So a commit is kept as it came, and its documents are looked up only
when a reader first asks for one of them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict, deque
from collections.abc import Iterator
from typing import Protocol

from firestore_emulator.documents.names import Location
from firestore_emulator.rpc.errors import failed_precondition

KEEP_MICROS = 3_600_000_000
KEEP_CHANGES = 20_000
"""In one database."""
KEEP_CHANGES_IN_ALL = 60_000
"""Bounds the memory of an emulator with many projects, such as one for each test."""


class States(Protocol):
    """What each changed document was before a commit; None: there was no document. Each document once."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[tuple[Location, bytes | None]]: ...


class History:
    def __init__(self, begins_micros: int) -> None:
        """`begins_micros`: nothing is known of what was before; 0 for a Firestore that began empty."""
        self._begins = begins_micros
        self._databases: OrderedDict[str, _Past] = OrderedDict()
        """The one that was changed the longest ago first."""
        self._forgotten: OrderedDict[str, int] = OrderedDict()
        """The last change of each database whose history was dropped."""
        self._changes = 0
        self._pinned: list[tuple[str, int]] = []

    def record(self, database: str, until_micros: int, states: States) -> None:
        """The `states` held until this commit, which changed at least one document."""
        past = self._databases.get(database)
        if past is None:
            past = self._databases[database] = _Past(self._forgotten.pop(database, 0))
        else:
            self._databases.move_to_end(database)
        before = past.changes
        past.add(until_micros, states)
        if past.changes > KEEP_CHANGES or past.first_change < until_micros - KEEP_MICROS:
            past.forget(until_micros, self._oldest_needed(database, until_micros))
        self._changes += past.changes - before
        if len(self._databases) > 1:
            self._forget_databases(until_micros)

    def _forget_databases(self, now_micros: int) -> None:
        """Drops what is too old or too much, except what an open snapshot needs."""
        while self._databases:
            database, past = next(iter(self._databases.items()))
            is_old = past.last_change < now_micros - KEEP_MICROS
            if not is_old and (self._changes <= KEEP_CHANGES_IN_ALL or len(self._databases) == 1):
                break
            if self._oldest_needed(database, now_micros) < past.last_change:
                break
            del self._databases[database]
            self._changes -= past.changes
            self._forgotten[database] = past.last_change
        while self._forgotten:
            database, last_change = next(iter(self._forgotten.items()))
            if last_change >= now_micros - KEEP_MICROS:
                break
            # No database may be read at a time that is that long ago.
            self._begins = max(self._begins, self._forgotten.pop(database))

    def _oldest_needed(self, database: str, now_micros: int) -> int:
        return min((micros for pinned, micros in self._pinned if pinned == database), default=now_micros)

    def pin(self, database: str, at_micros: int) -> None:
        self._pinned.append((database, at_micros))

    def unpin(self, database: str, at_micros: int) -> None:
        self._pinned.remove((database, at_micros))

    def reaches(self, database: str, at_micros: int, now_micros: int) -> bool:
        """Whether the database may be read at this time: all that has changed since is known, and it is not too old."""
        past = self._databases.get(database)
        begins = self._forgotten.get(database, 0) if past is None else past.begins
        return at_micros >= max(begins, self._begins, now_micros - KEEP_MICROS)

    def check(self, database: str, at_micros: int, now_micros: int) -> None:
        if not self.reaches(database, at_micros, now_micros):
            raise failed_precondition("The requested 'read_time' is too old.")

    def state_at(self, location: Location, at_micros: int) -> tuple[bool, bytes | None]:
        """(True, the state then) if it has changed since; (False, None) if what is stored now held then too."""
        past = self._databases.get(location.database)
        states = None if past is None else past.states_of(location)
        if not states:
            return False, None
        # A state recorded as "until U" held at every T < U.
        index = bisect_right(states, at_micros, key=lambda item: item[0])
        return (True, states[index][1]) if index < len(states) else (False, None)

    def changed_since(self, database: str, at_micros: int) -> set[Location]:
        past = self._databases.get(database)
        changed: set[Location] = set()
        for until, states in reversed(past.commits if past is not None else ()):
            if until <= at_micros:
                break
            changed.update(location for location, _ in states)
        return changed

    def __len__(self) -> int:
        """The number of changes that are kept, of all databases."""
        return self._changes


class _Past:
    """The history of one database."""

    __slots__ = ("_not_indexed", "_states", "begins", "changes", "commits", "last_change")

    def __init__(self, begins_micros: int) -> None:
        self.begins = begins_micros
        self.last_change = begins_micros
        self.commits: deque[tuple[int, States]] = deque()
        self.changes = 0
        """Of all commits that are kept."""
        self._states: dict[Location, list[tuple[int, bytes | None]]] = {}
        """By document, of the commits that are indexed."""
        self._not_indexed: deque[tuple[int, States]] = deque()
        """The latest commits, since a reader last asked for a document."""

    @property
    def first_change(self) -> int:
        return self.commits[0][0]

    def add(self, until_micros: int, states: States) -> None:
        self.last_change = until_micros
        commit = until_micros, states
        self.commits.append(commit)
        self._not_indexed.append(commit)
        self.changes += len(states)

    def states_of(self, location: Location) -> list[tuple[int, bytes | None]] | None:
        """The document's earlier states with the times until which they held, the oldest first."""
        for until, states in self._not_indexed:
            for changed, state in states:
                self._states.setdefault(changed, []).append((until, state))
        self._not_indexed.clear()
        return self._states.get(location)

    def forget(self, now_micros: int, oldest_needed_micros: int) -> None:
        commits = self.commits
        while commits and (self.changes > KEEP_CHANGES or self.first_change < now_micros - KEEP_MICROS):
            until, states = commits[0]
            if until > oldest_needed_micros:
                return
            commits.popleft()
            self.changes -= len(states)
            if len(self._not_indexed) > len(commits):
                self._not_indexed.popleft()
            else:
                self._unindex(states)
            self.begins = max(self.begins, until)

    def _unindex(self, states: States) -> None:
        for location, _ in states:
            earlier = self._states[location]
            del earlier[0]
            if not earlier:
                del self._states[location]
