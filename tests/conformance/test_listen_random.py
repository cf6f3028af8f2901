"""A watched query always shows what the query finds, whatever is written meanwhile."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, given, note, settings

from tests.conformance.backends import Backend, Refused
from tests.conformance.listener import listening
from tests.conformance.operations import Watch
from tests.conformance.runner import Runner
from tests.conformance.universe import watches
from tests.conformance.wire import fields_of, set_, shown

CASES = int(os.environ.get("OUTBOX_DIFFERENTIAL_CASES", "300")) // 10
WATCHED, MARKER = 2, 4


@pytest.mark.timeout(120 + CASES)
@settings(
    max_examples=CASES,
    deadline=None,
    derandomize="CI" in os.environ,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
@given(watch=watches)
async def test_a_watched_query_always_shows_what_the_query_finds(backend: Backend, watch: Watch) -> None:
    note(f"{watch}")
    database = Backend(backend.place)
    runner = Runner(database)
    await runner.run(watch.commits[0])
    asked = runner.structured(watch.query)
    try:
        await database.run(asked)
    except Refused:
        return
    async with listening(database) as listener:
        await listener.query(asked, target=WATCHED)
        assert shown(await listener.snapshot(WATCHED)) == await _found(database, runner, watch)
        await listener.documents("marker/m", target=MARKER)
        await listener.snapshot(MARKER)
        for number, commit in enumerate(watch.commits[1:]):
            await runner.run(commit)
            # Commits are seen in order: when the marker is, so is everything before it.
            await database.commit(set_(database.name("marker/m"), {"number": number}))
            await listener.until(lambda view: view == {"marker/m": {"number": number}}, target=MARKER)  # noqa: B023
            assert shown(listener.view(WATCHED)) == await _found(database, runner, watch), f"after commit {number}"


async def _found(database: Backend, runner: Runner, watch: Watch) -> str:
    found = await database.documents(runner.structured(watch.query))
    return shown({database.path(item.name): fields_of(item) for item in found})
