"""Who may read and write when: transactions as production's, pessimistic or optimistic.

Theory of operation. A read in a pessimistic transaction takes a shared lock on what it read: each document, and for a
query everything the query could match, so that nothing can appear in or leave its result. The lock is held until the
transaction ends. A commit, in a transaction or not, needs every document it writes free of others' locks. A transaction
that commits takes the locks of younger ones away: they are aborted, and learn of it with their next call. For the locks
of older ones a commit waits. A plain commit is younger than every open transaction. Waiting is first come, first
served: a reader or writer does not overtake a writer that waits for the same documents, unless that writer waits for
its own locks.

A wait ends in one of four ways: the holders end; they expire (60 s idle, 270 s in all); the wait itself would close a
circle of waiters, and then the youngest transaction in the circle is aborted at once; or the time for waiting has
passed (2 s, as in Google's emulator) and the waiter is aborted. A retried transaction keeps the age of its first try,
so after some retries it is the oldest and wins.

An optimistic transaction takes no lock: all its reads are of the moment at which it began. Its commit waits for others'
locks as any write does, and is aborted if something that it read has changed since that moment. Both kinds may run side
by side: a pessimistic one is never disturbed by an optimistic one, since no commit passes its locks.

Read-only transactions and reads without a transaction take no locks and never wait: they read a moment in time.

A crash of the process ends all transactions; none of them has written anything.

With a `CommitDelay`, server timestamps are taken when a commit arrives, and the commit is made when its delay has
passed, as in production. Without one, both happen at the same moment.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterable, Sequence
from itertools import count

from firestore_emulator.documents.names import Location
from firestore_emulator.documents.protos import Proto
from firestore_emulator.documents.writes import CheckedWrite
from firestore_emulator.queries.query import Query
from firestore_emulator.rpc.errors import RpcError, aborted, invalid_argument
from firestore_emulator.storage.engine import Committed, Engine
from firestore_emulator.transactions.commit_delay import CommitDelay
from firestore_emulator.transactions.locks import Locks
from firestore_emulator.transactions.optimistic import still_holds
from firestore_emulator.transactions.transaction import Concurrency, Transaction, concurrency_of
from firestore_emulator.transactions.waiting import Line, Waiter

LOCK_WAIT_SECONDS = 2.0
MOST_REMEMBERED = 10_000
"""Transactions that have ended, and about which something is still known."""

Check = Callable[[Sequence[CheckedWrite], int], None]
"""Raises if the writes may not be made at this time, in microseconds."""


class Transactions:
    def __init__(
        self,
        engine: Engine,
        concurrency: Concurrency = Concurrency.PESSIMISTIC,
        commit_delay: CommitDelay | None = None,
    ) -> None:
        self._engine = engine
        self._concurrency = concurrency
        self._commit_delay = commit_delay
        self._open: dict[bytes, Transaction] = {}
        self._none_expires_before = math.inf
        """A transaction's expiry only moves away, so that most looks end here."""
        self._ages: dict[bytes, int] = {}
        self._locks = Locks(engine)
        self._overruled: dict[bytes, None] = {}
        """Those that an older transaction aborted, and that may not know it yet."""
        self._line = Line()
        self._numbers = count(1)

    @property
    def is_idle(self) -> bool:
        """Whether a commit can be made at once, without a look at others."""
        return not self._open and not self._line and self._commit_delay is None

    # --- life --------------------------------------------------------------------------------------------------------

    def begin(self, database: str, options: Proto | None) -> Transaction:
        now = _now()
        number = next(self._numbers)
        transaction = Transaction(id=b"transaction-%d" % number, database=database, age=number, started=now, used=now)
        if options is not None and options.WhichOneof("mode") == "read_only":
            transaction.read_only = True
            transaction.snapshot_micros = (
                self._engine.check_read_time(options.read_only.read_time, database)
                if options.read_only.HasField("read_time")
                else self._engine.moment()
            )
        else:
            if options is not None and options.read_write.retry_transaction:
                transaction.age = self._age_of(options.read_write.retry_transaction, number)
            if concurrency_of(options, self._concurrency) is Concurrency.OPTIMISTIC:
                transaction.snapshot_micros = self._engine.moment()
        if transaction.snapshot_micros is not None:
            self._engine.history.pin(database, transaction.snapshot_micros)
        self._open[transaction.id] = transaction
        self._none_expires_before = min(self._none_expires_before, transaction.expiry)
        self._ages[transaction.id] = transaction.age
        if len(self._ages) > MOST_REMEMBERED:
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
        if transaction is None and transaction_id in self._overruled:
            raise _overruled()
        if transaction is None or transaction.database != database:
            if not transaction_id.startswith(b"transaction-"):
                raise invalid_argument("Invalid transaction.")
            raise invalid_argument("Transaction is invalid or closed.")
        transaction.used = _now()
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
        if transaction.snapshot_micros is not None:
            self._engine.history.unpin(transaction.database, transaction.snapshot_micros)
        else:
            self._locks.release(transaction)
        self._line.wake()

    def _expire(self) -> None:
        now = _now()
        if now < self._none_expires_before:
            return
        for transaction in [one for one in self._open.values() if now >= one.expiry]:
            self._end(transaction)
        self._none_expires_before = min((one.expiry for one in self._open.values()), default=math.inf)

    # --- reads in a transaction --------------------------------------------------------------------------------------

    async def reads_documents(self, transaction: Transaction, locations: Iterable[Location]) -> None:
        """Before the read. Waits only behind writers that came earlier."""
        if transaction.read_only:
            return
        wanted = frozenset(locations) - transaction.documents
        if transaction.locks:
            await self._wait(transaction, (), lambda: self._writers_of_documents(transaction, wanted))
            self._locks.take_documents(transaction, wanted)
        transaction.documents |= wanted

    async def reads_query(self, transaction: Transaction, query: Query) -> None:
        """Before the read, as above."""
        if transaction.read_only:
            return
        if transaction.locks:
            await self._wait(transaction, (), lambda: self._writers_of_query(transaction, query))
            self._locks.take_query(transaction)
        transaction.queries.append(query)

    def _writers_of_documents(self, reader: Transaction, wanted: frozenset[Location]) -> set[Transaction]:
        return {waiter.party for waiter in self._ahead_of(reader) if waiter.will_write(wanted)}

    def _writers_of_query(self, reader: Transaction, query: Query) -> set[Transaction]:
        ahead = self._ahead_of(reader)
        return {waiter.party for waiter in ahead if self._locks.disturb(waiter.writes, [query])}

    def _ahead_of(self, party: Transaction) -> Iterable[Waiter]:
        """The writers that came earlier, without those who wait for this one's locks: that would be a circle."""
        return (
            waiter
            for waiter in self._line.writers_ahead(party)
            if party not in self._locks.holders(waiter.party, waiter.writes)
        )

    # --- commits -----------------------------------------------------------------------------------------------------

    async def commit(
        self, transaction: Transaction | None, writes: Sequence[CheckedWrite], check: Check | None = None
    ) -> Committed | None:
        """None: there was nothing to write, and no time at which it was written.

        `check` may refuse the writes when nothing stands in their way any more, in the step that stores them.
        """
        if transaction is not None and transaction.read_only and writes:
            raise invalid_argument("Cannot modify entities in a read-only transaction.")
        if not writes:
            if transaction is not None:
                self._end(transaction)
            return None
        arrived: int | None = None
        if self._commit_delay is not None:
            arrived = self._engine.now_micros()
            await asyncio.sleep(self._commit_delay())
        if not self._open and not self._line:
            return self._stored(writes, check, arrived)  # no transaction to wait for: the common case
        party = transaction or Transaction(id=b"", database="", age=next(self._numbers))
        try:
            self._overrule_younger(party, writes)
            await self._wait(party, writes, lambda: self._in_the_way(party, writes))
            self._check_reads(party)
            return self._stored(writes, check, arrived)
        finally:
            self._end(party)

    def _stored(self, writes: Sequence[CheckedWrite], check: Check | None, arrived: int | None) -> Committed:
        micros = self._engine.now_micros() if arrived is None else arrived
        if check is not None:
            check(writes, micros)
        return self._engine.store(self._engine.draft(writes, micros))

    def _check_reads(self, party: Transaction) -> None:
        at = party.snapshot_micros
        if at is not None and not still_holds(self._engine, party.database, at, party.documents, party.queries):
            raise aborted("Something that the transaction read has changed. Please retry.")

    def _in_the_way(self, party: Transaction, writes: Sequence[CheckedWrite]) -> set[Transaction]:
        locations = frozenset(write.location for write in writes)
        ahead = {waiter.party for waiter in self._ahead_of(party) if waiter.will_write(locations)}
        return ahead | self._locks.holders(party, writes)

    def _overrule_younger(self, party: Transaction, writes: Sequence[CheckedWrite]) -> None:
        """Aborts younger transactions that have read what an older one writes, as production does."""
        if not party.id or len(self._open) < 2:
            return
        for holder in self._locks.holders(party, writes):
            if holder.age > party.age:
                self._overruled[holder.id] = None
                if len(self._overruled) > MOST_REMEMBERED:
                    del self._overruled[next(iter(self._overruled))]
                self._end(holder)

    # --- waiting -----------------------------------------------------------------------------------------------------

    async def _wait(
        self, party: Transaction, writes: Sequence[CheckedWrite], blockers: Callable[[], set[Transaction]]
    ) -> None:
        """Return when nothing is in the way, without giving up the turn in between; raise ABORTED otherwise."""
        self._expire()
        if not blockers():
            return
        loop = asyncio.get_running_loop()
        waiter = Waiter(party, writes, blockers, loop.create_future())
        self._line.join(waiter)
        deadline = loop.time() + LOCK_WAIT_SECONDS
        try:
            while ahead := blockers():
                self._break_circle(party)
                if party.ended:
                    raise _deadlock()
                if loop.time() >= deadline:
                    raise aborted("Transaction lock timeout.")
                until = min([deadline, *(holder.expiry for holder in ahead if holder.id)])
                waiter.woken = loop.create_future()
                await _either(waiter.woken, until - loop.time())
                if party.ended and party.id:
                    raise _overruled() if party.id in self._overruled else _deadlock()
                self._expire()
        except BaseException:
            if party.id:
                self._end(party)
            raise
        finally:
            self._line.leave(waiter)

    def _break_circle(self, start: Transaction) -> None:
        """If waiting closes a circle, ends its youngest transaction."""
        circle = self._line.circle(start)
        if circle:
            self._end(max(circle, key=lambda transaction: transaction.age))


def _now() -> float:
    return asyncio.get_running_loop().time()


def _overruled() -> RpcError:
    return aborted("An older transaction has written what this one has read. Please retry.")


def _deadlock() -> RpcError:
    return aborted("The transaction was aborted to break a deadlock. Please retry.")


async def _either(future: Awaitable[None], seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await future
    except TimeoutError:
        return
