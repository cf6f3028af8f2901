"""The whole product on this machine, each part a process: Firestore, Cloud Tasks, functions, workers, a provider.

The product's own code runs as in production: events, tasks, tokens and webhooks travel over sockets.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import tempfile
from collections.abc import Awaitable, Iterator
from pathlib import Path

from firestore_emulator.official import EmulatorFailed, OfficialEmulator
from firestore_emulator.processes import ManagedProcess, ProcessFailed, free_port
from firestore_emulator.stack import HOST, CannotStart
from firestore_outbox.local.dev_addresses import DevAddresses
from firestore_outbox.local.dev_google import call_sweep, register_triggers, trigger_on
from firestore_outbox.local.dev_log import Tell
from firestore_outbox.local.dev_settings import PROJECT as PROJECT
from firestore_outbox.local.dev_settings import DevSettings as DevSettings
from firestore_outbox.local.provider_urls import provider_urls
from firestore_outbox.local.reload import HandlerFiles
from firestore_outbox.providers.credentials import FILE_VARIABLE


def queue_of(project: str) -> str:
    return f"projects/{project}/locations/us-central1/queues/outbox-lanes"


def service_account_of(project: str) -> str:
    return f"outbox-tasks@{project}.iam.gserviceaccount.com"


QUEUE = queue_of(PROJECT)
SERVICE_ACCOUNT = service_account_of(PROJECT)
UNSIGNED_TOKENS = f"{HOST}:9099"
"""Where firebase-admin would find an emulator. Without the console none is needed: with this set it believes unsigned
tokens."""


TRIGGER = trigger_on("outbox/{requestId}")
OPTIONS = {
    "firestore": "--firestore-port",
    "tasks": "--tasks-port",
    "functions": "--functions-port",
    "worker": "--worker-port",
    "provider": "--provider-port",
    "page": "--page-port",
    "console": "--console-port",
    "identity": "--identity-port",
}
LOOK_SECONDS = 0.5
"""Between two looks at the stack's processes."""
PARTS = {
    "google": "Firestore and Cloud Tasks",
    "functions": "the functions",
    "worker": "the worker",
    "provider": "the provider simulator",
    "page": "the chat page",
    "identity": "sign-in",
    "console": "the console",
}
EXPORTED = (
    "FIRESTORE_EMULATOR_HOST",
    "FIREBASE_AUTH_EMULATOR_HOST",
    "CLOUD_TASKS_EMULATOR_HOST",
    "OUTBOX_WORKER_URL",
    "OUTBOX_PROJECT",
    "GOOGLE_CLOUD_PROJECT",
    "OUTBOX_SIMULATED_URL",
    FILE_VARIABLE,
    "OUTBOX_MEDIA_DIR",
    "OUTBOX_FILES_URL",
    "OUTBOX_KMS_EMULATOR_HOST",
    "OUTBOX_KMS_KEY",
)
"""Variables that commands in other terminals need."""
TRIES = 3
"""How often ports are chosen, where they may be any."""


def _silent(_: str) -> None:
    """For a stack whose progress is not shown."""


