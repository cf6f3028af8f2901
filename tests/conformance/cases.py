"""Random cases: steps put together from the operations that universe.py draws.

A case is drawn as one string of bytes: a few say how many of each thing, three more seed each operation. Drawing every
part of every operation instead is thirty times slower and gives mostly copies of earlier ones.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from hypothesis import strategies as st

from tests.conformance.operations import (
    BatchWrite,
    Case,
    Clear,
    Commit,
    Elsewhere,
    Read,
    Reads,
    Snapshot,
    Step,
    Transaction,
    Watch,
    Where,
    Written,
)
from tests.conformance.universe import (
    Source,
    draw_document,
    draw_palette,
    draw_query,
    draw_read,
    draw_read_in_transaction,
    draw_time,
    draw_write,
    rarely,
)
from tests.conformance.wire import Plain, Vector

MOST_DOCUMENTS, MOST_TURNS, MOST_WRITES, MOST_READS = 9, 4, 3, 4
TURNS = ("commit", "commit", "over rest", "batch write", "transaction", "snapshot", "snapshot", "clear", "none")
NEIGHBOURS = (Where.OTHER_DATABASE, Where.OTHER_PROJECT, Where.OTHER_PROJECT, None, None, None)
"""The other database of a case; None: it has none."""
SEED_BYTES = 3
MANY = 4
"""With more vectors than this in its palette a case is about vectors."""


class _Plan:
    """A case's bytes, taken one after the other: how many of each thing, and a seed for each."""

    LENGTH = (
        SEED_BYTES + 1 + MOST_DOCUMENTS * SEED_BYTES + 1 + MOST_TURNS * (3 + (MOST_WRITES + MOST_READS) * SEED_BYTES)
    )

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._next = 0
        self._palette: tuple[Plain, ...] = ()
        self._seeks_vectors = False
        [first] = self.sources(1, 1)
        self._palette = draw_palette(first)
        self._seeks_vectors = sum(isinstance(item, Vector) for item in self._palette) > MANY
        self.neighbour = first.choice(NEIGHBOURS)

    def number(self, least: int, most: int) -> int:
        self._next += 1
        return least + self._data[self._next - 1] % (most - least + 1)

    def sources(self, count: int, most: int) -> list[Source]:
        """A source of randomness for each of `count` things. The bytes of those not wanted are passed over, so that
        leaving one thing out of a case leaves all the others as they are."""
        made = []
        for start in range(self._next, self._next + count * SEED_BYTES, SEED_BYTES):
            source = Source(self._data[start : start + SEED_BYTES])
            source.palette = self._palette
            source.seeks_vectors = self._seeks_vectors
            made.append(source)
        self._next += most * SEED_BYTES
        return made


def build_case(data: bytes) -> Case:
    """Documents to begin with, as most queries would find nothing without, then turns of a write and some reads."""
    plan = _Plan(data)
    first = plan.sources(plan.number(4, MOST_DOCUMENTS), MOST_DOCUMENTS)
    steps: list[Step] = [Commit(tuple(map(draw_document, first)))]
    neighbour = plan.neighbour
    if neighbour is not None:
        # The same documents with other values, so that a mix-up shows.
        steps.append(Elsewhere(neighbour, Commit(tuple(draw_document(source) for source in first[:3]))))
    for _ in range(plan.number(1, MOST_TURNS)):
        kind = TURNS[plan.number(0, len(TURNS) - 1)]
        write_count, read_count = plan.number(0, MOST_WRITES), plan.number(1, MOST_READS)
        writes = tuple(map(draw_write, plan.sources(write_count, MOST_WRITES)))
        reads = plan.sources(read_count, MOST_READS)
        match kind:
            case "commit":
                steps.append(Commit(writes))
            case "over rest":
                steps.append(Commit(writes, over_rest=True))
            case "batch write":
                steps.append(BatchWrite(writes))
            case "transaction":
                steps.append(Transaction(tuple(map(draw_read_in_transaction, reads[:2])), writes))
            case "snapshot":
                steps.append(_snapshot(reads[0], neighbour, writes, tuple(map(draw_read, reads[:2]))))
            case "clear":
                other = neighbour or Where.OTHER_PROJECT
                steps.append(Clear(reads[0].choice((other, other, other, Where.HERE))))
            case _:
                pass
        steps.append(Reads(tuple(map(draw_read, reads))))
        if neighbour is not None and not rarely(reads[0], 3):
            steps.append(Elsewhere(neighbour, Commit(writes)))
            steps.append(Elsewhere(neighbour, Reads((draw_read(reads[0]),))))
    return tuple(steps)


def _snapshot(
    random: Source, neighbour: Where | None, beside: tuple[Written, ...], reads: tuple[Read, ...]
) -> Snapshot:
    clears = neighbour if neighbour is not None and not rarely(random, 4) else None
    if rarely(random, 6):
        clears = Where.HERE
    return Snapshot(draw_time(random, 2), beside, reads, clears)


def _build_watch(data: bytes) -> Watch:
    plan = _Plan(data)
    first = Commit(tuple(map(draw_document, plan.sources(plan.number(4, MOST_DOCUMENTS), MOST_DOCUMENTS))))
    [asked] = plan.sources(1, 1)
    commits = []
    for _ in range(plan.number(1, MOST_TURNS)):
        commits.append(Commit(tuple(map(draw_write, plan.sources(plan.number(1, MOST_WRITES), MOST_WRITES)))))
    query = draw_query(asked)
    # Google's emulator does not notice changes to a watched query that names no collection.
    return Watch(replace(query, collection=query.collection or "c", parent="", at=None), (first, *commits))


CASE_BYTES = _Plan.LENGTH
watches: st.SearchStrategy[Watch] = st.binary(min_size=CASE_BYTES, max_size=CASE_BYTES).map(_build_watch)


def case_of(seed: int) -> Case:
    """The case of a seed, so that a run can be told in two numbers and a case in one."""
    return build_case(Random(seed).randbytes(CASE_BYTES))
