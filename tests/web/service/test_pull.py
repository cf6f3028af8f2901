"""A worker that pulls: it follows ready lanes by a listener, and stops as cleanly as one that is called."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from firestore_outbox.errors import StoreUnavailable
from firestore_outbox.firestore.gateway import Snapshot
from firestore_outbox.lane.ref import LaneRef, outbox_lane
from firestore_outbox.lane.state import Acquired, Lane, acquire
from firestore_outbox.lane.store import StoredLane
from firestore_outbox.web.serve import pull
from tests.patience import PATIENCE_SECONDS
from tests.web.service import support
from tests.web.service.support import Certificates, Service, now


@pytest.fixture
async def service(served: Certificates) -> AsyncIterator[Service]:
    """One lane at a time, and no sweep that could help: the first is at once, the next in an hour."""
    async with support.service(served, lane_concurrency=1, sweep_seconds=3600) as service:
        yield service


@asynccontextmanager
async def pulling(service: Service) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(pull(service.system, service.stop))
    try:
        yield task
    finally:
        service.stop.set()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await task


async def until(good: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not good():  # noqa: ASYNC110 - the provider has no event for its calls
            await asyncio.sleep(0.01)


async def queued(service: Service, account_id: str, request_id: str) -> None:
    await service.account(account_id)
    await service.send(request_id, account_id)


async def test_a_lane_that_becomes_ready_is_run(service: Service) -> None:
    async with pulling(service):
        for n in range(5):
            await queued(service, f"shop-{n}", f"request-{n}")
            await service.system.waker.wake(outbox_lane(f"shop-{n}"))
            await until(lambda n=n: f"request-{n}" in service.called)  # type: ignore[misc]  # a default binds it
    assert [await service.status(f"request-{n}") for n in range(5)] == ["sent"] * 5


async def test_lanes_that_are_ready_already_are_run_first_come_first_served(service: Service) -> None:
    order = ["c", "a", "d", "b"]
    for name in order:
        await queued(service, name, f"request-{name}")
        await service.system.waker.wake(outbox_lane(name))
    async with pulling(service):
        await until(lambda: len(service.called) == len(order))
    assert service.called == [f"request-{name}" for name in order]


async def test_a_lane_is_run_again_for_each_wake_however_close_they_are(service: Service) -> None:
    await service.account()
    async with pulling(service):
        for n in range(30):
            await service.send(f"request-{n:02}")
            await service.system.waker.wake(outbox_lane("shop"))
        await until(lambda: len(service.called) == 30)
    assert service.called == [f"request-{n:02}" for n in range(30)], "in order, and each once"


async def test_a_lane_that_another_worker_got_first_and_died_with_is_taken_over_when_its_lease_ends(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    lanes = service.system.lanes
    as_stored, lease = lanes.read_beside, timedelta(seconds=1)
    taken_at = now()

    async def read_too_late(ref: LaneRef, beside: str) -> tuple[StoredLane, Snapshot | None]:
        monkeypatch.setattr(lanes, "read_beside", as_stored)
        stored = await lanes.read(ref)
        taken = acquire(stored.lane, "a dead worker", now(), lease)
        assert isinstance(taken, Acquired)
        assert await lanes.write(ref, taken.lane, stored) is not None
        return await as_stored(ref, beside)

    await queued(service, "shop", "request-1")
    await service.system.waker.wake(outbox_lane("shop"))
    monkeypatch.setattr(lanes, "read_beside", read_too_late)
    async with pulling(service):
        await until(lambda: service.called == ["request-1"])
        assert now() - taken_at >= lease
    assert await service.status("request-1") == "sent"


async def test_a_lane_that_is_due_later_is_run_when_its_time_comes(service: Service) -> None:
    await service.account()
    await service.send("request-now")
    due = now() + timedelta(seconds=6)
    await service.send("request-later", at=due)
    async with pulling(service):
        await service.system.waker.wake(outbox_lane("shop"))
        await until(lambda: service.called == ["request-now", "request-later"])
    assert now() >= due


async def test_it_stops_when_what_is_in_flight_has_been_completed(service: Service) -> None:
    service.provider.core.faults = service.provider.core.faults.model_copy(update={"latencyMs": 300})
    await queued(service, "shop", "request-1")
    async with pulling(service) as task:
        await service.system.waker.wake(outbox_lane("shop"))
        await until(lambda: service.called == ["request-1"])
        assert await service.status("request-1") == "sending"
        service.stop.set()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await task
        assert await service.status("request-1") == "sent"
    assert (await service.system.lanes.read(outbox_lane("shop"))).lane.owner is None


async def test_it_listens_again_when_the_listener_broke(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    listen = service.system.lanes.ready
    broken = asyncio.Event()

    async def breaks() -> AsyncIterator[list[tuple[LaneRef, Lane]]]:
        monkeypatch.setattr(service.system.lanes, "ready", listen)
        broken.set()
        raise StoreUnavailable("the listener broke")
        yield []

    monkeypatch.setattr(service.system.lanes, "ready", breaks)
    await service.account()
    async with pulling(service) as task:
        await broken.wait()
        await service.send("request-1")
        await service.system.waker.wake(outbox_lane("shop"))
        await until(lambda: service.called == ["request-1"])
        assert not task.done()


async def test_the_sweep_of_a_worker_that_pulls_goes_on_after_any_error(served: Certificates) -> None:
    async with support.service(served, sweep_seconds=0.05) as service:
        await service.account()
        await service.poison_lane()
        async with pulling(service) as task:
            for n in range(3):  # each is found by a later sweep than the one before
                await service.forget(f"request-{n}")
                await until(lambda n=n: f"request-{n}" in service.called)  # type: ignore[misc]  # a default binds it
            assert not task.done()
