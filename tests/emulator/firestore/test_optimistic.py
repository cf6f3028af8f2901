"""Optimistic transactions: they hold no other back, see one moment, and are aborted if what they read has changed."""

from __future__ import annotations

import asyncio

from firestore_emulator.transactions.transaction import Concurrency
from tests.conformance.backends import outcome, refused
from tests.conformance.wire import REQUESTS, Proto, TransactionOptions, delete, fields_of, query, set_, where
from tests.emulator.firestore.world import World, in_virtual_time

OPTIMISTIC = {"concurrency": Concurrency.OPTIMISTIC}


def write(world: World, path: str, **fields: int) -> Proto:
    return set_(world.backend.name(path), fields)


def asking_for(mode: str, retry: bytes = b"") -> Proto:
    options = TransactionOptions()
    options.read_write.concurrency_mode = TransactionOptions.ConcurrencyMode.Value(mode)
    options.read_write.retry_transaction = retry
    return options


@in_virtual_time(**OPTIMISTIC)
async def test_a_read_holds_no_other_back_and_the_commit_that_comes_too_late_is_aborted(world: World) -> None:
    backend = world.backend
    await backend.seed({"c/1": {"n": 0}})
    late = await backend.begin()
    await backend.get("c/1", transaction=late)
    await backend.commit(write(world, "c/1", n=1))
    assert world.now() == 0, "no call waited"
    with refused("ABORTED"):
        await backend.commit(write(world, "c/2", n=1), transaction=late)
    assert not await backend.exists("c/2")
    with refused("INVALID_ARGUMENT"):
        await backend.get("c/1", transaction=late)


@in_virtual_time(**OPTIMISTIC)
async def test_what_was_not_read_may_change(world: World) -> None:
    backend = world.backend
    await backend.seed({"c/1": {"n": 0}, "c/2": {"n": 0}})
    transaction = await backend.begin()
    await backend.get("c/1", transaction=transaction)
    await backend.commit(write(world, "c/2", n=1))
    await backend.commit(write(world, "c/1", n=5), write(world, "c/2", n=5), transaction=transaction)
    assert await backend.fields("c/2") == {"n": 5}


@in_virtual_time(**OPTIMISTIC)
async def test_a_write_that_changed_nothing_aborts_no_transaction(world: World) -> None:
    backend = world.backend
    await backend.seed({"c/1": {"n": 0}})
    transaction = await backend.begin()
    await backend.get("c/1", transaction=transaction)
    await backend.commit(write(world, "c/1", n=0))
    await backend.commit(write(world, "c/1", n=1), transaction=transaction)


@in_virtual_time(**OPTIMISTIC)
async def test_it_reads_one_moment(world: World) -> None:
    backend = world.backend
    await backend.seed({"c/1": {"n": 0}, "c/2": {"n": 0}})
    transaction = await backend.begin()
    assert fields_of(await backend.get("c/1", transaction=transaction)) == {"n": 0}
    await backend.commit(write(world, "c/1", n=1), write(world, "c/2", n=1), write(world, "c/3", n=1))
    assert fields_of(await backend.get("c/2", transaction=transaction)) == {"n": 0}
    assert await backend.paths(query("c"), transaction=transaction) == ["c/1", "c/2"]
    await backend.commit(transaction=transaction)  # it writes nothing, so the moment it read is the moment it was


@in_virtual_time(**OPTIMISTIC)
async def test_a_query_is_disturbed_by_what_enters_leaves_or_changes_and_by_nothing_else(world: World) -> None:
    backend = world.backend
    asked = query("c", where("n", "==", 1))
    changes: dict[str, tuple[list[Proto], str]] = {
        "enters": ([write(world, "c/2", n=1)], "ABORTED"),
        "leaves": ([write(world, "c/1", n=2)], "ABORTED"),
        "is deleted": ([delete(backend.name("c/1"))], "ABORTED"),
        "changes": ([write(world, "c/1", n=1, m=1)], "ABORTED"),
        "stays outside": ([write(world, "c/3", n=3), write(world, "d/1", n=1)], "OK"),
    }
    for what, (writes, expected) in changes.items():
        await backend.commit(*(delete(backend.name(path)) for path in ("c/1", "c/2", "c/3", "d/1")))
        await backend.seed({"c/1": {"n": 1}})
        transaction = await backend.begin()
        assert await backend.paths(asked, transaction=transaction) == ["c/1"]
        await backend.commit(*writes)
        answer = await outcome(backend.commit(write(world, "e/1", n=1), transaction=transaction))
        assert (answer if isinstance(answer, str) else "OK") == expected, what


