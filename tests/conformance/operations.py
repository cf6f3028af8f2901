"""Operations as data, so that the same ones run on two Firestores and a failing run prints as something to read.

Nothing here knows a server. What depends on one is symbolic: a `Here` becomes a reference into the case's project, a
`Guard` becomes a precondition with an update time which that server answered earlier, `at` is a read in the past at
the time of one of that server's own commits, and a `Where` becomes one of the case's databases.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from tests.conformance.wire import Plain, Stamp


@dataclass(frozen=True)
class Here:
    """A reference to a document of the case's own database."""

    path: str


class Where(Enum):
    """One of the databases of a case."""

    HERE = "here"
    OTHER_DATABASE = "other database"  # a named database of the same project
    OTHER_PROJECT = "other project"

    def __repr__(self) -> str:
        return f"Where.{self.name}"


class Guard(Enum):
    """A write's precondition."""

    NONE = "none"
    EXISTS = "exists"
    ABSENT = "absent"
    LATEST = "latest"  # the update time that the server last answered for this document
    FIRST = "first"  # the first that it answered
    LONG_AGO = "long ago"
    AHEAD = "ahead"

    def __repr__(self) -> str:
        return f"Guard.{self.name}"


@dataclass(frozen=True)
class Change:
    """A field transform."""

    kind: str
    """increment, maximum, minimum, append, remove, server_time, or none"""
    path: str
    operand: Plain = None


@dataclass(frozen=True)
class Put:
    path: str
    data: dict[str, Plain]
    mask: tuple[str, ...] | None = None
    changes: tuple[Change, ...] = ()
    guard: Guard = Guard.NONE


@dataclass(frozen=True)
class Remove:
    path: str
    guard: Guard = Guard.NONE


@dataclass(frozen=True)
class Verify:
    """Checks its precondition and writes nothing: sent for what a transaction of the web SDK read and did not write."""

    path: str
    guard: Guard


Written = Put | Remove | Verify


@dataclass(frozen=True)
class Commit:
    writes: tuple[Written, ...]
    over_rest: bool = False


@dataclass(frozen=True)
class BatchWrite:
    writes: tuple[Written, ...]


@dataclass(frozen=True)
class Field:
    path: str
    operator: str
    operand: Plain = None


@dataclass(frozen=True)
class Every:
    filters: tuple[Any, ...]


@dataclass(frozen=True)
class Either:
    filters: tuple[Any, ...]


Condition = Field | Every | Either


@dataclass(frozen=True)
class Cut:
    """A cursor."""

    values: tuple[Plain, ...]
    before: bool


@dataclass(frozen=True)
class Nearest:
    """A vector search among what a query finds."""

    path: str
    vector: Plain
    measure: int
    limit: int | None
    threshold: float | None = None
    result: str = ""
    """The field that shows the distance; empty: none."""


@dataclass(frozen=True)
class Query:
    collection: str
    group: bool = False
    parent: str = ""
    condition: Condition | None = None
    order: tuple[str, ...] = ()
    start: Cut | None = None
    end: Cut | None = None
    limit: int | None = None
    offset: int | None = None
    select: tuple[str, ...] | None = None
    at: int | None = None
    nearest: Nearest | None = None


@dataclass(frozen=True)
class Aggregate:
    query: Query
    kinds: tuple[tuple[str, str], ...]
    """(count, sum or avg; the field)"""


@dataclass(frozen=True)
class Get:
    path: str
    mask: tuple[str, ...] | None = None
    at: int | None = None


@dataclass(frozen=True)
class BatchGet:
    paths: tuple[str, ...]
    mask: tuple[str, ...] | None = None
    at: int | None = None


@dataclass(frozen=True)
class ListDocuments:
    collection: str
    parent: str = ""
    page_size: int = 0
    show_missing: bool = False
    mask: tuple[str, ...] | None = None
    order: str = ""
    at: int | None = None


@dataclass(frozen=True)
class ListCollections:
    parent: str = ""
    page_size: int = 0
    at: int | None = None


Read = Query | Aggregate | Get | BatchGet | ListDocuments | ListCollections


@dataclass(frozen=True)
class Reads:
    """Asked at the same time, as none of them can disturb another."""

    reads: tuple[Read, ...]


@dataclass(frozen=True)
class Transaction:
    """Begun, read in, committed."""

    reads: tuple[Read, ...]
    writes: tuple[Written, ...]


@dataclass(frozen=True)
class Snapshot:
    """A read-only transaction, of now or in the past. Before it reads, `beside` is committed, then `clears` cleared."""

    at: int | None
    beside: tuple[Written, ...]
    reads: tuple[Read, ...]
    clears: Where | None = None


@dataclass(frozen=True)
class Clear:
    """Deletes all documents of a database by the emulators' own call for it."""

    where: Where


@dataclass(frozen=True)
class Elsewhere:
    """A step in another database than the case's own."""

    where: Where
    step: Commit | Reads


Step = Commit | BatchWrite | Transaction | Snapshot | Reads | Clear | Elsewhere
Case = tuple[Step, ...]


@dataclass(frozen=True)
class Watch:
    """A query that is listened to while commits are made."""

    query: Query
    commits: tuple[Commit, ...]


LONG_AGO = Stamp(5)
AHEAD = Stamp(2**33)
