"""Who waits for whom, who goes first, who is aborted, and when: transactions.py in virtual time."""

from __future__ import annotations

import asyncio

import pytest

from firestore_emulator.transactions import transactions
from tests.conformance.backends import Refused, refused
from tests.conformance.wire import REQUESTS, Proto, delete, fields_of, query, set_, stamp, where
from tests.emulator.firestore.world import World, in_virtual_time


def write(world: World, path: str, **fields: int) -> Proto:
    return set_(world.backend.name(path), fields)


def retry_of(world: World, transaction: bytes) -> Proto:
    request = REQUESTS["BeginTransaction"](database=world.backend.database)
    request.options.read_write.retry_transaction = transaction
    return request


@in_virtual_time()
async def test_a_plain_write_waits_for_a_reader_and_goes_on_in_the_moment_it_ends(world: World) -> None:
    backend = world.backend
    await backend.seed({"c/1": {"n": 0}})
    holder = await backend.begin()
    await backend.get("c/1", transaction=holder)
    waiting = world.start("write", backend.commit(write(world, "c/1", n=1)))
    await asyncio.sleep(1.5)
    assert world.log == []
    await backend.rollback(holder)
    await waiting
    assert world.log == ["write done at 1.5"]
    assert await backend.fields("c/1") == {"n": 1}


@in_virtual_time()
async def test_who_waits_for_a_lock_is_aborted_after_two_seconds_and_changes_nothing(world: World) -> None:
    backend = world.backend
    await backend.seed({"c/1": {"n": 0}})
    holder = await backend.begin()
    await backend.get("c/1", transaction=holder)
    await world.start("write", backend.commit(write(world, "c/1", n=1), write(world, "c/2", n=1)))
    assert world.log == ["write ABORTED at 2"]
    assert not await backend.exists("c/2")
    await backend.commit(write(world, "c/1", n=2), transaction=holder)
    assert await backend.fields("c/1") == {"n": 2}


@in_virtual_time()
async def test_a_missing_document_that_was_read_cannot_be_made_by_another(world: World) -> None:
    backend = world.backend
    holder = await backend.begin()
    with refused("NOT_FOUND"):
        await backend.get("c/1", transaction=holder)
    await world.start("create", backend.commit(write(world, "c/1", n=1)))
    assert world.log == ["create ABORTED at 2"]


@in_virtual_time()
async def test_writers_of_one_document_go_in_the_order_in_which_they_came(world: World) -> None:
    backend = world.backend
    holder = await backend.begin()
    with refused("NOT_FOUND"):
        await backend.get("c/1", transaction=holder)
    waiting = []
    for number in range(5):
        waiting.append(asyncio.create_task(backend.commit(write(world, "c/1", n=number))))
        await world.turn()
    await backend.rollback(holder)
    times = [stamp(answer.commit_time) for answer in await asyncio.gather(*waiting)]
    assert times == sorted(set(times))
    assert await backend.fields("c/1") == {"n": 4}


@in_virtual_time()
async def test_a_reader_does_not_overtake_a_writer_that_waits(world: World) -> None:
    backend = world.backend
    await backend.seed({"c/1": {"n": 0}})
    holder, late = await backend.begin(), await backend.begin()
    await backend.get("c/1", transaction=holder)
    writing = world.start("write", backend.commit(write(world, "c/1", n=1)))
    await world.turn()
    reading = world.start("read", backend.get("c/1", transaction=late))
    await asyncio.sleep(1)
    assert world.log == []
    await backend.rollback(holder)
    await asyncio.gather(writing, reading)
    assert world.log == ["write done at 1", "read done at 1"]


@in_virtual_time()
async def test_a_query_does_not_overtake_a_writer_that_waits_to_change_its_result(world: World) -> None:
    backend = world.backend
    await backend.seed({"c/1": {"n": 0}})
    asked = query("c", where("n", "==", 0))
    holder = await backend.begin()
    await backend.documents(asked, transaction=holder)
    writing = world.start("write", backend.commit(write(world, "c/2", n=0)))
    await world.turn()
    later = await backend.begin()
    reading = asyncio.create_task(backend.documents(asked, transaction=later))
    other = world.start("other query", backend.documents(query("c", where("n", "==", 1)), transaction=later))
    await asyncio.sleep(1)
    assert world.log == ["other query done at 0"]
    assert not reading.done()
    await backend.rollback(holder)
    assert len(await reading) == 2, "the writer went first"
    await asyncio.gather(writing, other)
    assert sorted(world.log) == ["other query done at 0", "write done at 1"]


