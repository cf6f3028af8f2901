"""The others cost what their authors' designs cost, and the ceiling is made of our own commits: a fair comparison."""

from __future__ import annotations

import pytest
from google.cloud.firestore_v1 import types

from bench import places
from bench.ceiling import Recorded, commit_all, for_project
from bench.cost import IN_BULK, others
from bench.counted import Count
from bench.drains import ProviderCalls, drain_ours, load, stored_as


async def test_each_pattern_sends_each_message_once_and_costs_what_its_design_says() -> None:
    rows = {row.who: row for row in await others(count=8, alone=1) if row.what == IN_BULK}
    costs = {who: (row.bill.reads, row.bill.writes, row.bill.invocations) for who, row in rows.items()}
    assert costs == {
        "polling": (2, 3, 0),  # found, and read again in its transaction; claimed, and ended in two documents
        "locked batch": (1, 2, 0),  # found; marked, saved
        "function a write": (4, 3, 4),  # PENDING, PROCESSING, SUCCESS; and a call for each write, the client's included
    }


async def test_the_ceiling_makes_the_commits_of_a_drain_in_another_project() -> None:
    async with places.in_process() as place:
        for project in ("one", "two"):
            await load(place.client(project, Count()), 20)
        recorded, calls = Recorded(), ProviderCalls(0.0)
        await drain_ours(place.client("one", recorded), place.queries(recorded), calls.send)
        moved = for_project(recorded.requests, "projects/one/", "projects/two/")
        writes = [write for request in moved for write in types.CommitRequest.pb().FromString(request).writes]
        assert len(writes) == recorded.writes
        assert not any(write.HasField("current_document") for write in writes)

        for request in moved:  # one at a time: then the end is the same too
            await commit_all(place.channel, [request])
        assert await stored_as(place.client("two", Count()), "status", "sent") == 20


def test_a_message_that_was_sent_twice_is_noticed() -> None:
    calls = ProviderCalls(0.0)
    calls.of.update(["a", "b", "a"])
    with pytest.raises(RuntimeError, match="2 of 2 messages were sent, with 3 calls"):
        calls.check(2)
