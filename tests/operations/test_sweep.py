"""What the sweep finds, how long it takes, and what it reads, with many accounts."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import pytest

from firestore_outbox.firestore import paths
from firestore_outbox.firestore.writes import DELETE, SERVER_TIME, WriteOp, create, update
from firestore_outbox.lane.ref import LaneRef, outbox_lane
from firestore_outbox.lane.state import Lane
from firestore_outbox.lane.store import StoredLane
from firestore_outbox.lane.transitions import LaneState
from firestore_outbox.local.simulation.network import Luck
from firestore_outbox.messages.enqueue import NewMessage, batch
from firestore_outbox.operations import due_accounts, sweep
from firestore_outbox.operations.due_accounts import Scan, next_bounds
from firestore_outbox.operations.sweep import Swept
from tests.calm import Calm, Meter, simulate

MANY = int(os.environ.get("OUTBOX_SWEPT_LANES", "400"))
"""10,000 with `make sweep`."""
INJECTED_SECONDS = 0.025
AT_A_TIME = 100
ACCOUNT: Mapping[str, Any] = {"provider": "simulated", "timezone": "UTC", "status": "active", "pace": {"perMinute": 0}}


def account_id(number: int) -> str:
    return f"shop-{number:05d}"


def lane_write(calm: Calm, number: int, lane: Lane) -> WriteOp:
    written = calm.world.client.system.lanes.write_op(outbox_lane(account_id(number)), lane, StoredLane(Lane(), None))
    assert written is not None
    return written


def message(calm: Calm, number: int, *, one_of: int = 0, **fields: Any) -> WriteOp:
    """An outbox document alone; the world's trigger for it is lost (see `quiet`)."""
    new = NewMessage(
        request_id=f"request-{number:05d}-{one_of}",
        account_id=account_id(number),
        to="+491",
        parts=[{"type": "text", "text": "hello"}],
        created_by="u",
    )
    *_, outbox = batch(new)
    now = calm.world.clock()
    made = {name: now if value is SERVER_TIME else value for name, value in outbox.fields.items()}
    return create(outbox.path, {**made, **fields})


async def commit(calm: Calm, writes: list[WriteOp]) -> None:
    for first in range(0, len(writes), AT_A_TIME):
        await calm.gateway.commit(writes[first : first + AT_A_TIME])


def quiet(calm: Calm) -> None:
    """Events and tasks are taken, and never come."""
    calm.world.network.change(Luck(dropped_event=1.0))


def dropped(number: int, now: datetime) -> Lane:
    """In each state that a crash leaves."""
    lanes = (
        Lane(state=LaneState.READY, ready_at=now, due_at=now, woken_at=now),
        Lane(state=LaneState.RUNNING, owner="dead", fence=1, lease_until=now),
        Lane(next_due_at=now),
    )
    return lanes[number % 3]


def test_two_sweeps_find_every_dropped_lane_within_their_minute_at_25_ms_a_call() -> None:
    async def body(calm: Calm) -> tuple[int, float]:
        quiet(calm)
        now = calm.world.clock()
        await commit(calm, [lane_write(calm, number, dropped(number, now)) for number in range(MANY)])
        await asyncio.sleep(60)
        calm.world.network.added_seconds = INJECTED_SECONDS
        found, longest = 0, 0.0
        for _ in range(2):
            began = calm.world.clock()
            found += (await calm.world.workers[0].system.sweep.run()).lanes
            longest = max(longest, (calm.world.clock() - began).total_seconds())
            if found >= MANY:
                break
            await asyncio.sleep(60 - longest)
        return found, longest

    found, longest = simulate(body, sweeps=False, receipts=False)

    assert found == MANY
    assert longest < 60


def test_two_sweeps_find_every_account_whose_event_was_lost_at_25_ms_a_call() -> None:
    async def body(calm: Calm) -> tuple[int, float]:
        quiet(calm)
        made = [create(paths.account(account_id(number)), ACCOUNT) for number in range(MANY)]
        await commit(calm, made + [message(calm, number) for number in range(MANY)])
        await asyncio.sleep(60)
        calm.world.network.added_seconds = INJECTED_SECONDS
        found, longest = 0, 0.0
        for _ in range(2):
            began = calm.world.clock()
            found += (await calm.world.workers[0].system.sweep.run()).accounts
            longest = max(longest, (calm.world.clock() - began).total_seconds())
            await asyncio.sleep(60 - longest)
        return found, longest

    found, longest = simulate(body, sweeps=False, receipts=False)

    assert found == MANY
    assert longest < 60


