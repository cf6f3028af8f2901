"""A real stack sends one message; its processes write down the files in which a function ran."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from google.auth.credentials import AnonymousCredentials
from google.cloud import firestore

from firestore_outbox import new_request_id, send_message
from firestore_outbox.local.dev import PROJECT, DevSettings, DevStack
from tests.patience import PATIENCE_SECONDS

HOOK = Path(__file__).parent / "hook"
PRODUCT = Path(__file__).parents[3] / "worker" / "firestore_outbox"
TRACED = ("functions", "worker")
NOT_THE_PRODUCT = "local/"
"""The dev stack and the simulators, which nothing in production runs."""


async def traced_files(*, short_turns: bool = False) -> list[str]:
    """Paths below firestore_outbox/, sorted. The walk of the page is the one by a worker, without short turns."""
    with tempfile.TemporaryDirectory() as directory:
        async with _stack(Path(directory), short_turns=short_turns) as stack:
            async with _client(stack) as client:
                await client.document("accounts/shop").set(
                    {"provider": "simulated", "timezone": "UTC", "status": "active", "pace": {"perMinute": 0}}
                )
                await _sent(client)  # connections, certificates and imports are not part of a message's way
                processes = [stack.processes[name].pid for name in TRACED]
                for pid in processes:
                    os.kill(pid, signal.SIGUSR1)
                await _sent(client)
                for pid in processes:
                    os.kill(pid, signal.SIGUSR2)
            found = await _written(Path(directory), processes)
    return _of_the_product(found)


def _of_the_product(files: set[str]) -> list[str]:
    ours = (Path(file).resolve() for file in files)
    paths = {file.relative_to(PRODUCT).as_posix() for file in ours if file.is_relative_to(PRODUCT)}
    return sorted(path for path in paths if not path.startswith(NOT_THE_PRODUCT))


@asynccontextmanager
async def _stack(directory: Path, *, short_turns: bool) -> AsyncIterator[DevStack]:
    settings = DevSettings(
        firestore_port=0,
        tasks_port=0,
        functions_port=0,
        worker_port=0,
        provider_port=0,
        environment={
            "PYTHONPATH": str(HOOK),
            "OUTBOX_TRACE_DIR": str(directory),
            "OUTBOX_LOG_LEVEL": "WARNING",
            "OUTBOX_SHORT_TURNS": str(int(short_turns)),
        },
    )
    async with DevStack(settings) as stack:
        yield stack


@asynccontextmanager
async def _client(stack: DevStack) -> AsyncIterator[firestore.AsyncClient]:
    os.environ["FIRESTORE_EMULATOR_HOST"] = stack.firestore
    client = firestore.AsyncClient(project=PROJECT, credentials=AnonymousCredentials())
    try:
        yield client
    finally:
        del os.environ["FIRESTORE_EMULATOR_HOST"]
        client.close()


async def _sent(client: firestore.AsyncClient) -> None:
    batch = client.batch()
    sent = send_message(
        batch, client, request_id=new_request_id(), account_id="shop", to="+491511234567", uid="u", text="Hello"
    )
    await batch.commit()
    async with asyncio.timeout(PATIENCE_SECONDS):
        while (await sent.message.get()).get("status") != "read":  # noqa: ASYNC110 - the asynchronous client cannot listen
            await asyncio.sleep(0.05)


async def _written(directory: Path, processes: list[int]) -> set[str]:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not all((directory / str(pid)).exists() for pid in processes):  # noqa: ASYNC110 - files of other processes
            await asyncio.sleep(0.05)
    return {line for pid in processes for line in (directory / str(pid)).read_text().splitlines()}
