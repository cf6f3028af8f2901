"""Eight clients race over twenty documents, and one order of their transactions must explain all that they saw.

OUTBOX_SERIALIZABLE_RUNS says how often they do, in each mode. What they do follows from the number of the run; how
their calls meet does not.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from firestore_emulator.emulator import FirestoreEmulator
from firestore_emulator.rpc.server import Server
from firestore_emulator.transactions.transaction import Concurrency
from firestore_emulator.transactions.transactions import Transactions
from tests.conformance.backends import Place
from tests.emulator.firestore.racing import CLIENTS, Run, connection, race
from tests.emulator.firestore.serializability import Committed, Doc, NotSerializable, serial_order

RUNS = int(os.environ.get("OUTBOX_SERIALIZABLE_RUNS", "4"))
PESSIMISTIC, OPTIMISTIC = Concurrency.PESSIMISTIC, Concurrency.OPTIMISTIC


@asynccontextmanager
async def connections(concurrency: Concurrency) -> AsyncIterator[list[Place]]:
    """A server of ours, and a connection to it for each client."""
    emulator = FirestoreEmulator(concurrency=concurrency)
    await emulator.start()
    server = await Server.start(emulator.service, http=emulator.http_app, port=0)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(emulator.stop)
        stack.push_async_callback(server.stop)
        yield [await stack.enter_async_context(connection(server.address)) for _ in range(CLIENTS)]


@pytest.mark.timeout(600 + 60 * RUNS)
@pytest.mark.parametrize(
    ("database", "asked"),
    [(PESSIMISTIC, ()), (OPTIMISTIC, ()), (PESSIMISTIC, (PESSIMISTIC, OPTIMISTIC))],
    ids=["pessimistic", "optimistic", "side by side"],
)
async def test_an_order_explains_what_racing_clients_saw(
    database: Concurrency, asked: tuple[Concurrency, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    happened: Counter[str] = Counter()
    async with connections(database) as places:
        for seed in range(RUNS):
            run = Run(seed, asked)
            await race(places, run)
            assert _meetings(run.history) >= CLIENTS, "the clients ran one after the other, which proves nothing"
            happened += run.happened
    assert happened["ABORTED"] + happened["ALREADY_EXISTS"] > 0, "no client was in another's way"
    with capsys.disabled():
        if RUNS > 10:
            print(f"\n{RUNS} runs, all serializable: {dict(happened)}")


def _meetings(history: list[Committed]) -> int:
    """How many pairs of transactions were under way at the same time."""
    return sum(
        one.began < other.ended and other.began < one.ended
        for index, one in enumerate(history)
        for other in history[:index]
    )


async def test_without_locks_the_race_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    async def reads(*_: Any) -> None:
        return

    monkeypatch.setattr(Transactions, "reads_documents", reads)
    monkeypatch.setattr(Transactions, "reads_query", reads)

    async def races() -> None:
        async with connections(PESSIMISTIC) as places:
            for seed in range(20):
                await race(places, Run(seed))

    with pytest.raises(NotSerializable):
        await races()


# --- the checker itself

A, B = "c/a", "c/b"
OLD_A, OLD_B = Doc(1, 0), Doc(2, 0)
INITIAL = {A: OLD_A, B: OLD_B}


def transaction(
    name: str,
    began: float,
    ended: float,
    *,
    got: Mapping[str, Doc | None] | None = None,
    found: Mapping[int, Mapping[str, Doc]] | None = None,
    counted: Mapping[int, int] | None = None,
    wrote: Mapping[str, Doc | None] | None = None,
    at: int | None = None,
) -> Committed:
    return Committed(name, began, ended, got or {}, found or {}, counted or {}, wrote or {}, at)


LOST_UPDATE = [
    transaction("one", 0, 10, got={A: OLD_A}, wrote={A: Doc(3, 0)}, at=1),
    transaction("two", 0, 10, got={A: OLD_A}, wrote={A: Doc(4, 0)}, at=2),
]
WRITE_SKEW = [
    transaction("one", 0, 10, got={A: OLD_A, B: OLD_B}, wrote={A: None}, at=1),
    transaction("two", 0, 10, got={A: OLD_A, B: OLD_B}, wrote={B: None}, at=2),
]
STALE_READ = [
    transaction("writer", 0, 1, wrote={A: Doc(3, 0)}, at=1),
    transaction("reader", 2, 3, got={A: OLD_A}),
]
HALF_A_COMMIT = [
    transaction("writer", 0, 10, wrote={A: Doc(3, 0), B: Doc(4, 0)}, at=1),
    transaction("reader", 0, 10, got={A: Doc(3, 0), B: OLD_B}),
]
PHANTOM = [
    transaction("one", 0, 10, found={1: {}}, wrote={A: Doc(3, 1)}, at=1),
    transaction("two", 0, 10, counted={1: 0}, wrote={B: Doc(4, 1)}, at=2),
]
NEVER_WRITTEN = [transaction("reader", 0, 1, got={A: Doc(9, 0)})]
DISAGREEING_READERS = [
    transaction("writes a", 0, 10, wrote={A: Doc(3, 0)}, at=1),
    transaction("writes b", 0, 10, wrote={B: Doc(4, 0)}, at=2),
    transaction("sees a first", 0, 10, got={A: Doc(3, 0), B: OLD_B}),
    transaction("sees b first", 0, 10, got={A: OLD_A, B: Doc(4, 0)}),
]


@pytest.mark.parametrize(
    "history",
    [LOST_UPDATE, WRITE_SKEW, STALE_READ, HALF_A_COMMIT, PHANTOM, NEVER_WRITTEN, DISAGREEING_READERS],
    ids=["lost update", "write skew", "stale read", "half a commit", "phantom", "never written", "two orders at once"],
)
def test_the_checker_refuses_what_no_order_explains(history: list[Committed]) -> None:
    with pytest.raises(NotSerializable):
        serial_order(INITIAL, history)


def test_the_checker_finds_an_order_that_commit_times_do_not_tell() -> None:
    history = [
        transaction("second", 0, 10, got={A: Doc(3, 0)}, wrote={B: Doc(4, 0)}, at=1),
        transaction("first", 0, 10, got={B: OLD_B}, wrote={A: Doc(3, 0)}, at=2),
        transaction("third", 0, 10, got={A: Doc(3, 0), B: Doc(4, 0)}),
    ]
    assert serial_order(INITIAL, history) == ["first", "second", "third"]


def test_the_checker_lets_a_reader_that_overlaps_a_writer_see_either_state() -> None:
    writer = transaction("writer", 0, 10, got={A: OLD_A}, wrote={A: Doc(3, 1)}, at=1)
    before = transaction("before", 5, 6, got={A: OLD_A}, found={1: {}})
    after = transaction("after", 5, 6, got={A: Doc(3, 1)}, found={1: {A: Doc(3, 1)}}, counted={0: 1})
    assert serial_order(INITIAL, [writer, before, after]) == ["before", "writer", "after"]


def test_the_checker_keeps_to_real_time() -> None:
    early = transaction("early", 0, 1, wrote={A: Doc(3, 0)}, at=2)
    late = transaction("late", 2, 3, wrote={A: Doc(4, 0)}, at=1)
    assert serial_order(INITIAL, [late, early]) == ["early", "late"]