def test_a_sweep_that_runs_out_of_time_goes_on_at_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "PAGE", 10)
    monkeypatch.setattr(sweep, "LONGEST", timedelta(seconds=1))

    async def body(calm: Calm) -> tuple[list[int], bool]:
        quiet(calm)
        now = calm.world.clock()
        await commit(calm, [lane_write(calm, number, dropped(number, now)) for number in range(100)])
        await asyncio.sleep(60)
        calm.world.network.added_seconds = 0.1
        found: list[int] = []
        asked: set[str] = set()
        for number in range(6):
            system = calm.world.workers[number % 2].system
            enqueue = system.waker.enqueue

            async def noted(ref: LaneRef, at: datetime, enqueue: Any = enqueue) -> None:
                asked.add(str(ref))
                await enqueue(ref, at)

            monkeypatch.setattr(system.waker, "enqueue", noted)
            found.append((await system.sweep.run()).lanes)
        return found, len(asked) == 100

    found, has_all = simulate(body, sweeps=False, receipts=False)

    assert max(found) < 60, "no sweep reaches the end"
    assert has_all, "together they do, on whichever worker they run"


def test_thousands_of_parked_accounts_cost_a_sweep_no_read_each() -> None:
    accounts = 1_500

    async def body(calm: Calm) -> list[int]:
        quiet(calm)
        parked = {**ACCOUNT, "status": "parked"}
        writes = [create(paths.account(account_id(number)), parked) for number in range(accounts)]
        old = calm.world.clock() - timedelta(hours=1)
        await commit(calm, writes + [message(calm, number, nextAttemptAt=old) for number in range(accounts)])
        reads = []
        await calm.world.workers[0].system.sweep.run()  # the first looks at all of them
        for _ in range(3):
            meter = Meter(calm)
            await calm.world.workers[0].system.sweep.run()
            reads.append(meter.reads)
            await asyncio.sleep(60)
        return reads

    reads = simulate(body, sweeps=False, receipts=False)

    assert max(reads) <= 4 + 2 * due_accounts.FIRST + 3 * due_accounts.SLOW + 20
    assert max(reads) < accounts / 2


def test_scheduled_and_cancelled_messages_cost_a_sweep_nothing() -> None:
    async def body(calm: Calm) -> int:
        quiet(calm)
        later = calm.world.clock() + timedelta(days=100)
        writes = [message(calm, number, nextAttemptAt=later) for number in range(300)]
        writes += [message(calm, number, one_of=1, status="cancelled", cancelRequested=True) for number in range(300)]
        await commit(calm, writes)
        await asyncio.sleep(60)
        meter = Meter(calm)
        await calm.world.workers[0].system.sweep.run()
        return meter.reads

    assert simulate(body, sweeps=False, receipts=False) == 4


def test_a_lane_that_the_release_before_wrote_is_found_without_its_place_in_the_index() -> None:
    """Ready without a task, and running under an ended lease; the second has nothing but a claim."""

    async def body(calm: Calm) -> Swept:
        quiet(calm)
        now = calm.world.clock()
        for number in (0, 1):
            writes = [
                create(paths.account(account_id(number)), ACCOUNT),
                lane_write(calm, number, dropped(number, now)),
            ]
            await commit(calm, writes)
        await commit(calm, [message(calm, 0), message(calm, 1, status="sending", claimedBy="w:1", leaseUntil=now)])
        place = {"shard": DELETE, "acquirableAt": DELETE}
        await commit(calm, [update(outbox_lane(account_id(n)).path, place, version=None) for n in (0, 1)])
        await asyncio.sleep(60)
        return await calm.world.workers[0].system.sweep.run()

    assert simulate(body, sweeps=False, receipts=False) == Swept(lanes=1, accounts=1)


def test_a_step_that_fails_stops_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    async def body(calm: Calm) -> Swept:
        quiet(calm)
        await calm.account(account_id(1))
        now = calm.world.clock()
        await commit(calm, [lane_write(calm, 0, dropped(0, now)), message(calm, 1)])
        await asyncio.sleep(60)
        system = calm.world.workers[0].system

        async def fails(*_: Any) -> Any:
            raise RuntimeError("no such thing")

        monkeypatch.setattr(system.messages, "in_flight", fails)
        monkeypatch.setattr(system.messages, "cancel_requested", fails)
        return await system.sweep.run()

    assert simulate(body, sweeps=False, receipts=False) == Swept(lanes=1, accounts=1, failed=("cancels", "claims"))


def test_the_next_sweep_searches_in_parallel_from_where_the_last_one_stopped() -> None:
    found = [account_id(number) for number in range(100)]
    whole = Scan(after=found[49], is_done=True, found=found[:50])
    cut = Scan(after=found[99], is_done=False, found=found[50:])
    bounds = next_bounds([whole, cut], most=4)
    assert len(bounds) <= 3
    assert bounds[-1] == found[99], "the range behind the stop has a search of its own"
    assert list(bounds) == sorted(bounds)
