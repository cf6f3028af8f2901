"""What documents were a short while ago, so that a reader may stand still while writers go on.

Each change leaves the document's earlier state here, with the time from which it no longer held. A read at time T
takes the first state left behind after T, or, if there is none, what is stored now. History is in memory and short, an
hour as in production unless much is written: a time before its beginning is refused, never answered with something
newer.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque

from firestore_emulator.documents.names import Location
from firestore_emulator.rpc.errors import failed_precondition

KEEP_MICROS = 3_600_000_000
KEEP_CHANGES = 20_000


class History:
    def __init__(self, begins_micros: int) -> None:
        self._begins = begins_micros
        self._log: deque[tuple[int, Location]] = deque()
        self._past: dict[Location, list[tuple[int, bytes | None]]] = {}
        self._pinned: list[int] = []

    def record(self, location: Location, until_micros: int, state: bytes | None) -> None:
        """`state` (None: there was no document) held until this commit."""
        self._log.append((until_micros, location))
        self._past.setdefault(location, []).append((until_micros, state))

    def forget(self, now_micros: int) -> None:
        """Drops what is too old or too much, except what an open snapshot needs."""
        oldest_needed = min(self._pinned, default=now_micros)
        while self._log and (len(self._log) > KEEP_CHANGES or self._log[0][0] < now_micros - KEEP_MICROS):
            until, location = self._log[0]
            if until > oldest_needed:
                return
            self._log.popleft()
            states = self._past[location]
            del states[0]
            if not states:
                del self._past[location]
            self._begins = max(self._begins, until)

    def clear(self, now_micros: int) -> None:
        self._log.clear()
        self._past.clear()
        self._begins = now_micros

    def pin(self, at_micros: int) -> None:
        self._pinned.append(at_micros)

    def unpin(self, at_micros: int) -> None:
        self._pinned.remove(at_micros)

    def covers(self, at_micros: int) -> bool:
        """Whether all that has changed since this time is known."""
        return at_micros >= self._begins

    def check(self, at_micros: int) -> None:
        if not self.covers(at_micros):
            raise failed_precondition("The requested 'read_time' is too old.")

    def state_at(self, location: Location, at_micros: int) -> tuple[bool, bytes | None]:
        """(True, the state then) if it has changed since; (False, None) if what is stored now held then too."""
        states = self._past.get(location)
        if not states:
            return False, None
        # A state recorded as "until U" held at every T < U.
        index = bisect_right(states, at_micros, key=lambda item: item[0])
        return (True, states[index][1]) if index < len(states) else (False, None)

    def changed_since(self, at_micros: int) -> set[Location]:
        changed = set()
        for until, location in reversed(self._log):
            if until <= at_micros:
                break
            changed.add(location)
        return changed
