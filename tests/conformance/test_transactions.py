"""Transactions: what they see, what they hold back, and how they end.

Locks are compared by what becomes of the writes, never by how long they took: Google's emulator gives up after two
seconds where ours may see at once that waiting is useless.
"""

from __future__ import annotations

import asyncio

import pytest

from tests.conformance.backends import Backend, outcome, refused
from tests.conformance.wire import REQUESTS, Stamp, delete, increment, query, set_, shown, stamp, where

# --- life


async def test_a_transaction_commits_its_writes_together(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": 1}})
    transaction = await backend.begin()
    assert await backend.fields("c/a", transaction=transaction) == {"x": 1}
    answer = await backend.commit(
        set_(backend.name("c/a"), {"x": 2}), set_(backend.name("c/b"), {"x": 3}), transaction=transaction
    )
    assert {stamp(result.update_time) for result in answer.write_results} == {stamp(answer.commit_time)}
    assert await backend.shown("c/a") == shown({"x": 2})
    assert await backend.shown("c/b") == shown({"x": 3})


async def test_two_transactions_have_different_ids(backend: Backend) -> None:
    first, second = await backend.begin(), await backend.begin()
    assert first
    assert second
    assert first != second


async def test_a_rolled_back_transaction_has_ended(backend: Backend) -> None:
    transaction = await backend.begin()
    await backend.rollback(transaction)
    await _has_ended(backend, transaction)


async def test_a_committed_transaction_has_ended(backend: Backend) -> None:
    transaction = await backend.begin()
    await backend.commit(set_(backend.name("c/a"), {"x": 1}), transaction=transaction)
    await _has_ended(backend, transaction)


async def test_a_transaction_whose_commit_failed_wrote_nothing(backend: Backend) -> None:
    transaction = await backend.begin()
    with refused("NOT_FOUND"):
        await backend.commit(
            set_(backend.name("c/a"), {}), set_(backend.name("c/b"), {}, exists=True), transaction=transaction
        )
    assert not await backend.exists("c/a")


async def test_a_transaction_may_end_without_writes(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": 1}})
    transaction = await backend.begin()
    await backend.get("c/a", transaction=transaction)
    answer = await backend.commit(transaction=transaction)
    assert len(answer.write_results) == 0
    await _has_ended(backend, transaction)


async def test_rolling_back_what_has_ended_is_fine(backend: Backend) -> None:
    transaction = await backend.begin()
    await backend.rollback(transaction)
    await backend.rollback(transaction)


@pytest.mark.parametrize("unknown", [b"x", b"an id that was not given", b"\x00" * 9])
async def test_an_unknown_transaction_is_refused(backend: Backend, unknown: bytes) -> None:
    await backend.seed({"c/a": {}})
    with refused("INVALID_ARGUMENT"):
        await backend.commit(transaction=unknown)
    with refused("INVALID_ARGUMENT"):
        await backend.get("c/a", transaction=unknown)
    with refused("INVALID_ARGUMENT"):
        await backend.run(query("c"), transaction=unknown)
    with refused("INVALID_ARGUMENT"):
        await backend.rollback(unknown)


async def test_a_rollback_needs_a_transaction(backend: Backend) -> None:
    with refused("INVALID_ARGUMENT"):
        await backend.rollback(b"")


async def test_a_transaction_may_be_begun_as_a_retry_of_another(backend: Backend) -> None:
    first = await backend.begin()
    await backend.rollback(first)
    request = REQUESTS["BeginTransaction"](database=backend.database)
    request.options.read_write.retry_transaction = first
    second = (await backend.call("BeginTransaction", request)).transaction
    assert second != first
    await backend.commit(set_(backend.name("c/a"), {"x": 1}), transaction=second)
    assert await backend.exists("c/a")


async def _has_ended(backend: Backend, transaction: bytes) -> None:
    with refused("INVALID_ARGUMENT"):
        await backend.commit(set_(backend.name("c/late"), {}), transaction=transaction)
    with refused("INVALID_ARGUMENT"):
        await backend.get("c/late", transaction=transaction)
    assert not await backend.exists("c/late")


# --- what it sees


async def test_a_transaction_does_not_see_what_it_will_write(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": 1}})
    transaction = await backend.begin()
    assert await backend.paths(query("c"), transaction=transaction) == ["c/a"]
    await backend.commit(set_(backend.name("c/b"), {}), delete(backend.name("c/a")), transaction=transaction)
    assert await backend.paths(query("c")) == ["c/b"]


async def test_a_read_write_transaction_reads_what_is_committed_now(backend: Backend) -> None:
    transaction = await backend.begin()
    await backend.seed({"c/a": {"x": 1}})
    assert await backend.fields("c/a", transaction=transaction) == {"x": 1}
    await backend.rollback(transaction)


async def test_a_query_may_begin_a_transaction(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": 1}})
    request = REQUESTS["RunQuery"](parent=backend.root, structured_query=query("c"))
    request.new_transaction.read_write.SetInParent()
    first, second = await backend.call("RunQuery", request)
    assert first.transaction
    assert not first.HasField("document")
    assert second.document.name == backend.name("c/a")
    await backend.commit(set_(backend.name("c/a"), {"x": 2}), transaction=first.transaction)
    assert await backend.shown("c/a") == shown({"x": 2})


async def test_a_read_only_transaction_stays_at_its_moment(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": 1}})
    transaction = await backend.begin_read_only()
    assert await backend.fields("c/a", transaction=transaction) == {"x": 1}
    await backend.seed({"c/a": {"x": 2}, "c/b": {"x": 1}})
    assert await backend.fields("c/a", transaction=transaction) == {"x": 1}
    assert await backend.paths(query("c", where("x", "==", 1)), transaction=transaction) == ["c/a"]
    await backend.commit(transaction=transaction)


async def test_a_read_only_transaction_may_be_in_the_past(backend: Backend) -> None:
    first = stamp((await backend.commit(set_(backend.name("c/a"), {"x": 1}))).commit_time)
    await backend.seed({"c/a": {"x": 2}})
    transaction = await backend.begin_read_only(first)
    assert await backend.fields("c/a", transaction=transaction) == {"x": 1}
    await backend.commit(transaction=transaction)


async def test_a_read_only_transaction_cannot_begin_in_the_future_or_long_ago(backend: Backend) -> None:
    now = stamp((await backend.commit(set_(backend.name("c/a"), {}))).commit_time)
    with refused("INVALID_ARGUMENT"):
        await backend.begin_read_only(Stamp(now.seconds + 3600))
    with refused("INVALID_ARGUMENT"):
        await backend.begin_read_only(Stamp(now.seconds, now.nanos + 1))
    with refused("FAILED_PRECONDITION"):
        await backend.begin_read_only(Stamp(now.seconds - 8 * 86_400))


async def test_a_read_only_transaction_writes_nothing(backend: Backend) -> None:
    transaction = await backend.begin_read_only()
    with refused("INVALID_ARGUMENT"):
        await backend.commit(set_(backend.name("c/a"), {}), transaction=transaction)
    assert not await backend.exists("c/a")


async def test_a_read_only_transaction_holds_no_other_back(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": 1}})
    transaction = await backend.begin_read_only()
    await backend.get("c/a", transaction=transaction)
    await backend.paths(query("c"), transaction=transaction)
    await backend.seed({"c/a": {"x": 2}, "c/b": {}})
    assert await backend.shown("c/a") == shown({"x": 2})
    await backend.commit(transaction=transaction)


# --- what it holds back


async def test_a_document_that_a_transaction_has_read_cannot_be_written_by_others(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": 1}})
    transaction = await backend.begin()
    await backend.get("c/a", transaction=transaction)
    with refused("ABORTED"):
        await backend.commit(set_(backend.name("c/a"), {"x": 2}))
    await backend.commit(set_(backend.name("c/a"), {"x": 3}), transaction=transaction)
    assert await backend.shown("c/a") == shown({"x": 3})


async def test_other_documents_stay_free(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": 1}, "c/b": {"x": 1}})
    transaction = await backend.begin()
    await backend.get("c/a", transaction=transaction)
    await backend.commit(set_(backend.name("c/b"), {"x": 2}))
    assert await backend.fields("c/a") == {"x": 1}
    await backend.commit(set_(backend.name("c/a"), {"x": 3}), transaction=transaction)


async def test_a_write_waits_for_the_transaction_and_then_goes_through(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": 1}})
    for ends_by_commit in (True, False):
        transaction = await backend.begin()
        await backend.get("c/a", transaction=transaction)
        waiting = asyncio.ensure_future(
            backend.commit(set_(backend.name("c/a"), mask=[], transforms=[increment("x", 1)]))
        )
        await backend.get("c/a")
        if ends_by_commit:
            await backend.commit(transaction=transaction)
        else:
            await backend.rollback(transaction)
        await waiting
    assert await backend.shown("c/a") == shown({"x": 3})


async def test_a_missing_document_that_was_read_cannot_be_created_by_others(backend: Backend) -> None:
    transaction = await backend.begin()
    with refused("NOT_FOUND"):
        await backend.get("c/a", transaction=transaction)
    with refused("ABORTED"):
        await backend.commit(set_(backend.name("c/a"), {"by": "another"}))
    await backend.commit(set_(backend.name("c/a"), {"by": "it"}, exists=False), transaction=transaction)
    assert await backend.shown("c/a") == shown({"by": "it"})


async def test_what_a_query_has_found_cannot_change_or_grow(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": 1}, "c/b": {"x": 2}})
    transaction = await backend.begin()
    assert await backend.paths(query("c", where("x", "==", 1)), transaction=transaction) == ["c/a"]
    disturbing = (
        set_(backend.name("c/a"), {"x": 5}),
        set_(backend.name("c/new"), {"x": 1}),
        set_(backend.name("c/b"), {"x": 1}),
    )
    outcomes = await asyncio.gather(*(outcome(backend.commit(write)) for write in disturbing))
    assert outcomes == ["ABORTED"] * 3
    await backend.commit(set_(backend.name("c/a"), {"x": 9}), transaction=transaction)
    assert await backend.shown("c/a") == shown({"x": 9})


async def test_of_two_transactions_that_read_the_same_at_most_one_writes(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": 0}})
    first, second = await backend.begin(), await backend.begin()
    assert await backend.fields("c/a", transaction=first) == {"x": 0}
    assert await backend.fields("c/a", transaction=second) == {"x": 0}
    one_more = set_(backend.name("c/a"), {"x": 1})
    outcomes = await asyncio.gather(
        outcome(backend.commit(one_more, transaction=first)), outcome(backend.commit(one_more, transaction=second))
    )
    assert outcomes.count("ABORTED") >= 1
    written = [answer for answer in outcomes if not isinstance(answer, str)]
    assert (await backend.fields("c/a")) == {"x": len(written)}


async def test_an_aborted_transaction_has_ended(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": 0}})
    older, younger = await backend.begin(), await backend.begin()
    await backend.get("c/a", transaction=older)
    await backend.get("c/a", transaction=younger)
    with refused("ABORTED"):
        await backend.commit(set_(backend.name("c/a"), {"x": 1}), transaction=younger)
    await backend.commit(set_(backend.name("c/a"), {"x": 2}), transaction=older)
    with refused("INVALID_ARGUMENT"):
        await backend.commit(set_(backend.name("c/a"), {"x": 3}), transaction=younger)
    assert await backend.shown("c/a") == shown({"x": 2})


async def test_twenty_racing_creates_make_one_document(backend: Backend) -> None:
    outcomes = await asyncio.gather(
        *(outcome(backend.commit(set_(backend.name("c/a"), {"by": number}, exists=False))) for number in range(20))
    )
    assert outcomes.count("ALREADY_EXISTS") == 19


async def test_of_ten_writes_on_one_update_time_one_goes_through(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": -1}})
    seen = await backend.update_time("c/a")
    outcomes = await asyncio.gather(
        *(outcome(backend.commit(set_(backend.name("c/a"), {"x": n}, update_time=seen))) for n in range(10))
    )
    assert outcomes.count("FAILED_PRECONDITION") == 9
