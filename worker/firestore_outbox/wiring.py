"""The composition root: everything built once, from settings and the few things that touch the world.

What is swapped between production, a laptop and a simulation is given here and nowhere else: the Firestore client, the
way to Cloud Tasks, the providers' network, the clock and the randomness.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import grpc
from google.cloud.firestore import AsyncClient

from firestore_outbox.accounts.store import AccountStore, SharedLimit
from firestore_outbox.clock import Clock
from firestore_outbox.firestore.gateway import Gateway
from firestore_outbox.handlers.dead_letters import DeadLetters
from firestore_outbox.handlers.events import EventStore
from firestore_outbox.handlers.ingest import Ingest
from firestore_outbox.handlers.pressure_store import PressureStore
from firestore_outbox.handlers.registration import Registration, debounces
from firestore_outbox.handlers.run import UserHandler
from firestore_outbox.inbound.receive import Receive
from firestore_outbox.inbound.routes import Routes
from firestore_outbox.inbound.webhook import Webhook
from firestore_outbox.lane.app_throttle_store import AppThrottleStore
from firestore_outbox.lane.engine import Handler, LaneEngine
from firestore_outbox.lane.hold_room import ROOM_BYTES
from firestore_outbox.lane.pacing import Cap
from firestore_outbox.lane.ref import INBOUND, OUTBOX, REMINDER, RUN, SESSION, outbox_lane, run_lane
from firestore_outbox.lane.store import LaneStore
from firestore_outbox.lane.tasks import Tasks
from firestore_outbox.lane.wake import Waker
from firestore_outbox.limits.limit import Limits
from firestore_outbox.media.bucket import BucketStorage
from firestore_outbox.media.budget import ByteBudget
from firestore_outbox.media.delivery import FileDelivery
from firestore_outbox.media.directory import DirectoryStorage
from firestore_outbox.media.files import Files
from firestore_outbox.media.storage import FileRef, Storage
from firestore_outbox.media.store import UploadRef, UploadStore
from firestore_outbox.media.uploads import Uploads
from firestore_outbox.messages.cancel import CancelMessage
from firestore_outbox.messages.enqueue import Enqueue
from firestore_outbox.messages.store import MessageStore
from firestore_outbox.operations.explain import Explain, ExplainRun
from firestore_outbox.operations.listing import Listing
from firestore_outbox.operations.pause import Pause, Resume
from firestore_outbox.operations.redrive import Redrive
from firestore_outbox.operations.settle import Settle
from firestore_outbox.operations.sweep import Sweep
from firestore_outbox.providers.registry import Providers
from firestore_outbox.receipts.apply import Receipts
from firestore_outbox.receipts.batch import ReceiptBatch
from firestore_outbox.receipts.late import LateReceipts
from firestore_outbox.receipts.release_thread import ReleaseThread
from firestore_outbox.reminders.add import Remind
from firestore_outbox.reminders.control import Control
from firestore_outbox.reminders.expand import Expand
from firestore_outbox.reminders.fire import ReminderHandler
from firestore_outbox.reminders.run_lane import RunHandler
from firestore_outbox.reminders.store import RunStore
from firestore_outbox.reminders.summary import Summary
from firestore_outbox.reminders.window_end import WindowEnd
from firestore_outbox.reminders.withdraw import Clear
from firestore_outbox.sending.app_throttles import AppThrottles
from firestore_outbox.sending.backoff import Backoff
from firestore_outbox.sending.handler import OutboxHandler
from firestore_outbox.sending.outbox import Outbox
from firestore_outbox.sending.trigger import Trigger
from firestore_outbox.sessions.handler import SessionHandler
from firestore_outbox.sessions.hotset import HotSet
from firestore_outbox.sessions.reconnect import Reconnect
from firestore_outbox.sessions.requests import News
from firestore_outbox.sessions.store import SessionStore
from firestore_outbox.settings import Settings

GLOBAL_LIMIT = "global"
NO_HANDLERS: Mapping[str, Registration] = {}


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
    explain_run: ExplainRun
    listing: Listing
    pause: Pause
    resume: Resume
    runs: RunStore
    summary: Summary
    window_end: WindowEnd
    control: Control
    remind: Remind
    events: Ingest
    dead_letters: DeadLetters


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
    handlers: Mapping[str, Registration] = NO_HANDLERS,
    hold_room_bytes: int = ROOM_BYTES,
) -> System:
    gateway = Gateway(client, queries=queries, jitter=random.random)
    messages, lanes = MessageStore(gateway), LaneStore(gateway)
    accounts = AccountStore(gateway, per_minute=settings.per_minute, concurrency=settings.send_concurrency)
    cap = Cap.per_second(settings.global_per_second, burst=max(2, round(settings.global_per_second)))
    shared = None if cap is None else SharedLimit(gateway, GLOBAL_LIMIT, cap)
    quiet = debounces(handlers.values(), settings.debounce_seconds, settings.debounce_max_seconds)
    pressure = PressureStore(gateway, clock, [kind for kind, one in handlers.items() if one.adaptive])
    waker = Waker(lanes, tasks, clock, quiet, pressure.debounce)

    async def on_dry(run_id: str) -> None:
        await waker.wake(run_lane(run_id))

    reconnect = Reconnect(lanes, waker, clock)

    async def on_news(account_id: str, news: News) -> None:
        """Whoever waits for the session asks again; and what paused because it was down goes on."""
        if news is News.UP and await reconnect(account_id):
            return
        await waker.wake(outbox_lane(account_id))

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
    window_end = WindowEnd(runs, waker, tasks, clock)
    enqueue, events = Enqueue(gateway, clock), EventStore(gateway, clock)
    dead_letters = DeadLetters(gateway, lanes, waker, clock)
    limits = Limits(gateway, settings, clock=clock, random=random)
    by_kind: dict[str, Handler] = {
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
        REMINDER: ReminderHandler(runs, waker, clock, random_id),
        RUN: RunHandler(
            runs,
            Expand(runs, messages, accounts, random_id),
            Clear(messages, accounts, clock),
            summary,
            waker,
            window_end,
            clock,
        ),
    }
    for kind, registration in handlers.items():
        by_kind[kind] = UserHandler(
            registration,
            store=events,
            enqueue=enqueue,
            limits=limits,
            pressure=pressure,
            places=settings.lane_concurrency,
            dead_letters=dead_letters,
            overlap=settings.overlap,
            clock=clock,
        )
    engine = LaneEngine(
        by_kind,
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
    release_thread = ReleaseThread(lanes, accounts, waker)
    receipts, receive = Receipts(messages, release_thread), Receive(gateway, waker, has_handler=INBOUND in handlers)
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
        enqueue=enqueue,
        trigger=Trigger(messages, waker, clock),
        receipts=receipts,
        late_receipts=late_receipts,
        receive=receive,
        webhook=webhook,
        sweep=Sweep(messages, lanes, accounts, waker, clock),
        cancel=CancelMessage(messages, clock),
        redrive=Redrive(messages, waker, clock),
        settle=Settle(messages, release_thread, clock),
        explain=Explain(messages, lanes, accounts, sessions, providers, clock),
        explain_run=ExplainRun(runs, summary, accounts, lanes, clock),
        listing=Listing(gateway, messages),
        pause=Pause(accounts),
        resume=Resume(accounts, lanes, waker, clock),
        runs=runs,
        summary=summary,
        window_end=window_end,
        control=Control(runs, messages, waker, clock, random_id),
        remind=Remind(runs, messages, accounts, waker, clock),
        events=Ingest(handlers, events, waker),
        dead_letters=dead_letters,
    )


def storage_from(settings: Settings) -> Storage | None:
    """The storage of files; None if none is configured."""
    if settings.media_bucket:
        return BucketStorage(settings.media_bucket, project=settings.project)
    return DirectoryStorage(Path(settings.media_dir)) if settings.media_dir else None


def media_delivery(
    settings: Settings, storage: Storage | None, *, client: AsyncClient, owner: str, clock: Clock, random: Random
) -> FileDelivery | None:
    """What adapters get files from; None without storage. Close it before the client."""
    if storage is None:
        return None
    budget = ByteBudget(round(settings.media_memory_mb * 1_000_000))
    uploads = UploadStore(Gateway(client, jitter=random.random))

    async def had_it(ref: FileRef) -> bool:
        return ref.account_id is not None and await uploads.exists(UploadRef(ref.account_id, ref.media_id))

    return FileDelivery(
        storage,
        Files(storage, budget=budget, had_it=had_it, max_bytes=round(settings.media_max_mb * 1_000_000)),
        Uploads(uploads, budget=budget, owner=owner, clock=clock),
        link_base=settings.media_url,
    )


def firestore_client(settings: Settings, **options: Any) -> AsyncClient:
    """The real client; to an emulator if FIRESTORE_EMULATOR_HOST says so. Inside the running loop."""
    return AsyncClient(project=settings.project, **options)