@in_virtual_time()
async def test_a_reader_overtakes_a_writer_that_waits_for_the_reader_itself(world: World) -> None:
    backend = world.backend
    await backend.seed({"c/1": {"n": 0}, "c/2": {"n": 0}})
    holder = await backend.begin()
    await backend.get("c/1", transaction=holder)
    writing = world.start("write", backend.commit(write(world, "c/1", n=1), write(world, "c/2", n=1)))
    await asyncio.sleep(1)
    assert len(await backend.documents(query("c"), transaction=holder)) == 2
    assert fields_of(await backend.get("c/2", transaction=holder)) == {"n": 0}
    await backend.commit(write(world, "c/2", n=5), transaction=holder)
    await writing
    assert world.log == ["write done at 1"]
    assert await backend.fields("c/2") == {"n": 1}


@in_virtual_time()
async def test_what_was_listed_with_missing_documents_can_neither_change_nor_grow_below(world: World) -> None:
    backend = world.backend
    await backend.seed({"c/a/s/1": {"n": 0}, "d/a": {"n": 0}})
    holder = await backend.begin()
    request = REQUESTS["ListDocuments"](
        parent=backend.root, collection_id="c", show_missing=True, page_size=1, transaction=holder
    )
    listed = await backend.call("ListDocuments", request)
    assert [backend.path(item.name) for item in listed.documents] == ["c/a"]
    await asyncio.gather(
        world.start("new below", backend.commit(write(world, "c/b/s/1", n=1))),
        world.start("last below", backend.commit(delete(backend.name("c/a/s/1")))),
        world.start("elsewhere", backend.commit(write(world, "d/a", n=1))),
    )
    assert sorted(world.log) == ["elsewhere done at 0", "last below ABORTED at 2", "new below ABORTED at 2"]


@in_virtual_time()
async def test_what_is_committed_in_the_same_microsecond_is_not_seen_by_a_snapshot(world: World) -> None:
    backend = world.backend
    await backend.seed({"c/1": {"n": 0}})
    reader = await backend.begin_read_only()
    [answer] = await backend.run(query("c"))
    await backend.commit(write(world, "c/1", n=1))
    assert world.now() == 0
    assert await backend.fields("c/1", transaction=reader) == {"n": 0}
    assert await backend.fields("c/1", read_time=answer.read_time) == {"n": 0}


@in_virtual_time()
async def test_writers_of_other_documents_do_not_wait(world: World) -> None:
    backend = world.backend
    await backend.seed({"c/1": {"n": 0}})
    holder = await backend.begin()
    await backend.get("c/1", transaction=holder)
    waiting = world.start("c/1", backend.commit(write(world, "c/1", n=1)))
    await world.turn()
    await world.start("c/2", backend.commit(write(world, "c/2", n=1)))
    await world.start("get", backend.get("c/1"))
    assert world.log == ["c/2 done at 0", "get done at 0"]
    await waiting


@in_virtual_time()
async def test_of_two_that_wait_for_each_other_the_younger_is_aborted_at_once(world: World) -> None:
    backend = world.backend
    await backend.seed({"c/1": {"n": 0}})
    older, younger = await backend.begin(), await backend.begin()
    await backend.get("c/1", transaction=older)
    await backend.get("c/1", transaction=younger)
    first = world.start("older", backend.commit(write(world, "c/1", n=1), transaction=older))
    await world.turn()
    second = world.start("younger", backend.commit(write(world, "c/1", n=2), transaction=younger))
    await asyncio.gather(first, second)
    assert sorted(world.log) == ["older done at 0", "younger ABORTED at 0"]
    assert await backend.fields("c/1") == {"n": 1}


@in_virtual_time()
async def test_it_does_not_matter_who_closes_the_circle(world: World) -> None:
    backend = world.backend
    older, younger = await backend.begin(), await backend.begin()
    await backend.call("BatchGetDocuments", batch_get(world, "c/1", older))
    await backend.call("BatchGetDocuments", batch_get(world, "c/2", younger))
    second = world.start("younger", backend.commit(write(world, "c/1", n=2), transaction=younger))
    await world.turn()
    first = world.start("older", backend.commit(write(world, "c/2", n=1), transaction=older))
    await asyncio.gather(first, second)
    assert sorted(world.log) == ["older done at 0", "younger ABORTED at 0"]


