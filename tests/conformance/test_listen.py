"""Listen: documents and queries watched over one stream."""

from __future__ import annotations

import asyncio

import pytest

from tests.conformance.backends import Backend, refused
from tests.conformance.listener import ADD, CURRENT, NO_CHANGE, listening
from tests.conformance.wire import REQUESTS, Proto, Ref, delete, query, set_, stamp, where

# --- the first answers


async def test_a_watched_query_begins_with_its_result_in_order_and_ends_current(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": 3}, "c/b": {"x": 1}, "c/c": {"x": 2}, "c/d": {"y": 1}})
    async with listening(backend) as listener:
        await listener.query(query("c", order=["x"]), target=6)
        messages = [await listener.message() for _ in range(6)]
    assert _changes(messages[0], messages[4], messages[5]) == [(ADD, [6]), (CURRENT, [6]), (NO_CHANGE, [])]
    documents = [message.document_change for message in messages[1:4]]
    assert [backend.path(change.document.name) for change in documents] == ["c/b", "c/c", "c/a"]
    assert all(list(change.target_ids) == [6] for change in documents)
    assert messages[4].target_change.resume_token
    assert messages[5].target_change.resume_token
    assert messages[5].target_change.HasField("read_time")


async def test_a_watched_query_without_a_result_is_current_at_once(backend: Backend) -> None:
    async with listening(backend) as listener:
        await listener.query(query("none"))
        messages = [await listener.message() for _ in range(3)]
    assert _changes(*messages) == [(ADD, [2]), (CURRENT, [2]), (NO_CHANGE, [])]


async def test_a_watched_document_begins_with_its_content(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": 1}})
    async with listening(backend) as listener:
        await listener.documents("c/a")
        messages = [await listener.message() for _ in range(4)]
    assert messages[1].document_change.document.name == backend.name("c/a")
    assert stamp(messages[1].document_change.document.update_time) == await backend.update_time("c/a")
    assert _changes(messages[0], *messages[2:]) == [(ADD, [2]), (CURRENT, [2]), (NO_CHANGE, [])]


async def test_a_watched_document_that_is_missing_begins_as_deleted(backend: Backend) -> None:
    async with listening(backend) as listener:
        await listener.documents("c/a")
        messages = [await listener.message() for _ in range(4)]
    assert messages[1].document_delete.document == backend.name("c/a")
    assert list(messages[1].document_delete.removed_target_ids) == [2]
    assert messages[1].document_delete.HasField("read_time")


def _changes(*messages: Proto) -> list[tuple[int, list[int]]]:
    return [(m.target_change.target_change_type, list(m.target_change.target_ids)) for m in messages]


# --- changes


async def test_a_watched_document_shows_each_change(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": 1}})
    async with listening(backend) as listener:
        await listener.documents("c/a")
        assert await listener.snapshot() == {"c/a": {"x": 1}}
        committed = await backend.commit(set_(backend.name("c/a"), {"x": 2}))
        assert await listener.until(lambda view: view == {"c/a": {"x": 2}})
        assert listener.read_time >= stamp(committed.commit_time)
        await backend.commit(delete(backend.name("c/a")))
        assert await listener.shows() == {}
        await backend.seed({"c/a": {"x": 3}})
        assert await listener.shows("c/a") == {"c/a": {"x": 3}}


async def test_a_watched_query_shows_what_comes_changes_and_goes(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": 1}, "c/b": {"x": 2}})
    async with listening(backend) as listener:
        await listener.query(query("c", where("x", ">=", 2)))
        assert await listener.snapshot() == {"c/b": {"x": 2}}
        await backend.seed({"c/n": {"x": 5}})
        assert await listener.shows("c/b", "c/n")
        await backend.seed({"c/n": {"x": 6}})
        assert await listener.until(lambda view: view["c/n"] == {"x": 6})
        await backend.seed({"c/n": {"x": 1}})
        assert await listener.shows("c/b") == {"c/b": {"x": 2}}
        await backend.seed({"c/a": {"x": 2}})
        assert await listener.shows("c/a", "c/b")
        await backend.commit(delete(backend.name("c/b")))
        assert await listener.shows("c/a") == {"c/a": {"x": 2}}


async def test_a_commit_is_seen_whole(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": 1}})
    async with listening(backend) as listener:
        await listener.query(query("c"))
        await listener.snapshot()
        for number in range(10):
            await backend.commit(
                delete(backend.name(f"c/{'ab'[number % 2]}")),
                set_(backend.name(f"c/{'ba'[number % 2]}"), {"x": number}),
                set_(backend.name("c/n"), {"x": number}),
            )

        def whole(view: dict[str, dict[str, object]]) -> bool:
            assert ("c/a" in view) != ("c/b" in view), view
            return view.get("c/n") == {"x": 9}

        await listener.until(whole)


async def test_a_watched_limit_shows_the_first_of_the_order(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": 1}, "c/b": {"x": 2}, "c/c": {"x": 3}})
    async with listening(backend) as listener:
        await listener.query(query("c", order=["-x"], limit=2))
        assert await listener.snapshot() == {"c/b": {"x": 2}, "c/c": {"x": 3}}
        await backend.seed({"c/d": {"x": 9}})
        assert await listener.shows("c/c", "c/d")
        await backend.commit(delete(backend.name("c/c")))
        assert await listener.shows("c/b", "c/d")
        await backend.seed({"c/a": {"x": 10}})
        assert await listener.shows("c/a", "c/d")
        await backend.seed({"c/d": {"x": 0}})
        assert await listener.shows("c/a", "c/b")


async def test_a_watched_collection_group_spans_collections(backend: Backend) -> None:
    await backend.seed({"c/a/s/1": {"x": 1}})
    async with listening(backend) as listener:
        await listener.query(query("s", group=True))
        assert list(await listener.snapshot()) == ["c/a/s/1"]
        await backend.seed({"s/2": {"x": 1}, "t/3": {}})
        assert await listener.shows("c/a/s/1", "s/2")


async def test_a_watched_projection_shows_only_those_fields(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": 1, "y": 2}})
    async with listening(backend) as listener:
        await listener.query(query("c", select=["x"]))
        assert await listener.snapshot() == {"c/a": {"x": 1}}


async def test_changes_in_a_transaction_are_seen_when_it_commits(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": 1}})
    async with listening(backend) as listener:
        await listener.query(query("c"))
        await listener.snapshot()
        transaction = await backend.begin()
        await backend.get("c/a", transaction=transaction)
        await backend.commit(set_(backend.name("c/a"), {"x": 2}), transaction=transaction)
        assert await listener.until(lambda view: view == {"c/a": {"x": 2}})


# --- refusals


@pytest.mark.parametrize(
    "bad",
    [query("c", where("x", "in", [])), query("c/d"), query("c", order=["a..b"])],
    ids=["filter", "collection", "order"],
)
async def test_a_malformed_query_ends_its_target_and_not_the_stream(backend: Backend, bad: Proto) -> None:
    await backend.seed({"c/a": {"x": 1}})
    async with listening(backend) as listener:
        await listener.query(bad, target=2)
        while 2 not in listener.removed:
            await listener.message()
        assert listener.removed[2].code == 3
        assert listener.removed[2].message
        await listener.query(query("c"), target=4)
        assert list(await listener.snapshot(4)) == ["c/a"]


async def test_a_malformed_document_name_ends_its_target_and_not_the_stream(backend: Backend) -> None:
    async with listening(backend) as listener:
        await listener.documents("c", target=2)
        while 2 not in listener.removed:
            await listener.message()
        assert listener.removed[2].code == 3
        await listener.query(query("c"), target=4)
        assert await listener.snapshot(4) == {}


async def test_a_request_without_a_target_ends_the_stream(backend: Backend) -> None:
    async with listening(backend) as listener:
        await listener.send(REQUESTS["Listen"](database=backend.database))
        # Google's emulator fails without a status of its own here.
        with refused("UNKNOWN" if backend.is_official else "INVALID_ARGUMENT"):
            await listener.message()


async def test_a_stream_ends_when_the_client_has_said_all(backend: Backend) -> None:
    conversation = backend.converse("Listen")
    request = REQUESTS["Listen"](database=backend.database)
    request.add_target.target_id = 2
    request.add_target.documents.documents.append(backend.name("c/a"))
    await conversation.send(request)
    first = await conversation.read()
    assert first is not None
    await conversation.finish()
    while await conversation.read() is not None:
        pass


async def test_two_streams_see_the_same(backend: Backend) -> None:
    async with listening(backend) as one, listening(backend) as other:
        await one.query(query("c"))
        await other.query(query("c"))
        await asyncio.gather(one.snapshot(), other.snapshot())
        await backend.seed({"c/a": {"x": Ref(backend.name("c/b"))}})
        assert await one.shows("c/a") == await other.shows("c/a")
