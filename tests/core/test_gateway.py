"""Reads at one moment of the database, on each of the three Firestores."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.conformance.backends import Backend, Place
from worker.errors import StoreUnavailable
from worker.store.find import Find
from worker.store.gateway import Gateway

pytestmark = pytest.mark.asyncio(loop_scope="session")

EVERYTHING = Find(collection="c", order_by=("n",))


async def test_a_query_sees_what_an_earlier_one_saw_at_its_moment(backend: Backend) -> None:
    gateway = Gateway(backend.client())
    await backend.seed({"c/1": {"n": 1}, "c/2": {"n": 2}})
    before = await gateway.find_at(EVERYTHING, None)
    await backend.seed({"c/1": {"n": 5}, "c/3": {"n": 3}})
    assert [one.data["n"] for one in before.found] == [1, 2]
    again = await gateway.find_at(EVERYTHING, before.moment)
    assert again == before
    assert [one.data["n"] for one in await gateway.find(EVERYTHING)] == [2, 3, 5]


async def test_a_query_that_finds_nothing_has_a_moment_too(backend: Backend) -> None:
    gateway = Gateway(backend.client())
    before = await gateway.find_at(EVERYTHING, None)
    await backend.seed({"c/1": {"n": 1}})
    assert before.found == (await gateway.find_at(EVERYTHING, before.moment)).found == []


async def test_a_moment_that_the_database_has_forgotten_is_an_outage_and_no_answer(inprocess_place: Place) -> None:
    """As in production. Google's emulator answers with what there was then, whenever that is."""
    backend = Backend(inprocess_place)
    gateway = Gateway(backend.client())
    await backend.seed({"c/1": {"n": 1}})
    moment = (await gateway.find_at(EVERYTHING, None)).moment - timedelta(hours=2)
    with pytest.raises(StoreUnavailable, match="could not read at"):
        await gateway.find_at(EVERYTHING, moment)