@in_virtual_time()
async def test_a_circle_of_three_is_broken_at_its_youngest(world: World) -> None:
    """The oldest waits to read behind the youngest, which waits for the second, which waits for the oldest."""
    backend = world.backend
    oldest, second, youngest = [await backend.begin() for _ in range(3)]
    await backend.call("BatchGetDocuments", batch_get(world, "c/1", oldest))
    await backend.call("BatchGetDocuments", batch_get(world, "c/2", second))
    writes = [write(world, "c/2", n=3), write(world, "c/3", n=3)]
    waiting = [world.start("second", backend.commit(write(world, "c/1", n=2), transaction=second))]
    await world.turn()
    waiting.append(world.start("youngest", backend.commit(*writes, transaction=youngest)))
    await world.turn()
    await backend.call("BatchGetDocuments", batch_get(world, "c/3", oldest))
    await world.turn()
    assert world.log == ["youngest ABORTED at 0"]
    await backend.rollback(oldest)
    await asyncio.gather(*waiting)
    assert world.log == ["youngest ABORTED at 0", "second done at 0"]


@in_virtual_time()
async def test_an_older_transaction_writes_what_a_younger_one_has_read_and_that_one_is_retried(world: World) -> None:
    backend = world.backend
    await backend.seed({"c/1": {"n": 0}, "c/2": {}})
    older, younger = await backend.begin(), await backend.begin()
    await backend.get("c/1", transaction=younger)
    await backend.commit(write(world, "c/1", n=1), transaction=older)
    assert world.now() == 0, "it did not wait"
    with refused("ABORTED"):
        await backend.get("c/2", transaction=younger)
    with refused("ABORTED"):
        await backend.commit(write(world, "c/2", n=2), transaction=younger)
    await backend.rollback(younger)
    retried = (await backend.call("BeginTransaction", retry_of(world, younger))).transaction
    assert await backend.fields("c/1", transaction=retried) == {"n": 1}
    await backend.commit(write(world, "c/1", n=2), transaction=retried)


@in_virtual_time()
async def test_what_a_younger_query_found_gives_way_to_an_older_write_too(world: World) -> None:
    backend = world.backend
    older, younger = await backend.begin(), await backend.begin()
    assert await backend.paths(query("c"), transaction=younger) == []
    await backend.commit(write(world, "c/1", n=1), transaction=older)
    with refused("ABORTED"):
        await backend.commit(write(world, "d/1", n=1), transaction=younger)


@in_virtual_time()
async def test_a_younger_transaction_and_a_plain_write_wait_for_an_older_reader(world: World) -> None:
    backend = world.backend
    older, younger = await backend.begin(), await backend.begin()
    await backend.call("BatchGetDocuments", batch_get(world, "c/1", older))
    waiting = [
        world.start("younger", backend.commit(write(world, "c/1", n=1), transaction=younger)),
        world.start("plain", backend.commit(write(world, "c/1", n=2))),
    ]
    await asyncio.sleep(1)
    await backend.rollback(older)
    await asyncio.gather(*waiting)
    assert sorted(world.log) == ["plain done at 1", "younger done at 1"]


@in_virtual_time()
async def test_a_retried_transaction_keeps_its_age_and_so_wins_in_the_end(world: World) -> None:
    backend = world.backend
    await backend.seed({"c/1": {"n": 0}})
    first = await backend.begin()
    await backend.rollback(first)
    younger = await backend.begin()
    retried = (await backend.call("BeginTransaction", retry_of(world, first))).transaction
    await backend.get("c/1", transaction=younger)
    await backend.get("c/1", transaction=retried)
    one = world.start("younger", backend.commit(write(world, "c/1", n=1), transaction=younger))
    await world.turn()
    other = world.start("retried", backend.commit(write(world, "c/1", n=2), transaction=retried))
    await asyncio.gather(one, other)
    assert sorted(world.log) == ["retried done at 0", "younger ABORTED at 0"]


@in_virtual_time()
async def test_an_idle_transaction_has_ended_after_sixty_seconds_and_its_locks_with_it(world: World) -> None:
    backend = world.backend
    await backend.seed({"c/1": {"n": 0}})
    holder = await backend.begin()
    await backend.get("c/1", transaction=holder)
    await asyncio.sleep(59)
    await world.start("early", backend.commit(write(world, "c/1", n=1)))
    await world.start("late", backend.commit(write(world, "c/1", n=2)))
    assert world.log == ["early done at 60", "late done at 60"], "the lock ends at 60 s, within the two of the wait"
    with refused("INVALID_ARGUMENT"):
        await backend.commit(write(world, "c/1", n=3), transaction=holder)


