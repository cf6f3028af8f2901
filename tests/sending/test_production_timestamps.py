"""Order and cost where a document becomes visible some time after its server timestamp, as in production.

Both emulators stamp and commit at one moment, unless they are given a `CommitDelay`.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from random import Random

import pytest

from firestore_emulator.transactions.commit_delay import CommitDelay
from firestore_outbox.firestore import paths
from firestore_outbox.local.simulators.faults import Faults
from firestore_outbox.operations.audit.auditor import audit
from firestore_outbox.operations.audit.finding import Finding
from firestore_outbox.sending import candidates as claim
from firestore_outbox.settings import Settings
from tests.calm import Calm, Meter, simulate

THREADS = 60


def delayed(seed: int = 1, shortest: float = 0.005, longest: float = 0.15, slowest: float = 0.0) -> CommitDelay:
    return CommitDelay(random=Random(seed), shortest=shortest, longest=longest, slowest=slowest)


async def talk(calm: Calm, random: Random, gap: float) -> list[int]:
    """Each of many people is sent one message, and after it was acknowledged, another. Returns the threads whose second
    message went first."""

    async def pair(number: int) -> None:
        await asyncio.sleep(random.uniform(0, 1))
        await calm.send(f"pair-{number:04d}-A", to=f"+49{number:04d}")
        await asyncio.sleep(random.uniform(gap, gap + 2))
        await calm.send(f"pair-{number:04d}-B", to=f"+49{number:04d}")

    await asyncio.gather(*(pair(number) for number in range(THREADS)))
    await calm.until(lambda: calm.statuses()["sent"] == 2 * THREADS, within=timedelta(hours=3))
    place = {request_id: number for number, request_id in enumerate(calm.order_of_calls())}
    return [n for n in range(THREADS) if place[f"pair-{n:04d}-A"] > place[f"pair-{n:04d}-B"]]


def misordered(seed: int, *, per_minute: int, gap: float) -> list[int]:
    async def body(calm: Calm) -> list[int]:
        calm.world.provider.faults = Faults(latencyMs=100, receiptLossRate=1.0)
        await calm.account(concurrency=5, pace={"perMinute": per_minute})
        return await talk(calm, Random(seed), gap)

    return simulate(body, workers=1, receipts=False, commit_delay=delayed(seed))


def without_overlap(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reader as it was: each page begins behind the last document of the page before."""
    monkeypatch.setattr(claim, "next_cursor", lambda last, scan_at, overlap: last)
    monkeypatch.setattr(claim, "is_confirmed", lambda visible_at, due_at, scan_at: True)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("per_minute", "gap"), [(0, 0.0), (40, 3.0)], ids=["no pace", "forty a minute"])
def test_messages_of_a_thread_keep_their_order_although_documents_appear_behind_the_last_page(
    seed: int, per_minute: int, gap: float
) -> None:
    assert misordered(seed, per_minute=per_minute, gap=gap) == []


def test_without_the_overlap_messages_of_a_thread_overtake_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    without_overlap(monkeypatch)
    assert any(misordered(seed, per_minute=0, gap=0.0) for seed in range(3))


@pytest.mark.parametrize(
    ("per_minute", "concurrency", "most_reads"), [(0, 3, 1.1), (0, 50, 1.1), (600, 3, 1.3), (40, 3, 1.3)]
)
def test_in_bulk_the_overlap_costs_next_to_nothing(per_minute: int, concurrency: int, most_reads: float) -> None:
    async def body(calm: Calm) -> float:
        count = 400
        calm.world.provider.faults = Faults(latencyMs=100, receiptLossRate=1.0)
        await calm.account(pace={"perMinute": per_minute}, concurrency=concurrency)
        await calm.change_account(status="paused")
        async with asyncio.TaskGroup() as clients:
            for number in range(count):
                clients.create_task(calm.send(f"shop-{number:05d}", to=f"+49{number}"))
                await asyncio.sleep(0.002)  # not all within the same millisecond
        await asyncio.sleep(5)  # the turns that find the account paused have ended
        meter = Meter(calm)
        await calm.world.client.system.resume("shop")
        await calm.until(lambda: calm.statuses()["sent"] == count)
        return meter.reads / count

    assert simulate(body, sweeps=False, receipts=False, commit_delay=delayed()) <= most_reads


def test_a_conversation_with_more_new_messages_than_a_page_holds_is_read_to_its_end() -> None:
    """All of them lie within the overlap, and only one of a thread goes at a time: every page reads the others
    again."""

    async def body(calm: Calm) -> list[str]:
        await calm.account(concurrency=3)
        for number in range(40):
            await calm.send(f"request-{number:04d}")
        await calm.send("elsewhere", to="+492")
        await calm.until(lambda: calm.statuses()["sent"] == 41)
        return calm.order_of_calls()

    order = simulate(body, receipts=False, settings=Settings(claim_page=5), commit_delay=delayed())

    assert [one for one in order if one != "elsewhere"] == [f"request-{number:04d}" for number in range(40)]
    assert order.index("elsewhere") < 40, "another thread did not wait for the end of a long one"


def test_messages_of_one_thread_that_wait_for_each_other_are_not_read_again_all_the_time() -> None:
    async def body(calm: Calm) -> float:
        calm.world.provider.faults = Faults(latencyMs=200, receiptLossRate=1.0)
        await calm.account(concurrency=3)
        for number in range(60):
            await calm.send(f"request-{number:04d}")
        meter = Meter(calm)
        await calm.until(lambda: calm.statuses()["sent"] == 60)
        return meter.reads / 60

    assert simulate(body, receipts=False, sweeps=False, commit_delay=delayed()) <= 10


@pytest.mark.parametrize(("gap", "is_warning"), [(3.0, True), (5.0, False)], ids=["near", "longer"])
def test_the_auditor_tells_of_a_gap_that_comes_near_the_overlap(gap: float, is_warning: bool) -> None:
    settings = Settings(overlap_seconds=4)

    async def body(calm: Calm) -> list[Finding]:
        await calm.account()
        await calm.send("request-1")
        await calm.until(lambda: calm.status("request-1") == "sent", within=timedelta(hours=1))
        await asyncio.sleep(600)
        system = calm.world.client.system
        return await audit(system.gateway, system.accounts, now=calm.world.clock(), overlap=settings.overlap)

    found = simulate(body, settings=settings, commit_delay=delayed(shortest=gap, longest=gap))

    assert [(one.invariant, one.path, one.is_warning) for one in found] == [
        ("overlap", paths.outbox("request-1"), is_warning)
    ]
    assert "OUTBOX_OVERLAP_SECONDS" in found[0].sentence
