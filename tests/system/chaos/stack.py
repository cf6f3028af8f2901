"""The whole product, durable, with something that can be cut between any two of its parts.

Firestore and Cloud Tasks are a process each, the functions one, the workers three behind one address, the provider one.
A link is named by who calls and who is called: `worker-1>firestore`. The provider is a world of its own: it misbehaves
as ordered, but does not die, for its record is what everything is judged by.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Self

import grpc
import httpx
from google.api_core.exceptions import GoogleAPICallError
from google.auth.credentials import AnonymousCredentials
from google.cloud import tasks_v2
from google.cloud.firestore import AsyncClient
from google.cloud.tasks_v2.services.cloud_tasks.transports import CloudTasksGrpcAsyncIOTransport

from firestore_outbox.local.dev import PROJECT, QUEUE, SERVICE_ACCOUNT, TRIGGER, UNSIGNED_TOKENS
from firestore_outbox.local.functions_host import OUTBOX_TRIGGER
from firestore_outbox.local.product import INDEXES
from firestore_outbox.local.simulators.simulator import DEFAULT_SECRET
from tests.patience import PATIENCE_SECONDS
from tests.system.acceptance.balancer import Balancer
from tests.system.chaos.clocked_worker import VARIABLE as CLOCK_VARIABLE
from tests.system.chaos.link import Link
from tests.system.chaos.parts import Part
from tests.system.chaos.plan import WORKERS
from tests.system.chaos.tempo import Tempo

ROOT = Path(__file__).resolve().parents[3]
FIRESTORE_VARIABLE = "FIRESTORE_EMULATOR_HOST"
CALLED: dict[str, tuple[str, ...]] = {
    "firestore": (*WORKERS, "functions", "clients"),
    "tasks": (*WORKERS, "functions"),
    "functions": ("firestore", "provider"),
    "provider": WORKERS,
    **dict.fromkeys(WORKERS, ("tasks",)),
}
"""Who calls whom."""
LINKS = tuple(f"{caller}>{called}" for called, callers in CALLED.items() for caller in callers)
BY_US = ("us>firestore", "us>tasks", "us>provider")
"""Of the scheduler and the judge. Never cut."""


class ChaosStack:
    """`async with ChaosStack(directory, tempo) as stack`: all of it answers when the block begins."""

    def __init__(self, directory: Path, tempo: Tempo) -> None:
        self.directory = directory
        self.tempo = tempo
        self.links = {name: Link(name) for name in (*LINKS, *BY_US)}
        self.balancer = Balancer()
        self.parts: dict[str, Part] = {}
        self._exit = contextlib.AsyncExitStack()

    @property
    def provider_url(self) -> str:
        return f"http://{self.links['us>provider'].address}"

    async def __aenter__(self) -> Self:
        (self.directory / "logs").mkdir(parents=True, exist_ok=True)
        try:
            for link in self.links.values():
                await self._exit.enter_async_context(link)
            await self._exit.enter_async_context(self.balancer)
            self.parts = self._all_parts()
            for worker in WORKERS:
                self.clock_file(worker).write_text("0", encoding="ascii")
            await asyncio.gather(*(part.start() for part in self.parts.values()))
            self.spread_tasks()
            await self._register_trigger()
            scheduler = asyncio.create_task(self._sweep())
            self._exit.callback(scheduler.cancel)
        except BaseException:
            await self._stop()
            raise
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._stop()

    async def _stop(self) -> None:
        for name in (*WORKERS, "functions", "provider", "tasks", "firestore"):
            if name in self.parts:
                await self.parts[name].stop()
        await self._exit.aclose()

    @property
    def record(self) -> Path:
        """The provider's file of calls."""
        return self.directory / "data" / "provider-calls.jsonl"

    def clock_file(self, worker: str) -> Path:
        return self.directory / f"{worker}.clock"

    def log_file(self, part: str) -> Path:
        return self.directory / "logs" / f"{part}.log"

    def spread_tasks(self) -> None:
        """Sends tasks to the workers that run: a dead instance gets none. A paused one does."""
        alive = [worker for worker in WORKERS if self.parts[worker].is_running]
        self.balancer.backends = [self.links[f"tasks>{worker}"].port for worker in alive]

    # --- the parts

    def _all_parts(self) -> dict[str, Part]:
        data, indexes = self.directory / "data", ["--indexes", str(INDEXES)]
        functions, webhook = self.links["firestore>functions"].address, self.links["provider>functions"].address

        def firestore(port: int) -> list[str]:  # the Cloud Tasks that comes with it has no queue, and no use
            here = ["--firestore-port", str(port), "--tasks-port", "0", "--data", str(data / "firestore")]
            return ["firestore_outbox.cli", "emulator", *here, "--functions", functions, *indexes]

        def tasks(port: int) -> list[str]:
            here = ["--tasks-port", str(port), "--data", str(data / "tasks")]
            return ["firestore_outbox.cli", "emulator", "--tasks-only", *here, "--queue", QUEUE]

        def provider(port: int) -> list[str]:
            url = f"http://{webhook}/{{provider}}/{{accountId}}"
            return [
                "firestore_outbox.local.simulators",
                "--port",
                str(port),
                "--webhook",
                url,
                "--data",
                str(self.record),
            ]

        def worker_named(name: str) -> Callable[[int], list[str]]:
            return lambda port: [self.worker_module(name), "worker", "--port", str(port)]

        made: dict[str, Callable[[int], list[str]]] = {"firestore": firestore, "tasks": tasks, "provider": provider}
        made["functions"] = lambda port: [self.functions_module(), "functions", str(port)]
        made |= {name: worker_named(name) for name in WORKERS}
        return {
            name: Part(name, arguments, self.environment_of(name), self.log_file(name), list(self._links_to(name)))
            for name, arguments in made.items()
        }

    def worker_module(self, name: str) -> str:
        """The module that runs this worker, read at each start."""
        return "tests.system.chaos.clocked_worker"

    def functions_module(self) -> str:
        """The module that serves the functions, read at each start."""
        return "firestore_outbox.local.serve_app"

    def _links_to(self, part: str) -> Iterator[Link]:
        return (link for name, link in self.links.items() if name.partition(">")[2] == part)

    def environment_of(self, part: str) -> dict[str, str]:
        found = {"PYTHONPATH": str(ROOT), "OUTBOX_LOG_LEVEL": "INFO"}
        if part not in (*WORKERS, "functions"):
            return found
        provider = self.links.get(f"{part}>provider", self.links["us>provider"])  # functions call none
        return {
            **found,
            FIRESTORE_VARIABLE: self.links[f"{part}>firestore"].address,
            "FIREBASE_AUTH_EMULATOR_HOST": UNSIGNED_TOKENS,
            "GOOGLE_CLOUD_PROJECT": PROJECT,
            "OUTBOX_PROJECT": PROJECT,
            "OUTBOX_TASKS_EMULATOR_HOST": self.links[f"{part}>tasks"].address,
            "OUTBOX_WORKER_URL": self.balancer.url,
            "OUTBOX_SERVICE_ACCOUNT": SERVICE_ACCOUNT,
            "OUTBOX_SIMULATED_URL": f"http://{provider.address}",
            "OUTBOX_CREDENTIALS": json.dumps({"*": {"token": "local", "webhookSecret": DEFAULT_SECRET}}),
            CLOCK_VARIABLE: str(self.clock_file(part)),
            **self.tempo.environment,
        }

    async def _register_trigger(self) -> None:
        url = f"http://{self.links['us>firestore'].address}/emulator/v1/projects/{PROJECT}/eventarcTrigger"
        async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE_SECONDS) as http:
            answer = await http.post(url, params={"eventarcTriggerId": OUTBOX_TRIGGER}, json=TRIGGER)
            answer.raise_for_status()

    async def _sweep(self) -> None:
        """Cloud Scheduler's part. Cloud Tasks is down now and then; the next time comes."""
        options = [("grpc.max_reconnect_backoff_ms", 1000)]
        channel = grpc.aio.insecure_channel(self.links["us>tasks"].address, options=options)
        client = tasks_v2.CloudTasksAsyncClient(transport=CloudTasksGrpcAsyncIOTransport(channel=channel))
        token = tasks_v2.OidcToken(service_account_email=SERVICE_ACCOUNT, audience=self.balancer.url)
        request = tasks_v2.HttpRequest(url=f"{self.balancer.url}/tasks/sweep", body=b"{}", oidc_token=token)
        while True:
            await asyncio.sleep(self.tempo.sweep_seconds)
            with contextlib.suppress(GoogleAPICallError):
                await client.create_task(parent=QUEUE, task=tasks_v2.Task(http_request=request), timeout=5)

    # --- the provider

    async def order_faults(self, faults: dict[str, Any]) -> None:
        async with httpx.AsyncClient(base_url=self.provider_url, trust_env=False, timeout=PATIENCE_SECONDS) as http:
            (await http.put("/_sim/faults", json=faults)).raise_for_status()

    async def calls(self) -> list[dict[str, Any]]:
        """All that the provider has seen, oldest first."""
        async with httpx.AsyncClient(base_url=self.provider_url, trust_env=False, timeout=PATIENCE_SECONDS) as http:
            found: list[dict[str, Any]] = (await http.get("/_sim/calls")).raise_for_status().json()
            return found

    def accepted(self) -> frozenset[str]:
        """The requestIds that the provider has accepted so far."""
        calls = (json.loads(line) for line in self.record.read_bytes().splitlines())
        return frozenset(call["request_id"] for call in calls if call["accepted"])

    async def webhooks_pending(self) -> int:
        async with httpx.AsyncClient(base_url=self.provider_url, trust_env=False, timeout=PATIENCE_SECONDS) as http:
            return int((await http.get("/_sim/health")).raise_for_status().json()["webhooksPending"])

    # --- Firestore

    @asynccontextmanager
    async def client(self, caller: str) -> AsyncIterator[AsyncClient]:
        """Google's client, over the link of `clients` or of `us`."""
        with _pointed_at(self.links[f"{caller}>firestore"].address):
            client = AsyncClient(project=PROJECT, credentials=AnonymousCredentials())
        try:
            yield client
        finally:
            client.close()


@contextmanager
def _pointed_at(address: str) -> Iterator[None]:
    """The library reads it once, when a client is made."""
    before = os.environ.get(FIRESTORE_VARIABLE)
    os.environ[FIRESTORE_VARIABLE] = address
    try:
        yield
    finally:
        if before is None:
            del os.environ[FIRESTORE_VARIABLE]
        else:
            os.environ[FIRESTORE_VARIABLE] = before
