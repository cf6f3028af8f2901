"""The whole product on this machine, each part a process: Firestore, Cloud Tasks, functions, workers, a provider.

The product's own code runs as in production: events, tasks, tokens and webhooks travel over sockets.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import tempfile
from collections.abc import Awaitable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import httpx
from google.api_core.exceptions import GoogleAPICallError
from google.cloud import tasks_v2
from google.cloud.tasks_v2.services.cloud_tasks.transports import CloudTasksGrpcAsyncIOTransport

from firestore_emulator.official import EmulatorFailed, OfficialEmulator
from firestore_emulator.processes import ManagedProcess, ProcessFailed, free_port
from firestore_emulator.stack import HOST, CannotStart
from firestore_outbox.local.dev_log import Tell
from firestore_outbox.local.functions_host import TRIGGERS
from firestore_outbox.local.product import INDEXES, RULES
from firestore_outbox.local.provider_urls import provider_urls
from firestore_outbox.local.reload import HandlerFiles
from firestore_outbox.local.simulators.simulator import DEFAULT_SECRET
from firestore_outbox.providers.credentials import EVERYBODY, FILE_VARIABLE, SECRETS_VARIABLE, VARIABLE
from firestore_outbox.providers.store_secrets import FileKeeper

PROJECT = "demo-outbox"


def queue_of(project: str) -> str:
    return f"projects/{project}/locations/us-central1/queues/outbox-lanes"


def service_account_of(project: str) -> str:
    return f"outbox-tasks@{project}.iam.gserviceaccount.com"


QUEUE = queue_of(PROJECT)
SERVICE_ACCOUNT = service_account_of(PROJECT)
UNSIGNED_TOKENS = f"{HOST}:9099"
"""Where firebase-admin would find an emulator. None is needed: with this set it believes unsigned tokens."""


def trigger_on(documents: str) -> dict[str, object]:
    """Of created documents whose path has this pattern."""
    return {
        "eventType": "google.cloud.firestore.document.v1.created",
        "database": "(default)",
        "namespace": "(default)",
        "document": {"value": documents, "matchType": "PATH_PATTERN"},
    }


TRIGGER = trigger_on("outbox/{requestId}")
OPTIONS = {
    "firestore": "--firestore-port",
    "tasks": "--tasks-port",
    "functions": "--functions-port",
    "worker": "--worker-port",
    "provider": "--provider-port",
    "page": "--page-port",
}
LOOK_SECONDS = 0.5
"""Between two looks at the stack's processes."""
PARTS = {
    "google": "Firestore and Cloud Tasks",
    "functions": "the functions",
    "worker": "the worker",
    "provider": "the provider simulator",
    "page": "the chat page",
}
EXPORTED = (
    "FIRESTORE_EMULATOR_HOST",
    "CLOUD_TASKS_EMULATOR_HOST",
    "OUTBOX_WORKER_URL",
    "OUTBOX_PROJECT",
    "GOOGLE_CLOUD_PROJECT",
    "OUTBOX_SIMULATED_URL",
    FILE_VARIABLE,
    "OUTBOX_MEDIA_DIR",
)
"""Variables that commands in other terminals need."""
STRANGERS_SECONDS = 2.0
"""Between two looks for documents in databases that the stack does not serve."""
TRIES = 3
"""How often ports are chosen, where they may be any."""


@dataclass(frozen=True, kw_only=True)
class DevSettings:
    """Ports of 0 are free ones."""

    project: str = PROJECT
    """The project id of all parts; clients must use the same."""
    firestore_port: int = 8080
    tasks_port: int = 8123
    functions_port: int = 8081
    worker_port: int = 8082
    provider_port: int = 8083
    page_port: int | None = None
    """Where to serve the chat page; None serves none."""
    data: Path | None = None
    """A directory; None keeps everything in memory."""
    indexes: Path | None = INDEXES
    """Queries that production would refuse, with these, are refused; None serves all."""
    rules: Path | None = RULES
    """Security rules for browsers and apps, on either emulator; server-side clients pass them by. None: no rules."""
    official: bool = False
    """Google's Firestore emulator instead of ours."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Settings of functions and workers."""
    sweep_seconds: float = 60.0


def _silent(_: str) -> None:
    """For a stack whose progress is not shown."""


