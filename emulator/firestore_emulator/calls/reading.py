"""The moment that a call reads at, and what a transaction remembers of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from firestore_emulator.documents.names import Location
from firestore_emulator.documents.protos import Proto
from firestore_emulator.queries.query import Query
from firestore_emulator.storage.engine import Engine
from firestore_emulator.transactions.transaction import Transaction
from firestore_emulator.transactions.transactions import Transactions


@dataclass(frozen=True, slots=True)
class Reading:
    transaction: Transaction | None
    began: bool
    """The call itself began the transaction, and its first answer must say so."""
    at_micros: int | None
    """None: now."""


class Readings:
    def __init__(self, engine: Engine, transactions: Transactions) -> None:
        self._engine = engine
        self._transactions = transactions

    def of(self, request: Proto, database: str) -> Reading:
        match request.WhichOneof("consistency_selector"):
            case "transaction":
                transaction = self._transactions.find(request.transaction, database)
                return Reading(transaction, False, transaction.snapshot_micros)
            case "new_transaction":
                transaction = self._transactions.begin(database, request.new_transaction)
                return Reading(transaction, True, transaction.snapshot_micros)
            case "read_time":
                return Reading(None, False, self._engine.check_read_time(request.read_time, database))
        return Reading(None, False, None)

    async def documents(self, reading: Reading, locations: Iterable[Location]) -> None:
        """To be called before they are read: a transaction may have to wait for them."""
        if reading.transaction is not None:
            await self._transactions.reads_documents(reading.transaction, locations)

    async def query(self, reading: Reading, query: Query) -> None:
        """As above."""
        if reading.transaction is not None:
            await self._transactions.reads_query(reading.transaction, query)

    def micros(self, reading: Reading) -> int:
        """The time to answer with, right after the read."""
        return self._engine.moment() if reading.at_micros is None else reading.at_micros
