"""Reads of many documents, listings, and reads in the past."""

from __future__ import annotations

from typing import Any

import pytest
import pytest_asyncio

from tests.conformance.backends import Backend, refused
from tests.conformance.wire import (
    REQUESTS,
    DocumentMask,
    Proto,
    Stamp,
    delete,
    fields_of,
    query,
    set_,
    shown,
    stamp,
    where,
)

# --- BatchGetDocuments


async def batch_get(backend: Backend, names: list[str], **options: Any) -> list[Proto]:
    request = REQUESTS["BatchGetDocuments"](database=backend.database, documents=names, **options)
    answers: list[Proto] = await backend.call("BatchGetDocuments", request)
    return answers


async def test_a_batch_get_answers_found_and_missing_once_each(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": 1}, "c/b": {"x": 2}})
    names = [backend.name(path) for path in ("c/a", "c/none", "c/a", "c/b")]
    answers = await batch_get(backend, names)
    found = {answer.found.name: fields_of(answer.found) for answer in answers if answer.HasField("found")}
    assert found == {backend.name("c/a"): {"x": 1}, backend.name("c/b"): {"x": 2}}
    assert [answer.missing for answer in answers if answer.missing] == [backend.name("c/none")]
    assert len({stamp(answer.read_time) for answer in answers}) == 1


async def test_a_batch_get_of_nothing_answers_nothing(backend: Backend) -> None:
    assert await batch_get(backend, []) == []


async def test_a_batch_get_with_a_mask_answers_only_those_fields(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": 1, "y": 2}})
    [answer] = await batch_get(backend, [backend.name("c/a")], mask=DocumentMask(field_paths=["x"]))
    assert fields_of(answer.found) == {"x": 1}
    [answer] = await batch_get(backend, [backend.name("c/a")], mask=DocumentMask())
    assert fields_of(answer.found) == {}


async def test_a_batch_get_of_a_malformed_name_or_mask_is_refused(backend: Backend) -> None:
    with refused("INVALID_ARGUMENT"):
        await batch_get(backend, [backend.name("c/a"), backend.name("c")])
    with refused("INVALID_ARGUMENT"):
        await batch_get(backend, [backend.name("c/a")], mask=DocumentMask(field_paths=["a..b"]))


async def test_a_batch_get_may_begin_a_transaction(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": 1}})
    request = REQUESTS["BatchGetDocuments"](database=backend.database, documents=[backend.name("c/a")])
    request.new_transaction.read_write.SetInParent()
    first, second = await backend.call("BatchGetDocuments", request)
    assert first.transaction
    assert not first.HasField("found")
    assert second.found.name == backend.name("c/a")
    await backend.commit(set_(backend.name("c/a"), {"x": 2}), transaction=first.transaction)
    assert await backend.shown("c/a") == shown({"x": 2})


# --- ListDocuments


async def listed(backend: Backend, collection: str = "c", parent: str = "", **options: Any) -> Proto:
    request = REQUESTS["ListDocuments"](
        parent=backend.name(parent) if parent else backend.root, collection_id=collection, **options
    )
    return await backend.call("ListDocuments", request)


@pytest_asyncio.fixture(loop_scope="session")
async def filled(backend: Backend) -> Backend:
    await backend.seed({f"c/{one}": {"x": ord(one) % 3, "y": 1} for one in "abcde"})
    await backend.seed({"c/m/s/1": {}, "c/a/s/1": {}, "c/a/t/1": {}, "c/z/s/1/u/2": {}, "d/1": {}})
    return backend


def ids(answer: Proto) -> str:
    return " ".join(item.name.rsplit("/", 1)[-1] for item in answer.documents)


async def test_a_listing_has_the_documents_of_one_collection_by_name(filled: Backend) -> None:
    answer = await listed(filled)
    assert ids(answer) == "a b c d e"
    assert answer.next_page_token == ""
    assert all(item.HasField("update_time") for item in answer.documents)
    assert ids(await listed(filled, "s", "c/a")) == "1"
    assert ids(await listed(filled, "none")) == ""


async def test_a_listing_comes_in_pages(filled: Backend) -> None:
    first = await listed(filled, page_size=2)
    second = await listed(filled, page_size=2, page_token=first.next_page_token)
    third = await listed(filled, page_size=2, page_token=second.next_page_token)
    assert [ids(first), ids(second), ids(third)] == ["a b", "c d", "e"]
    assert third.next_page_token == ""


async def test_a_listing_shows_missing_parents_when_asked(filled: Backend) -> None:
    answer = await listed(filled, show_missing=True)
    assert ids(answer) == "a b c d e m z"
    assert [item.name.rsplit("/", 1)[-1] for item in answer.documents if not item.HasField("update_time")] == ["m", "z"]
    first = await listed(filled, show_missing=True, page_size=6)
    assert ids(await listed(filled, show_missing=True, page_size=6, page_token=first.next_page_token)) == "z"


async def test_a_listing_takes_an_order(filled: Backend) -> None:
    assert ids(await listed(filled, order_by="x")) == "c a d b e"
    assert ids(await listed(filled, order_by="x desc")) == "e b d a c"
    assert ids(await listed(filled, order_by="y asc, x desc")) == "e b d a c"
    assert ids(await listed(filled, order_by="__name__")) == "a b c d e"


async def test_a_listing_with_a_mask_answers_only_those_fields(filled: Backend) -> None:
    answer = await listed(filled, mask=DocumentMask(field_paths=["y"]))
    assert fields_of(answer.documents[0]) == {"y": 1}
    answer = await listed(filled, mask=DocumentMask())
    assert fields_of(answer.documents[0]) == {}


async def test_a_listing_without_a_collection_has_all_below_the_parent(filled: Backend) -> None:
    assert ids(await listed(filled, "")) == "a b c d e 1"
    assert ids(await listed(filled, "", "c/a")) == "1 1"


@pytest.mark.parametrize(
    "options",
    [
        {"page_size": -1},
        {"page_token": "xx"},
        {"order_by": "x sideways"},
        {"order_by": "x", "show_missing": True},
        {"collection": "a/b"},
        {"collection": "__x__"},
        {"parent": "c"},
        {"mask": DocumentMask(field_paths=["a..b"])},
    ],
    ids=str,
)
async def test_a_malformed_listing_is_refused(filled: Backend, options: dict[str, Any]) -> None:
    with refused("INVALID_ARGUMENT"):
        await listed(filled, **options)


# --- ListCollectionIds


async def collection_ids(backend: Backend, parent: str = "", **options: Any) -> Proto:
    request = REQUESTS["ListCollectionIds"](parent=backend.name(parent) if parent else backend.root, **options)
    return await backend.call("ListCollectionIds", request)


async def test_collections_are_listed_by_name_also_under_missing_documents(filled: Backend) -> None:
    assert list((await collection_ids(filled)).collection_ids) == ["c", "d"]
    assert list((await collection_ids(filled, "c/a")).collection_ids) == ["s", "t"]
    assert list((await collection_ids(filled, "c/m")).collection_ids) == ["s"]
    assert list((await collection_ids(filled, "c/z")).collection_ids) == ["s"]
    assert list((await collection_ids(filled, "c/b")).collection_ids) == []
    assert list((await collection_ids(filled, "none/none")).collection_ids) == []


async def test_an_emptied_collection_is_no_longer_listed(backend: Backend) -> None:
    await backend.seed({"c/a": {}, "d/a": {}})
    await backend.commit(delete(backend.name("c/a")))
    assert list((await collection_ids(backend)).collection_ids) == ["d"]


async def test_collections_come_in_pages(filled: Backend) -> None:
    first = await collection_ids(filled, page_size=1)
    second = await collection_ids(filled, page_size=1, page_token=first.next_page_token)
    assert [list(first.collection_ids), list(second.collection_ids)] == [["c"], ["d"]]


async def test_a_malformed_listing_of_collections_is_refused(filled: Backend) -> None:
    with refused("INVALID_ARGUMENT"):
        await collection_ids(filled, "c")
    with refused("INVALID_ARGUMENT"):
        await collection_ids(filled, page_size=-1)


# --- reads in the past


async def test_a_read_time_shows_the_past(backend: Backend) -> None:
    first = stamp((await backend.commit(set_(backend.name("c/a"), {"x": 1}))).commit_time)
    second = stamp((await backend.commit(set_(backend.name("c/a"), {"x": 2}), set_(backend.name("c/b")))).commit_time)
    await backend.commit(delete(backend.name("c/a")))
    assert await backend.fields("c/a", read_time=first.proto()) == {"x": 1}
    assert await backend.fields("c/a", read_time=second.proto()) == {"x": 2}
    with refused("NOT_FOUND"):
        await backend.get("c/b", read_time=first.proto())
    assert await backend.paths(query("c"), read_time=first.proto()) == ["c/a"]
    assert await backend.paths(query("c"), read_time=second.proto()) == ["c/a", "c/b"]
    assert await backend.paths(query("c", where("x", "==", 1)), read_time=second.proto()) == []
    assert ids(await listed(backend, read_time=second.proto())) == "a b"
    [answer] = await batch_get(backend, [backend.name("c/b")], read_time=first.proto())
    assert answer.missing == backend.name("c/b")


async def test_before_the_first_write_there_was_nothing(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": 1}})
    written = await backend.update_time("c/a")
    before = Stamp(written.seconds - 600).proto()
    with refused("NOT_FOUND"):
        await backend.get("c/a", read_time=before)
    assert await backend.paths(query("c"), read_time=before) == []
    [answer] = await batch_get(backend, [backend.name("c/a")], read_time=before)
    assert answer.missing == backend.name("c/a")


async def test_a_read_time_shows_the_collections_and_the_missing_documents_of_the_past(backend: Backend) -> None:
    await backend.seed({"c/a": {}, "c/b/s/1": {}, "c/d": {}, "c/d/s/1": {}, "e/a": {}, "f/a/g/a": {}})
    then = stamp((await backend.commit(set_(backend.name("c/z")))).commit_time).proto()
    gone = ("c/a", "c/b/s/1", "c/d", "e/a", "f/a/g/a")
    await backend.commit(*(delete(backend.name(path)) for path in gone))
    await backend.seed({"c/y": {}, "c/q/s/1": {}, "c/z/t/1": {}, "h/a": {}})

    assert list((await collection_ids(backend)).collection_ids) == ["c", "h"]
    assert list((await collection_ids(backend, read_time=then)).collection_ids) == ["c", "e", "f"]
    assert list((await collection_ids(backend, "c/z", read_time=then)).collection_ids) == []
    assert list((await collection_ids(backend, "f/a", read_time=then)).collection_ids) == ["g"]
    pages, token = [], ""
    for _ in range(3):
        page = await collection_ids(backend, read_time=then, page_size=1, page_token=token)
        pages.extend(page.collection_ids)
        token = page.next_page_token
    assert pages == ["c", "e", "f"]

    assert ids(await listed(backend, show_missing=True)) == "d q y z"
    past = await listed(backend, show_missing=True, read_time=then)
    assert [(backend.path(item.name), item.HasField("update_time")) for item in past.documents] == [
        ("c/a", True),
        ("c/b", False),
        ("c/d", True),
        ("c/z", True),
    ]
    first = await listed(backend, show_missing=True, read_time=then, page_size=2)
    second = await listed(backend, show_missing=True, read_time=then, page_size=2, page_token=first.next_page_token)
    assert (ids(first), ids(second)) == ("a b", "d z")
    transaction = await backend.begin_read_only(Stamp(then.seconds, then.nanos))
    assert ids(await listed(backend, show_missing=True, transaction=transaction)) == "a b d z"


async def test_a_read_time_that_cannot_be_read_is_refused(backend: Backend) -> None:
    now = stamp((await backend.commit(set_(backend.name("c/a"), {"x": 1}))).commit_time)
    for bad, code in (
        (Stamp(now.seconds + 3600), "INVALID_ARGUMENT"),
        (Stamp(now.seconds, now.nanos + 1), "INVALID_ARGUMENT"),
        (Stamp(now.seconds - 8 * 86_400), "FAILED_PRECONDITION"),
    ):
        with refused(code):
            await backend.get("c/a", read_time=bad.proto())
        with refused(code):
            await backend.run(query("c"), read_time=bad.proto())
