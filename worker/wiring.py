"""The composition root: everything built once, from settings and the few things that touch the world.

What is swapped between production, a laptop and a simulation is given here and nowhere else: the Firestore client, the
way to Cloud Tasks, the providers' network, the clock and the randomness.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import grpc
from google.cloud.firestore import AsyncClient

from worker.clock import Clock
from worker.domain.backoff import Backoff
from worker.domain.hold_room import ROOM_BYTES
from worker.domain.lane import Debounce
from worker.domain.pacing import Cap
from worker.domain.session_wants import News
from worker.inbound.debounce import InboundHandler, OnConversation, nobody_listens
from worker.inbound.receive import KIND as INBOUND
from worker.inbound.receive import Receive
from worker.inbound.routes import Routes
from worker.inbound.webhook import Webhook
from worker.lane.engine import Handler, LaneEngine
from worker.lane.waking import Waker
from worker.media.bucket import BucketShelf
from worker.media.budget import ByteBudget
from worker.media.desk import Desk
from worker.media.directory import DirectoryShelf
from worker.media.files import Files
from worker.media.shelf import FileRef, Shelf
from worker.media.uploads import Uploads
from worker.outbox.app_throttles import AppThrottles
from worker.outbox.cancel import CancelMessage
from worker.outbox.drain import Outbox, OutboxHandler
from worker.outbox.enqueue import Enqueue
from worker.outbox.explain import Explain
from worker.outbox.free_thread import FreeThread
from worker.outbox.late_receipts import LateReceipts
from worker.outbox.pause import Pause, Resume
from worker.outbox.receipt import Receipts
from worker.outbox.receipt_batch import ReceiptBatch
from worker.outbox.reconnect import Reconnect
from worker.outbox.redrive import Redrive
from worker.outbox.settle import Settle
from worker.outbox.sweep import Sweep
from worker.outbox.trigger import KIND as OUTBOX
from worker.outbox.trigger import Trigger
from worker.outbox.trigger import lane_of as lane_of_account
from worker.providers.registry import Providers
from worker.runs.clear import Clear
from worker.runs.control import Control
from worker.runs.expand import Expand
from worker.runs.fire import KIND as REMINDER
from worker.runs.fire import RUN, ReminderHandler, lane_of_run
from worker.runs.handler import RunHandler
from worker.runs.remind import Remind
from worker.runs.summary import Summary
from worker.sessions.handler import SessionHandler
from worker.sessions.hotset import KIND as SESSION
from worker.sessions.hotset import HotSet
from worker.settings import Settings
from worker.store.accounts import AccountStore, SharedLimit
from worker.store.app_throttles import AppThrottleStore
from worker.store.gateway import Gateway
from worker.store.lanes import LaneStore
from worker.store.messages import MessageStore
from worker.store.runs import RunStore
from worker.store.sessions import SessionStore
from worker.store.uploads import UploadRef, UploadStore
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
    late_receipts: LateReceipts
    receive: Receive
    webhook: Webhook
    sweep: Sweep
    cancel: CancelMessage
    redrive: Redrive
    settle: Settle
    explain: Explain
    pause: Pause
    resume: Resume
    runs: RunStore
    summary: Summary
    control: Control
    remind: Remind


def assemble(
    settings: Settings,
    *,
    client: AsyncClient,
    tasks: Tasks,
    providers: Providers,
    owner: str,
    clock: Clock,
    random: Random,
    queries: grpc.Channel | None = None,
    on_conversation: OnConversation = nobody_listens,
    hold_room_bytes: int = ROOM_BYTES,
) -> System:
    gateway = Gateway(client, queries=queries, jitter=random.random)
    messages, lanes = MessageStore(gateway), LaneStore(gateway)
    accounts = AccountStore(gateway, per_minute=settings.per_minute, concurrency=settings.send_concurrency)
    cap = Cap.per_second(settings.global_per_second, burst=max(2, round(settings.global_per_second)))
    shared = None if cap is None else SharedLimit(gateway, GLOBAL_LIMIT, cap)
    quiet = Debounce(
        quiet=timedelta(seconds=settings.debounce_seconds), most=timedelta(seconds=settings.debounce_max_seconds)
    )
    waker = Waker(lanes, tasks, clock, {INBOUND: quiet})

    async def on_dry(run_id: str) -> None:
        await waker.wake(lane_of_run(run_id))

    reconnect = Reconnect(lanes, waker, clock)

    async def on_news(account_id: str, news: News) -> None:
        """Whoever waits for the session asks again; and what paused because it was down goes on."""
        if news is News.UP and await reconnect(account_id):
            return
        await waker.wake(lane_of_account(account_id))

    sessions = SessionStore(gateway)
    hot = HotSet(
        sessions,
        waker,
        rules=settings.hot_rules,
        clock=clock,
        random=random,
        on_news=on_news,
    )

    def random_id() -> str:
        return f"{random.getrandbits(128):032x}"

    runs = RunStore(gateway)
    summary = Summary(runs, messages, accounts, lanes, clock)
    handlers: dict[str, Handler] = {
        OUTBOX: OutboxHandler(
            Outbox(
                messages,
                accounts,
                providers,
                settings,
                clock,
                random,
                shared,
                on_dry,
                hot,
                AppThrottles(AppThrottleStore(gateway), providers, clock, random),
                hold_room_bytes,
            )
        ),
        SESSION: SessionHandler(hot, providers, clock),
        INBOUND: InboundHandler(quiet, on_conversation),
        REMINDER: ReminderHandler(runs, waker, clock, random_id),
        RUN: RunHandler(
            runs,
            Expand(runs, messages, accounts, random_id),
            Clear(messages, accounts, clock),
            summary,
            waker,
            clock,
        ),
    }
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
        backoff=Backoff(base=settings.lease, cap=timedelta(seconds=settings.lane_backoff_max_seconds)),
        random=random,
    )
    free_thread = FreeThread(lanes, accounts, waker)
    receipts, receive = Receipts(messages, free_thread), Receive(gateway, waker)
    batch = ReceiptBatch(receipts, messages)
    late_receipts = LateReceipts(batch, tasks, clock, settings.receipt_waits)
    webhook = Webhook(
        providers,
        routes=Routes(accounts, clock),
        receipts=batch,
        late=late_receipts,
        receive=receive,
        reconnect=reconnect,
        hot=hot,
        clock=clock,
        most_receipts=settings.webhook_receipts,
        patience=timedelta(seconds=settings.webhook_seconds),
    )
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
        late_receipts=late_receipts,
        receive=receive,
        webhook=webhook,
        sweep=Sweep(messages, lanes, accounts, waker, clock),
        cancel=CancelMessage(messages, clock),
        redrive=Redrive(messages, waker, clock),
        settle=Settle(messages, free_thread, clock),
        explain=Explain(messages, lanes, accounts, sessions, providers, clock),
        pause=Pause(accounts),
        resume=Resume(accounts, lanes, waker, clock),
        runs=runs,
        summary=summary,
        control=Control(runs, messages, waker, clock, random_id),
        remind=Remind(runs, messages, accounts, waker, clock),
    )


def shelf_from(settings: Settings) -> Shelf | None:
    """The place where files are kept; None if there is none."""
    if settings.media_bucket:
        return BucketShelf(settings.media_bucket, project=settings.project)
    return DirectoryShelf(Path(settings.media_dir)) if settings.media_dir else None


def media_desk(
    settings: Settings, shelf: Shelf | None, *, client: AsyncClient, owner: str, clock: Clock, random: Random
) -> Desk | None:
    """What providers get files from; None if there is no place for files. Close it before the client."""
    if shelf is None:
        return None
    budget = ByteBudget(round(settings.media_memory_mb * 1_000_000))
    uploads = UploadStore(Gateway(client, jitter=random.random))

    async def had_it(ref: FileRef) -> bool:
        return ref.account_id is not None and await uploads.exists(UploadRef(ref.account_id, ref.media_id))

    return Desk(
        shelf,
        Files(shelf, budget=budget, had_it=had_it, max_bytes=round(settings.media_max_mb * 1_000_000)),
        Uploads(uploads, budget=budget, owner=owner, clock=clock),
        link_base=settings.media_url,
    )


def firestore_client(settings: Settings, **options: Any) -> AsyncClient:
    """The real client; to an emulator if FIRESTORE_EMULATOR_HOST says so. Inside the running loop."""
    return AsyncClient(project=settings.project, **options)
