"""Where production and Google's emulator differ, ours follows production. docs/emulator-differences.md has the table.

Each test says what ours answers and what Google's emulator answers instead, so that it is noticed when either changes.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.backends import Backend, outcome
from tests.conformance.listener import CURRENT, REMOVE, listening
from tests.conformance.wire import (
    REQUESTS,
    Proto,
    Stamp,
    append_missing,
    increment,
    query,
    remove_all,
    set_,
    shown,
    stamp,
)

INVALID_ARGUMENT = 3


async def answers(backend: Backend, work: Any, *, ours: str, googles: str) -> None:
    answer = await outcome(work)
    assert (answer if isinstance(answer, str) else "OK") == (googles if backend.is_official else ours)


@pytest.mark.parametrize(
    "method",
    ["Commit", "BatchWrite", "BeginTransaction", "BatchGetDocuments", "RunQuery", "ListDocuments", "ListCollectionIds"],
)
async def test_a_database_that_does_not_exist_is_not_found(backend: Backend, method: str) -> None:
    other = f"projects/{backend.project}/databases/other"
    below = method in ("RunQuery", "ListDocuments", "ListCollectionIds")
    request = REQUESTS[method](**({"parent": f"{other}/documents"} if below else {"database": other}))
    if method == "RunQuery":
        request.structured_query.CopyFrom(query("c"))
    await answers(backend, backend.call(method, request), ours="NOT_FOUND", googles="OK")


async def test_a_write_stays_in_the_database_of_its_request(backend: Backend) -> None:
    for name in (
        "projects/elsewhere/databases/(default)/documents/c/a",
        f"projects/{backend.project}/databases/other/documents/c/a",
    ):
        await answers(backend, backend.commit(set_(name, {})), ours="INVALID_ARGUMENT", googles="OK")


async def test_a_batch_get_stays_in_the_database_of_its_request(backend: Backend) -> None:
    request = REQUESTS["BatchGetDocuments"](
        database=backend.database, documents=["projects/elsewhere/databases/(default)/documents/c/a"]
    )
    await answers(backend, backend.call("BatchGetDocuments", request), ours="INVALID_ARGUMENT", googles="OK")


async def test_a_request_has_ten_mebibytes_and_not_four(backend: Backend) -> None:
    def megabytes(count: int) -> list[Proto]:
        return [set_(backend.name(f"c/{number}"), {"x": "x" * 1_000_000}) for number in range(count)]

    await answers(backend, backend.commit(*megabytes(5)), ours="OK", googles="RESOURCE_EXHAUSTED")
    await answers(backend, backend.commit(*megabytes(11)), ours="INVALID_ARGUMENT", googles="RESOURCE_EXHAUSTED")


async def test_a_document_takes_five_hundred_transforms_in_a_commit(backend: Backend) -> None:
    def counted(number: int) -> Proto:
        return set_(backend.name("c/a"), mask=[], transforms=[increment(f"f{index}", 1) for index in range(number)])

    await answers(backend, backend.commit(counted(500)), ours="OK", googles="OK")
    await answers(backend, backend.commit(counted(501)), ours="INVALID_ARGUMENT", googles="OK")


async def test_an_array_is_never_made_an_element_of_an_array(backend: Backend) -> None:
    for made in (append_missing("x", [1]), remove_all("x", [1])):
        write = set_(backend.name("c/a"), {"x": [1]}, transforms=[made])
        await answers(backend, backend.commit(write), ours="INVALID_ARGUMENT", googles="OK")


async def test_the_name_of_a_document_is_not_transformed(backend: Backend) -> None:
    write = set_(backend.name("c/a"), mask=[], transforms=[increment("__name__", 1)])
    await answers(backend, backend.commit(write), ours="INVALID_ARGUMENT", googles="OK")
    if backend.is_official:
        assert await backend.shown("c/a") == shown({"__key__": 1})


async def test_a_name_has_six_kibibytes(backend: Backend) -> None:
    long = "/".join(["c", "d" * 1000] * 7)
    await answers(backend, backend.commit(set_(backend.name(long), {})), ours="INVALID_ARGUMENT", googles="OK")


async def test_the_past_reaches_back_one_hour(backend: Backend) -> None:
    now = stamp((await backend.commit(set_(backend.name("c/a"), {}))).commit_time)
    two_hours_ago = Stamp(now.seconds - 7200).proto()
    await answers(backend, backend.get("c/a", read_time=two_hours_ago), ours="FAILED_PRECONDITION", googles="NOT_FOUND")


async def test_an_ordered_listing_has_a_second_page(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": 2}, "c/b": {"x": 1}})
    request = REQUESTS["ListDocuments"](parent=backend.root, collection_id="c", order_by="x", page_size=1)
    first = await backend.call("ListDocuments", request)
    assert [backend.path(item.name) for item in first.documents] == ["c/b"]
    request.page_token = first.next_page_token
    await answers(backend, backend.call("ListDocuments", request), ours="OK", googles="UNKNOWN")


async def test_a_target_id_is_used_once_on_a_stream(backend: Backend) -> None:
    conversation = backend.converse("Listen")
    request = REQUESTS["Listen"](database=backend.database)
    request.add_target.target_id = 2
    request.add_target.documents.documents.append(backend.name("c/a"))
    await conversation.send(request)
    await conversation.send(request)

    async def until_it_ends() -> None:
        while await conversation.read() is not None:
            pass

    await answers(backend, until_it_ends(), ours="INVALID_ARGUMENT", googles="UNKNOWN")


async def test_missing_documents_may_be_listed_in_a_transaction(backend: Backend) -> None:
    await backend.seed({"c/a/s/1": {}})
    transaction = await backend.begin()
    request = REQUESTS["ListDocuments"](
        parent=backend.root, collection_id="c", show_missing=True, transaction=transaction
    )
    await answers(backend, backend.call("ListDocuments", request), ours="OK", googles="UNKNOWN")
    await backend.rollback(transaction)


async def test_all_collections_may_be_asked_in_a_transaction(backend: Backend) -> None:
    await backend.seed({"c/a": {}})
    transaction = await backend.begin()
    await answers(backend, backend.run(query(""), transaction=transaction), ours="OK", googles="UNKNOWN")
    await backend.rollback(transaction)


async def test_no_document_may_be_read_in_a_transaction(backend: Backend) -> None:
    transaction = await backend.begin()
    request = REQUESTS["BatchGetDocuments"](database=backend.database, transaction=transaction)
    await answers(backend, backend.call("BatchGetDocuments", request), ours="OK", googles="UNKNOWN")
    await backend.rollback(transaction)


@pytest.mark.parametrize(
    ("seconds", "nanos", "ours", "missing", "collections"),
    [
        (3_600, 0, "INVALID_ARGUMENT", "OK", "INVALID_ARGUMENT"),
        (0, 1, "INVALID_ARGUMENT", "INVALID_ARGUMENT", "OK"),
        (-8 * 86_400, 0, "FAILED_PRECONDITION", "OK", "FAILED_PRECONDITION"),
    ],
    ids=["in the future", "finer than microseconds", "too old"],
)
async def test_a_read_time_that_cannot_be_read_is_refused_in_listings_too(
    backend: Backend, seconds: int, nanos: int, ours: str, missing: str, collections: str
) -> None:
    """`missing` and `collections` are what Google's emulator answers to each of the two calls."""
    now = stamp((await backend.commit(set_(backend.name("c/a")))).commit_time)
    bad = Stamp(now.seconds + seconds, now.nanos + nanos).proto()
    listing = REQUESTS["ListDocuments"](parent=backend.root, collection_id="c", show_missing=True, read_time=bad)
    await answers(backend, backend.call("ListDocuments", listing), ours=ours, googles=missing)
    ids = REQUESTS["ListCollectionIds"](parent=backend.root, read_time=bad)
    await answers(backend, backend.call("ListCollectionIds", ids), ours=ours, googles=collections)


