"""The Firestores that a measurement runs on: Google's emulator, ours in a process of its own, ours in this one.

Each is a `Place`: a channel, and the processor time and memory that its own process has used.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import grpc
from google.auth.credentials import AnonymousCredentials
from google.cloud.firestore import AsyncClient
from google.cloud.firestore_v1.services.firestore import FirestoreAsyncClient
from google.cloud.firestore_v1.services.firestore.transports import FirestoreGrpcAsyncIOTransport
from grpc import aio

from bench.counted import Count, CountingChannel, CountingQueries
from firestore_emulator.emulator import FirestoreEmulator
from firestore_emulator.official import OfficialEmulator
from firestore_emulator.rpc.inprocess import InProcessChannel
from firestore_outbox.firestore.streams import query_channel

HOST_VARIABLE = "FIRESTORE_EMULATOR_HOST"
IN_PROCESS = "in-process"
_ON_ALL_PROCESSORS = 2
"""Of the clock of a process, as Linux's `clock_getcpuclockid` makes its number."""
_TICKS, _PAGE_BYTES = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Place:
    name: str
    channel: aio.Channel
    address: str
    cpu_seconds: Callable[[], float | None]
    """Of the server's process so far; None where the system does not tell."""
    memory_mb: Callable[[], float | None] = lambda: None
    """What the server's process holds now; None where the system does not tell."""

    def client(self, project: str, count: Count) -> AsyncClient:
        """The real client, counted. Inside the running loop."""
        with pointed_at(self.address):
            client = AsyncClient(project=project, credentials=AnonymousCredentials())
        transport = FirestoreGrpcAsyncIOTransport(channel=CountingChannel(self.channel, count))
        client._firestore_api_internal = FirestoreAsyncClient(transport=transport)
        return client

    def queries(self, count: Count) -> CountingQueries | None:
        """The channel that a worker has for its queries, counted; none where there is no network."""
        if self.address == IN_PROCESS:
            return None
        with pointed_at(self.address):
            client = AsyncClient(project="any", credentials=AnonymousCredentials())
        return CountingQueries(query_channel(client), count)


@contextmanager
def pointed_at(address: str) -> Iterator[None]:
    before = os.environ.get(HOST_VARIABLE)
    os.environ[HOST_VARIABLE] = address
    try:
        yield
    finally:
        if before is None:
            del os.environ[HOST_VARIABLE]
        else:
            os.environ[HOST_VARIABLE] = before


@asynccontextmanager
async def googles() -> AsyncIterator[Place]:
    """Never one that runs already: it may hold anything, and do something else besides."""
    environ = {name: text for name, text in os.environ.items() if name != HOST_VARIABLE}
    emulator = await asyncio.to_thread(OfficialEmulator.start, environ=environ)
    try:
        assert emulator._process is not None, "it was started here"
        pid = emulator._process._supervisor.pid
        async with open_channel(emulator.host) as channel:
            cpu, memory = partial(tree_cpu_seconds, pid), partial(tree_memory_mb, pid)
            yield Place("Google's emulator", channel, emulator.host, cpu, memory)
    finally:
        await asyncio.to_thread(emulator.stop)


@asynccontextmanager
async def ours(*, durable: bool, indexes: Path | None = None) -> AsyncIterator[Place]:
    """`outbox emulator` as a user starts it; with the product's own indexes it keeps no others."""
    with contextlib.ExitStack() as stack:
        command = [str(Path(sys.executable).parent / "outbox"), "emulator"]
        command += ["--firestore-port=0", "--tasks-port=0", "--json"]
        if durable:
            command += ["--data", stack.enter_context(tempfile.TemporaryDirectory(prefix="outbox-bench-"))]
        if indexes is not None:
            command += ["--indexes", str(indexes)]
        name = "ours, a data directory" if durable else "ours, in memory"
        async with _started(name, command) as place:
            yield place


