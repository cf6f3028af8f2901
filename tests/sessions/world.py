"""A world for the hot set in virtual time: Firestore, Cloud Tasks and the WAHA simulator in memory, workers that can be
killed, and accounts with something to send.

Sending is done by a lane that is as simple as can be: it asks for a hot session, sends all that is due through the real
adapter, and is done. Everything else is what production runs.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx
from google.auth.credentials import AnonymousCredentials
from google.cloud.firestore import AsyncClient
from google.cloud.firestore_v1.services.firestore import FirestoreAsyncClient
from google.cloud.firestore_v1.services.firestore.transports import FirestoreGrpcAsyncIOTransport

from firestore_emulator import virtual_time
from firestore_emulator.emulator import FirestoreEmulator
from firestore_emulator.outgoing import Answered, HttpCall
from firestore_emulator.rpc.inprocess import InProcessChannel
from firestore_emulator.tasks.emulator import TasksEmulator
from firestore_outbox.firestore.gateway import Gateway
from firestore_outbox.lane.engine import LaneEngine
from firestore_outbox.lane.holder import Holder
from firestore_outbox.lane.ref import SESSION, LaneRef, session_lane
from firestore_outbox.lane.requests import OpenRequests
from firestore_outbox.lane.state import Later, More, Nothing, Work, overdue
from firestore_outbox.lane.store import LaneStore
from firestore_outbox.lane.tasks import CloudTasks
from firestore_outbox.lane.wake import LANE_TASK, Waker
from firestore_outbox.local.simulation.processes import Process, ProcessDied, gate_tasks
from firestore_outbox.local.simulators.simulator import DEFAULT_SECRET, ProviderSimulator
from firestore_outbox.messages.model import OutboxMessage, TextPart
from firestore_outbox.providers.built_in import ProviderSettings, providers
from firestore_outbox.providers.credentials import WEBHOOK_SECRET, FixedCredentials
from firestore_outbox.providers.outcome import NotConnected, Sent
from firestore_outbox.providers.protocol import SessionChanged
from firestore_outbox.providers.registry import Providers, Received
from firestore_outbox.sending.backoff import Backoff
from firestore_outbox.sessions.handler import SessionHandler
from firestore_outbox.sessions.hotset import HotSet
from firestore_outbox.sessions.layout import Layout
from firestore_outbox.sessions.requests import Hot, News, NotYet
from firestore_outbox.sessions.sets import Sets
from firestore_outbox.sessions.slots import HotSet as Places
from firestore_outbox.sessions.states import Rules
from firestore_outbox.sessions.store import SessionStore
from firestore_outbox.settings import Settings
from firestore_outbox.web.tasks import TaskEndpoint, lane_work

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
SENDING = "outbox"
T = TypeVar("T")


class _NoTokens:
    def id_token(self, email: str, audience: str) -> str:
        return "token"


@dataclass
class Queue:
    """What accounts have to send, and what became of it."""

    due: dict[str, list[datetime]] = field(default_factory=dict)
    sent: list[tuple[str, datetime]] = field(default_factory=list)
    not_connected: int = 0
    numbers: int = 0

    def next_due(self, account_id: str) -> datetime | None:
        return min(self.due.get(account_id, []), default=None)

    def accounts(self) -> list[str]:
        return [account_id for account_id, _ in self.sent]


class SendingHandler:
    """One message a second, while the session is hot."""

    def __init__(self, world: World, hot: HotSet, adapters: Providers) -> None:
        self._world = world
        self._hot = hot
        self._providers = adapters

    async def run(self, holder: Holder) -> Work:
        account_id, queue = holder.ref.key, self._world.queue
        hot_until: datetime | None = None
        work: Work = More()
        while holder.may_start():
            now = self._world.clock()
            next_due = queue.next_due(account_id)
            if next_due is None or next_due > now:
                work = Nothing() if next_due is None else Later(next_due)
                break
            if hot_until is None or hot_until - now <= self._hot.rules.use / 2:
                answer = await self._hot.want(account_id, "waha")
                if isinstance(answer, NotYet):
                    work = Later(answer.retry_at)
                    break
                assert isinstance(answer, Hot)
                hot_until = answer.until
            if not await self._send(account_id, next_due):
                work = Later(self._world.clock() + timedelta(seconds=5))
                break
            await holder.wait(self._world.clock() + timedelta(seconds=1))
        if hot_until is not None:
            await self._hot.done(account_id, "waha", queue.next_due(account_id))
        return work

    async def _send(self, account_id: str, due: datetime) -> bool:
        queue = self._world.queue
        queue.numbers += 1
        message = OutboxMessage(
            request_id=f"request-{queue.numbers:06d}",
            account_id=account_id,
            thread_id=f"{account_id}__491511234567",
            to="491511234567",
            parts=(TextPart(type="text", text="hello"),),
            created_at=START,
            next_attempt_at=START,
        )
        outcome = await self._providers.send("waha", message, limit=timedelta(seconds=20))
        if isinstance(outcome, Sent):
            queue.due[account_id].remove(due)
            queue.sent.append((account_id, self._world.clock()))
            return True
        if isinstance(outcome, NotConnected):
            queue.not_connected += 1
            await self._hot.doubt(account_id, "waha")
        return False


@dataclass
class Machine:
    process: Process
    engine: LaneEngine
    requests: OpenRequests
    waker: Waker
    lanes: LaneStore
    hot: HotSet
    store: SessionStore
    providers: Providers


class World:
    def __init__(self, *, rules: Rules | None = None, workers: int = 2, shards: int = 1) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, virtual_time.VirtualTimeLoop)
        gate_tasks(loop)
        self.loop = loop
        self.random = Random("world")
        self.rules = rules or Rules()
        self.sets = Sets(default=Layout(slots=self.rules.slots, shards=shards))
        self.clock = virtual_time.VirtualClock(loop)
        self.queue = Queue()
        self.settings = Settings()
        self.firestore = FirestoreEmulator(clock=self.clock)
        self.tasks = TasksEmulator(
            clock=self.clock, send=self._task, queues=[self.settings.queue_name], random=Random("tasks")
        )
        self.tasks._dispatcher._issuer = _NoTokens()  # type: ignore[assignment]  # no part of the test checks them
        self.simulator = ProviderSimulator(
            webhook="http://functions/{provider}/{accountId}",
            clock=self.clock,
            random=Random("sim"),
            send=self._webhook,
        )
        self.control = httpx.AsyncClient(transport=self.simulator.transport, base_url="http://sim")
        self.hears_webhooks = True
        self.loses_tasks = False
        self.swept = True
        self._names = 0
        self.dead: list[Process] = []
        self.workers = [self.machine() for _ in range(workers)]
        self.client = self.machine()

    # --- processes

    def machine(self) -> Machine:
        self._names += 1
        process = Process(f"worker-{self._names}")
        client = AsyncClient(project=self.settings.project, credentials=AnonymousCredentials())
        transport = FirestoreGrpcAsyncIOTransport(channel=InProcessChannel([self.firestore.service]))
        client._firestore_api_internal = FirestoreAsyncClient(transport=transport)
        return process.context.run(self._assembled, process, client)

    def _assembled(self, process: Process, client: AsyncClient) -> Machine:
        gateway = Gateway(client, jitter=Random(process.name).random)
        lanes, store = LaneStore(gateway), SessionStore(gateway, self.sets)
        tasks = CloudTasks.over(InProcessChannel([self.tasks.service]), self.settings, self.clock)
        waker = Waker(lanes, tasks, self.clock)
        adapters = providers(
            ProviderSettings(),
            credentials=FixedCredentials(
                {
                    "*": {
                        "baseUrl": "http://sim/waha",
                        "apiKey": "key",
                        "session": "{accountId}",
                        WEBHOOK_SECRET: DEFAULT_SECRET,
                    }
                }
            ),
            transport=self.simulator.transport,
        )

        async def on_news(account_id: str, news: News) -> None:
            await waker.wake(LaneRef(SENDING, account_id))

        hot = HotSet(store, waker, rules=self.rules, clock=self.clock, random=Random(process.name), on_news=on_news)
        engine = LaneEngine(
            {
                SESSION: SessionHandler(hot, adapters, self.clock, webhook_url="http://functions"),
                SENDING: SendingHandler(self, hot, adapters),
            },
            lanes=lanes,
            waker=waker,
            owner=process.name,
            clock=self.clock,
            lease=timedelta(seconds=60),
            quantum=timedelta(seconds=10),
            longest=timedelta(seconds=540),
            concurrency=8,
            backoff=Backoff(base=timedelta(seconds=60), cap=timedelta(seconds=900)),
            random=Random(process.name),
        )
        requests = OpenRequests(engine, self.clock, longest=timedelta(seconds=540), most=80)
        return Machine(process, engine, requests, waker, lanes, hot, store, adapters)

    def crash(self, place: int) -> None:
        self.workers[place].process.die()
        self.dead.append(self.workers[place].process)
        self.workers[place] = self.machine()

    def _any(self) -> Machine:
        return self.random.choice([machine for machine in self.workers if machine.process.is_alive])

    async def _task(self, call: HttpCall) -> Answered:
        if self.loses_tasks:
            return Answered(200)
        machine = self._any()
        endpoint = TaskEndpoint({LANE_TASK: lane_work(machine.requests, machine.engine, machine.waker)})
        answer = await machine.process.serve(endpoint.answer(urlsplit(call.url).path, call.body, call.headers))
        return Answered(answer.status)

    async def _webhook(self, call: HttpCall) -> Answered:
        """As the functions take it, as far as sessions are concerned."""
        name, account_id = call.url.split("/")[-2:]
        received = await self.client.providers.receive(name, account_id, call.headers, call.body, now=self.clock())
        assert isinstance(received, Received)
        for event in received.events:
            if isinstance(event, SessionChanged) and self.hears_webhooks:
                await self.client.hot.reported(account_id, name, connected=event.connected)
        return Answered(200)

    async def sweep(self) -> None:
        """What the sweep does about lanes: those that no worker came for are woken."""
        grace = timedelta(seconds=10)
        now = self.clock()
        for ref, lane in [(one.ref, one.lane) for one in await self.client.lanes.acquirable(now - grace, 300)]:
            if overdue(lane, now, grace):
                await self.client.waker.enqueue(ref, now)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(60)
            if self.swept:
                await self.sweep()

    # --- what is ordered

    async def due(self, account_id: str, *after: float) -> None:
        """Messages that are due this number of seconds from now."""
        now = self.clock()
        times = [now + timedelta(seconds=seconds) for seconds in after or (0,)]
        self.queue.due.setdefault(account_id, []).extend(times)
        await self.client.waker.wake(LaneRef(SENDING, account_id), min(times))

    async def order(self, account_id: str, **order: Any) -> None:
        answer = await self.control.put(f"/_sim/waha/sessions/{account_id}", json=order)
        assert answer.status_code == 200, answer.text

    async def cold(self, *accounts: str, **order: Any) -> None:
        """Sessions that are down, before anything happens."""
        for account_id in accounts:
            await self.order(account_id, status="STOPPED", **order)

    # --- what is there

    async def sessions(self) -> dict[str, Any]:
        shown: dict[str, Any] = (await self.control.get("/_sim/waha/sessions")).json()
        return shown

    async def running(self) -> list[str]:
        running: list[str] = (await self.sessions())["running"]
        return running

    async def places(self) -> Places:
        """All shards in one."""
        shards = [shard.hot for shard in await self.client.store.shards()]
        entries = {account: entry for hot in shards for account, entry in hot.entries.items()}
        return Places(entries=entries, line={a: waiting for hot in shards for a, waiting in hot.line.items()})

    def seconds(self) -> float:
        return (self.clock() - START).total_seconds()

    async def until(
        self, condition: Callable[[], Awaitable[bool]], *, within: float = 3600, every: float = 0.25
    ) -> float:
        """Virtual time goes by until it holds; how long that took."""
        began = self.clock()
        while not await condition():
            passed = (self.clock() - began).total_seconds()
            assert passed < within, f"not within {within} s: {await self.places()}, sent {self.queue.sent}"
            await asyncio.sleep(every)
        return (self.clock() - began).total_seconds()

    async def until_sent(self, count: int, *, within: float = 3600) -> float:
        async def all_sent() -> bool:
            return len(self.queue.sent) >= count

        return await self.until(all_sent, within=within)

    async def until_cold(self, *, within: float = 3600) -> float:
        async def all_cold() -> bool:
            return str(await self.places()) == "- | -" and not await self.running()

        return await self.until(all_cold, within=within, every=5)

    async def start(self) -> None:
        await self.firestore.start()
        await self.tasks.start()
        self._sweeper = asyncio.create_task(self._sweep())

    async def stop(self) -> None:
        self._sweeper.cancel()
        self.loop.call_exception_handler = lambda context: None  # type: ignore[method-assign]  # of this one loop
        for machine in [*self.workers, self.client]:
            machine.process.bury()
        for process in self.dead:
            process.bury()
        await self.control.aclose()
        await self.simulator.stop()
        await self.tasks.stop(timedelta(0))
        await self.firestore.stop()


def simulate(story: Callable[[World], Awaitable[T]], **options: Any) -> T:
    async def main() -> T:
        world = World(**options)
        await world.start()
        try:
            return await story(world)
        finally:
            await world.stop()

    logging.disable(logging.ERROR)
    try:
        return virtual_time.run(main(), seed=1, start=START, time_limit=timedelta(days=60))
    finally:
        logging.disable(logging.NOTSET)


__all__ = ["START", "ProcessDied", "World", "session_lane", "simulate"]
