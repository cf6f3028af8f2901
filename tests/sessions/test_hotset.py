"""The hot set as it runs: real lanes, stores, tasks and adapter, and a WAHA simulator that keeps count."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from firestore_outbox.sessions.states import Rules
from tests.sessions.world import World, simulate

NO_STICKY = Rules(sticky_budget=timedelta(0))


def test_a_message_wakes_its_session_goes_out_and_the_session_goes_back_to_sleep() -> None:
    async def story(world: World) -> None:
        await world.cold("acme", startMs=4000)
        await world.due("acme")
        took = await world.until_sent(1)
        assert 4 <= took < 8
        assert await world.running() == ["acme"]
        assert 55 <= await world.until_cold() <= 130
        assert world.queue.not_connected == 0

    simulate(story, rules=NO_STICKY)


def test_messages_in_a_row_use_one_session_that_is_started_once() -> None:
    async def story(world: World) -> None:
        await world.cold("acme")
        await world.due("acme", 0, 10, 40, 90, 150)
        await world.until_sent(5)
        shown = (await world.sessions())["sessions"]["acme"]
        assert (shown["starts"], shown["stops"]) == (1, 0)

    simulate(story, rules=NO_STICKY)


def test_never_more_sessions_are_up_than_there_are_places() -> None:
    async def story(world: World) -> None:
        accounts = [f"account-{number:02d}" for number in range(24)]
        await world.cold(*accounts, startMs=3000)
        for account_id in accounts:
            await world.due(account_id)
        took = await world.until_sent(24)
        shown = await world.sessions()
        assert shown["mostRunning"] == 5
        assert took < 24 / 5 * 12
        await world.until_cold()

    simulate(story, rules=NO_STICKY)


def test_first_come_first_served() -> None:
    async def story(world: World) -> list[str]:
        accounts = [f"account-{number}" for number in (3, 1, 4, 0, 2)]
        await world.cold(*accounts)
        for account_id in accounts:
            await world.due(account_id)
            await asyncio.sleep(0.1)
        await world.until_sent(5)
        return world.queue.accounts()

    assert simulate(story, rules=Rules(slots=1, sticky_budget=timedelta(0))) == [
        f"account-{number}" for number in (3, 1, 4, 0, 2)
    ]


def test_an_account_with_a_long_queue_gives_way_after_its_turn() -> None:
    async def story(world: World) -> None:
        await world.cold("busy", "other", startMs=1000)
        await world.due("busy", *[0.0] * 600)
        await world.until_sent(5)
        await world.due("other")
        asked = world.seconds()

        async def other_sent() -> bool:
            return "other" in world.queue.accounts()

        await world.until(other_sent)
        assert world.seconds() - asked < 150
        assert world.queue.not_connected == 0
        await world.until_sent(601)

    simulate(story, rules=Rules(slots=1, sticky_budget=timedelta(0)))


# --- trouble


def test_a_session_that_fails_to_start_is_tried_again_later_and_later() -> None:
    async def story(world: World) -> None:
        await world.cold("acme", failStarts=3)
        await world.due("acme")
        took = await world.until_sent(1)
        shown = (await world.sessions())["sessions"]["acme"]
        assert shown["starts"] == 4
        assert (30 + 60 + 120) * 0.75 < took < (30 + 60 + 120) * 1.25 + 60
        await world.until_cold()

    simulate(story, rules=NO_STICKY)


def test_an_account_in_trouble_takes_no_place_while_it_waits() -> None:
    async def story(world: World) -> None:
        await world.cold("broken", failStarts=99)
        await world.cold("good")
        await world.due("broken")
        await asyncio.sleep(5)
        await world.due("good")
        assert await world.until_sent(1) < 10

    simulate(story, rules=Rules(slots=1, sticky_budget=timedelta(0)))


def test_a_session_that_a_person_must_pair_waits_and_goes_on_when_it_is_paired() -> None:
    async def story(world: World) -> None:
        await world.cold("acme", paired=False)
        await world.due("acme")
        await asyncio.sleep(120)
        assert world.queue.sent == []
        assert await world.running() == []
        assert (await world.sessions())["sessions"]["acme"]["starts"] == 1
        await world.order("acme", paired=True, status="WORKING")
        assert await world.until_sent(1) < 5
        await world.until_cold()

    simulate(story, rules=NO_STICKY)


def test_a_session_that_dies_unnoticed_is_found_by_the_next_send_and_brought_up_again() -> None:
    async def story(world: World) -> None:
        world.hears_webhooks = False
        await world.cold("acme")
        await world.due("acme")
        await world.until_sent(1)
        await world.order("acme", status="FAILED", waitMs=0)
        await world.due("acme")
        took = await world.until_sent(2)
        assert world.queue.not_connected == 1
        assert took < 60

    simulate(story, rules=NO_STICKY)


def test_a_session_that_goes_down_is_noticed_before_anything_is_sent_into_it() -> None:
    async def story(world: World) -> None:
        await world.cold("acme")
        await world.due("acme")
        await world.until_sent(1)
        await world.order("acme", status="FAILED", waitMs=0)
        await asyncio.sleep(2)
        await world.due("acme")
        await world.until_sent(2)
        assert world.queue.not_connected == 0

    simulate(story, rules=NO_STICKY)


def test_a_session_that_restarts_by_itself_keeps_its_place_and_goes_on() -> None:
    async def story(world: World) -> None:
        await world.cold("acme", startMs=500)
        await world.due("acme")
        await world.until_sent(1)
        await world.order("acme", status="STARTING", waitMs=0)
        await asyncio.sleep(1)
        assert str(await world.places()) == "acme:connecting | -"
        await world.order("acme", status="WORKING")
        await world.due("acme")
        assert await world.until_sent(2) < 5
        assert (await world.sessions())["sessions"]["acme"]["starts"] == 1

    simulate(story, rules=NO_STICKY)


def test_a_gateway_that_does_not_answer_makes_the_account_wait_and_no_place_is_lost() -> None:
    async def story(world: World) -> None:
        await world.cold("acme", "other")
        world.simulator.transport.refuses_connections = True
        await world.due("acme")
        await asyncio.sleep(200)
        world.simulator.transport.refuses_connections = False
        await world.until_sent(1, within=600)
        await world.due("other")
        await world.until_sent(2, within=60)
        await world.until_cold(within=1200)

    simulate(story, rules=Rules(slots=1, sticky_budget=timedelta(0)))


def test_a_session_whose_gateway_was_gone_when_it_should_stop_is_stopped_when_it_is_back() -> None:
    async def story(world: World) -> None:
        await world.cold("acme")
        await world.due("acme")
        await world.until_sent(1)
        world.simulator.transport.refuses_connections = True

        async def dropped() -> bool:
            return str(await world.places()) == "- | -"

        assert await world.until(dropped, within=600) > 120
        world.simulator.transport.refuses_connections = False
        await world.until_cold(within=1200)

    simulate(story, rules=NO_STICKY)


# --- sticky


def test_a_new_account_stays_up_until_its_budget_is_spent() -> None:
    async def story(world: World) -> None:
        await world.cold("acme")
        await world.due("acme")
        await world.until_sent(1)
        took = await world.until_cold(within=4000)
        assert 3500 < took < 3700
        await world.due("acme")
        await world.until_sent(2)
        assert await world.until_cold() < 130

    simulate(story, rules=Rules(sticky_budget=timedelta(hours=1)))


def test_a_due_message_takes_the_place_of_the_sticky_session_with_the_least_budget() -> None:
    async def story(world: World) -> None:
        accounts = [f"new-{number}" for number in range(5)]
        await world.cold(*accounts, "due", startMs=500)
        for account_id in accounts:
            await world.due(account_id)
            await world.until_sent(accounts.index(account_id) + 1)
            await asyncio.sleep(300)
        before = await world.running()
        assert len(before) == 4
        await world.order("x", status="STOPPED")
        for account_id in ("x", "due"):
            await world.due(account_id)
        took = await world.until_sent(7)
        assert took < 10
        gone = set(accounts) - set(await world.running())
        assert "new-0" in gone
        assert (await world.sessions())["mostRunning"] <= 5

    simulate(story, rules=Rules(sticky_budget=timedelta(hours=24)))


def test_sticky_sessions_that_lost_their_place_come_back_until_all_budgets_are_spent() -> None:
    async def story(world: World) -> None:
        await world.cold("sticky", "a", "b", startMs=500)
        await world.due("sticky")
        await world.until_sent(1)
        await asyncio.sleep(90)
        assert await world.running() == ["sticky"]
        await world.due("a", *[0.0] * 30)
        await world.due("b", *[0.0] * 30)
        await world.until_sent(20)
        assert await world.running() == ["a", "b"]

        async def is_back() -> bool:
            return "sticky" in await world.running()

        await world.until(is_back, within=3 * 1800, every=5)
        took = await world.until_cold(within=3 * 1800)
        assert took > 1800
        assert (await world.sessions())["mostRunning"] == 2

    simulate(story, rules=Rules(slots=2, sticky_budget=timedelta(minutes=30)))


def test_a_session_that_a_person_starts_is_adopted_or_stopped() -> None:
    async def story(world: World) -> None:
        await world.cold("acme", "other")
        await world.order("acme", status="WORKING")
        await asyncio.sleep(2)
        assert str(await world.places()) == "acme:hot | -"
        await world.due("other", *[0.0] * 30)
        await world.until_sent(3)
        await world.order("acme", status="WORKING")
        await asyncio.sleep(5)
        assert await world.running() == ["other"]

    simulate(story, rules=Rules(slots=1, sticky_budget=timedelta(0)))


# --- crashes


def test_workers_that_die_all_the_time_lose_nothing_and_never_exceed_the_places() -> None:
    async def story(world: World) -> None:
        accounts = [f"account-{number:02d}" for number in range(12)]
        await world.cold(*accounts, startMs=2000)
        for number, account_id in enumerate(accounts):
            await world.due(account_id, number, number + 40.0, number + 200.0)

        async def crashes() -> None:
            for place in range(30):
                await asyncio.sleep(world.random.uniform(3, 25))
                world.crash(place % 2)

        crashing = asyncio.create_task(crashes())
        await world.until_sent(36, within=7200)
        await crashing
        assert (await world.sessions())["mostRunning"] <= 3
        await world.until_cold(within=7200)

    simulate(story, rules=Rules(slots=3, sticky_budget=timedelta(minutes=5)))


def test_lanes_whose_tasks_are_lost_are_found_by_the_sweep() -> None:
    async def story(world: World) -> None:
        await world.cold("acme")
        await world.due("acme")
        await world.until_sent(1)
        world.loses_tasks = True
        await asyncio.sleep(100)
        assert await world.running() == ["acme"]
        world.loses_tasks = False
        await world.until_cold(within=300)

    simulate(story, rules=NO_STICKY)
