"""The worker's service: what it does with tasks, what it answers, and what it shows of itself."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from firestore_outbox.errors import TasksUnavailable
from firestore_outbox.lane.ref import outbox_lane
from firestore_outbox.lane.state import Lane, acquire, wake
from tests.patience import PATIENCE_SECONDS
from tests.web.service import support
from tests.web.service.support import Certificates, Service, now

LANE = {"kind": "outbox", "key": "shop"}


async def woken(service: Service, account_id: str = "shop") -> None:
    """The lane is ready, as after an event."""
    await service.system.waker.wake(outbox_lane(account_id))


async def held_by_another(service: Service) -> Lane:
    """A worker took the lane, and says nothing any more."""
    stored = await service.system.lanes.read(outbox_lane("shop"))
    taken = acquire(wake(stored.lane, now()).lane, "another-worker", now(), timedelta(seconds=60))  # type: ignore[union-attr]
    assert await service.system.lanes.write(outbox_lane("shop"), taken.lane, stored)  # type: ignore[union-attr]
    return taken.lane  # type: ignore[union-attr]


# --- tasks


async def test_a_lane_task_sends_what_is_queued(service: Service) -> None:
    await service.account()
    await service.send("request-1")
    await woken(service)
    answer = await service.post("/tasks/lane", LANE)
    assert (answer.status_code, answer.json()) == (200, {"held": True})
    assert service.called == ["request-1"]
    assert await service.status("request-1") == "sent"


async def test_a_doubled_task_is_done_already(service: Service) -> None:
    await service.account()
    await service.send("request-1")
    await woken(service)
    await service.post("/tasks/lane", LANE)
    answer = await service.post("/tasks/lane", LANE)
    assert (answer.status_code, answer.json()) == (200, {"held": False})
    assert service.called == ["request-1"]


async def test_a_sweep_wakes_what_was_dropped(service: Service) -> None:
    await service.account()
    await service.send("request-1", at=now() - timedelta(minutes=1))
    answer = await service.post("/tasks/sweep")
    assert (answer.status_code, answer.json()) == (200, {"lanes": 0, "accounts": 1})
    assert [(path, body) for path, body, _ in service.tasks.asked] == [("/tasks/lane", LANE)]


async def test_a_step_of_the_sweep_that_fails_keeps_no_other_from_its_work(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    await service.account()
    await service.poison_lane()
    await service.forget("request-1")
    answer = await service.post("/tasks/sweep")
    assert answer.status_code == 503
    assert answer.json() == {"error": "steps of the sweep failed: lanes; the log has each error"}
    assert [(path, body) for path, body, _ in service.tasks.asked] == [("/tasks/lane", LANE)]
    lines = [getattr(record, "fields", {}) for record in caplog.records]
    assert [line["step"] for line in lines if line.get("action") == "sweep_failed"] == ["lanes"]


async def test_while_cloud_tasks_is_down_a_sweep_answers_so_and_the_next_one_does_its_work(service: Service) -> None:
    await service.account()
    await service.forget("request-1")
    service.tasks.failure = TasksUnavailable("it is down")
    answer = await service.post("/tasks/sweep")
    assert (answer.status_code, "accounts" in answer.json()["error"]) == (503, True)
    service.tasks.failure = None
    lane = outbox_lane("shop")
    stored = await service.system.lanes.read(lane)  # woken, and no task was made for it
    assert stored.lane.ready_at is not None
    late = replace(stored.lane, ready_at=now() - timedelta(minutes=1), due_at=now() - timedelta(minutes=1))
    assert await service.system.lanes.write(lane, late, stored) is not None
    answer = await service.post("/tasks/sweep")
    assert (answer.status_code, answer.json()) == (200, {"lanes": 1, "accounts": 0})
    assert [(path, body) for path, body, _ in service.tasks.asked] == [("/tasks/lane", LANE)]


async def test_a_task_that_was_tried_before_and_meets_a_held_lane_comes_back_when_the_lease_ends(
    service: Service,
) -> None:
    """Its first worker may be dead, with the lane in hand."""
    lane = await held_by_another(service)
    answer = await service.post("/tasks/lane", LANE, **{"X-CloudTasks-TaskRetryCount": "1"})
    assert (answer.status_code, answer.json()) == (200, {"held": False})
    assert service.tasks.asked == [("/tasks/lane", LANE, lane.lease_until)]


async def test_a_first_task_that_meets_a_held_lane_is_dropped(service: Service) -> None:
    await held_by_another(service)
    answer = await service.post("/tasks/lane", LANE, **{"X-CloudTasks-TaskRetryCount": "0"})
    assert (answer.status_code, service.tasks.asked) == (200, [])


BAD_BODIES: dict[str, Any] = {
    "no JSON": b"{",
    "not even text": b"\xff\xfe\x00",
    "a list": [],
    "a number": 7,
    "nothing": b"",
    "no key": {"kind": "outbox"},
    "an empty key": {"kind": "outbox", "key": ""},
    "a key of a wrong type": {"kind": "outbox", "key": {"a": 1}},
    "a key that is a path": {"kind": "outbox", "key": "a/b"},
    "a key that is too long": {"kind": "outbox", "key": "x" * 2_000},
    "a kind that does not exist": {"kind": "gossip", "key": "shop"},
    "too large": {"kind": "outbox", "key": "shop", "padding": "x" * 100_000},
    "nested too deeply": b"[" * 60_000,
    "half of a surrogate pair in the key": {"kind": "outbox", "key": "shop\ud83d"},
    "half of a surrogate pair in the kind": {"kind": "outbox\ud83d", "key": "shop"},
    "a number of 5,000 digits": b'{"kind": "outbox", "key": ' + b"9" * 5_000 + b"}",
}


@pytest.mark.parametrize("case", BAD_BODIES)
async def test_a_task_that_no_retry_can_repair_is_dropped_with_a_line(
    service: Service, case: str, caplog: pytest.LogCaptureFixture
) -> None:
    answer = await service.post("/tasks/lane", BAD_BODIES[case])
    assert answer.status_code == 200
    assert answer.json().keys() == {"dropped"}
    lines = [getattr(record, "fields", {}) for record in caplog.records]
    assert [line["action"] for line in lines if "action" in line] == ["bad_task"]


@pytest.mark.parametrize("path", ["/tasks/lane", "/tasks/sweep"])
async def test_a_task_is_tried_again_when_firestore_is_out_of_reach(service: Service, path: str) -> None:
    await service.account()
    await service.send("request-1")
    await woken(service)
    service.store.is_down = True
    assert (await service.post(path, LANE)).status_code == 503
    service.store.is_down = False
    assert (await service.post("/tasks/lane", LANE)).json() == {"held": True}
    assert service.called == ["request-1"]


async def test_a_worker_that_is_stopping_sends_tasks_away_to_be_tried_elsewhere(service: Service) -> None:
    await service.account()
    await service.send("request-1")
    await woken(service)
    service.stop.set()
    await service.system.engine.stop()
    assert (await service.post("/tasks/lane", LANE)).status_code == 503
    assert service.called == []
    assert await service.status("request-1") == "queued"


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/tasks/lane", 405), ("POST", "/nowhere", 404)])
async def test_there_is_nothing_else(service: Service, method: str, path: str, status: int) -> None:
    assert (await service.http.request(method, path)).status_code == status


# --- what it shows


async def test_health_is_open_and_tells_nothing(service: Service) -> None:
    answer = await service.http.get("/healthz")
    assert (answer.status_code, answer.text) == (200, "ok")


async def metrics_of(service: Service) -> dict[str, float]:
    answer = await service.http.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain")
    found: dict[str, float] = {}
    for line in answer.text.splitlines():
        if line.startswith("#"):
            continue
        match = re.fullmatch(r"([a-z_]+)(?:\{(.*)\})? (\S+)", line)
        assert match, f"not in Prometheus' format: {line}"
        labels = [label for label in re.findall(r'(\w+="[^"]*")', match[2] or "") if not label.startswith("otel_")]
        found[match[1] + "".join(f"{{{label}}}" for label in labels)] = float(match[3])
    return found


@pytest.fixture
async def paced(served: Certificates) -> AsyncIterator[Service]:
    async with support.service(served, backoff_seconds=0.05) as service:
        yield service


async def test_metrics_are_open_and_count_what_was_done(paced: Service) -> None:
    service = paced
    before = await metrics_of(service)
    await service.account(pace={"perMinute": 120, "burst": 1})
    for n in range(3):
        await service.send(f"request-{n}", at=now() - timedelta(minutes=1))
    service.provider.core.faults = service.provider.core.faults.model_copy(
        update={"throttleRate": 1.0, "retryAfterSeconds": 0, "throttleScope": "recipient", "forCalls": 1}
    )
    await service.post("/tasks/sweep")
    await service.post("/tasks/lane", LANE)
    after = await metrics_of(service)

    def grew(name: str) -> float:
        return after.get(name, 0.0) - before.get(name, 0.0)

    assert grew('outbox_sweep_finds_total{kind="account"}') == 1
    assert grew('outbox_attempts_total{became="sent"}') == 3
    assert grew('outbox_attempts_total{became="queued"}') == 1
    assert grew('outbox_throttles_total{scope="recipient"}') == 1
    assert grew("outbox_queue_age_seconds_count") == 4
    assert grew("outbox_queue_age_seconds_sum") >= 3 * 60
    assert grew("outbox_pace_waits_seconds_total") > 0.5
    assert grew('outbox_firestore_operations_total{kind="read"}') >= 3
    assert grew('outbox_firestore_operations_total{kind="write"}') >= 9
    assert {'outbox_lanes{state="held"}', 'outbox_lanes{state="waiting"}'} <= after.keys()


async def test_a_lane_lost_to_another_worker_is_counted(service: Service) -> None:
    before = await metrics_of(service)
    await service.account()
    await service.send("request-1")
    await woken(service)
    service.provider.core.faults = service.provider.core.faults.model_copy(update={"latencyMs": 300})
    running = asyncio.create_task(service.post("/tasks/lane", LANE))
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not service.called:  # noqa: ASYNC110 - the provider has no event for its calls
            await asyncio.sleep(0.01)
    stored = await service.system.lanes.read(outbox_lane("shop"))
    taken = replace(stored.lane, owner="another-worker", fence=stored.lane.fence + 1)
    assert await service.system.lanes.write(outbox_lane("shop"), taken, stored) is not None
    assert (await running).status_code == 200
    after = await metrics_of(service)
    assert after.get("outbox_leases_lost_total", 0) - before.get("outbox_leases_lost_total", 0) == 1


async def test_metrics_hold_no_data_of_anybody(service: Service) -> None:
    await service.account("acme-corp")
    await service.send("request-1", "acme-corp")
    await woken(service, "acme-corp")
    await service.post("/tasks/lane", {"kind": "outbox", "key": "acme-corp"})
    text = (await service.http.get("/metrics")).text
    assert "acme-corp" not in text
    assert "+491701" not in text
