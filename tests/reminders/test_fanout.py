"""A large fan-out, in virtual time over the production code: how long it takes, and what goes over the wire."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from firestore_outbox.lane.ref import reminder_lane
from firestore_outbox.local.simulators.faults import Faults
from firestore_outbox.media.storage import FileRef, media_id_of
from tests.calm import Calm, Meter
from tests.calm import simulate as calmly
from tests.media.support import START, Shop, part, simulate
from tests.reminders.support import call_times, only_run, remind, runs, targets_called, until_ended
from tests.sending.test_pace import most_in

GROUPS = 1_000
PER_MINUTE = 40
IMAGE = bytes(range(256)) * (5_000_000 // 256)
IMAGE_ID = media_id_of(IMAGE)
NO_RECEIPTS = Faults(latencyMs=300, receiptLossRate=1.0)
MINUTE = timedelta(minutes=1)
REMINDER: dict[str, Any] = {
    "accountId": "shop",
    "parts": [{"type": "text", "text": "The market opens at nine."}],
    "timezone": "UTC",
    "window": {"startHour": 0, "endHour": 24},
    "schedule": {"type": "once", "at": START},
}


@dataclass(frozen=True, slots=True)
class Seen:
    took: timedelta
    run: dict[str, Any]
    times: list[Any]
    reached: Counter[str]
    uploads: int
    bytes_uploaded: int
    reads: int
    writes: int
    kinds: Counter[str]


class Kinds(Meter):
    """And which calls they were, and how much the largest commit wrote."""

    def __init__(self, calm: Any) -> None:
        self.kinds: Counter[str] = Counter()
        self.largest = 0
        super().__init__(calm)

    def _count(self, path: str, answer: Any) -> None:
        reads, writes = self.reads, self.writes
        super()._count(path, answer)
        self.largest = max(self.largest, self.writes - writes)
        self.kinds[path.rsplit("/", 1)[-1]] += self.reads - reads + self.writes - writes


@pytest.fixture(scope="module")
def seen() -> Seen:
    """1,000 groups and a picture of five megabytes, at 40 a minute."""

    async def body(shop: Shop) -> Seen:
        shop.world.provider.faults = NO_RECEIPTS
        await shop.storage.add(FileRef("shop", IMAGE_ID), IMAGE, mime_type="image/png", filename=None)
        await shop.account(pace={"perMinute": PER_MINUTE})
        meter = Kinds(shop)
        await remind(shop, targets=GROUPS, parts=[part(IMAGE_ID, caption="The market opens at nine.")])
        await until_ended(shop, within=timedelta(hours=1))
        times = call_times(shop)
        return Seen(
            took=max(times) - START,
            run=only_run(shop),
            times=times,
            reached=targets_called(shop),
            uploads=len(shop.uploads),
            bytes_uploaded=sum(upload.size_bytes for upload in shop.uploads),
            reads=meter.reads,
            writes=meter.writes,
            kinds=meter.kinds,
        )

    return simulate(body, sweeps=False)


def test_it_is_finished_in_25_to_50_minutes(seen: Seen) -> None:
    assert timedelta(minutes=24, seconds=50) <= seen.took <= timedelta(minutes=50)
    assert seen.run["finishedAt"] - START <= timedelta(minutes=50)


def test_every_group_is_reached_once(seen: Seen) -> None:
    assert len(seen.reached) == GROUPS
    assert set(seen.reached.values()) == {1}
    assert seen.run["status"] == "success"


def test_the_picture_goes_to_the_provider_once(seen: Seen) -> None:
    assert seen.uploads == 1
    assert seen.bytes_uploaded <= 5_000_000


def test_no_minute_has_more_than_the_pace_wherever_it_begins(seen: Seen) -> None:
    assert most_in(seen.times, MINUTE) <= PER_MINUTE


def test_a_target_costs_at_most_1_3_reads_and_5_2_writes_up_to_sent(seen: Seen) -> None:
    """Outbox, claim, completion, message, thread; and what the run itself costs, shared among all."""
    assert seen.reads / GROUPS <= 1.3, seen.kinds
    assert seen.writes / GROUPS <= 5.2, seen.kinds


def test_making_the_documents_costs_as_much_a_target_for_ten_thousand_as_for_one_thousand() -> None:
    """`make bench-fanout` does the same with a hundred thousand, and looks at the memory."""

    def cost(targets: int) -> tuple[float, int]:
        async def body(calm: Calm) -> tuple[float, int]:
            await calm.account(pace={"perMinute": PER_MINUTE}, status="paused")
            system = calm.world.client.system
            named = [{"id": f"t{n}", "to": f"{n}@g.us"} for n in range(targets)]
            await system.runs.add_reminder("rem", REMINDER, [named[n : n + 1_000] for n in range(0, targets, 1_000)])
            meter = Kinds(calm)
            await system.waker.wake(reminder_lane("rem"))
            await calm.until(lambda: any(run["expanded"] for run in runs(calm).values()))
            assert calm.statuses() == {"queued": targets}
            return (meter.reads + meter.writes) / targets, meter.largest

        return calmly(body, sweeps=False)

    (small, largest), (large, largest_of_all) = cost(1_000), cost(10_000)
    assert large == pytest.approx(small, rel=0.1)
    assert large <= 1.1, "one write, and a share of what a page costs"
    assert largest == largest_of_all <= 301, "a commit is a page, however many there are"


def test_a_person_waits_for_a_minutes_worth_also_in_the_last_minutes_of_a_long_run() -> None:
    """And for what the lane is behind its pace: the time of a claim for each message, so far."""

    async def waits(calm: Calm, request_id: str) -> float:
        await calm.send(request_id, to="+4917")
        asked = calm.world.clock()
        await calm.until(lambda: calm.status(request_id) == "sent")
        return (calm.world.clock() - asked).total_seconds()

    async def body(calm: Calm) -> list[float]:
        await calm.account(pace={"perMinute": PER_MINUTE})
        calm.world.provider.faults = NO_RECEIPTS
        await remind(calm, targets=2_000)
        waited = []
        for minute in (5, 25, 45):
            await asyncio.sleep((START + minute * MINUTE - calm.world.clock()).total_seconds())
            waited.append(await waits(calm, f"hello-there-{minute}"))
        return waited

    waited = calmly(body, sweeps=False)
    assert max(waited) <= 120
