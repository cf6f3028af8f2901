"""One transaction: what it has read, and for how long it lives."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from firestore_emulator.documents.names import Location
from firestore_emulator.documents.protos import Proto, TransactionOptions
from firestore_emulator.queries.query import Query
from firestore_emulator.rpc.errors import invalid_argument

IDLE_SECONDS = 60.0
TOTAL_SECONDS = 270.0


class Concurrency(Enum):
    """How a read-write transaction is kept apart from the others."""

    PESSIMISTIC = "pessimistic"
    """What it has read is locked, and who wants to write it waits."""
    OPTIMISTIC = "optimistic"
    """It reads one moment without a lock, and its commit is aborted if what it has read is not as it was."""


_MODES = TransactionOptions.ConcurrencyMode


@dataclass(eq=False, slots=True)
class Transaction:
    """Also stands for a plain commit while it waits: it then holds nothing."""

    id: bytes
    database: str
    age: int
    """Smaller is older; kept by retries."""
    read_only: bool = False
    snapshot_micros: int | None = None
    """The moment that read-only and optimistic transactions read; None: each read sees what is committed then."""
    started: float = 0.0
    used: float = 0.0
    documents: set[Location] = field(default_factory=set)
    """What it has read, by name; of a pessimistic transaction, locked."""
    queries: list[Query] = field(default_factory=list)
    """What it has asked for; of a pessimistic transaction, locked."""
    ended: bool = False

    @property
    def locks(self) -> bool:
        return self.snapshot_micros is None

    @property
    def expiry(self) -> float:
        return min(self.used + IDLE_SECONDS, self.started + TOTAL_SECONDS)


def concurrency_of(options: Proto | None, default: Concurrency) -> Concurrency:
    """The mode that a read-write transaction asks for; `default` is the database's own."""
    mode = 0 if options is None else options.read_write.concurrency_mode
    if mode == _MODES.Value("CONCURRENCY_MODE_UNSPECIFIED"):
        return default
    if mode == _MODES.Value("OPTIMISTIC"):
        return Concurrency.OPTIMISTIC
    if mode == _MODES.Value("PESSIMISTIC"):
        return Concurrency.PESSIMISTIC
    raise invalid_argument(f"Unknown concurrency mode {mode}.")
