"""Listen: a target taken up again by a client that still has what it saw.

Google's emulator always sends RESET and the whole result. Production and ours send what changed since, and a count by
which the client can tell whether what it has is the whole. Both end in the same view.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.conformance.backends import Backend
from tests.conformance.listener import Kept, listening, might_hold, told
from tests.conformance.wire import Plain, Proto, Stamp, delete, query, set_, where

SEEDED: Mapping[str, Mapping[str, Plain]] = {f"c/{name}": {"x": number} for number, name in enumerate("abcde")}


async def _seen(backend: Backend, structured_query: Proto) -> Kept:
    """What a client has of a query when its stream breaks."""
    async with listening(backend) as listener:
        await listener.query(structured_query)
        await listener.snapshot()
        return listener.kept


async def _resumed(
    backend: Backend, structured_query: Proto, kept: Kept, **options: Any
) -> tuple[list[str], dict[str, dict[str, Plain]]]:
    """What is said on taking it up again, and the view it ends in."""
    async with listening(backend) as listener:
        listener.remember(2, kept.views[2])
        await listener.query(structured_query, **(options or {"resume_token": kept.resume_token}))
        heard = [told(message) for message in await listener.messages()]
        assert listener.differs == set()
        return heard, listener.view(2)


async def _change_everything(backend: Backend) -> None:
    """One document of each fate: changed, gone from `x > 0`, deleted, new, new and gone again, untouched."""
    await backend.commit(set_(backend.name("c/b"), {"x": 10}), set_(backend.name("c/passing"), {"x": 10}))
    await backend.commit(set_(backend.name("c/c"), {"x": -1}), delete(backend.name("c/d")))
    await backend.commit(set_(backend.name("c/n"), {"x": 5}), delete(backend.name("c/passing")))
    await backend.commit(set_(backend.name("other/z"), {"x": 5}))


POSITIVE = query("c", where("x", ">", 0))
AFTERWARDS = {"c/b": {"x": 10}, "c/e": {"x": 4}, "c/n": {"x": 5}}


async def test_when_nothing_changed_nothing_is_sent_again(backend: Backend) -> None:
    await backend.seed(SEEDED)
    kept = await _seen(backend, query("c"))
    await backend.seed({"other/z": {}})
    heard, view = await _resumed(backend, query("c"), kept)
    assert view == SEEDED
    if backend.is_official:
        assert heard[:2] == ["ADD 2", "RESET 2"]
    else:
        assert heard == ["ADD 2", "filter 2: 5", "CURRENT 2", "NO_CHANGE"]


@pytest.mark.parametrize("by", ["token", "read time"])
async def test_what_changed_since_is_sent_and_no_more(backend: Backend, by: str) -> None:
    await backend.seed(SEEDED)
    kept = await _seen(backend, POSITIVE)
    await _change_everything(backend)
    assert kept.read_time is not None
    options: dict[str, Any] = {
        "token": {"resume_token": kept.resume_token},
        "read time": {"read_time": kept.read_time.proto()},
    }[by]
    heard, view = await _resumed(backend, POSITIVE, kept, **options)
    assert view == AFTERWARDS
    if backend.is_official:
        assert heard[:2] == ["ADD 2", "RESET 2"]
    else:
        assert sorted(heard[1:-3]) == ["change c/b in 2", "change c/c left 2", "change c/n in 2", "delete c/d left 2"]
        assert (heard[0], heard[-3:]) == ("ADD 2", ["filter 2: 3", "CURRENT 2", "NO_CHANGE"])


async def test_a_limit_taken_up_again_shows_who_came_in_and_who_was_pushed_out(backend: Backend) -> None:
    await backend.seed(SEEDED)
    highest = query("c", order=["-x"], limit=2)
    kept = await _seen(backend, highest)
    assert list(kept.views[2]) == ["c/d", "c/e"]
    await backend.commit(set_(backend.name("c/n"), {"x": 9}), delete(backend.name("c/e")))
    heard, view = await _resumed(backend, highest, kept)
    assert view == {"c/d": {"x": 3}, "c/n": {"x": 9}}
    if not backend.is_official:
        assert sorted(heard[1:-3]) == ["change c/n in 2", "delete c/e left 2"]
    await backend.seed({"c/m": {"x": 8}})
    heard, view = await _resumed(backend, highest, kept)
    assert view == {"c/m": {"x": 8}, "c/n": {"x": 9}}
    if not backend.is_official:
        assert sorted(heard[1:-3]) == ["change c/m in 2", "change c/n in 2", "delete c/e left 2", "remove c/d left 2"]


async def test_watched_documents_taken_up_again(backend: Backend) -> None:
    await backend.seed(SEEDED)
    watched = ("c/a", "c/b", "c/d", "c/none")
    async with listening(backend) as listener:
        await listener.documents(*watched)
        await listener.snapshot()
        kept = listener.kept
    await _change_everything(backend)
    async with listening(backend) as listener:
        listener.remember(2, kept.views[2])
        await listener.documents(*watched, resume_token=kept.resume_token)
        heard = [told(message) for message in await listener.messages()]
        assert listener.view(2) == {"c/a": {"x": 0}, "c/b": {"x": 10}}
        assert listener.differs == set()
    if not backend.is_official:
        assert heard == ["ADD 2", "change c/b in 2", "delete c/d left 2", "filter 2: 2", "CURRENT 2", "NO_CHANGE"]


async def test_a_target_taken_up_again_goes_on_as_any_other(backend: Backend) -> None:
    await backend.seed(SEEDED)
    kept = await _seen(backend, POSITIVE)
    await _change_everything(backend)
    async with listening(backend) as listener:
        listener.remember(2, kept.views[2])
        await listener.query(POSITIVE, resume_token=kept.resume_token)
        assert await listener.snapshot() == AFTERWARDS
        await backend.commit(delete(backend.name("c/e")), set_(backend.name("c/b"), {"x": 0}))
        assert await listener.shows("c/n")


async def test_targets_of_one_stream_are_taken_up_each_from_its_own_moment(backend: Backend) -> None:
    await backend.seed(SEEDED)
    early = await _seen(backend, query("c"))
    await backend.seed({"c/n": {"x": 5}})
    late = await _seen(backend, POSITIVE)
    await backend.commit(delete(backend.name("c/b")))
    async with listening(backend) as listener:
        listener.remember(2, early.views[2])
        listener.remember(4, late.views[2])
        await listener.query(query("c"), target=2, resume_token=early.resume_token)
        await listener.query(POSITIVE, target=4, resume_token=late.resume_token)
        await listener.snapshot(4)
        assert list(listener.view(2)) == ["c/a", "c/c", "c/d", "c/e", "c/n"]
        assert list(listener.view(4)) == ["c/c", "c/d", "c/e", "c/n"]
        assert listener.differs == set()


async def test_once_and_a_token_together_catch_up_and_end(backend: Backend) -> None:
    await backend.seed(SEEDED)
    kept = await _seen(backend, POSITIVE)
    await _change_everything(backend)
    _, view = await _resumed(backend, POSITIVE, kept, resume_token=kept.resume_token, once=True)
    assert view == AFTERWARDS


# --- what a client can tell by the count


async def test_a_client_that_holds_too_much_can_tell_and_can_tell_what(backend: Backend) -> None:
    await backend.seed(SEEDED)
    kept = await _seen(backend, query("c"))
    ghosts = {f"c/ghost{number}": {"x": 1} for number in range(3)}
    async with listening(backend) as listener:
        listener.remember(2, {**kept.views[2], **ghosts})
        await listener.query(query("c"), resume_token=kept.resume_token, expected_count=8)
        await listener.snapshot()
        if backend.is_official:
            assert listener.view(2) == SEEDED  # it was told to forget them
            return
        assert listener.differs == {2}
        filter_ = listener.filters[2]
        assert filter_.count == 5
        assert all(might_hold(filter_, backend.name(path)) for path in SEEDED)
        # A bloom filter may take a foreign name for one of its own, but not nearly always.
        foreign = [backend.name(f"c/ghost{number}") for number in range(1000)]
        assert sum(might_hold(filter_, name) for name in foreign) < 100


async def test_the_names_are_counted_only_for_a_client_that_says_what_it_expects(backend: Backend) -> None:
    await backend.seed(SEEDED)
    kept = await _seen(backend, query("c"))
    for expected, has_names in ((None, False), (0, False), (5, True)):
        async with listening(backend) as listener:
            await listener.query(query("c"), resume_token=kept.resume_token, expected_count=expected)
            await listener.snapshot()
            if backend.is_official:
                assert listener.filters == {}
            else:
                assert listener.filters[2].HasField("unchanged_names") == has_names


async def test_a_target_that_begins_anew_has_no_count(backend: Backend) -> None:
    await backend.seed(SEEDED)
    async with listening(backend) as listener:
        await listener.query(query("c"), expected_count=5)
        await listener.snapshot()
        assert listener.filters == {}


# --- what cannot be taken up again


@pytest.mark.parametrize(
    "options",
    [
        {"resume_token": b""},
        {"resume_token": b"never a token of ours"},
        {"resume_token": b"\xff" * 8},
        {"read_time": Stamp(1).proto()},
        {"read_time": Stamp(2**33).proto()},
    ],
    ids=["empty token", "strange token", "token from the future", "time long ago", "time to come"],
)
async def test_what_cannot_be_taken_up_again_is_reset_and_sent_whole(backend: Backend, options: dict[str, Any]) -> None:
    await backend.seed(SEEDED)
    async with listening(backend) as listener:
        listener.remember(2, {"c/ghost": {"x": 1}})
        await listener.query(query("c"), **options)
        assert await listener.snapshot() == SEEDED
        assert listener.reset == {2}
