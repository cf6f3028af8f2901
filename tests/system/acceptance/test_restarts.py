"""F: kill -9 in the middle of the queue. Nothing is lost, and what has an unknown outcome is not sent again."""

from __future__ import annotations

from random import Random

from tests.system.acceptance.world import IN_DOUBT, IN_WAITING, World, until

ROUNDS = 3
EACH = 16
random = Random(20260101)


async def test_f_a_worker_killed_again_and_again_loses_nothing_and_sends_nothing_twice(world: World) -> None:
    """In doubt is what was on its way at a kill: a provider that is safe to call again is called again; otherwise the
    receipt settles it; and if the call had never begun, no receipt comes, and it is held for a person.
    """
    careful = [await world.account(provider="simulated", onUncertain="hold") for _ in range(ROUNDS)]
    repeatable = [await world.account(provider="simulated-idempotent") for _ in range(ROUNDS)]
    await world.faults({"latencyMs": 60, "latencyJitterMs": 60, "receiptDelayMs": 200})
    in_flight = 0
    for pair in zip(careful, repeatable, strict=True):
        for account_id in pair:
            await world.send_many(account_id, EACH, threads=EACH // 2)
        await world.calls_reach(random.randint(2, EACH), *pair)
        await world.worker.kill()
        in_flight += sum(one["status"] == "sending" for one in await world.outbox_of(*pair))
        await world.worker.start()
    assert in_flight > 0, "no kill came at a bad moment: the test has shown nothing"

    ended = await world.all_end(*careful, *repeatable, waiting=IN_WAITING - IN_DOUBT)
    assert len(ended) == 2 * ROUNDS * EACH

    # Whatever was called is settled by its receipt; what was not called stays in doubt, and is not called either.
    async def settled() -> set[str]:
        return {one["requestId"] for one in await world.outbox_of(*careful) if one["status"] == "sent"}

    times = await world.delivered(*careful)
    assert set(times.values()) == {1}, f"sent twice: {[one for one, count in times.items() if count > 1]}"
    await until(settled, lambda sent: sent == set(times), "sent, exactly where the provider was called")
    in_doubt = [one for one in await world.outbox_of(*careful) if one["status"] != "sent"]
    assert {one["status"] for one in in_doubt} <= {"uncertain"}
    assert {one["lastError"]["code"] for one in in_doubt} <= {"outcome_unknown"}

    repeated = await world.all_end(*repeatable)
    assert {one["status"] for one in repeated} == {"sent"}
    assert await world.delivered(*repeatable) == {one["requestId"]: 1 for one in repeated}
