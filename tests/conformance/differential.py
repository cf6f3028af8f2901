"""One random case on Google's emulator and on a fresh one of ours, every answer compared."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from firestore_emulator.emulator import FirestoreEmulator
from firestore_emulator.rpc.inprocess import InProcessChannel
from tests.conformance.backends import NAMED, Backend, Place
from tests.conformance.http_side import HttpSide
from tests.conformance.known_differences import explained
from tests.conformance.operations import Case
from tests.conformance.runner import Runner


@dataclass(frozen=True)
class Disagreement:
    """Two answers that differ for no known reason."""

    step: int
    operation: Any
    googles: str
    ours: str

    def __str__(self) -> str:
        return f"step {self.step}: {self.operation}\n\nGoogle's: {self.googles}\n\nours:     {self.ours}"


@dataclass
class Comparison:
    answers: int = 0
    explained: Counter[str] = field(default_factory=Counter)
    """Differences that the table of known ones explains, by the reason."""
    disagreement: Disagreement | None = None


@asynccontextmanager
async def ours() -> AsyncIterator[Runner]:
    """A fresh engine: the indexes that one makes for a case's queries would only slow the next case."""
    emulator = FirestoreEmulator(databases=("(default)", NAMED))
    await emulator.start()
    http = HttpSide.of(emulator)
    try:
        yield Runner(Backend(Place("inprocess", InProcessChannel([emulator.service]), None), _project()), http)
    finally:
        await http.close()
        await emulator.stop()


async def compare(case: Case, official: Place, http: HttpSide) -> Comparison:
    """`official` is Google's emulator, `http` its HTTP side. The comparison ends with the first disagreement."""
    comparison = Comparison()
    async with ours() as mine:
        googles = Runner(Backend(official, _project()), http)
        for number, step in enumerate(case):
            expected, answered = await asyncio.gather(googles.run(step), mine.run(step))
            comparison.answers += len(expected)
            for theirs, own in zip(expected, answered, strict=True):
                if theirs == own:
                    continue
                operation = theirs.operation
                reason = explained(operation, theirs.text, own.text)
                if reason is None:
                    comparison.disagreement = Disagreement(number, operation, theirs.text, own.text)
                    return comparison
                comparison.explained[reason] += 1
                if theirs.is_write:
                    return comparison  # the two databases may hold different documents from here on
    return comparison


def _project() -> str:
    return f"p-{secrets.token_hex(6)}"
