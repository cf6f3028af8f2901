"""A hot set over several documents, with real workers, Firestore and gateway in virtual time."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from firestore_outbox.sessions.layout import Layout
from firestore_outbox.sessions.sets import Sets
from firestore_outbox.sessions.states import Rules
from tests.sessions.world import World, simulate

NO_STICKY = Rules(sticky_budget=timedelta(0))


async def most_running(world: World) -> int:
    """The most sessions that were up at once, ever."""
    return int((await world.sessions())["mostRunning"])


async def none_running(world: World) -> bool:
    return not await world.running()


def busiest(world: World) -> float:
    """Writes a second of the busiest document of the hot set, over the busiest minute."""
    found = world.firestore.engine.hot_spots.report(most=100).documents
    return max(rate.per_second for rate in found if "/hotsets/" in rate.name)


def relaid(world: World, shards: int) -> None:
    """Deploy with another number of shards."""
    world.sets = Sets(default=Layout(slots=world.rules.slots, shards=shards))
    for place in range(len(world.workers)):
        world.crash(place)
    world.client = world.machine()


def test_with_a_shard_for_each_slot_no_document_takes_more_than_a_write_a_second() -> None:
    accounts = [f"account-{number:03}" for number in range(30)]

    async def story(world: World) -> tuple[int, float]:
        await world.cold(*accounts, startMs=4000)
        world.firestore.engine.hot_spots.start()
        for account_id in accounts:
            await world.due(account_id)
        await world.until_sent(len(accounts))
        assert sorted(world.queue.accounts()) == accounts
        return await most_running(world), busiest(world)

    most, writes = simulate(story, rules=NO_STICKY, shards=5)
    assert most == 5
    assert writes <= 1
    _, of_one_document = simulate(story, rules=NO_STICKY)
    assert of_one_document > 2 * writes


def test_the_number_of_shards_changes_and_there_are_never_too_many_sessions() -> None:
    accounts = [f"account-{number:03}" for number in range(12)]

    async def story(world: World) -> tuple[int, list[str], int]:
        await world.cold(*accounts, startMs=2000)
        for round_, shards in enumerate((1, 5, 2, 1)):
            relaid(world, shards)
            for account_id in accounts:
                await world.due(account_id)
            await asyncio.sleep(7)  # some are up, some wait
            await world.until_sent(len(accounts) * round_ + 1)
        shown = [shard.name for shard in await world.client.store.shards()]
        await world.until_sent(len(accounts) * 4)
        await world.until(lambda: none_running(world), every=5)
        await asyncio.sleep(300)
        await world.due(accounts[0])
        await world.until_sent(len(accounts) * 4 + 1)
        (only,) = await world.client.store.shards()
        return await most_running(world), shown, sum(only.hot.given.values())

    most, shown, given = simulate(story, rules=NO_STICKY)
    assert most <= 5
    assert shown[0] == "default"
    assert len(shown) > 1, "shards of the layout before are listed while they hold slots"
    assert given == 0, "the one shard that is left has all slots again"


def test_workers_that_die_leave_the_slots_of_every_shard_usable() -> None:
    accounts = [f"account-{number:03}" for number in range(15)]

    async def story(world: World) -> int:
        await world.cold(*accounts, startMs=3000)
        for account_id in accounts:
            await world.due(account_id)
        for number in range(6):
            await asyncio.sleep(4)
            world.crash(number % 2)
        await world.until_sent(len(accounts), within=3600)
        await world.until_cold()
        return await most_running(world)

    assert simulate(story, rules=NO_STICKY, shards=5) <= 5


def test_each_gateway_has_its_own_slots() -> None:
    async def story(world: World) -> list[str]:
        await world.cold("north-1", "north-2", "south-1", startMs=2000)
        for account_id in ("north-1", "north-2", "south-1"):
            await world.due(account_id)
        await world.until_sent(2)
        first = sorted(world.queue.accounts())
        await world.until_sent(3)
        return first

    async def server_of(account_id: str) -> str:
        return account_id.partition("-")[0]

    async def with_gateways(world: World) -> list[str]:
        world.sets = Sets(
            by_gateway={name: Layout(name=name, slots=1) for name in ("north", "south")}, server_of=server_of
        )
        for place in range(len(world.workers)):
            world.crash(place)
        world.client = world.machine()
        first = await story(world)
        assert [shard.name for shard in await world.client.store.shards()] == ["default", "north", "south"]
        return first

    assert simulate(with_gateways, rules=NO_STICKY) == ["north-1", "south-1"]
