"""More threads wait at once than a lane's document has room for: it goes on with those, and then with the others."""

from __future__ import annotations

from datetime import timedelta

from firestore_outbox.local.simulators.faults import Faults
from firestore_outbox.settings import Settings
from tests.calm import Calm, simulate

LONG = "\N{TELEPHONE RECEIVER}" * 250
"""An address of a kilobyte: less than five hundred threads that wait for a message of theirs fit into a mebibyte."""


def address(number: int) -> str:
    return f"{number:05}{LONG}"


async def send(calm: Calm, count: int) -> None:
    for number in range(count):
        await calm.send(f"request-{number:05}-{'x' * 100}", to=address(number))


def test_a_provider_that_refuses_everything_does_not_fill_the_lane() -> None:
    async def body(calm: Calm) -> Calm:
        await calm.account(concurrency=50)
        calm.world.provider.faults = Faults(errorRate=1.0, receiptLossRate=1.0)
        await send(calm, 520)
        await calm.until(lambda: calm.statuses()["failed"] == 520)
        await calm.until(lambda: calm.lane()["state"] == "idle")
        return calm

    calm = simulate(body, sweeps=False, settings=Settings(max_attempts=2, backoff_seconds=20))

    lanes = [seen.data for seen in calm.world.truth.changes if seen.path.startswith("lanes/") and seen.data]
    assert 200 < max(len(lane["holds"]) for lane in lanes) < 500
    assert calm.lane()["holds"] == {}
    assert calm.lane()["fence"] < 10, "the lane is acquired again and again"
    assert {data["lastError"]["code"] for data in calm.world.truth.collection("outbox").values()} == {"max_attempts"}


def test_a_long_pace_of_recipients_lets_others_wait_and_all_are_sent() -> None:
    async def body(calm: Calm) -> Calm:
        await calm.account(concurrency=50, pace={"perMinute": 0, "perRecipientSeconds": 600})
        await send(calm, 700)
        await calm.until(lambda: calm.statuses()["sent"] == 700)
        return calm

    calm = simulate(body, receipts=False)

    assert calm.world.clock() - calm.world.loop.start > timedelta(minutes=10), "the room was enough for all of them"
    assert calm.lane()["fence"] < 10