@asynccontextmanager
async def ours_alone() -> AsyncIterator[Place]:
    """`firestore-emulator`, as a project without the outbox starts it."""
    command = [str(Path(sys.executable).parent / "firestore-emulator"), "--port=0", "--tasks-port=0", "--json"]
    async with _started("ours, alone", command) as place:
        yield place


@asynccontextmanager
async def ours_of(commit: str) -> AsyncIterator[Place]:
    """The emulator as it was at a commit of this repository, in this environment."""
    with tempfile.TemporaryDirectory(prefix="outbox-bench-") as directory:
        await asyncio.to_thread(_unpack_emulator, commit, directory)
        command = ["env", f"PYTHONPATH={directory}/emulator", sys.executable, "-m", "firestore_emulator.cli"]
        async with _started(commit, [*command, "--port=0", "--tasks-port=0", "--json"]) as place:
            yield place


def _unpack_emulator(commit: str, directory: str) -> None:
    root = Path(__file__).parents[1]
    archive = subprocess.run(["git", "archive", commit, "emulator"], cwd=root, capture_output=True, check=False)
    if archive.returncode:
        raise SystemExit(f"no emulator at {commit!r}: {archive.stderr.decode().strip()}")
    subprocess.run(["tar", "-x", "-C", directory], input=archive.stdout, check=True)


@asynccontextmanager
async def _started(name: str, command: list[str]) -> AsyncIterator[Place]:
    with contextlib.ExitStack() as stack:
        process = stack.enter_context(await asyncio.to_thread(subprocess.Popen, command, stdout=subprocess.PIPE))
        stack.callback(process.terminate)
        assert process.stdout is not None
        address = json.loads(await asyncio.to_thread(process.stdout.readline))["FIRESTORE_EMULATOR_HOST"]
        async with open_channel(address) as channel:
            cpu, memory = partial(cpu_seconds, process.pid), partial(tree_memory_mb, process.pid)
            yield Place(name, channel, address, cpu, memory)


@asynccontextmanager
async def in_process() -> AsyncIterator[Place]:
    emulator = FirestoreEmulator()
    await emulator.start()
    try:
        yield Place("ours, in process", InProcessChannel([emulator.service]), IN_PROCESS, lambda: 0.0)
    finally:
        await emulator.stop()


@asynccontextmanager
async def open_channel(address: str, *, alone: bool = False) -> AsyncIterator[aio.Channel]:
    """`alone`: a connection of its own, which channels to one address otherwise share."""
    # As the real client opens it; the limit is Google's own for answers.
    options: list[tuple[str, Any]] = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
    if alone:
        options.append(("grpc.use_local_subchannel_pool", 1))
    channel = grpc.aio.insecure_channel(address, options=options)
    try:
        yield channel
    finally:
        await channel.close()


def cpu_seconds(pid: int) -> float | None:
    """Processor time of a process without children, precise where the system has clocks of processes."""
    try:
        return time.clock_gettime(~pid << 3 | _ON_ALL_PROCESSORS)
    except (AttributeError, OSError):
        return tree_cpu_seconds(pid)


def tree_cpu_seconds(pid: int) -> float | None:
    """Processor time of a process and its children, where /proc tells it."""
    used = [(int(fields[11]) + int(fields[12])) / _TICKS for fields in _family(pid)]
    return sum(used) if used else None


def tree_memory_mb(pid: int) -> float | None:
    """Resident memory of a process and its children, where /proc tells it."""
    held = [int(fields[21]) * _PAGE_BYTES / 1_000_000 for fields in _family(pid)]
    return sum(held) if held else None


def _family(pid: int) -> list[list[str]]:
    """What /proc says of a process and its children, from the state on; nothing if there is no such process."""
    stats: dict[int, list[str]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError):
            stats[int(path.parent.name)] = path.read_text().rpartition(")")[2].split()
    family = {pid} & stats.keys()
    while more := {one for one, fields in stats.items() if int(fields[1]) in family} - family:
        family |= more
    return [stats[one] for one in family]
