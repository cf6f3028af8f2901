"""Contacts: the sticky time of a new session stores them in pages, and no crash loses one; in virtual time."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from firestore_outbox.firestore.queries import Find
from firestore_outbox.lane.ref import session_lane
from firestore_outbox.sessions.requests import Step, View, unchanged
from firestore_outbox.sessions.states import Rules
from firestore_outbox.sessions.store import current_path
from tests.sessions.test_cost import operations
from tests.sessions.world import World, simulate

MANY = 450


async def stored(world: World, account_id: str = "acme") -> dict[str, str]:
    """Address -> name."""
    found = await world.client.store._gateway.find(Find(collection=f"accounts/{account_id}/contacts"))
    return {one.id: one.data["name"] for one in found}


async def progress(world: World) -> tuple[int, bool]:
    found = await world.client.store._gateway.get(current_path("acme"))
    fields = {} if found is None else found.data
    return fields.get("contacts", 0), fields.get("contactsDone", False)


async def is_done(world: World) -> bool:
    return (await progress(world))[1]


def _again(view: View) -> Step:
    return replace(unchanged(view), memory=replace(view.memory, contacts_next=0, contacts=0))


async def logs_in(world: World, **order: int) -> None:
    await world.cold("acme", **order)
    await world.due("acme")
    await world.until_sent(1)


def test_the_first_login_stores_all_contacts_and_shows_how_far_it_is() -> None:
    async def story(world: World) -> None:
        await logs_in(world, contacts=MANY)
        await world.until(lambda: is_done(world), within=120)
        found = await stored(world)
        assert len(found) == MANY
        assert found["49151100007"] == "Contact 7"
        assert await progress(world) == (MANY, True)

    simulate(story)


def test_contacts_are_not_read_again_when_the_session_comes_up_again() -> None:
    async def story(world: World) -> None:
        await logs_in(world, contacts=2)
        await world.until(lambda: is_done(world), within=120)
        await world.order("acme", contacts=5, status="STOPPED")
        await world.due("acme")
        await world.until_sent(2)
        await asyncio.sleep(120)
        assert len(await stored(world)) == 2

    simulate(story)


def test_an_account_without_a_sticky_time_stores_none() -> None:
    async def story(world: World) -> None:
        await logs_in(world, contacts=5)
        await asyncio.sleep(120)
        assert await stored(world) == {}

    simulate(story, rules=Rules(sticky_budget=timedelta(0)))


@pytest.mark.parametrize("seconds", [0.6, 0.7, 0.8, 1.0, 1.5, 3.0])
def test_workers_killed_while_contacts_are_stored_lose_none(seconds: float) -> None:
    async def story(world: World) -> None:
        await world.cold("acme", contacts=MANY)
        await world.due("acme")
        await asyncio.sleep(seconds)
        for _ in range(3):
            world.crash(0)
            world.crash(1)
            await asyncio.sleep(0.05)
        await world.until(lambda: is_done(world), within=1800)
        assert len(await stored(world)) == MANY
        assert await progress(world) == (MANY, True)

    simulate(story)


def test_a_contact_costs_one_write_and_a_page_of_a_hundred_two_more() -> None:
    async def story(world: World) -> tuple[int, int]:
        await logs_in(world, contacts=0)
        await world.until(lambda: is_done(world), within=120)
        await asyncio.sleep(30)
        world.swept = False
        await world.order("acme", contacts=MANY)
        before = operations()
        assert await world.client.hot.change("acme", _again) is not None
        await world.client.waker.wake(session_lane("acme"))
        await asyncio.sleep(60)
        after = operations()
        assert len(await stored(world)) == MANY
        return after[0] - before[0] - MANY, after[1] - before[1]

    reads, writes = simulate(story)
    assert writes <= MANY + 2 * 5 + 12
    assert reads <= 60
