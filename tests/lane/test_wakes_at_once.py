"""Two instances that wake one lane at the same time."""

from __future__ import annotations

import asyncio

from firestore_outbox.lane.ref import outbox_lane
from firestore_outbox.settings import Settings
from tests.calm import Calm, Meter, simulate


def test_two_wakes_at_the_same_time_make_one_task() -> None:
    """The one that was slower meets the other's write, which is not its own: the lane has its task."""

    async def body(calm: Calm) -> int:
        await calm.account(status="paused")
        meter = Meter(calm)
        for _ in range(5):
            await asyncio.gather(*(machine.system.waker.wake(outbox_lane("shop")) for machine in calm.world.functions))
            await asyncio.sleep(30)
        return meter.tasks

    assert simulate(body, sweeps=False, functions=3, settings=Settings(short_turns=False)) == 5
