"""What these tests share: names, clients, a worker that answers as told, and a world in virtual time."""

from __future__ import annotations

import asyncio
import functools
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from google.cloud.tasks_v2 import CloudTasksAsyncClient, HttpMethod, HttpRequest, Task
from google.cloud.tasks_v2.services.cloud_tasks.transports import CloudTasksGrpcAsyncIOTransport
from grpc import aio

from firestore_emulator import virtual_time
from firestore_emulator.outgoing import Answered, HttpCall
from firestore_emulator.rpc.inprocess import InProcessChannel
from firestore_emulator.tasks.emulator import TasksEmulator
from tests.patience import PATIENCE_SECONDS

LOCATION = "projects/demo-outbox/locations/europe-west1"
QUEUE = f"{LOCATION}/queues/lanes"
START = datetime(2030, 1, 1, tzinfo=UTC)
URL = "http://worker.test/tasks/lane"


def client_over(channel: aio.Channel) -> CloudTasksAsyncClient:
    return CloudTasksAsyncClient(transport=CloudTasksGrpcAsyncIOTransport(channel=channel))


def client_of(emulator: TasksEmulator) -> CloudTasksAsyncClient:
    return client_over(InProcessChannel([emulator.service]))


def http_task(url: str = URL, *, name: str = "", body: bytes = b"{}", **fields: Any) -> Task:
    request = HttpRequest(url=url, http_method=HttpMethod.POST, body=body)
    return Task(name=f"{QUEUE}/tasks/{name}" if name else "", http_request=request, **fields)


# --- a worker over a real socket


@dataclass(frozen=True)
class Heard:
    method: str
    path: str
    headers: dict[str, str]
    """By lower-case name."""
    body: bytes

    @property
    def task(self) -> str:
        return self.headers["x-cloudtasks-taskname"]


@dataclass
class Worker:
    """A local HTTP server. It keeps what it heard, answers with `answer`, and tells when it heard enough."""

    answer: Callable[[Heard], int] = lambda heard: 200
    heard: list[Heard] = field(default_factory=list)
    url: str = ""
    _more: asyncio.Event = field(default_factory=asyncio.Event)
    _clients: set[asyncio.StreamWriter] = field(default_factory=set)

    async def until(self, enough: Callable[[list[Heard]], bool]) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not enough(self.heard):
                self._more.clear()
                await self._more.wait()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._clients.add(writer)
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                method, path, _ = head[0].split(" ")
                headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in head[1:] if line)}
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                heard = Heard(method, path, headers, body)
                self.heard.append(heard)
                self._more.set()
                writer.write(f"HTTP/1.1 {self.answer(heard)} OK\r\nContent-Length: 2\r\n\r\nok".encode())
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self._clients.discard(writer)
            writer.close()

    def hang_up(self) -> None:
        for writer in self._clients:
            writer.transport.abort()


@asynccontextmanager
async def worker() -> AsyncIterator[Worker]:
    it = Worker()
    server = await asyncio.start_server(it.serve, "127.0.0.1", 0)
    it.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield it
    finally:
        server.close()
        it.hang_up()


# --- a world in virtual time


@dataclass(frozen=True)
class Sent:
    after: float
    """Seconds since the start of the world."""
    call: HttpCall

    @property
    def task(self) -> str:
        return self.call.headers["X-CloudTasks-TaskName"]


class World:
    """The emulator, the real client, and a worker that answers each task by its script (200 when that is used up)."""

    def __init__(self, emulator_options: dict[str, Any]) -> None:
        self.clock = virtual_time.VirtualClock()
        self.sent: list[Sent] = []
        self.scripts: dict[str, list[int | Answered | Exception]] = defaultdict(list)
        self.takes = timedelta(0)
        """How long the worker works on each attempt."""
        self.busy = 0
        self.most_busy = 0
        options: dict[str, Any] = {"queues": [QUEUE], "random": Random(7), "clock": self.clock, "send": self._send}
        self.emulator = TasksEmulator(**(options | emulator_options))
        self.client = client_of(self.emulator)

    async def _send(self, call: HttpCall) -> Answered:
        self.sent.append(Sent(self.now(), call))
        self.busy += 1
        self.most_busy = max(self.most_busy, self.busy)
        try:
            await asyncio.sleep(self.takes.total_seconds())
        finally:
            self.busy -= 1
        script = self.scripts[call.headers["X-CloudTasks-TaskName"]]
        answer = script.pop(0) if script else 200
        if isinstance(answer, Exception):
            raise answer
        return Answered(answer) if isinstance(answer, int) else answer

    def now(self) -> float:
        return round((self.clock() - START).total_seconds(), 6)

    def times(self, task: str | None = None) -> list[float]:
        return [sent.after for sent in self.sent if task in (None, sent.task)]

    async def create(self, name: str = "", **fields: Any) -> Task:
        return await self.client.create_task(parent=QUEUE, task=http_task(name=name, **fields))

    async def pass_time(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def timers(self) -> int:
        """Set, and not cancelled. A virtual loop keeps them in a heap, as every asyncio loop does."""
        loop: Any = asyncio.get_running_loop()
        return sum(not timer.cancelled() for timer in loop._scheduled)


Story = Callable[[World], Awaitable[None]]


def in_virtual_time(**emulator_options: Any) -> Callable[[Story], Callable[[], None]]:
    """The test, in a world of its own: a day passes in milliseconds, and every moment is exact."""

    def decorate(story: Story) -> Callable[[], None]:
        async def main() -> None:
            world = World(emulator_options)
            await world.emulator.start()
            try:
                await story(world)
            finally:
                await world.emulator.stop(timedelta(0))

        def test() -> None:
            virtual_time.run(main(), seed=1, start=START)

        functools.update_wrapper(test, story)
        del test.__wrapped__  # type: ignore[attr-defined]  # pytest would ask for a fixture called "world"
        return test

    return decorate
