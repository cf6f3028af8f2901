"""G, several workers; a worker that pulls; and a clean stop."""

from __future__ import annotations

import asyncio
from collections import Counter

from tests.system.acceptance.world import World


async def test_g_three_workers_share_the_accounts_and_send_everything_once(world: World) -> None:
    accounts = [await world.account(concurrency=2) for _ in range(6)]
    await world.faults({"latencyMs": 40})
    async with world.more_workers(2):
        before = await world.attempts()
        await asyncio.gather(*(world.send_many(account_id, 12, threads=6) for account_id in accounts))
        ended = await world.all_end(*accounts)
        await world.share(2, before)
    assert {one["status"] for one in ended} == {"sent"}
    assert await world.delivered(*accounts) == {one["requestId"]: 1 for one in ended}


async def test_a_worker_that_pulls_needs_no_task_to_reach_it(world: World) -> None:
    account_id = await world.account()
    async with world.pulling_instead() as puller:
        await world.send_many(account_id, 10, threads=5)
        ended = await world.all_end(account_id)
        later = await world.send(account_id, "+4917009")
        await world.becomes(later.outbox, status="sent")
        assert await puller.stop() == 0
    assert {one["status"] for one in ended} == {"sent"}
    assert set((await world.delivered(account_id)).values()) == {1}


async def test_a_worker_that_is_asked_to_stop_finishes_what_is_in_flight_and_starts_nothing_more(world: World) -> None:
    accounts = [await world.account(concurrency=3) for _ in range(2)]
    await world.faults({"latencyMs": 500})
    for account_id in accounts:
        await world.send_many(account_id, 24, threads=8)
    await world.calls_reach(4, *accounts)

    code = await world.worker.stop()
    try:
        found = await world.outbox_of(*accounts)
        calls = await world.calls(*accounts)
        lanes = [await world.read(f"lanes/outbox:{account_id}") for account_id in accounts]
    finally:
        await world.faults({})
        await world.worker.start()

    assert code == 0, "it ended by itself, before its grace period did"
    by_status = Counter(one["status"] for one in found)
    assert by_status.keys() <= {"sent", "queued"}, by_status
    assert by_status["queued"] > 0, "it stopped too late to show anything"
    assert {one["requestId"] for one in found if one["status"] == "sent"} == {call["requestId"] for call in calls}
    assert {lane["state"] for lane in lanes} == {"ready"}, "released, with work left"

    ended = await world.all_end(*accounts)
    assert await world.delivered(*accounts) == {one["requestId"]: 1 for one in ended}
