"""Which transactions have read what: the locks that commits must respect."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from firestore_emulator.documents.names import Location
from firestore_emulator.documents.writes import CheckedWrite
from firestore_emulator.queries.query import Query
from firestore_emulator.rpc.errors import RpcError
from firestore_emulator.storage.engine import Drafted, Engine
from firestore_emulator.transactions.transaction import Transaction


class Locks:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._readers: dict[Location, set[Transaction]] = {}
        self._watchers: set[Transaction] = set()
        """Those that hold locks on queries."""

    def take_documents(self, transaction: Transaction, locations: Iterable[Location]) -> None:
        for location in locations:
            self._readers.setdefault(location, set()).add(transaction)

    def take_query(self, transaction: Transaction) -> None:
        """The query itself is in `transaction.queries`."""
        self._watchers.add(transaction)

    def release(self, transaction: Transaction) -> None:
        self._watchers.discard(transaction)
        for location in transaction.documents:
            holders = self._readers[location]
            holders.discard(transaction)
            if not holders:
                del self._readers[location]

    def holders(self, party: Transaction, writes: Sequence[CheckedWrite]) -> set[Transaction]:
        """The others whose locks these writes would break."""
        found: set[Transaction] = set()
        for write in writes:
            found |= self._readers.get(write.location, set())
        watchers = self._watchers - {party}
        if watchers:
            found |= {watcher for watcher in watchers if self.disturb(writes, watcher.queries)}
        found.discard(party)
        return found

    def disturb(self, writes: Sequence[CheckedWrite], queries: Sequence[Query]) -> bool:
        """Whether a commit changes what a query returned. One that will be refused changes nothing."""
        try:
            drafted = self._engine.draft(writes)
        except RpcError:
            return False
        return _disturbs(drafted, queries)


def _disturbs(drafted: Drafted, queries: Sequence[Query]) -> bool:
    """Whether a commit changes what a query returned: a document enters, leaves, or changes within."""
    for location, draft in drafted.drafts.items():
        for query in queries:
            for state in (draft.stored, draft.current):
                if state is not None and query.matches(location, state):
                    return True
    return False
