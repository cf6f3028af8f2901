"""Who may read and write when: pessimistic transactions, as production's standard mode.

Theory of operation. A read in a read-write transaction takes a shared lock on what it read: each document, and for a
query everything the query could match, so that nothing can appear in or leave its result. The lock is held until the
transaction ends. A commit, in a transaction or not, needs every document it writes free of others' locks; otherwise it
waits. Waiting is first come, first served: a reader does not overtake a writer that waits for the same document.

A wait ends in one of four ways: the holders end; they expire (60 s idle, 270 s in all); the wait itself would close a
circle of waiters, and then the youngest transaction in the circle is aborted at once; or the time for waiting is over
(2 s, as in Google's emulator) and the one who waited is aborted. A retried transaction keeps the age of its first try,
so it cannot lose for ever.

Read-only transactions and reads without a transaction take no locks and never wait: they read a moment in time.

A crash of the process ends all transactions; none of them has written anything.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count

from emulator.firestore.engine import Committed, Drafted, Engine
from emulator.firestore.names import Location
from emulator.firestore.protos import Proto
from emulator.firestore.query import Query
from emulator.firestore.writes import CheckedWrite
from emulator.rpc.errors import RpcError, aborted, invalid_argument

IDLE_SECONDS = 60.0
TOTAL_SECONDS = 270.0
LOCK_WAIT_SECONDS = 2.0


@dataclass(eq=False, slots=True)
class Transaction:
    """Also stands for a plain commit while it waits: it then holds nothing."""

    id: bytes
    database: str
    age: int
    """Smaller is older; kept by retries."""
    snapshot_micros: int | None = None
    """Set for read-only transactions."""
    started: float = 0.0
    used: float = 0.0
    documents: set[Location] = field(default_factory=set)
    queries: list[Query] = field(default_factory=list)
    ended: bool = False

    @property
    def read_only(self) -> bool:
        return self.snapshot_micros is not None


@dataclass(eq=False, slots=True)
class _Waiter:
    party: Transaction
    writes: frozenset[Location]
    """Empty for a reader."""
    reads: frozenset[Location]
    blockers: Callable[[], set[Transaction]]
    woken: asyncio.Future[None]


class Transactions:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._open: dict[bytes, Transaction] = {}
        self._ages: dict[bytes, int] = {}
        self._readers: dict[Location, set[Transaction]] = {}
        self._watchers: set[Transaction] = set()
        """Those that hold locks on queries."""
        self._waiting: list[_Waiter] = []
        self._numbers = count(1)

    # --- life --------------------------------------------------------------------------------------------------------

    def begin(self, database: str, options: Proto | None) -> Transaction:
        now = self._now()
        number = next(self._numbers)
        transaction = Transaction(id=b"transaction-%d" % number, database=database, age=number, started=now, used=now)
        if options is not None and options.WhichOneof("mode") == "read_only":
            read_only = options.read_only
            transaction.snapshot_micros = (
                self._engine.check_read_time(read_only.read_time)
                if read_only.HasField("read_time")
                else self._engine.now_micros()
            )
            self._engine.history.pin(transaction.snapshot_micros)
        elif options is not None and options.read_write.retry_transaction:
            transaction.age = self._age_of(options.read_write.retry_transaction, number)
        self._open[transaction.id] = transaction
        self._ages[transaction.id] = transaction.age
        if len(self._ages) > 10_000:
            del self._ages[next(iter(self._ages))]
        return transaction

    def _age_of(self, earlier: bytes, number: int) -> int:
        if not earlier.startswith(b"transaction-"):
            raise invalid_argument("Invalid transaction.")
        return self._ages.get(earlier, number)

    def find(self, transaction_id: bytes, database: str) -> Transaction:
        """An open transaction, used now."""
        self._expire()
        transaction = self._open.get(transaction_id)
        if transaction is None or transaction.database != database:
            if not transaction_id.startswith(b"transaction-"):
                raise invalid_argument("Invalid transaction.")
            raise invalid_argument("Transaction is invalid or closed.")
        transaction.used = self._now()
        return transaction

    def rollback(self, transaction_id: bytes) -> None:
        if not transaction_id.startswith(b"transaction-"):
            raise invalid_argument("Invalid transaction.")
        transaction = self._open.get(transaction_id)
        if transaction is not None:
            self._end(transaction)

    def _end(self, transaction: Transaction) -> None:
        if transaction.ended:
            return
        transaction.ended = True
        self._open.pop(transaction.id, None)
        self._watchers.discard(transaction)
        for location in transaction.documents:
            holders = self._readers[location]
            holders.discard(transaction)
            if not holders:
                del self._readers[location]
        if transaction.snapshot_micros is not None:
            self._engine.history.unpin(transaction.snapshot_micros)
        self._wake()

    def _expire(self) -> None:
        now = self._now()
        late = [t for t in self._open.values() if now >= self._expiry(t)]
        for transaction in late:
            self._end(transaction)

    @staticmethod
    def _expiry(transaction: Transaction) -> float:
        return min(transaction.used + IDLE_SECONDS, transaction.started + TOTAL_SECONDS)

    # --- reads in a read-write transaction ---------------------------------------------------------------------------

    async def lock_documents(self, transaction: Transaction, locations: Iterable[Location]) -> None:
        """Before the read. Waits only behind writers that came earlier."""
        wanted = frozenset(locations) - transaction.documents
        await self._wait(transaction, frozenset(), wanted, lambda: self._writers_ahead(transaction, wanted))
        for location in wanted:
            self._readers.setdefault(location, set()).add(transaction)
        transaction.documents |= wanted

    def lock_query(self, transaction: Transaction, query: Query) -> None:
        transaction.queries.append(query)
        self._watchers.add(transaction)

    # --- commits -----------------------------------------------------------------------------------------------------

    async def commit(self, transaction: Transaction | None, writes: Sequence[CheckedWrite]) -> Committed | None:
        """None: there was nothing to write, and no time at which it was written."""
        if transaction is not None and transaction.read_only:
            if writes:
                raise invalid_argument("Cannot modify entities in a read-only transaction.")
            self._end(transaction)
            return None
        if not writes:
            if transaction is not None:
                self._end(transaction)
            return None
        if not self._open and not self._waiting:
            return self._engine.store(self._engine.draft(writes))  # nobody to wait for: the common case
        party = transaction or Transaction(id=b"", database="", age=next(self._numbers))
        locations = frozenset(write.location for write in writes)
        try:
            await self._wait(party, locations, frozenset(), lambda: self._in_the_way(party, locations, writes))
            return self._engine.store(self._engine.draft(writes))
        finally:
            self._end(party)

    def _in_the_way(
        self, party: Transaction, locations: frozenset[Location], writes: Sequence[CheckedWrite]
    ) -> set[Transaction]:
        found = self._writers_ahead(party, locations)
        for location in locations:
            found |= self._readers.get(location, set())
        watchers = self._watchers - {party}
        if watchers:
            try:
                drafted: Drafted | None = self._engine.draft(writes)
            except RpcError:
                drafted = None  # it will be refused, so it changes nothing
            if drafted is not None:
                found |= {watcher for watcher in watchers if _disturbs(drafted, watcher.queries)}
        found.discard(party)
        return found

    def _writers_ahead(self, party: Transaction, locations: frozenset[Location]) -> set[Transaction]:
        found: set[Transaction] = set()
        for waiter in self._waiting:
            if waiter.party is party:
                break
            if waiter.writes & locations:
                found.add(waiter.party)
        return found

    # --- waiting -----------------------------------------------------------------------------------------------------

    async def _wait(
        self,
        party: Transaction,
        writes: frozenset[Location],
        reads: frozenset[Location],
        blockers: Callable[[], set[Transaction]],
    ) -> None:
        """Returns when nobody is in the way, without giving up the turn in between; raises ABORTED otherwise."""
        self._expire()
        if not blockers():
            return
        loop = asyncio.get_running_loop()
        waiter = _Waiter(party, writes, reads, blockers, loop.create_future())
        self._waiting.append(waiter)
        deadline = loop.time() + LOCK_WAIT_SECONDS
        try:
            while ahead := blockers():
                self._break_circle(party)
                if party.ended:
                    raise aborted("The transaction was aborted to break a deadlock. Please retry.")
                if loop.time() >= deadline:
                    raise aborted("Transaction lock timeout.")
                until = min([deadline, *(self._expiry(holder) for holder in ahead if holder.id)])
                waiter.woken = loop.create_future()
                await _either(waiter.woken, until - loop.time())
                if party.ended and party.id:
                    raise aborted("The transaction was aborted to break a deadlock. Please retry.")
                self._expire()
        except BaseException:
            if party.id:
                self._end(party)
            raise
        finally:
            self._waiting.remove(waiter)
            self._wake()

    def _break_circle(self, start: Transaction) -> None:
        """If waiting closes a circle, ends its youngest transaction."""
        circle = self._circle(start)
        if circle:
            self._end(max(circle, key=lambda transaction: transaction.age))

    def _circle(self, start: Transaction) -> list[Transaction]:
        waits = {waiter.party: waiter.blockers for waiter in self._waiting}
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

    def _wake(self) -> None:
        for waiter in self._waiting:
            if not waiter.woken.done():
                waiter.woken.set_result(None)

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()


async def _either(future: Awaitable[None], seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await future
    except TimeoutError:
        return


def _disturbs(drafted: Drafted, queries: Sequence[Query]) -> bool:
    """Whether a commit changes what a query returned: a document enters, leaves, or changes within."""
    for location, draft in drafted.drafts.items():
        for query in queries:
            for state in (draft.stored, draft.current):
                if state is not None and query.matches(location, state):
                    return True
    return False
