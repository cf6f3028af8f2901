"""What a lane does while it waits: it neither overlooks what comes meanwhile, nor is it let go for a moment."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from firestore_outbox.local.simulators.faults import Faults
from tests.calm import Calm, simulate

NO_RECEIPTS = Faults(receiptLossRate=1.0)


@pytest.mark.parametrize("failures", [1, 2, 3, 4])
def test_a_message_that_is_tried_again_does_not_delay_other_threads(failures: int) -> None:
    async def body(calm: Calm) -> float:
        await calm.account()
        calm.world.provider.faults = Faults(errorRate=1.0, receiptLossRate=1.0)
        await calm.send("unlucky-1", to="+491")
        await calm.until(lambda: calm.outbox("unlucky-1").get("failures", 0) == failures)
        calm.world.provider.faults = NO_RECEIPTS
        written = calm.seconds(calm.world.clock())
        await calm.send("another-1", to="+492")
        await calm.until(lambda: calm.status("another-1") == "sent")
        assert calm.status("unlucky-1") == "queued", "the wait was over before it could delay anybody"
        return calm.sent_at("another-1") - written

    assert simulate(body) < 0.7


def test_a_call_that_hangs_does_not_delay_other_threads() -> None:
    async def body(calm: Calm) -> float:
        await calm.account()
        calm.world.provider.faults = Faults(hangRate=1.0, receiptLossRate=1.0)
        await calm.send("unlucky-1", to="+491")
        await asyncio.sleep(10)
        assert calm.status("unlucky-1") == "sending"
        calm.world.provider.faults = NO_RECEIPTS
        written = calm.seconds(calm.world.clock())
        await calm.send("another-1", to="+492")
        await calm.until(lambda: calm.status("another-1") == "sent")
        return calm.sent_at("another-1") - written

    assert simulate(body) < 1.2, "it is given up after 20"


def test_what_comes_due_in_a_moment_is_waited_for_with_the_lane_in_hand() -> None:
    async def body(calm: Calm) -> Calm:
        await calm.account()
        first = calm.world.clock() + timedelta(seconds=30)
        for number in range(20):
            await calm.send(
                f"scheduled-{number:02}", to=f"+49{number}", send_at=first + number * timedelta(seconds=0.8)
            )
        await calm.until(lambda: calm.statuses()["sent"] == 20)
        return calm

    calm = simulate(body, receipts=False)

    assert calm.lane()["fence"] <= 2
    assert [calm.sent_at(f"scheduled-{n:02}") for n in range(20)] == pytest.approx(
        [30 + 0.8 * n for n in range(20)], abs=0.3
    )


def test_what_comes_due_later_is_left_to_a_task() -> None:
    async def body(calm: Calm) -> Calm:
        await calm.account()
        await calm.send("scheduled-1", send_at=calm.world.clock() + timedelta(seconds=30))
        await calm.send("scheduled-2", to="+492", send_at=calm.world.clock() + timedelta(seconds=33))
        await calm.until(lambda: calm.status("scheduled-1") == "sent")
        await calm.until(lambda: calm.lane()["state"] == "idle", within=timedelta(seconds=2))
        return calm

    assert simulate(body).status("scheduled-2") == "queued"