@in_virtual_time(**OPTIMISTIC)
async def test_a_missing_document_that_was_read_and_made_by_another_aborts(world: World) -> None:
    backend = world.backend
    transaction = await backend.begin()
    with refused("NOT_FOUND"):
        await backend.get("c/1", transaction=transaction)
    await backend.commit(write(world, "c/1", n=1))
    with refused("ABORTED"):
        await backend.commit(write(world, "c/1", n=2), transaction=transaction)


@in_virtual_time(**OPTIMISTIC)
async def test_a_database_that_was_cleared_aborts(world: World) -> None:
    backend = world.backend
    await backend.seed({"c/1": {"n": 0}})
    transaction = await backend.begin()
    await backend.get("c/1", transaction=transaction)
    world.emulator.engine.clear(backend.database)
    with refused("ABORTED"):
        await backend.commit(write(world, "c/1", n=2), transaction=transaction)


@in_virtual_time()
async def test_a_transaction_may_ask_for_it_where_the_database_is_pessimistic(world: World) -> None:
    backend = world.backend
    await backend.seed({"c/1": {"n": 0}})
    optimistic = await backend.begin(options=asking_for("OPTIMISTIC"))
    await backend.get("c/1", transaction=optimistic)
    await backend.commit(write(world, "c/1", n=1))
    with refused("ABORTED"):
        await backend.commit(write(world, "c/1", n=2), transaction=optimistic)
    assert world.now() == 0


@in_virtual_time(**OPTIMISTIC)
async def test_a_transaction_may_ask_for_locks_where_the_database_is_optimistic(world: World) -> None:
    backend = world.backend
    await backend.seed({"c/1": {"n": 0}})
    pessimistic = await backend.begin(options=asking_for("PESSIMISTIC"))
    await backend.get("c/1", transaction=pessimistic)
    optimistic = await backend.begin()
    await backend.get("c/1", transaction=optimistic)
    waiting = world.start("optimistic", backend.commit(write(world, "c/1", n=2), transaction=optimistic))
    await asyncio.sleep(1)
    await backend.commit(write(world, "c/1", n=1), transaction=pessimistic)
    await waiting
    assert world.log == ["optimistic ABORTED at 1"], "no commit passes a lock, and what it had read is gone then"
    assert await backend.fields("c/1") == {"n": 1}


@in_virtual_time()
async def test_a_mode_that_does_not_exist_is_refused(world: World) -> None:
    request = REQUESTS["BeginTransaction"](database=world.backend.database)
    request.options.read_write.concurrency_mode = 7
    with refused("INVALID_ARGUMENT"):
        await world.backend.call("BeginTransaction", request)


@in_virtual_time(**OPTIMISTIC)
async def test_it_has_ended_after_sixty_idle_seconds_and_after_270_in_all(world: World) -> None:
    backend = world.backend
    await backend.seed({"c/1": {"n": 0}})
    idle, busy = await backend.begin(), await backend.begin()
    for _ in range(5):
        await asyncio.sleep(50)
        await backend.get("c/1", transaction=busy)
    with refused("INVALID_ARGUMENT"):
        await backend.get("c/1", transaction=idle)
    await asyncio.sleep(21)
    with refused("INVALID_ARGUMENT"):
        await backend.commit(write(world, "c/1", n=1), transaction=busy)


@in_virtual_time(**OPTIMISTIC)
async def test_of_ten_read_modify_writes_at_once_none_is_lost(world: World) -> None:
    backend = world.backend
    await backend.seed({"c/1": {"n": 0}})

    async def add_one() -> None:
        for _ in range(10):  # in each round one of those that are left is through
            transaction = await backend.begin()
            found = fields_of(await backend.get("c/1", transaction=transaction))
            answer = await outcome(backend.commit(write(world, "c/1", n=found["n"] + 1), transaction=transaction))
            if answer != "ABORTED":
                return
        raise AssertionError("aborted ten times")

    await asyncio.gather(*(add_one() for _ in range(10)))
    assert await backend.fields("c/1") == {"n": 10}