@in_virtual_time()
async def test_a_transaction_in_use_lives_on_but_never_past_270_seconds(world: World) -> None:
    backend = world.backend
    await backend.seed({"c/1": {"n": 0}})
    holder = await backend.begin()
    for _ in range(5):
        await asyncio.sleep(50)
        await backend.get("c/1", transaction=holder)
    await asyncio.sleep(19.5)
    await backend.get("c/1", transaction=holder)
    await world.start("write", backend.commit(write(world, "c/1", n=1)))
    assert world.log == ["write done at 270"]
    with refused("INVALID_ARGUMENT") as refusals:
        await backend.get("c/1", transaction=holder)
    assert "invalid or closed" in refusals[0].message


@in_virtual_time()
async def test_what_a_query_found_in_a_transaction_can_neither_change_nor_grow(world: World) -> None:
    backend = world.backend
    await backend.seed({"c/1": {"n": 1}, "c/2": {"n": 5}})
    holder = await backend.begin()
    found = await backend.paths(query("c", where("n", "<", 3)), transaction=holder)
    assert found == ["c/1"]
    cases = {
        "into": write(world, "c/3", n=2),
        "within": write(world, "c/1", n=0),
        "out": write(world, "c/1", n=9),
        "delete": delete(backend.name("c/1")),
    }
    await asyncio.gather(*(world.start(label, backend.commit(one)) for label, one in cases.items()))
    assert sorted(world.log) == sorted(f"{label} ABORTED at 2" for label in cases)
    await backend.commit(write(world, "c/2", n=6))
    await backend.commit(write(world, "c/4", n=7))
    assert world.now() == 2, "what the query could not match was written at once"


@in_virtual_time()
async def test_a_read_only_transaction_never_waits_and_sees_one_moment(world: World) -> None:
    backend = world.backend
    await backend.seed({"c/1": {"n": 1}})
    reader = await backend.begin_read_only()
    await asyncio.sleep(0.1)
    await backend.commit(write(world, "c/1", n=2), write(world, "c/2", n=2))
    assert await backend.fields("c/1", transaction=reader) == {"n": 1}
    assert await backend.paths(query("c"), transaction=reader) == ["c/1"]
    assert await backend.paths(query("c")) == ["c/1", "c/2"]


@in_virtual_time()
async def test_a_client_that_goes_away_while_it_waits_leaves_no_lock_behind(world: World) -> None:
    backend = world.backend
    await backend.seed({"c/1": {"n": 0}})
    holder, leaver = await backend.begin(), await backend.begin()
    await backend.get("c/1", transaction=holder)
    with refused("NOT_FOUND"):
        await backend.get("c/2", transaction=leaver)
    waiting = world.start("leaver", backend.commit(write(world, "c/1", n=1), transaction=leaver))
    await world.turn()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await world.turn()
    await world.start("other", backend.commit(write(world, "c/2", n=1)))
    await backend.rollback(holder)
    await world.start("first", backend.commit(write(world, "c/1", n=1)))
    assert world.log == ["other done at 0", "first done at 0"]


@in_virtual_time()
async def test_ten_read_modify_writes_of_one_document_at_once_lose_no_update(world: World) -> None:
    """Each retries until it is in, as the client libraries do."""
    backend = world.backend
    await backend.seed({"c/1": {"n": 0}})
    attempts = 0

    async def add_one() -> None:
        nonlocal attempts
        earlier = b""
        for _ in range(50):
            attempts += 1
            mine: bytes = (await backend.call("BeginTransaction", retry_of(world, earlier))).transaction
            earlier = mine
            try:
                count = (await backend.fields("c/1", transaction=mine))["n"]
                await backend.commit(write(world, "c/1", n=count + 1), transaction=mine)
            except Refused as refusal:
                if refusal.code != "ABORTED":
                    raise
            else:
                return
        pytest.fail("fifty attempts were not enough")

    await asyncio.gather(*(add_one() for _ in range(10)))
    assert await backend.fields("c/1") == {"n": 10}
    assert world.now() < transactions.LOCK_WAIT_SECONDS, "conflicts are broken at once and not waited out"


def batch_get(world: World, path: str, transaction: bytes) -> Proto:
    request = REQUESTS["BatchGetDocuments"](database=world.backend.database, transaction=transaction)
    request.documents.append(world.backend.name(path))
    return request
