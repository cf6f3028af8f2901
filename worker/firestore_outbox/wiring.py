"""The composition root: everything built once, from settings and the few things that touch the world.

What is swapped between production, a laptop and a simulation is given here and nowhere else: the Firestore client, the
way to Cloud Tasks, the providers' network, the clock and the randomness.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import grpc
import httpx
from google.cloud.firestore import AsyncClient

from firestore_outbox.accounts.administration import Administration
from firestore_outbox.accounts.devices import Devices
from firestore_outbox.accounts.members import Members
from firestore_outbox.accounts.store import AccountStore, SharedLimit
from firestore_outbox.billing.billing import Billing
from firestore_outbox.billing.stripe_calls import StripeCalls
from firestore_outbox.clock import Clock
from firestore_outbox.consent.frequency_store import Frequency
from firestore_outbox.consent.suppressions import Suppressions
from firestore_outbox.firestore.gateway import Gateway
from firestore_outbox.handlers.dead_letters import DeadLetters
from firestore_outbox.handlers.events import EventStore
from firestore_outbox.handlers.ingest import Ingest
from firestore_outbox.handlers.pressure_store import PressureStore
from firestore_outbox.handlers.registration import Registration, debounces
from firestore_outbox.handlers.run import UserHandler
from firestore_outbox.inbound.fetch import FetchHandler
from firestore_outbox.inbound.receive import Receive
from firestore_outbox.inbound.routes import Routes
from firestore_outbox.inbound.webhook import Webhook
from firestore_outbox.lane.app_throttle_store import AppThrottleStore
from firestore_outbox.lane.engine import Handler, LaneEngine
from firestore_outbox.lane.hold_room import ROOM_BYTES
from firestore_outbox.lane.pacing import Cap
from firestore_outbox.lane.ref import FETCH, INBOUND, NOTIFY, OUTBOX, REMINDER, RUN, SESSION, outbox_lane, run_lane
from firestore_outbox.lane.requests import OpenRequests
from firestore_outbox.lane.store import LaneStore
from firestore_outbox.lane.tasks import Tasks
from firestore_outbox.lane.wake import Waker
from firestore_outbox.limits.limit import Limits
from firestore_outbox.media.bucket import BucketStorage
from firestore_outbox.media.budget import ByteBudget
from firestore_outbox.media.delivery import FileDelivery
from firestore_outbox.media.directory import DirectoryStorage
from firestore_outbox.media.files import Files
from firestore_outbox.media.intake import Intake
from firestore_outbox.media.storage import FileRef, Storage
from firestore_outbox.media.store import UploadRef, UploadStore
from firestore_outbox.media.uploads import Uploads
from firestore_outbox.messages.cancel import CancelMessage
from firestore_outbox.messages.enqueue import Enqueue
from firestore_outbox.messages.line import Line
from firestore_outbox.messages.shown_store import ShownStore
from firestore_outbox.messages.store import MessageStore
from firestore_outbox.notifications.fcm import Fcm
from firestore_outbox.notifications.handler import NotifyHandler
from firestore_outbox.notifications.webhook import Webhook as NotifyWebhook
from firestore_outbox.operations.connect import Connect
from firestore_outbox.operations.due_accounts import DueAccounts
from firestore_outbox.operations.erase import Erase
from firestore_outbox.operations.explain import Explain, ExplainRun
from firestore_outbox.operations.listing import Listing
from firestore_outbox.operations.message_view import MessageStatusOf
from firestore_outbox.operations.overview import Overview
from firestore_outbox.operations.pause import Pause, Resume
from firestore_outbox.operations.redrive import Redrive
from firestore_outbox.operations.retain import Retain
from firestore_outbox.operations.run_why import waits_for
from firestore_outbox.operations.settle import Settle
from firestore_outbox.operations.sweep import Sweep
from firestore_outbox.operations.sweep_cursors import SweepCursors
from firestore_outbox.plans.plan import plans
from firestore_outbox.plans.usage import Counts, PlanCheck
from firestore_outbox.providers.registry import Providers
from firestore_outbox.receipts.apply import Receipts
from firestore_outbox.receipts.batch import ReceiptBatch
from firestore_outbox.receipts.late import LateReceipts
from firestore_outbox.receipts.release_thread import ReleaseThread
from firestore_outbox.reminders.add import Remind
from firestore_outbox.reminders.asked import Announce, AskedOfReminders, AskedOfRuns
from firestore_outbox.reminders.change import ChangeReminder
from firestore_outbox.reminders.control import Control
from firestore_outbox.reminders.expand import Expand
from firestore_outbox.reminders.fire import ReminderHandler
from firestore_outbox.reminders.refresh import Refresh
from firestore_outbox.reminders.request_store import RequestStore
from firestore_outbox.reminders.run_lane import RunHandler
from firestore_outbox.reminders.run_queries import RunQueries
from firestore_outbox.reminders.store import RunStore
from firestore_outbox.reminders.summary import Summary
from firestore_outbox.reminders.window_end import WindowEnd
from firestore_outbox.reminders.withdraw import Clear
from firestore_outbox.sealing.keys import Keys
from firestore_outbox.sealing.kms import Kms
from firestore_outbox.sealing.service import Sealing
from firestore_outbox.sending.app_throttles import AppThrottles
from firestore_outbox.sending.backoff import Backoff
from firestore_outbox.sending.handler import OutboxHandler
from firestore_outbox.sending.outbox import Outbox
from firestore_outbox.sending.short_turns import ShortTurns
from firestore_outbox.sending.trigger import Trigger
from firestore_outbox.sessions.handler import SessionHandler
from firestore_outbox.sessions.hotset import HotSet
from firestore_outbox.sessions.layout import layouts
from firestore_outbox.sessions.reconnect import Reconnect
from firestore_outbox.sessions.requests import News
from firestore_outbox.sessions.sets import Sets
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
    administration: Administration
    connect: Connect
    sessions: SessionStore
    erase: Erase
    providers: Providers
    waker: Waker
    engine: LaneEngine
    requests: OpenRequests
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
    change_reminder: ChangeReminder
    suppressions: Suppressions
    announce: Announce
    remind: Remind
    events: Ingest
    dead_letters: DeadLetters
    plan_check: PlanCheck
    billing: Billing | None
    """None: nothing is sold."""
    sealing: Sealing | None
    """None: no key service is configured."""
    intake: Intake
    status: MessageStatusOf
    members: Members
    overview: Overview


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
    sealing: Sealing | None = None,
    storage: Storage | None = None,
    notify_transport: httpx.AsyncBaseTransport | None = None,
) -> System:
    """`notify_transport` is the network to accounts' own webhooks and to Firebase Cloud Messaging; None: the real
    one."""
    gateway = Gateway(client, queries=queries, jitter=random.random)
    messages, lanes = MessageStore(gateway), LaneStore(gateway, settings.lane_shards)
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
        """Lanes that wait for the session ask again; and what paused because it was down goes on."""
        if news is News.UP and await reconnect(account_id):
            return
        await waker.wake(outbox_lane(account_id))

    sessions = SessionStore(
        gateway,
        Sets(default=settings.hot_layout, by_gateway=layouts(settings.gateways), server_of=providers.server),
    )
    hot = HotSet(
        sessions,
        waker,
        rules=settings.hot_rules,
        clock=clock,
        random=random,
        on_news=on_news,
    )

    known_plans = plans(settings.plans)

    def random_id() -> str:
        return f"{random.getrandbits(128):032x}"

    runs, requests = RunStore(gateway), RequestStore(gateway)
    suppressions = Suppressions(gateway, messages, clock)
    control = Control(runs, messages, waker, clock, random_id)
    change_reminder = ChangeReminder(runs, requests, waker, clock)
    part_pause = sum(settings.part_jitter, timedelta(0)) / 2
    queries_of_runs = RunQueries(gateway)
    summary = Summary(runs, messages, accounts, lanes, queries_of_runs, clock, part_pause)
    window_end = WindowEnd(runs, waker, tasks, clock)
    enqueue, events = Enqueue(gateway, clock), EventStore(gateway, clock, sealing)
    dead_letters = DeadLetters(gateway, lanes, waker, clock)
    limits = Limits(gateway, settings, clock=clock, random=random)
    outbox = Outbox(
        messages,
        Line(gateway),
        accounts,
        providers,
        settings,
        clock,
        random,
        shared,
        on_dry,
        hot,
        AppThrottles(AppThrottleStore(gateway), providers, clock, random),
        Counts(gateway),
        known_plans,
        hold_room_bytes,
    )
    by_kind: dict[str, Handler] = {
        OUTBOX: OutboxHandler(outbox),
        NOTIFY: NotifyHandler(
            gateway,
            accounts,
            Devices(gateway),
            providers,
            NotifyWebhook(allow_private=settings.notify_anywhere, transport=notify_transport),
            Fcm(settings.project, settings.fcm_emulator_host, notify_transport),
            clock,
        ),
        FETCH: FetchHandler(gateway, providers, storage, clock, max_bytes=round(settings.inbound_max_mb * 1_000_000)),
        SESSION: SessionHandler(hot, providers, clock, webhook_url=settings.webhook_url),
        REMINDER: ReminderHandler(runs, waker, clock, random_id, AskedOfReminders(requests, change_reminder, clock)),
        RUN: RunHandler(
            runs,
            Expand(runs, messages, accounts, suppressions, Frequency(gateway), random_id),
            Clear(messages, accounts, clock),
            summary,
            Refresh(messages, summary, waits_for, clock),
            accounts,
            Devices(gateway),
            waker,
            window_end,
            AskedOfRuns(runs, requests, control, clock),
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
    administration = Administration(gateway, messages, random_id, clock)
    short = ShortTurns(outbox, lanes=lanes, waker=waker, owner=owner, is_stopping=lambda: engine.is_stopping)
    release_thread = ReleaseThread(lanes, accounts, waker)
    shown = ShownStore(gateway)
    receipts, receive = (
        Receipts(messages, shown, release_thread),
        Receive(gateway, waker, has_handler=INBOUND in handlers, has_storage=storage is not None),
    )
    batch = ReceiptBatch(receipts, shown)
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
        suppressions=suppressions,
        most_receipts=settings.webhook_receipts,
        patience=timedelta(seconds=settings.webhook_seconds),
    )
    cursors = SweepCursors(gateway)
    due_accounts = DueAccounts(messages, lanes, accounts, waker, cursors, clock)
    retain = Retain(gateway, known_plans, clock, window=timedelta(seconds=max(60, settings.sweep_seconds)))
    return System(
        settings=settings,
        clock=clock,
        gateway=gateway,
        messages=messages,
        lanes=lanes,
        accounts=accounts,
        administration=administration,
        erase=Erase(gateway),
        sessions=sessions,
        connect=Connect(gateway, accounts, administration, providers, hot, settings),
        providers=providers,
        waker=waker,
        engine=engine,
        requests=OpenRequests(
            engine,
            clock,
            longest=timedelta(seconds=settings.longest_hold_seconds),
            most=settings.carried_lanes,
        ),
        enqueue=enqueue,
        trigger=Trigger(messages, waker, clock, short if settings.short_turns else None),
        receipts=receipts,
        late_receipts=late_receipts,
        receive=receive,
        webhook=webhook,
        sweep=Sweep(messages, lanes, waker, cursors, due_accounts, retain, clock),
        cancel=CancelMessage(messages, clock),
        redrive=Redrive(messages, waker, clock),
        settle=Settle(messages, shown, release_thread, clock),
        explain=Explain(messages, Line(gateway), lanes, accounts, sessions, providers, clock),
        explain_run=ExplainRun(runs, summary, accounts, lanes, clock),
        listing=Listing(gateway, messages),
        pause=Pause(accounts),
        resume=Resume(accounts, lanes, waker, clock),
        runs=runs,
        summary=summary,
        window_end=window_end,
        control=control,
        change_reminder=change_reminder,
        suppressions=suppressions,
        announce=Announce(requests, waker),
        remind=Remind(runs, messages, accounts, queries_of_runs, waker, clock, part_pause),
        events=Ingest(handlers, events, waker),
        dead_letters=dead_letters,
        sealing=sealing,
        intake=Intake(
            storage,
            gateway,
            clock,
            max_bytes=round(settings.media_max_mb * 1_000_000),
            types=settings.taken_types,
        ),
        status=MessageStatusOf(gateway),
        members=Members(gateway),
        overview=Overview(gateway, messages, lanes, settings, clock),
        plan_check=PlanCheck(gateway, known_plans, clock),
        billing=_billing_from(settings, gateway, administration, random_id) if settings.billing_prices else None,
    )


def _billing_from(
    settings: Settings, gateway: Gateway, administration: Administration, new_id: Callable[[], str]
) -> Billing:
    return Billing(
        gateway,
        administration,
        StripeCalls(settings.stripe_secret_key, settings.stripe_emulator_host),
        settings.offer,
        webhook_secret=settings.stripe_webhook_secret,
        return_url=settings.billing_return_url,
        new_id=new_id,
    )


def storage_from(settings: Settings) -> Storage | None:
    """The storage of files; None if none is configured."""
    if settings.media_bucket:
        return BucketStorage(settings.media_bucket, project=settings.project)
    return DirectoryStorage(Path(settings.media_dir), url=settings.files_url) if settings.media_dir else None


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


def sealing_from(settings: Settings, *, client: AsyncClient, clock: Clock, random: Random) -> Sealing | None:
    """What opens sealed messages; None if no key service is configured. Close it before the client."""
    if not settings.kms_key:
        return None
    release = Kms(settings.kms_emulator_host)
    keys = Keys(Gateway(client, jitter=random.random), release)
    return Sealing(keys, release, clock, kms_key=settings.kms_key)


def firestore_client(settings: Settings, **options: Any) -> AsyncClient:
    """The real client; to an emulator if FIRESTORE_EMULATOR_HOST says so. Inside the running loop."""
    return AsyncClient(project=settings.project, database=settings.database, **options)
