"""Listen: several targets on one stream, how they are numbered, and how each ends."""

from __future__ import annotations

from tests.conformance.backends import Backend, refused
from tests.conformance.listener import ADD, listening, told
from tests.conformance.wire import REQUESTS, Proto, delete, fields_of, query, set_, where


async def test_several_targets_share_a_stream(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": 1}, "d/a": {"x": 1}})
    async with listening(backend) as listener:
        await listener.query(query("c"), target=2)
        await listener.snapshot(2)
        await listener.query(query("d"), target=4)
        assert list(await listener.snapshot(4)) == ["d/a"]
        await listener.documents("c/a", "c/none", target=6)
        assert list(await listener.snapshot(6)) == ["c/a"]
        await backend.seed({"d/b": {}})
        assert await listener.shows("d/a", "d/b", target=4)
        await backend.seed({"c/none": {}})
        assert await listener.shows("c/a", "c/none", target=6)


async def test_a_document_that_several_targets_watch_is_reported_once(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": 3}})
    async with listening(backend) as listener:
        await listener.query(query("c"), target=2)
        await listener.snapshot(2)
        await listener.query(query("c", where("x", ">", 1)), target=4)
        await listener.snapshot(4)
        await listener.documents("c/a", target=6)
        await listener.snapshot(6)

        await backend.seed({"c/a": {"x": 4}})
        changed = await listener.messages()
        assert [listener.view(target) for target in (2, 4, 6)] == [{"c/a": {"x": 4}}] * 3
        await backend.seed({"c/a": {"x": 0}})
        left = await listener.messages()
        assert [listener.view(target) for target in (2, 4, 6)] == [{"c/a": {"x": 0}}, {}, {"c/a": {"x": 0}}]
        await backend.commit(delete(backend.name("c/a")))
        gone = await listener.messages()
        assert [listener.view(target) for target in (2, 4, 6)] == [{}, {}, {}]
    if backend.is_official:
        assert sum(told(message).startswith("change c/a") for message in changed) == 3
    else:
        assert [told(message) for message in changed] == ["change c/a in 2 4 6", "NO_CHANGE"]
        assert [told(message) for message in left] == ["change c/a in 2 6 left 4", "NO_CHANGE"]
        assert [told(message) for message in gone] == ["delete c/a left 2 6", "NO_CHANGE"]


async def test_a_document_that_leaves_a_query_is_reported_with_what_it_became(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": 3}, "c/b": {"x": 2}})
    async with listening(backend) as listener:
        await listener.query(query("c", where("x", ">", 1)))
        await listener.snapshot()
        await listener.query(query("c", order=["-x"], limit=1), target=4)
        await listener.snapshot(4)
        await backend.seed({"c/a": {"x": 0}})
        left = await listener.messages()
        assert (list(listener.view(2)), list(listener.view(4))) == (["c/b"], ["c/b"])
        await backend.seed({"c/n": {"x": 9}})
        pushed = await listener.messages()
        assert (list(listener.view(2)), list(listener.view(4))) == (["c/b", "c/n"], ["c/n"])
    if not backend.is_official:  # it sends the whole result again
        assert [told(message) for message in left] == ["change c/a left 2 4", "change c/b in 4", "NO_CHANGE"]
        assert fields_of(left[0].document_change.document) == {"x": 0}
        assert sorted(told(message) for message in pushed) == ["NO_CHANGE", "change c/n in 2 4", "remove c/b left 4"]


async def test_targets_that_show_different_fields_of_a_document_each_see_their_own(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": 1, "y": 1}})
    async with listening(backend) as listener:
        for target, fields in ((2, None), (4, ["x"]), (6, ["y"])):
            await listener.query(query("c", select=fields), target=target)
            await listener.snapshot(target)
        await backend.seed({"c/a": {"x": 2, "y": 2}})
        await listener.until(lambda view: view == {"c/a": {"x": 2, "y": 2}}, target=2)
        assert listener.view(4) == {"c/a": {"x": 2}}
        assert listener.view(6) == {"c/a": {"y": 2}}


# --- endings


async def test_a_target_that_is_removed_says_no_more(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": 1}})
    async with listening(backend) as listener:
        await listener.query(query("c"), target=2)
        await listener.snapshot(2)
        await listener.forget(2)
        while 2 not in listener.removed:
            await listener.message()
        assert listener.removed[2].code == 0
        await listener.documents("d/a", target=4)
        await listener.snapshot(4)
        await backend.seed({"c/a": {"x": 2}, "d/a": {}})
        await listener.shows("d/a", target=4)  # a change of target 2 would have come before it, and failed


async def test_the_number_of_a_removed_target_can_be_used_again(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": 1}, "d/b": {"x": 1}})
    async with listening(backend) as listener:
        await listener.query(query("c"), target=2)
        await listener.forget(2)
        await listener.query(query("d"), target=2)
        assert await listener.shows("d/b")
        await backend.seed({"c/z": {}, "d/n": {}})
        assert await listener.shows("d/b", "d/n")


async def test_removing_what_is_not_watched_is_passed_over(backend: Backend) -> None:
    async with listening(backend) as listener:
        await listener.forget(99)
        await listener.query(query("c"))
        assert told(await listener.message()) == "ADD 2"


async def test_a_target_asked_for_once_ends_when_it_is_current(backend: Backend) -> None:
    await backend.seed({"c/a": {"x": 1}})
    async with listening(backend) as listener:
        await listener.query(query("c"), once=True)
        heard = [told(message) for message in await listener.messages()]
        assert heard == ["ADD 2", "change c/a in 2", "CURRENT 2", "NO_CHANGE"]
        if backend.is_official:  # `once` means nothing to it
            await backend.seed({"c/b": {}})
            assert await listener.shows("c/a", "c/b")
        else:
            assert told(await listener.message()) == "REMOVE 2"
            assert listener.removed[2].code == 0
            await listener.documents("d/a", target=2)
            await listener.snapshot()
            await backend.seed({"c/a": {"x": 2}, "d/a": {}})
            assert [told(message) for message in await listener.messages()] == ["change d/a in 2", "NO_CHANGE"]


# --- numbers


async def test_a_target_without_a_number_is_given_one(backend: Backend) -> None:
    async with listening(backend) as listener:
        await listener.query(query("c"), target=0)
        first = await listener.message()
        assert first.target_change.target_change_type == ADD
        [given] = first.target_change.target_ids
        assert given > 0


async def test_targets_without_numbers_are_given_different_ones(backend: Backend) -> None:
    async with listening(backend) as listener:
        await listener.query(query("c"), target=0)
        [one] = (await listener.message()).target_change.target_ids
        await listener.snapshot(one)
        await listener.query(query("d"), target=0)
        [other] = (await listener.message()).target_change.target_ids
        assert one != other


async def test_a_number_given_after_one_was_left_out(backend: Backend) -> None:
    async with listening(backend) as listener:
        await listener.query(query("c"), target=0)
        [given] = (await listener.message()).target_change.target_ids
        await listener.snapshot(given)
        await listener.query(query("c"), target=7)
        if backend.is_official:  # the protocol says that it is removed at once
            assert told(await listener.message()) == "ADD 7"
        else:
            assert told(await listener.message()) == "REMOVE 7"
            assert listener.removed[7].code == 3
        await backend.seed({"c/a": {}})
        assert await listener.shows("c/a", target=given)


async def test_a_number_in_use_ends_the_stream(backend: Backend) -> None:
    async with listening(backend) as listener:
        await listener.query(query("c"))
        await listener.snapshot()
        await listener.query(query("d"))
        # Google's emulator fails without a status of its own here.
        with refused("UNKNOWN" if backend.is_official else "INVALID_ARGUMENT"):
            await listener.message()


# --- databases


async def test_a_stream_on_a_database_that_does_not_exist(backend: Backend) -> None:
    database = backend.database.replace("(default)", "never-made")
    async with listening(backend) as listener:
        await listener.send(_target(database, database))
        if backend.is_official:
            assert await listener.snapshot() == {}
        else:
            with refused("NOT_FOUND"):
                await listener.message()


async def test_a_target_in_another_database_than_the_requests(backend: Backend) -> None:
    other = Backend(backend.place)
    await other.commit(set_(other.name("c/a"), {"x": 1}))
    async with listening(backend) as listener:
        await listener.send(_target(backend.database, other.database))
        if backend.is_official:
            assert await listener.snapshot() == {}  # answered from the request's own database
        else:
            assert [told(await listener.message()) for _ in range(2)] == ["ADD 2", "REMOVE 2"]
            assert listener.removed[2].code == 3


def _target(database: str, watched: str) -> Proto:
    request = REQUESTS["Listen"](database=database)
    request.add_target.target_id = 2
    request.add_target.query.parent = f"{watched}/documents"
    request.add_target.query.structured_query.CopyFrom(query("c"))
    return request
