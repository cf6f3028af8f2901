"""The line of those who wait for a lock, in the order in which they came."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from firestore_emulator.documents.names import Location
from firestore_emulator.documents.writes import CheckedWrite
from firestore_emulator.transactions.transaction import Transaction


@dataclass(eq=False, slots=True)
class Waiter:
    party: Transaction
    writes: Sequence[CheckedWrite]
    """Empty for a reader."""
    blockers: Callable[[], set[Transaction]]
    woken: asyncio.Future[None]

    def will_write(self, locations: frozenset[Location]) -> bool:
        return any(write.location in locations for write in self.writes)


class Line:
    def __init__(self) -> None:
        self._waiters: list[Waiter] = []

    def __bool__(self) -> bool:
        return bool(self._waiters)

    def join(self, waiter: Waiter) -> None:
        self._waiters.append(waiter)

    def leave(self, waiter: Waiter) -> None:
        self._waiters.remove(waiter)
        self.wake()

    def writers_ahead(self, party: Transaction) -> Iterator[Waiter]:
        """Who came before this one (before everybody who is yet to come, if it does not wait) and wants to write."""
        for waiter in self._waiters:
            if waiter.party is party:
                return
            if waiter.writes:
                yield waiter

    def wake(self) -> None:
        """Something has ended: let each look again whether it may go on."""
        for waiter in self._waiters:
            if not waiter.woken.done():
                waiter.woken.set_result(None)

    def circle(self, start: Transaction) -> list[Transaction]:
        """Transactions that wait for each other, from `start` back to it; empty if there is no such circle."""
        waits = {waiter.party: waiter.blockers for waiter in self._waiters}
        path: list[Transaction] = []
        seen: set[Transaction] = set()

        def leads_back(party: Transaction) -> bool:
            if party in seen or party not in waits:
                return False
            seen.add(party)
            path.append(party)
            for blocker in sorted(waits[party](), key=lambda one: one.age):
                if blocker is start or leads_back(blocker):
                    return True
            path.pop()
            return False

        return path if leads_back(start) else []
