"""The world of one run: both engines in memory, the provider, and processes that run what production runs.

A worker is `assemble(...)` with its own name, clock and channels; so is an instance of the functions. Cloud Tasks calls
any worker that is up, as Cloud Run would, and is answered as the service answers. Events and webhooks go to any
instance of the functions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Any
from urllib.parse import urlsplit

import httpx
from google.api_core.exceptions import GoogleAPICallError
from google.auth.credentials import AnonymousCredentials
from google.cloud.firestore import AsyncClient
from google.cloud.firestore_v1.services.firestore import FirestoreAsyncClient
from google.cloud.firestore_v1.services.firestore.transports import FirestoreGrpcAsyncIOTransport
from google.events.cloud import firestore as firestore_events

from firestore_emulator.emulator import FirestoreEmulator
from firestore_emulator.events.triggers import TYPE_PREFIX, parse_trigger
from firestore_emulator.outgoing import Answered, HttpCall, Sender
from firestore_emulator.rpc.inprocess import InProcessChannel, Wire
from firestore_emulator.tasks.emulator import TasksEmulator
from firestore_emulator.transactions.commit_delay import CommitDelay
from firestore_emulator.virtual_time import VirtualClock, VirtualTimeLoop
from firestore_outbox.firestore.gateway import Gateway
from firestore_outbox.firestore.values import from_fields
from firestore_outbox.handlers.registration import Registration
from firestore_outbox.lane.hold_room import ROOM_BYTES
from firestore_outbox.lane.tasks import CloudTasks
from firestore_outbox.local.product import INDEXES
from firestore_outbox.local.provider_urls import LOCAL_KMS_KEY
from firestore_outbox.local.simulation.network import Luck, Network, ProviderTransport
from firestore_outbox.local.simulation.processes import Process, ProcessDied, gate_tasks
from firestore_outbox.local.simulation.truth import Truth
from firestore_outbox.local.simulators.core import ProviderCore
from firestore_outbox.local.simulators.record import Record
from firestore_outbox.local.simulators.webhooks import Webhooks
from firestore_outbox.media.storage import Storage
from firestore_outbox.messages.model import OutboxMessage
from firestore_outbox.providers.built_in import ProviderSettings, providers
from firestore_outbox.providers.credentials import CredentialResolver, FixedCredentials
from firestore_outbox.providers.outcome import Outcome, Sent
from firestore_outbox.providers.parts import PartJitter
from firestore_outbox.providers.registry import Providers
from firestore_outbox.sealing.keys import Keys
from firestore_outbox.sealing.release import KeyRelease
from firestore_outbox.sealing.service import Sealing
from firestore_outbox.settings import Settings
from firestore_outbox.web.tasks import SWEEP_TASK, TaskEndpoint
from firestore_outbox.wiring import NO_HANDLERS, System, assemble, media_delivery

SECRET = "simulated-webhook-secret"
_CREDENTIALS = FixedCredentials({"*": {"token": "t", "webhookSecret": SECRET, "notifySecret": SECRET}})
_EVENT: Any = firestore_events.DocumentEventData.pb()
_OUTBOX_TRIGGER = "on_outbox_created"
_EVENT_TRIGGER = "on_event_created"
_REMINDER_TRIGGER = "on_reminder_created"
_REQUEST_TRIGGER = "on_request_created"
_TRIGGERS = {
    _OUTBOX_TRIGGER: {"eventType": f"{TYPE_PREFIX}created", "document": {"value": "outbox/{requestId}"}},
    _EVENT_TRIGGER: {"eventType": f"{TYPE_PREFIX}created", "document": {"value": "inbox/{lane}/events/{eventId}"}},
    _REMINDER_TRIGGER: {"eventType": f"{TYPE_PREFIX}created", "document": {"value": "reminders/{reminderId}"}},
    _REQUEST_TRIGGER: {
        "eventType": f"{TYPE_PREFIX}created",
        "document": {"value": "{collection}/{id}/requests/{requestId}"},
    },
}


@dataclass(slots=True)
class Machine:
    """A process with production code in it. A restart is a new machine."""

    process: Process
    system: System
    clock: VirtualClock

    async def take(self, call: HttpCall) -> Answered:
        """A task, answered as the service answers, without the web framework around it."""
        endpoint = TaskEndpoint.of(self.system)
        answer = await self.process.serve(endpoint.answer(urlsplit(call.url).path, call.body, call.headers))
        return Answered(answer.status)


class World:
    """Make it inside a virtual-time loop."""

    credentials: CredentialResolver = _CREDENTIALS

    def __init__(
        self,
        seed: int,
        *,
        settings: Settings,
        luck: Luck,
        workers: int = 2,
        functions: int = 1,
        draw_skew: Callable[[], timedelta] = timedelta,
        draw_functions_skew: Callable[[], timedelta] = timedelta,
        handlers: Mapping[str, Registration] = NO_HANDLERS,
        storage: Storage | None = None,
        hold_room_bytes: int = ROOM_BYTES,
        commit_delay: CommitDelay | None = None,
        release: KeyRelease | None = None,
        webhooks: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """`release` is the key service of sealed accounts; None: there is none. `webhooks` is the network to accounts'
        own webhooks and to Firebase Cloud Messaging."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualTimeLoop), "the world runs on virtual time"
        gate_tasks(loop)
        self.loop = loop
        self.random = Random(f"world {seed}")
        self.settings = settings
        self.network = Network(Random(f"network {seed}"), luck)
        self.clock = VirtualClock(loop)
        """The true time, which no process in it knows exactly."""
        self._draw_skew = {"worker": draw_skew, "functions": draw_functions_skew}
        self._handlers = handlers
        self._storage = storage
        self._hold_room_bytes = hold_room_bytes
        self._release = release
        self._webhooks = webhooks
        self._names = 0
        self.firestore = FirestoreEmulator(
            clock=self.clock,
            indexes=INDEXES,
            functions="functions",
            send=self._event_network(),
            commit_delay=commit_delay,
        )
        for name, trigger in _TRIGGERS.items():
            self.firestore.triggers.register(parse_trigger(settings.project, name, trigger), trigger)
        self.tasks = TasksEmulator(
            clock=self.clock,
            send=self._task_network(),
            queues=list(settings.queue_names),
            random=Random(f"tasks {seed}"),
        )
        self.tasks._dispatcher._issuer = _NoTokens()  # type: ignore[assignment]  # no part of the simulation checks them
        self.webhooks = Webhooks(
            "http://functions/{provider}/{accountId}", SECRET, self.network.sender(self._webhook), self.clock
        )
        self.provider = ProviderCore(Record(), clock=self.clock, random=Random(f"provider {seed}"))
        self.transport = self._provider_network()
        self.truth = Truth(self.firestore.engine, self.provider, self.clock, settings.project)
        self.workers = [self.machine("worker") for _ in range(workers)]
        self.functions = [self.machine("functions") for _ in range(functions)]
        self.client = self.machine("client")
        """What clients and people do reaches Firestore: their troubles are not ours."""

    def _provider_network(self) -> Any:
        """How processes reach the provider: an httpx transport."""
        return ProviderTransport(self.provider, self.webhooks)

    async def start(self) -> None:
        await self.firestore.start()
        await self.tasks.start()

    async def stop(self) -> None:
        """Only after everything was looked at. What dead processes left behind is cleaned up now, and how that fails
        is of no interest."""
        self.loop.call_exception_handler = lambda context: None  # type: ignore[method-assign]  # of this one loop
        self.network.is_dark = True
        machines = [*self.workers, *self.functions, self.client]
        for process in [*(machine.process for machine in machines), *self.truth.dead]:
            process.bury()
        await self.webhooks.stop()
        await self.tasks.stop(timedelta(0))
        await self.firestore.stop()

    # --- processes

    def machine(self, kind: str) -> Machine:
        self._names += 1
        process = Process(f"{kind}-{self._names}")
        clock = VirtualClock(self.loop, skew=self._draw_skew.get(kind, timedelta)())
        random = Random(self.random.random())
        carried = None if kind == "client" else self.network.wire()
        client = self._client(carried)
        delivery = process.context.run(
            media_delivery, self.settings, self._storage, client=client, owner=process.name, clock=clock, random=random
        )
        sealing = self._sealing(client, clock)
        registry = providers(
            ProviderSettings(
                simulated_url="http://provider",
                part_jitter=PartJitter(shortest=timedelta(milliseconds=200), longest=timedelta(milliseconds=500)),
            ),
            credentials=self.credentials,
            media=delivery,
            opener=sealing,
            transport=self.transport,
            random=random,
        )
        system = process.context.run(
            assemble,
            self.settings,
            client=client,
            tasks=CloudTasks.over(self._channel(self.tasks.service, carried), self.settings, clock),
            providers=_Watched(registry, self.truth, process.name, clock),
            owner=process.name,
            clock=clock,
            random=random,
            handlers=self._handlers,
            hold_room_bytes=self._hold_room_bytes,
            sealing=sealing,
            storage=self._storage,
            notify_transport=self._webhooks,
        )
        return Machine(process, system, clock)

    def crash(self, machines: list[Machine], place: int) -> Machine:
        """Kill -9, and a new one in its place."""
        dead = machines[place]
        self.kill(dead)
        machines[place] = self.machine(dead.process.name.partition("-")[0])
        return dead

    def kill(self, machine: Machine) -> None:
        machine.process.die()
        self.truth.dead.append(machine.process)

    def _sealing(self, client: AsyncClient, clock: VirtualClock) -> Sealing | None:
        if self._release is None:
            return None
        return Sealing(Keys(Gateway(client), self._release), self._release, clock, kms_key=LOCAL_KMS_KEY)

    def _client(self, wire: Wire | None) -> AsyncClient:
        client = AsyncClient(project=self.settings.project, credentials=AnonymousCredentials())
        transport = FirestoreGrpcAsyncIOTransport(channel=self._channel(self.firestore.service, wire))
        client._firestore_api_internal = FirestoreAsyncClient(transport=transport)
        return client

    def _channel(self, service: Any, wire: Wire | None) -> InProcessChannel:
        return InProcessChannel([service]) if wire is None else InProcessChannel([service], wire=wire)

    # --- who calls whom

    def _any(self, machines: list[Machine]) -> Machine:
        alive = [machine for machine in machines if machine.process.is_alive]
        if not alive:
            raise ConnectionError("no process is up")
        return self.random.choice(alive)

    def _task_network(self) -> Sender:
        return self.network.lossy(self.network.sender(self._task))

    async def _task(self, call: HttpCall) -> Answered:
        return await self._any(self.workers).take(call)

    def _event_network(self) -> Sender:
        """The sweep finds messages whose event never came. The other events depend on Eventarc's at least once."""
        of_messages = self.network.lossy(self.network.sender(self._event))
        of_others = self.network.sender(self._event)

        async def sent(call: HttpCall) -> Answered:
            return await (of_messages if call.url.endswith(_OUTBOX_TRIGGER) else of_others)(call)

        return sent

    @property
    def undelivered_events(self) -> int:
        """Eventarc repeats each of them until it is taken, after pauses of up to a minute."""
        ((count,),) = self.firestore.engine.storage.database.rows("SELECT COUNT(*) FROM events")
        return int(count)

    async def _event(self, call: HttpCall) -> Answered:
        document = _EVENT.FromString(call.body).value
        machine = self._any(self.functions)
        if call.url.endswith(_EVENT_TRIGGER):
            return await machine.process.serve(_stored(machine.system, document.name.rsplit("/", 3)[-3]))
        if call.url.endswith((_REMINDER_TRIGGER, _REQUEST_TRIGGER)):
            return await machine.process.serve(_announced(machine.system, document))
        request_id = document.name.rsplit("/", 1)[-1]
        return await machine.process.serve(_created(machine.system, request_id, from_fields(document.fields)))

    async def _webhook(self, call: HttpCall) -> Answered:
        provider, account_id = call.url.split("/")[-2:]
        machine = self._any(self.functions)
        return await machine.process.serve(_hooked(machine.system, provider, account_id, call))

    async def sweep(self) -> None:
        """What Cloud Scheduler does each minute."""
        machine = self._any(self.workers)
        try:
            await machine.process.serve(TaskEndpoint.of(machine.system).answer(SWEEP_TASK, b"", {}))
        except (ProcessDied, GoogleAPICallError):
            return  # the next one is a minute away


