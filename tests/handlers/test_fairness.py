"""First come, first served: keys run in the order in which they became ready, and no key waits for ever."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any

from firestore_outbox.handlers.context import Context
from firestore_outbox.handlers.registration import Registration
from firestore_outbox.limits.line import Rate
from firestore_outbox.settings import Settings
from tests.calm import Calm, simulate
from tests.limits.worlds import never_above

ONE_PLACE = Settings(lane_concurrency=1, limits="notion=3/3")


def nextup(function: Any, **options: Any) -> dict[str, Registration]:
    return {"nextup": Registration(kind="nextup", function=function, quiet=5, at_most=15, **options)}


async def comes(calm: Calm, user: str, event: str) -> None:
    await calm.world.functions[0].system.events.event("nextup", event, {}, user)


def test_a_user_whose_timer_was_reset_runs_after_the_one_who_became_ready_first() -> None:
    runs: list[str] = []

    async def handler(context: Context) -> None:
        runs.append(context.key)

    async def body(calm: Calm) -> None:
        await comes(calm, "U1", "1")
        await asyncio.sleep(1)
        await comes(calm, "U2", "2")
        await asyncio.sleep(1)
        await comes(calm, "U1", "3")
        await asyncio.sleep(60)

    simulate(body, handlers=nextup(handler), settings=ONE_PLACE)
    assert runs == ["U2", "U1"]


def test_a_rerun_goes_behind_the_users_that_wait() -> None:
    runs: list[str] = []

    async def handler(context: Context) -> None:
        runs.append(context.key)
        await asyncio.sleep(20)

    async def body(calm: Calm) -> None:
        await comes(calm, "U1", "1")
        await asyncio.sleep(10)  # U1 runs
        await comes(calm, "U1", "2")
        await asyncio.sleep(1)
        await comes(calm, "U2", "3")
        await asyncio.sleep(120)

    simulate(body, handlers=nextup(handler), settings=ONE_PLACE)
    assert runs == ["U1", "U2", "U1"]


def test_a_429_slows_the_work_down_and_all_of_it_is_done() -> None:
    done: list[str] = []
    throttled = [False]

    async def handler(context: Context) -> None:
        limit = context.limit("notion")
        async with limit:
            if not throttled[0]:
                throttled[0] = True
                await limit.throttled(retry_after=10)
                raise OSError("429")
        done.append(context.key)

    async def body(calm: Calm) -> None:
        for number in range(10):
            await comes(calm, f"U{number}", f"{number}")
        await asyncio.sleep(180)

    simulate(body, handlers=nextup(handler), settings=ONE_PLACE)
    assert sorted(done) == sorted(f"U{number}" for number in range(10))


def test_two_hundred_users_share_three_calls_a_second_and_none_starves() -> None:
    """Three instances, two calls for each run. All users are ready within ten seconds; 400 calls at 3/s take 133 s."""
    calls: list[datetime] = []
    waits: dict[str, float] = {}
    began: dict[str, float] = {}

    async def body(calm: Calm) -> None:
        async def handler(context: Context) -> None:
            for _ in range(2):
                async with context.limit("notion"):
                    calls.append(calm.world.clock())
            waits[context.key] = asyncio.get_running_loop().time() - began[context.key]

        functions[0] = handler
        for number in range(200):
            began[f"U{number}"] = asyncio.get_running_loop().time()
            await comes(calm, f"U{number}", f"{number}")
            await asyncio.sleep(0.05)
        await asyncio.sleep(290)

    functions: list[Any] = [None]

    async def late(context: Context) -> None:
        await functions[0](context)

    simulate(body, handlers=nextup(late), settings=Settings(lane_concurrency=4, limits="notion=3/3"), workers=3)
    assert len(waits) == 200
    assert never_above(calls, Rate(per_second=3, burst=3))
    ideal = 400 / 3
    assert max(calls) - min(calls) <= timedelta(seconds=ideal * 1.1)
    # With one queue and one bucket the last user is done after the debounce and all calls before it.
    assert max(waits.values()) <= (5 + ideal) * 1.15, max(waits.values())