class DevStack:
    """`async with DevStack(settings) as stack`: all of it answers from the first line to the last."""

    def __init__(self, settings: DevSettings, tell: Tell = _silent) -> None:
        """`tell` is given a line for each step of the start, and for each part that had to be started again."""
        self.settings = settings
        self._tell = tell
        self._exit = contextlib.AsyncExitStack()
        self.ports: dict[str, int] = {}
        self.processes: dict[str, ManagedProcess] = {}
        self._logs = Path()

    @property
    def firestore(self) -> str:
        return f"{HOST}:{self.ports['firestore']}"

    @property
    def tasks(self) -> str:
        return f"{HOST}:{self.ports['tasks']}"

    @property
    def _functions(self) -> str:
        return f"{HOST}:{self.ports['functions']}"

    @property
    def worker_url(self) -> str:
        return f"http://{HOST}:{self.ports['worker']}"

    @property
    def provider_url(self) -> str:
        return f"http://{HOST}:{self.ports['provider']}"

    @property
    def page_url(self) -> str | None:
        return f"http://{HOST}:{self.ports['page']}" if "page" in self.ports else None

    @property
    def environment(self) -> dict[str, str]:
        """What a program needs to find the stack."""
        return {
            "FIRESTORE_EMULATOR_HOST": self.firestore,
            "FIREBASE_AUTH_EMULATOR_HOST": UNSIGNED_TOKENS,
            "GOOGLE_CLOUD_PROJECT": self.settings.project,
            "OUTBOX_PROJECT": self.settings.project,
            "OUTBOX_TASKS_EMULATOR_HOST": self.tasks,
            "OUTBOX_WORKER_URL": self.worker_url,
            "OUTBOX_SERVICE_ACCOUNT": service_account_of(self.settings.project),
            **provider_urls(self.provider_url),
            **self._credentials_variable,
            **self._media,
            **self.settings.environment,
        }

    @property
    def exports(self) -> dict[str, str]:
        """What a command in another terminal needs to find the stack and to use it as the stack's own parts do."""
        known = {**self.environment, "CLOUD_TASKS_EMULATOR_HOST": self.tasks}
        return {name: known[name] for name in EXPORTED if name in known}

    @property
    def _credentials_file(self) -> Path | None:
        """The file of credentials, which `outbox accounts add` and the parts share: an account's own credentials win
        over those of the simulator. None: the settings or the environment name another place."""
        if any(name in self.settings.environment for name in (FILE_VARIABLE, VARIABLE, SECRETS_VARIABLE)):
            return None
        if os.environ.get(FILE_VARIABLE):
            return None
        return (self.settings.data or self._logs).absolute() / "credentials.json"

    @property
    def _credentials_variable(self) -> dict[str, str]:
        file = self._credentials_file
        if file is not None:
            return {FILE_VARIABLE: str(file)}
        return {FILE_VARIABLE: os.environ[FILE_VARIABLE]} if os.environ.get(FILE_VARIABLE) else {}

    async def _keep_credentials(self) -> None:
        file = self._credentials_file
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            await FileKeeper(file).keep(EVERYBODY, self._credentials)

    @property
    def _credentials(self) -> dict[str, str]:
        """Credentials for each account that has none of its own: the simulator answers for every provider."""
        return {
            "webhookSecret": DEFAULT_SECRET,
            "token": "local",
            "apiKey": "local",
            "phoneNumberId": "{accountId}",  # literally: the adapter fills it in
            "verifyToken": "local",
            "url": f"{self.provider_url}/signed_webhook",
            "signingSecret": DEFAULT_SECRET,
            "baseUrl": f"{self.provider_url}/waha",
            "session": "{accountId}",
        }

    @property
    def _media(self) -> dict[str, str]:
        """Files are kept with everything else, unless the environment names a place for them."""
        named = [name for name in ("OUTBOX_MEDIA_DIR", "OUTBOX_MEDIA_BUCKET") if os.environ.get(name)]
        return {} if named else {"OUTBOX_MEDIA_DIR": str((self.settings.data or self._logs).absolute() / "media")}

    async def __aenter__(self) -> DevStack:
        for left in reversed(range(TRIES)):
            try:
                await self._start()
                break
            except BaseException as error:
                await self._stop()
                if not left or not self._was_taken_meanwhile(error):
                    raise
        return self

    async def _start(self) -> None:
        self._choose_ports()
        self._logs = Path(self._exit.enter_context(tempfile.TemporaryDirectory(prefix="outbox-logs-")))
        await self._keep_credentials()
        await _all_of(self._start_firestore(), *(self.start(name, given) for name, given in self._arguments()))
        await self._register_trigger()
        await self._start_page()
        sweeper = asyncio.create_task(self._sweep())
        self._exit.callback(sweeper.cancel)

    def _was_taken_meanwhile(self, error: BaseException) -> bool:
        """Whether another process took a port between our choice of it and the part's start."""
        failed = isinstance(error, CannotStart | ProcessFailed | EmulatorFailed)
        return failed and 0 in self._wanted_ports.values() and ("is taken" in str(error) or "in use" in str(error))

    async def __aexit__(self, *exc: object) -> None:
        await self._stop()

    async def _stop(self) -> None:
        for name in ("page", "worker", "functions", "provider", "google"):
            for process in [p for key, p in self.processes.items() if key.startswith(name)]:
                await process.stop()
        self.processes.clear()
        await self._exit.aclose()

    @property
    def _wanted_ports(self) -> dict[str, int]:
        wanted = {
            "firestore": self.settings.firestore_port,
            "tasks": self.settings.tasks_port,
            "functions": self.settings.functions_port,
            "worker": self.settings.worker_port,
            "provider": self.settings.provider_port,
        }
        return wanted if self.settings.page_port is None else wanted | {"page": self.settings.page_port}

    def _choose_ports(self) -> None:
        held = []
        try:
            for name, port in self._wanted_ports.items():
                listener = socket.socket()
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                held.append(listener)
                try:
                    listener.bind((HOST, port or free_port()))
                except OSError:
                    raise CannotStart(
                        f"port {port} on {HOST} is taken; choose another with {OPTIONS[name]} (0 takes a free one)"
                    ) from None
                self.ports[name] = listener.getsockname()[1]
        finally:
            for listener in held:
                listener.close()

    async def _start_firestore(self) -> None:
        """Google's, where it was asked for; ours comes with Cloud Tasks."""
        if self.settings.official:
            emulator = await asyncio.to_thread(
                OfficialEmulator.start,
                port=self.ports["firestore"],
                rules=self.settings.rules,
                functions_emulator=self._functions,
            )
            self._exit.callback(emulator.stop)

    def _arguments(self) -> Iterator[tuple[str, list[str]]]:
        """Each process and how it is called. None of them needs another one to begin."""
        settings, port = self.settings, {name: str(number) for name, number in self.ports.items()}
        google = ["firestore_outbox.cli", "emulator", "--tasks-port", port["tasks"]]
        google += ["--queue", queue_of(settings.project)]
        provider = ["firestore_outbox.local.simulators", "--port", port["provider"]]
        provider += ["--webhook", f"http://{self._functions}/{{provider}}/{{accountId}}"]
        if settings.official:
            google += ["--tasks-only"]
        else:
            google += ["--firestore-port", port["firestore"], "--functions", self._functions]
            google += [] if settings.indexes is None else ["--indexes", str(settings.indexes)]
            google += [] if settings.rules is None else ["--rules", str(settings.rules)]
        if settings.data is not None:
            google += ["--data", str(settings.data)]
            provider += ["--data", str(settings.data / "provider-calls.jsonl")]
        yield "google", google
        yield "provider", provider
        yield "functions", ["firestore_outbox.local.serve_app", "functions", port["functions"]]
        yield "worker", ["firestore_outbox.cli", "worker", "--port", port["worker"]]

    async def _start_page(self) -> None:
        """After Firestore, where it finds its accounts or makes them."""
        if "page" in self.ports:
            page = ["firestore_outbox.local.chat_page", "--port", str(self.ports["page"])]
            page += ["--project", self.settings.project]
            page += ["--firestore", self.firestore, "--provider", self.provider_url]
            page += ["--functions", f"http://{self._functions}", "--worker", self.worker_url]
            await self.start("page", page)

    async def start(self, name: str, arguments: list[str]) -> str:
        """Its ready line. The process is stopped with the stack; by its name, workers first."""
        process = ManagedProcess(name, arguments, self.environment, self._logs / f"{name}.log")
        self.processes[name] = process
        ready = await process.start()
        self._tell(f"started {PARTS.get(name, name)}")
        return ready

    @property
    def logs(self) -> dict[str, Path]:
        """The log file of each part."""
        return {name: self._logs / f"{name}.log" for name in self.processes}

    @property
    def log_directory(self) -> Path:
        return self._logs

    async def keep_running(self) -> None:
        """Start each part again that ended by itself, and load handlers anew that changed, until cancelled."""
        handlers = HandlerFiles({**os.environ, **self.environment})
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            if changed := await asyncio.to_thread(handlers.changed):
                await self._reload(changed)
            for name, process in list(self.processes.items()):
                if not process.is_running and self.processes.get(name) is process:
                    self._tell(f"{name} ended; starting it again. Its log: {self._logs / f'{name}.log'}")
                    with contextlib.suppress(ProcessFailed):  # the next look tries once more
                        await process.start()
                        self._tell(f"{name} runs again")
                        if name == "google" and self.settings.data is None:
                            self._tell("Firestore kept everything in memory: its documents are gone (see --data)")
                            await self._register_trigger()

    async def _reload(self, changed: list[Path]) -> None:
        """Stop cleanly what runs the user's code. `keep_running` starts it again, also when a new file has a fault."""
        self._tell(f"{', '.join(path.name for path in changed[:3])} changed: loading your handlers anew")
        for name in ("worker", "functions"):
            process = self.processes[name]
            await process.stop()
            try:
                await process.start()
            except ProcessFailed as error:
                self._tell(f"{name} does not start with the change: {error}. It is tried again.")

    async def report_strangers(self) -> None:
        """Tell of each database that no part of the stack works on and that holds documents, once, until cancelled.

        Google's emulator does not list databases: there is nothing to tell then."""
        known = {f"projects/{self.settings.project}/databases/(default)"}
        async with httpx.AsyncClient(trust_env=False, timeout=30, base_url=f"http://{self.firestore}") as client:
            while not self.settings.official:
                await asyncio.sleep(STRANGERS_SECONDS)
                with contextlib.suppress(httpx.HTTPError):  # the emulator starts again
                    answer = await client.get("/emulator/v1/databases")
                    found = {one["name"] for one in answer.json()["databases"]} if answer.is_success else set()
                    for name in sorted(found - known):
                        self._tell(stranger(name, self.settings.project))
                    known |= found

    async def _register_trigger(self) -> None:
        url = f"http://{self.firestore}/emulator/v1/projects/{self.settings.project}/eventarcTrigger"
        async with httpx.AsyncClient(trust_env=False, timeout=30) as client:
            for name, documents in TRIGGERS.items():
                trigger = trigger_on(documents)
                (await client.post(url, params={"eventarcTriggerId": name}, json=trigger)).raise_for_status()

    async def _sweep(self) -> None:
        """Cloud Scheduler's part: a call of the sweep, each minute."""
        channel = grpc.aio.insecure_channel(self.tasks)
        client = tasks_v2.CloudTasksAsyncClient(transport=CloudTasksGrpcAsyncIOTransport(channel=channel))
        worker = self.environment["OUTBOX_WORKER_URL"]  # the settings may name another: a balancer before several
        account = self.environment["OUTBOX_SERVICE_ACCOUNT"]
        token = tasks_v2.OidcToken(service_account_email=account, audience=worker)
        request = tasks_v2.HttpRequest(url=f"{worker}/tasks/sweep", body=b"{}", oidc_token=token)
        queue = queue_of(self.settings.project)
        while True:
            await asyncio.sleep(self.settings.sweep_seconds)
            with contextlib.suppress(GoogleAPICallError):  # down for a moment: the next minute comes
                await client.create_task(parent=queue, task=tasks_v2.Task(http_request=request))


def stranger(name: str, project: str) -> str:
    """What to do about documents in this database (`projects/x/databases/y`), which the stack does not serve."""
    _, other, _, database = name.split("/")
    if other != project:
        return (
            f"! a client writes to project {other}, and this stack serves project {project}: nothing of it is sent."
            f" Use the project id {project} in that client, or start `outbox dev --project {other}`"
        )
    return (
        f"! a client writes to the database {database}, and the outbox works on (default): nothing of it is sent."
        " Use (default) in that client"
    )


async def _all_of(*work: Awaitable[object]) -> None:
    """At once; and when one fails, only after the others have come to their end too, so that all can be stopped."""
    for result in await asyncio.gather(*work, return_exceptions=True):
        if isinstance(result, BaseException):
            raise result
