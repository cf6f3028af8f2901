"""Clients that write while the server may die at any moment, and that remember what it promised them.

Each client knows three things of its documents: what was acknowledged, what was under way when the connection broke,
and so which states the restarted server may show. What was under way may be there or not, but only as a whole.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

from tests.conformance.backends import Backend, Refused
from tests.conformance.wire import Plain, Proto, Stamp, all_of, delete, query, set_, stamp, where
from tests.patience import PATIENCE_SECONDS

Data = Mapping[str, Plain]
State = Data | None
"""None: there is no such document."""

QUERIES: dict[str, Proto] = {
    "by an equal field": query("work", where("client", "==", 1)),
    "by an order": query("work", order=["n"]),
    "by an order, descending": query("work", order=["-n"], limit=40),
    "as the outbox asks": query(
        "work", all_of(where("client", "==", 2), where("kind", "==", "single"), where("n", "<=", 10**6)), order=["n"]
    ),
    "by an array": query("work", where("tags", "array-contains", "even")),
    "over a group": query("work", where("kind", "==", "batch"), group=True),
    "by a range": query("work", where("n", ">=", 10), limit=100),
}
"""Asked all the time, so that the server keeps an index for each while it is killed."""


class Gone(Exception):
    """The server does not answer any more."""


T = TypeVar("T")


async def reaching(work: Awaitable[T]) -> T:
    """The answer; a refusal is raised as it is, and a broken connection as `Gone`."""
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await work
    except Refused as refusal:
        if refusal.code == "UNAVAILABLE":
            raise Gone from None
        raise


async def found(backend: Backend, path: str, transaction: bytes = b"") -> Proto | None:
    options = {"transaction": transaction} if transaction else {}
    try:
        return await reaching(backend.get(path, **options))
    except Refused as refusal:
        if refusal.code == "NOT_FOUND":
            return None
        raise


@dataclass
class Tally:
    """Over all clients and rounds."""

    acknowledged: int = 0
    """Commits."""
    conflicts: int = 0
    queries: int = 0
    in_doubt: int = 0
    latest: Stamp = Stamp(0)  # noqa: RUF009 - a named tuple of two numbers
    progress: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass
class Client:
    number: int
    rng: Random
    tally: Tally
    acknowledged: dict[str, State] = field(default_factory=dict)
    under_way: dict[str, State] = field(default_factory=dict)
    added: set[str] = field(default_factory=set)
    """Ledger entries that were acknowledged; each raised a counter by one in the same commit."""
    serial: int = 0

    async def work(self, backend: Backend) -> None:
        """At most 20,000 steps: the server is killed long before."""
        try:
            for _ in range(20_000):
                step = self.rng.choice(
                    [self._single, self._single, self._batch, self._batch, self._transact, self._swap]
                )
                await step(backend)
                if self.rng.random() < 0.1:
                    await self._ask(backend)
        except Gone:
            return

    # --- documents of one client alone

    def _document(self, kind: str) -> dict[str, Plain]:
        self.serial += 1
        tags = ["even" if self.serial % 2 == 0 else "odd", kind]
        return {"client": self.number, "kind": kind, "n": self.serial, "tags": tags}

    async def _single(self, backend: Backend) -> None:
        path = f"work/{self.number}-{self.rng.randrange(30)}"
        await self._commit_own(backend, {path: self._document("single")})

    async def _batch(self, backend: Backend) -> None:
        """Several documents at once: made, changed and deleted, some below others."""
        written: dict[str, State] = {}
        for _ in range(self.rng.randint(2, 12)):
            path = f"work/{self.number}-{self.rng.randrange(30)}"
            if self.rng.random() < 0.3:
                path += "/deep/below"
            written[path] = None if self.rng.random() < 0.25 else self._document("batch")
        await self._commit_own(backend, written)

    async def _commit_own(self, backend: Backend, states: dict[str, State]) -> None:
        self.under_way = states
        await self._commit(backend, *(write(backend, path, state) for path, state in states.items()))
        self.acknowledged |= states
        self.under_way = {}

    # --- documents that all clients fight for

    async def _transact(self, backend: Backend) -> None:
        """Read and add one, in a transaction."""
        transaction = await reaching(backend.begin())
        await self._contended(self._add_in(backend, transaction))

    async def _add_in(self, backend: Backend, transaction: bytes) -> None:
        document = await found(backend, "shared/counted", transaction)
        count = 0 if document is None else document.fields["n"].integer_value
        await self._add(backend, "counted", set_(backend.name("shared/counted"), {"n": count + 1}), transaction)

    async def _swap(self, backend: Backend) -> None:
        """Read, and write on condition that it has not changed since."""
        document = await found(backend, "shared/swapped")
        name = backend.name("shared/swapped")
        if document is None:
            raised = set_(name, {"n": 1}, exists=False)
        else:
            count = document.fields["n"].integer_value + 1
            raised = set_(name, {"n": count}, update_time=stamp(document.update_time))
        await self._contended(self._add(backend, "swapped", raised))

    async def _add(self, backend: Backend, ledger: str, counter: Proto, transaction: bytes = b"") -> None:
        self.serial += 1
        entry = f"{ledger}/{self.number}-{self.serial}"
        await self._commit(backend, counter, set_(backend.name(entry), {"by": self.number}), transaction=transaction)
        self.added.add(entry)

    async def _contended(self, work: Awaitable[None]) -> None:
        """Losing against another client is no error: nothing was written."""
        try:
            await work
        except Refused as refusal:
            if refusal.code not in ("ABORTED", "FAILED_PRECONDITION", "ALREADY_EXISTS"):
                raise
            self.tally.conflicts += 1

    # --- calls

    async def _commit(self, backend: Backend, *writes: Proto, transaction: bytes = b"") -> None:
        answer = await reaching(backend.commit(*writes, transaction=transaction))
        self.tally.latest = max(self.tally.latest, stamp(answer.commit_time))
        self.tally.acknowledged += 1
        self.tally.progress.set()

    async def _ask(self, backend: Backend) -> None:
        await reaching(backend.run(self.rng.choice([*QUERIES.values()])))
        self.tally.queries += 1

    # --- after the crash

    def settle(self, stored: Mapping[str, State]) -> None:
        """What was under way is there as a whole or not at all; then there is no more doubt about it."""
        if self.under_way:
            self.tally.in_doubt += 1
            arrived = {path: stored.get(path) == state for path, state in self.under_way.items()}
            before = {path: stored.get(path) == self.acknowledged.get(path) for path in self.under_way}
            assert all(arrived.values()) or all(before.values()), f"a part of a batch: {arrived}"
            if all(arrived.values()):
                self.acknowledged |= self.under_way
            self.under_way = {}
        for path, state in self.acknowledged.items():
            assert stored.get(path) == state, f"{path} is {stored.get(path)}, and {state} was acknowledged"


def write(backend: Backend, path: str, state: State) -> Proto:
    return delete(backend.name(path)) if state is None else set_(backend.name(path), state)
