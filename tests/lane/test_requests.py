"""Requests of tasks that are open at once, and the lanes under them."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from google.cloud import tasks_v2

from firestore_outbox.firestore.writes import update
from firestore_outbox.lane.ref import LaneRef, outbox_lane
from firestore_outbox.lane.requests import Carried
from firestore_outbox.messages.enqueue import NewMessage, batch
from firestore_outbox.settings import Settings
from tests.calm import Calm, simulate

DISPATCHES = 4
BUSY = 3 * DISPATCHES


async def limit_dispatches(calm: Calm, most: int) -> None:
    tasks: Any = calm.world.client.system.waker._tasks
    limits = tasks_v2.RateLimits(max_concurrent_dispatches=most, max_dispatches_per_second=500)
    await tasks._client.update_queue(queue=tasks_v2.Queue(name=calm.world.settings.queue_name, rate_limits=limits))


async def backlog(calm: Calm, account_id: str, messages: int = 40) -> None:
    await calm.account(account_id, pace={"perMinute": 40})
    writes = []
    for number in range(messages):
        new = NewMessage(
            request_id=f"{account_id}-{number:05d}",
            account_id=account_id,
            to=f"+49{number}",
            parts=[{"type": "text", "text": "hello"}],
            created_by="u",
        )
        writes += batch(new)
    await calm.gateway.commit(writes)


def test_an_idle_account_starts_at_once_while_three_times_more_accounts_are_busy_than_dispatches_exist() -> None:
    async def body(calm: Calm) -> tuple[list[float], int]:
        await limit_dispatches(calm, DISPATCHES)
        for number in range(BUSY):
            await backlog(calm, f"busy{number}")
        await calm.account("chat", pace={"perMinute": 40})
        await asyncio.sleep(15)
        waits = []
        for number in range(3):
            began = calm.seconds(calm.world.clock())
            request_id = f"chat-message-{number}"
            await calm.send(request_id, account_id="chat")
            await calm.until(lambda request_id=request_id: calm.status(request_id) == "sent")  # type: ignore[misc]
            waits.append(calm.sent_at(request_id) - began)
            await asyncio.sleep(5)
        working = {attempt.account_id for attempt in calm.world.truth.attempts}
        return waits, len(working)

    waits, working = simulate(body, workers=2, receipts=False, sweeps=False)

    assert max(waits) < 2
    assert working == BUSY + 1, "every busy account sends as well"


def test_lanes_of_one_process_share_a_request_and_end_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def body(calm: Calm) -> tuple[int, int, float]:
        requests = calm.world.workers[0].system.requests
        run, lasted = requests.run, []

        async def timed(ref: LaneRef) -> Any:
            began = calm.world.clock()
            try:
                return await run(ref)
            finally:
                lasted.append((calm.world.clock() - began).total_seconds())

        monkeypatch.setattr(requests, "run", timed)
        for number in range(5):
            await backlog(calm, f"busy{number}")
        await asyncio.sleep(10)
        first = requests.open, requests.running
        await calm.until(lambda: calm.statuses()["sent"] == 200)
        return *first, max(lasted)

    opened, running, longest = simulate(
        body, workers=1, receipts=False, sweeps=False, settings=Settings(longest_hold_seconds=20)
    )

    assert (opened, running) == (1, 5)
    assert 18 < longest < 25, "the time counts from the beginning of the request, for all of its lanes"


def test_another_request_takes_over_when_the_carriers_time_is_nearly_used_up() -> None:
    async def body(calm: Calm) -> tuple[bool, int, int]:
        requests = calm.world.workers[0].system.requests
        await backlog(calm, "busy0", messages=200)
        await asyncio.sleep(92)  # the carrier has less than a ninth of its time left
        await backlog(calm, "busy1", messages=200)
        await asyncio.sleep(5)
        count, running = requests.open, requests.running
        await asyncio.sleep(30)  # beyond the end of the first
        calls = [attempt.at for attempt in calm.world.truth.attempts if attempt.account_id == "busy0"]
        return calm.world.clock() - calls[-1] < timedelta(seconds=5), count, running

    goes_on, count, running = simulate(
        body, workers=1, receipts=False, sweeps=False, settings=Settings(longest_hold_seconds=100)
    )

    assert (count, running) == (1, 2), "the first request was answered, and its lane goes on"
    assert goes_on


def test_more_lanes_than_a_process_carries_keep_a_request_open_each() -> None:
    async def body(calm: Calm) -> tuple[int, int]:
        for number in range(5):
            await backlog(calm, f"busy{number}")
        await asyncio.sleep(10)
        requests = calm.world.workers[0].system.requests
        return requests.open, requests.running

    opened, running = simulate(body, workers=1, receipts=False, sweeps=False, settings=Settings(carried_lanes=2))

    assert running == 5
    assert opened == 3


def test_a_lane_that_ends_soon_is_answered_with_its_end() -> None:
    async def body(calm: Calm) -> tuple[bool, int]:
        await calm.account()
        await calm.send("request-1")
        await calm.until(lambda: calm.status("request-1") == "sent")
        await asyncio.sleep(5)
        requests = calm.world.workers[0].system.requests
        answer = await requests.run(outbox_lane("shop"))
        return isinstance(answer, Carried), requests.open

    assert simulate(body, workers=1, receipts=False, sweeps=False) == (False, 0)


def test_a_carried_lane_of_a_process_that_dies_is_found_by_the_sweep() -> None:
    async def body(calm: Calm) -> None:
        for number in range(3):
            await backlog(calm, f"busy{number}", messages=20)
        await asyncio.sleep(10)
        assert calm.world.workers[0].system.requests.running == 3
        calm.world.crash(calm.world.workers, 0)
        accounts = [f"accounts/busy{number}" for number in range(3)]
        await calm.write(*(update(path, {"onUncertain": "resend"}, version=None) for path in accounts))
        await calm.until(lambda: calm.statuses()["sent"] == 60, within=timedelta(minutes=5))

    simulate(body, workers=1, receipts=False)


def test_receipts_and_lanes_go_to_queues_of_their_own() -> None:
    settings = Settings(queues=3, receipt_queue="outbox-receipts")

    async def body(calm: Calm) -> dict[str, int]:
        tasks: Any = calm.world.client.system.waker._tasks
        for name in settings.queue_names:
            await tasks._client.pause_queue(name=name)
        now = calm.world.clock()
        for number in range(30):
            await calm.world.client.system.waker.enqueue(outbox_lane(f"shop-{number}"), now)
        await tasks.enqueue("/tasks/receipt", {}, now)
        counts = {}
        for name in settings.queue_names:
            found = await tasks._client.list_tasks(parent=name)
            counts[name.rpartition("/")[2]] = sum([1 async for _ in found])
        return counts

    counts = simulate(body, sweeps=False, receipts=False, settings=settings)

    assert set(counts) == {"outbox-lanes", "outbox-lanes-1", "outbox-lanes-2", "outbox-receipts"}
    assert counts.pop("outbox-receipts") == 1
    assert min(counts.values()) > 0
    assert sum(counts.values()) == 30
