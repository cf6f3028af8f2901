"""A watched query always shows what the query finds, whatever is written and however often the stream breaks."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from tests.conformance.backends import Backend, Refused
from tests.conformance.cases import watches
from tests.conformance.listener import Kept, Listener, listening
from tests.conformance.messages import Messages
from tests.conformance.operations import Watch
from tests.conformance.runner import Runner
from tests.conformance.wire import Plain, Proto, delete, fields_of, query, set_, shown, where

Commit = Mapping[str, Mapping[str, Plain] | None]
"""Documents and what becomes of each; None deletes it."""
CASES = int(os.environ.get("OUTBOX_DIFFERENTIAL_CASES", "300")) // 10
WATCHED, MARKER = 2, 4


examples = settings(
    max_examples=CASES,
    deadline=None,
    derandomize="CI" in os.environ,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.timeout(600 + 3 * CASES)
@examples
@given(watch=watches)
async def test_a_watched_query_always_shows_what_the_query_finds(backend: Backend, watch: Watch) -> None:
    note(f"{watch}")
    database = Backend(backend.place)
    runner = Runner(database)
    await runner.run(watch.commits[0])
    asked = Messages(database).structured(watch.query)
    try:
        await database.run(asked)
    except Refused:
        return
    async with listening(database) as listener:
        await listener.query(asked, target=WATCHED)
        assert shown(await listener.snapshot(WATCHED)) == await _found(database, watch)
        await listener.documents("marker/m", target=MARKER)
        await listener.snapshot(MARKER)
        for number, commit in enumerate(watch.commits[1:]):
            await runner.run(commit)
            # Commits are seen in order: when the marker is, so is everything before it.
            await database.commit(set_(database.name("marker/m"), {"number": number}))
            await listener.until(lambda view: view == {"marker/m": {"number": number}}, target=MARKER)  # noqa: B023
            assert shown(listener.view(WATCHED)) == await _found(database, watch), f"after commit {number}"


QUERIES = {
    "a collection": query("c"),
    "a filter": query("c", where("x", ">", 1)),
    "an order": query("c", where("y", "==", 1), order=["-x"]),
    "a limit": query("c", order=["-x"], limit=2),
    "an offset": query("c", order=["x"], offset=1, limit=2),
    "a group": query("c", where("x", "<=", 2), group=True),
    "a projection": query("c", select=["y"]),
}
"""A few documents in small numbers, so that most commits move something in or out of each."""
paths = st.sampled_from(["c/a", "c/b", "c/d", "c/e", "c/a/c/f"])
fields = st.fixed_dictionaries({"x": st.integers(0, 3), "y": st.integers(0, 1)})
commits = st.dictionaries(paths, st.none() | fields, min_size=1, max_size=3)


@dataclass(frozen=True)
class Stream:
    """One of the streams that a client opens, each taking up where the last one broke."""

    missed: Sequence[Commit]
    """What is committed before it."""
    heard: Sequence[Commit]
    """What is committed while it catches up."""
    patience: int
    """How many messages it hears before it breaks."""
    taken_up_by: str


streams = st.builds(
    Stream,
    missed=st.lists(commits, max_size=2),
    heard=st.lists(commits, max_size=2),
    patience=st.integers(0, 12),
    taken_up_by=st.sampled_from(["token", "read time"]),
)
LAST = Stream(missed=(), heard=(), patience=10_000, taken_up_by="token")


@pytest.mark.timeout(600 + 6 * CASES)
@settings(examples, max_examples=CASES * 2)
@given(watched=st.sampled_from(list(QUERIES)), opened=st.lists(streams, min_size=3, max_size=5))
async def test_a_client_whose_stream_breaks_again_and_again_ends_with_what_the_query_finds(
    backend: Backend, watched: str, opened: list[Stream]
) -> None:
    database = Backend(backend.place)
    kept = Kept()
    for number, stream in enumerate([*opened, LAST]):
        for commit in stream.missed:
            await _commit(database, commit)
        async with listening(database) as listener:
            await _take_up(listener, QUERIES[watched], kept, stream.taken_up_by)
            if backend.is_official:
                # It answers a request and tells of a commit in two threads at once, and garbles both messages.
                await listener.snapshot(MARKER)
            for commit in stream.heard:
                await _commit(database, commit)
            await database.commit(set_(database.name("marker/m"), {"number": number}))
            for _ in range(stream.patience):
                await listener.message()
                if listener.kept.views.get(MARKER) == {"marker/m": {"number": number}}:
                    break
            if WATCHED in listener.kept.views and MARKER in listener.kept.views:
                kept = listener.kept
            assert listener.differs == set(), "the client holds what its target does not"
            assert backend.is_official or not listener.reset, "what was missed is known, and is not all sent again"
    found = await database.documents(QUERIES[watched])
    assert shown(kept.views[WATCHED]) == shown({database.path(item.name): fields_of(item) for item in found})


async def _commit(database: Backend, commit: Commit) -> None:
    await database.commit(
        *(
            delete(database.name(path)) if data is None else set_(database.name(path), data)
            for path, data in commit.items()
        )
    )


async def _take_up(listener: Listener, asked: Proto, kept: Kept, by: str) -> None:
    for target, view in kept.views.items():
        listener.remember(target, view)
    options: dict[str, Any] = {}
    if kept.read_time is not None:
        options = {"resume_token": kept.resume_token} if by == "token" else {"read_time": kept.read_time.proto()}
    await listener.query(asked, target=WATCHED, **options)
    await listener.documents("marker/m", target=MARKER, **options)


async def _found(database: Backend, watch: Watch) -> str:
    found = await database.documents(Messages(database).structured(watch.query))
    return shown({database.path(item.name): fields_of(item) for item in found})
