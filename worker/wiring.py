"""The composition root: everything built once, from settings and the few things that touch the world.

What is swapped between production, a laptop and a simulation is given here and nowhere else: the Firestore client, the
way to Cloud Tasks, the providers' network, the clock and the randomness.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import Any

from google.cloud.firestore import AsyncClient

from worker.clock import Clock
from worker.domain.lane import Debounce
from worker.domain.pacing import Cap
from worker.inbound.debounce import InboundHandler, OnConversation, nobody_listens
from worker.inbound.receive import KIND as INBOUND
from worker.inbound.receive import Receive
from worker.inbound.webhook import Webhook
from worker.lane.engine import Handler, LaneEngine
from worker.lane.waking import Waker
from worker.outbox.drain import Outbox, OutboxHandler
from worker.outbox.enqueue import Enqueue
from worker.outbox.receipt import Receipts
from worker.outbox.sweep import Sweep
from worker.outbox.trigger import KIND as OUTBOX
from worker.outbox.trigger import Trigger
from worker.providers.registry import Providers
from worker.settings import Settings
from worker.store.accounts import AccountStore, SharedLimit
from worker.store.gateway import Gateway
from worker.store.lanes import LaneStore
from worker.store.messages import MessageStore
from worker.wake.tasks import Tasks

GLOBAL_LIMIT = "global"


@dataclass(frozen=True, slots=True)
class System:
    """All the verbs, ready to be called."""

    settings: Settings
    clock: Clock
    gateway: Gateway
    messages: MessageStore
    lanes: LaneStore
    accounts: AccountStore
    providers: Providers
    waker: Waker
    engine: LaneEngine
    enqueue: Enqueue
    trigger: Trigger
    receipts: Receipts
    receive: Receive
    webhook: Webhook
    sweep: Sweep


def assemble(
    settings: Settings,
    *,
    client: AsyncClient,
    tasks: Tasks,
    providers: Providers,
    owner: str,
    clock: Clock,
    random: Random,
    on_conversation: OnConversation = nobody_listens,
) -> System:
    gateway = Gateway(client, jitter=random.random)
    messages, lanes = MessageStore(gateway), LaneStore(gateway)
    accounts = AccountStore(gateway, per_minute=settings.per_minute, concurrency=settings.send_concurrency)
    cap = Cap.per_second(settings.global_per_second, burst=max(2, round(settings.global_per_second)))
    shared = None if cap is None else SharedLimit(gateway, GLOBAL_LIMIT, cap)
    outbox = Outbox(messages, accounts, providers, settings, clock, random, shared)
    quiet = Debounce(
        quiet=timedelta(seconds=settings.debounce_seconds), most=timedelta(seconds=settings.debounce_max_seconds)
    )
    handlers: dict[str, Handler] = {
        OUTBOX: OutboxHandler(outbox),
        INBOUND: InboundHandler(quiet, on_conversation),
    }
    waker = Waker(lanes, tasks, clock, {kind: handler.debounce for kind, handler in handlers.items()})
    engine = LaneEngine(
        handlers,
        lanes=lanes,
        waker=waker,
        owner=owner,
        clock=clock,
        lease=settings.lease,
        quantum=timedelta(seconds=settings.quantum_seconds),
        longest=timedelta(seconds=settings.longest_hold_seconds),
        concurrency=settings.lane_concurrency,
    )
    receipts, receive = Receipts(messages, lanes, accounts, waker), Receive(gateway, waker)
    return System(
        settings=settings,
        clock=clock,
        gateway=gateway,
        messages=messages,
        lanes=lanes,
        accounts=accounts,
        providers=providers,
        waker=waker,
        engine=engine,
        enqueue=Enqueue(gateway, clock),
        trigger=Trigger(messages, waker, clock),
        receipts=receipts,
        receive=receive,
        webhook=Webhook(providers, receipts, receive, clock),
        sweep=Sweep(messages, lanes, accounts, waker, clock),
    )


def firestore_client(settings: Settings, **options: Any) -> AsyncClient:
    """The real client; to an emulator if FIRESTORE_EMULATOR_HOST says so. Inside the running loop."""
    return AsyncClient(project=settings.project, **options)