async def test_a_result_is_partitioned(backend: Backend) -> None:
    request = REQUESTS["PartitionQuery"](
        parent=backend.root, partition_count=2, structured_query=query("c", group=True, order=["__name__"])
    )
    await answers(backend, backend.call("PartitionQuery", request), ours="OK", googles="UNIMPLEMENTED")


async def test_a_batch_get_answers_by_name_and_the_missing_last(backend: Backend) -> None:
    """Google's emulator promises no order, so it can only say what is found."""
    await backend.seed({"c/b": {}, "c/a": {}, "b/z": {}})
    names = [backend.name(path) for path in ("c/none", "c/b", "a/none", "c/a", "b/z", "c/b")]
    request = REQUESTS["BatchGetDocuments"](database=backend.database, documents=names)
    answers = await backend.call("BatchGetDocuments", request)
    paths = [backend.path(answer.found.name or answer.missing) for answer in answers]
    expected = ["b/z", "c/a", "c/b", "a/none", "c/none"]
    assert (sorted(paths) if backend.is_official else paths) == (sorted(expected) if backend.is_official else expected)


@pytest.mark.parametrize(
    ("asked", "parent"),
    [
        (query(""), ""),
        (query("", group=True), "c/a"),
        (query("c", group=True), "c/a"),
        (query("c", group=True), ""),
        (query("c"), "c/a"),
    ],
)
async def test_what_spans_collections_below_a_document_or_all_collections_is_not_watched(
    backend: Backend, asked: Proto, parent: str
) -> None:
    """Google's emulator watches all of them."""
    selector = asked.from_[0]
    is_plain = bool(selector.collection_id) and not (parent and selector.all_descendants)
    can_be_watched = backend.is_official or is_plain
    await backend.paths(asked, parent=parent)
    async with listening(backend) as listener:
        await listener.query(asked, parent=parent)
        message = await listener.message()
        while message.target_change.target_change_type not in (REMOVE, CURRENT):
            message = await listener.message()
    if can_be_watched:
        assert message.target_change.target_change_type == CURRENT
    else:
        assert message.target_change.cause.code == INVALID_ARGUMENT
        assert "not supported by real-time queries" in message.target_change.cause.message


async def test_an_older_transaction_writes_what_a_younger_one_has_read(backend: Backend) -> None:
    """In Google's emulator the writer waits for two seconds and is aborted."""
    await backend.seed({"c/a": {"x": 0}})
    older, younger = await backend.begin(), await backend.begin()
    await backend.get("c/a", transaction=older)
    await backend.get("c/a", transaction=younger)
    written = backend.commit(set_(backend.name("c/a"), {"x": 1}), transaction=older)
    await answers(backend, written, ours="OK", googles="ABORTED")
    read = backend.commit(set_(backend.name("c/b"), {}), transaction=younger)
    await answers(backend, read, ours="ABORTED", googles="OK")
