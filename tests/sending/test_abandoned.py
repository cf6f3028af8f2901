"""Claims that earlier holders left: found with the first page, and under `doubtUntil` with every page."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from firestore_outbox.firestore import paths
from firestore_outbox.firestore.writes import update
from firestore_outbox.lane.ref import outbox_lane
from firestore_outbox.settings import Settings
from tests.calm import Calm, simulate


async def leave_claim(calm: Calm, request_id: str) -> None:
    """As a holder leaves it that claimed late, after its lane was taken over, and died."""
    claim: dict[str, Any] = {
        "status": "sending",
        "claimedBy": "dead#1",
        "leaseUntil": calm.world.clock() - timedelta(seconds=1),
        "attempts": 1,
    }
    await calm.write(update(paths.outbox(request_id), claim, version=None))


@pytest.mark.parametrize("page", [100, 2], ids=["in the first page", "beyond the first page"])
def test_what_a_dead_holder_left_is_settled_before_later_messages_of_its_thread_go(page: int) -> None:
    async def body(calm: Calm) -> list[str]:
        await calm.account(provider="simulated-idempotent", status="paused", concurrency=1)
        for number in range(4):
            await calm.send(f"before-{number}", to=f"+48{number}")
            await asyncio.sleep(0.1)
        await calm.send("left-behind", to="+491")
        await asyncio.sleep(0.1)
        await calm.send("later-one", to="+491")
        await asyncio.sleep(5)
        await leave_claim(calm, "left-behind")
        await calm.change_account(status="active")
        await calm.world.client.system.waker.wake(outbox_lane("shop"))
        await calm.until(lambda: calm.statuses()["sent"] == 6)
        return [one for one in calm.order_of_calls() if one in ("left-behind", "later-one")]

    assert simulate(body, sweeps=False, settings=Settings(claim_page=page)) == ["left-behind", "later-one"]


def test_a_lane_that_was_taken_over_looks_for_late_claims_and_others_do_not() -> None:
    async def body(calm: Calm) -> tuple[Any, Any]:
        await calm.account()
        await calm.send("message-one", to="+481")
        await calm.until(lambda: calm.status("message-one") == "sent")
        before = calm.lane().get("doubtUntil")
        for machine in list(calm.world.workers):
            calm.world.kill(machine)
        await calm.write(
            update(
                paths.lane("outbox", "shop"),
                {"state": "running", "owner": "dead", "leaseUntil": calm.world.clock() - timedelta(seconds=1)},
                version=None,
            )
        )
        calm.world.workers.append(calm.world.machine("worker"))
        await calm.send("message-two", to="+491")
        await calm.until(lambda: calm.status("message-two") == "sent")
        return before, calm.lane().get("doubtUntil")

    before, after = simulate(body, sweeps=False, workers=1)

    assert before is None
    assert after is not None