async def _stored(system: System, lane_id: str) -> Answered:
    await system.events.stored(lane_id)
    return Answered(204)


async def _announced(system: System, document: Any) -> Answered:
    """A client's reminder, or a request of a member."""
    *_, collection, parent_id = document.name.split("/")
    if collection == "reminders":
        await system.announce.reminder(parent_id, from_fields(document.fields))
    else:
        collection, parent_id, _, request_id = document.name.rsplit("/", 4)[-4:]
        created_at = from_fields(document.fields).get("createdAt")
        await system.announce.request(collection, parent_id, request_id, created_at)
    return Answered(204)


async def _created(system: System, request_id: str, fields: dict[str, Any]) -> Answered:
    await system.trigger.created(request_id, fields)
    return Answered(204)


async def _hooked(system: System, provider: str, account_id: str, call: HttpCall) -> Answered:
    answer = await system.webhook.take(provider, account_id, call.headers, call.body)
    return Answered(answer.value)


class _NoTokens:
    """Making a key and signing with it costs more than the rest of a run."""

    def id_token(self, email: str, audience: str) -> str:
        return "token"


class _Watched(Providers):
    """The providers, and a note of each attempt that begins."""

    def __init__(self, registry: Providers, truth: Truth, process: str, clock: VirtualClock) -> None:
        self._registry = registry
        self._truth = truth
        self._process_name = process
        self._clock = clock

    def __getitem__(self, name: str) -> Any:
        return self._registry[name]

    async def send(self, name: str, message: OutboxMessage, *, limit: timedelta) -> Outcome:
        self._truth.attempt(message, self._process_name, self._clock.skew)
        outcome = await self._registry.send(name, message, limit=limit)
        if isinstance(outcome, Sent):
            self._truth.accepted.append((self._process_name, message.request_id))
        return outcome

    async def session(self, *args: Any, limit: timedelta) -> Any:
        return await self._registry.session(*args, limit=limit)

    async def inbound_file(self, *args: Any, most_bytes: int, limit: timedelta) -> Any:
        return await self._registry.inbound_file(*args, most_bytes=most_bytes, limit=limit)

    async def secret(self, account_id: str, name: str) -> str | None:
        return await self._registry.secret(account_id, name)

    async def receive(self, *args: Any, now: datetime) -> Any:
        return await self._registry.receive(*args, now=now)

    async def signed_by(self, *args: Any, now: datetime) -> Any:
        return await self._registry.signed_by(*args, now=now)

    async def close(self) -> None:
        await self._registry.close()
