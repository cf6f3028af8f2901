"""The user's code on real processes: events by HTTP, the dev stack's functions and worker, and a worker that dies."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
import pytest_asyncio
from google.cloud import tasks_v2
from google.cloud.tasks_v2.services.cloud_tasks.transports import CloudTasksGrpcAsyncIOTransport

from firestore_outbox.local.dev import QUEUE, SERVICE_ACCOUNT, DevSettings, DevStack
from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.asyncio(loop_scope="module")
HERE = Path(__file__).parent
SECRET = "a secret of this test"
AUDIENCE = "https://events.example"
EVENTS = {
    "nextup": {"scheme": "secret", "header": "X-Token", "key": "/assignee", "id": "/id"},
    "nightly": {"scheme": "oidc", "audience": AUDIENCE, "email": SERVICE_ACCOUNT, "key": "/assignee"},
}


@dataclass
class Plan:
    stack: DevStack
    log: Path
    sent: int = 0

    async def event(self, assignee: str | None, **data: Any) -> httpx.Response:
        self.sent += 1
        body = {"id": f"event-{self.sent}", "assignee": assignee, "number": self.sent, **data}
        async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE_SECONDS) as http:
            return await http.post(self.url("nextup"), json=body, headers={"X-Token": SECRET})

    def url(self, kind: str) -> str:
        return f"http://127.0.0.1:{self.stack.ports['functions']}/v1/events/{kind}"

    async def task(self, assignee: str, *, audience: str) -> None:
        """Cloud Tasks posts an event of the kind nightly, with a token that it signs for this audience."""
        token = tasks_v2.OidcToken(service_account_email=SERVICE_ACCOUNT, audience=audience)
        body = json.dumps({"assignee": assignee, "number": 0}).encode()
        request = tasks_v2.HttpRequest(url=self.url("nightly"), body=body, oidc_token=token)
        async with grpc.aio.insecure_channel(self.stack.tasks) as channel:
            client = tasks_v2.CloudTasksAsyncClient(transport=CloudTasksGrpcAsyncIOTransport(channel=channel))
            await client.create_task(parent=QUEUE, task=tasks_v2.Task(http_request=request))

    def runs(self, *keys: str) -> list[tuple[str, int]]:
        """Key and number of events of each run of these keys, in order."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        found = [json.loads(line) for line in lines]
        return [(run["key"], len(run["numbers"])) for run in found if run["key"] in keys]

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(3 * PATIENCE_SECONDS):
            while not condition():  # noqa: ASYNC110 - a file has no event
                await asyncio.sleep(0.1)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def plan(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Plan]:
    log = tmp_path_factory.mktemp("plan") / "runs.log"
    environment = {
        "PYTHONPATH": str(HERE),
        "PLAN_LOG": str(log),
        "OUTBOX_HANDLERS": "ranking",
        "OUTBOX_EVENTS": json.dumps(EVENTS),
        "OUTBOX_EVENT_SECRET_NEXTUP": SECRET,
        "OUTBOX_LIMITS": "notion=3/3",
        "OUTBOX_LANE_CONCURRENCY": "1",
        "OUTBOX_LEASE_SECONDS": "10",
        "OUTBOX_SEND_TIMEOUT_SECONDS": "4",
        "OUTBOX_LOG_LEVEL": "WARNING",
    }
    ports = dict.fromkeys(("firestore_port", "tasks_port", "functions_port", "worker_port", "provider_port"), 0)
    async with DevStack(DevSettings(**ports, environment=environment, sweep_seconds=5)) as stack:  # type: ignore[arg-type]  # ports are numbers
        keeping = asyncio.create_task(stack.keep_running())
        yield Plan(stack, log)
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)


async def test_a_burst_of_events_is_one_run(plan: Plan) -> None:
    answers = [await plan.event("burst") for _ in range(5)]
    assert [answer.status_code for answer in answers] == [202] * 5
    await plan.until(lambda: sum(count for _, count in plan.runs("burst")) == 5)
    assert len(plan.runs("burst")) <= 2, "on a machine so slow that the first events were quiet for a second"


async def test_an_event_that_is_delivered_twice_counts_once(plan: Plan) -> None:
    answers = [await plan.event("twice", id="delivered-twice") for _ in range(2)]
    assert [answer.json()["isNew"] for answer in answers] == [True, False]
    await plan.event("twice")
    await plan.until(lambda: sum(count for _, count in plan.runs("twice")) == 2)
    await plan.event("behind-twice")
    await plan.until(lambda: len(plan.runs("behind-twice")) == 1)
    assert sum(count for _, count in plan.runs("twice")) == 2


async def test_an_event_comes_in_with_a_token_for_its_audience_and_for_no_other(plan: Plan) -> None:
    await plan.task("stranger", audience="https://elsewhere.example")
    await plan.task("tasks", audience=AUDIENCE)
    await plan.until(lambda: len(plan.runs("tasks")) == 1)
    async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE_SECONDS) as http:
        without = await http.post(plan.url("nightly"), json={"assignee": "stranger", "number": 0})
    assert without.status_code == 401
    assert plan.runs("stranger") == []


async def test_an_event_without_an_assignee_is_skipped(plan: Plan) -> None:
    answer = await plan.event(None)
    assert (answer.status_code, answer.json()) == (200, {"skipped": True})


async def test_a_users_rerun_goes_behind_the_user_who_waits(plan: Plan) -> None:
    await plan.event("U1", seconds=8)
    await plan.until(lambda: len(plan.runs("U1")) == 1)
    await plan.event("U2")
    await plan.event("U1")
    await plan.until(lambda: len(plan.runs("U1", "U2")) == 3)
    assert [key for key, _ in plan.runs("U1", "U2")] == ["U1", "U2", "U1"]


async def test_after_a_429_the_work_is_done(plan: Plan) -> None:
    await plan.event("slow", throttled=True)
    await plan.event("other")
    await plan.until(lambda: len(plan.runs("slow")) == 2 and len(plan.runs("other")) == 1)


async def test_a_run_whose_worker_is_killed_is_made_once_more(plan: Plan) -> None:
    await plan.event("victim", crash=True)
    await plan.until(lambda: len(plan.runs("victim")) == 2)
    await plan.event("after")
    await plan.until(lambda: len(plan.runs("after")) == 1)
    assert plan.runs("victim") == [("victim", 1), ("victim", 1)]