class DevStack(DevAddresses):
    """`async with DevStack(settings) as stack`: all of it answers from the first line to the last."""

    def __init__(self, settings: DevSettings, tell: Tell = _silent) -> None:
        """`tell` is given a line for each step of the start, and for each part that had to be started again."""
        super().__init__(settings)
        self._tell = tell
        self._exit = contextlib.AsyncExitStack()
        self.processes: dict[str, ManagedProcess] = {}
        self._faulty: set[str] = set()
        """Parts that do not start with the user's code as it is now."""

    @property
    def environment(self) -> dict[str, str]:
        """What a program needs to find the stack."""
        return {
            "FIRESTORE_EMULATOR_HOST": self.firestore,
            "FIREBASE_AUTH_EMULATOR_HOST": (
                f"{HOST}:{self.ports['identity']}" if "identity" in self.ports else UNSIGNED_TOKENS
            ),
            "GOOGLE_CLOUD_PROJECT": self.settings.project,
            "OUTBOX_PROJECT": self.settings.project,
            "OUTBOX_TASKS_EMULATOR_HOST": self.tasks,
            "OUTBOX_WORKER_URL": self.worker_url,
            "OUTBOX_WEBHOOK_URL": f"http://{HOST}:{self.ports['functions']}",
            "OUTBOX_SERVICE_ACCOUNT": service_account_of(self.settings.project),
            **provider_urls(self.provider_url),
            **self._credentials_variable,
            **self._media,
            **self._origins,
            **self.settings.environment,
        }

    @property
    def exports(self) -> dict[str, str]:
        """What a command in another terminal needs to find the stack and to use it as the stack's own parts do."""
        known = {**self.environment, "CLOUD_TASKS_EMULATOR_HOST": self.tasks}
        if "identity" not in self.ports:
            del known["FIREBASE_AUTH_EMULATOR_HOST"]  # nothing listens there
        return {name: known[name] for name in EXPORTED if name in known}

    @property
    def _media(self) -> dict[str, str]:
        """Files are kept with everything else, unless the environment names a place for them."""
        named = [name for name in ("OUTBOX_MEDIA_DIR", "OUTBOX_MEDIA_BUCKET") if os.environ.get(name)]
        return {} if named else {"OUTBOX_MEDIA_DIR": str(self._files), "OUTBOX_FILES_URL": f"{self.provider_url}/files"}

    @property
    def _files(self) -> Path:
        return (self.settings.data or self._logs).absolute() / "media"

    @property
    def _origins(self) -> dict[str, str]:
        """The chat page may call the functions, unless the environment says which pages may."""
        is_named = os.environ.get("OUTBOX_ALLOWED_ORIGINS") or self.page_url is None
        return {} if is_named else {"OUTBOX_ALLOWED_ORIGINS": str(self.page_url)}

    async def __aenter__(self) -> DevStack:
        for left in reversed(range(TRIES)):
            try:
                await self._start()
                break
            except BaseException as error:
                await self._stop()
                if not left or not _was_taken_meanwhile(error, self.settings):
                    raise
        return self

    async def _start(self) -> None:
        self._choose_ports()
        self._logs = Path(self._exit.enter_context(tempfile.TemporaryDirectory(prefix="outbox-logs-")))
        await self._keep_credentials()
        await _all_of(self._start_firestore(), *(self.start(name, given) for name, given in self._arguments()))
        await register_triggers(self.firestore, self.settings.project)
        await self._start_page()
        sweeper = asyncio.create_task(
            call_sweep(
                self.tasks,
                queue_of(self.settings.project),
                self.environment,
                every_seconds=self.settings.sweep_seconds,
            )
        )
        self._exit.callback(sweeper.cancel)

    async def __aexit__(self, *exc: object) -> None:
        await self._stop()

    async def _stop(self) -> None:
        for name in ("console", "identity", "page", "worker", "functions", "provider", "google"):
            for process in [p for key, p in self.processes.items() if key.startswith(name)]:
                await process.stop()
        self.processes.clear()
        await self._exit.aclose()

    def _choose_ports(self) -> None:
        held = []
        try:
            for name, port in self.settings.wanted_ports.items():
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
        provider += ["--kms", str((settings.data or self._logs).absolute() / "kms.json")]
        provider += ["--files", str(self._files)]
        provider += ["--billing", f"http://{self._functions}/billing"]
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
        if "console" in port:
            yield (
                "identity",
                [
                    "firestore_outbox.local.identity",
                    "--port",
                    port["identity"],
                    "--project",
                    settings.project,
                ],
            )
            yield "console", ["firestore_outbox.cli", "console", "--port", port["console"]]

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
                is_ours = self.processes.get(name) is process and name not in self._faulty
                if not process.is_running and is_ours:
                    self._tell(f"{name} ended; starting it again. Its log: {self._logs / f'{name}.log'}")
                    with contextlib.suppress(ProcessFailed):  # the next look tries once more
                        await process.start()
                        self._tell(f"{name} runs again")
                        if name == "google" and self.settings.data is None:
                            self._tell("Firestore kept everything in memory: its documents are gone (see --data)")
                            await register_triggers(self.firestore, self.settings.project)

    async def _reload(self, changed: list[Path]) -> None:
        """Start again what runs the user's code. With a fault in it, that waits for the next change of a file."""
        self._tell(f"{', '.join(path.name for path in changed[:3])} changed: loading your handlers anew")
        for name in ("worker", "functions"):
            process = self.processes[name]
            await process.stop()
            try:
                await process.start()
                self._faulty.discard(name)
            except ProcessFailed as error:
                self._faulty.add(name)
                self._tell(f"{name} does not start with the change, and waits for the next one: {error}")


def _was_taken_meanwhile(error: BaseException, settings: DevSettings) -> bool:
    """Whether another process took a port between our choice of it and the part's start."""
    failed = isinstance(error, CannotStart | ProcessFailed | EmulatorFailed)
    return failed and 0 in settings.wanted_ports.values() and ("is taken" in str(error) or "in use" in str(error))


async def _all_of(*work: Awaitable[object]) -> None:
    """At once; and when one fails, only after the others have come to their end too, so that all can be stopped."""
    for result in await asyncio.gather(*work, return_exceptions=True):
        if isinstance(result, BaseException):
            raise result
