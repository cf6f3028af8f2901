"""The worker as a process: HTTP for Cloud Tasks, or pulling ready lanes itself; and a clean stop for both.

On SIGTERM: no new claims, what is in flight is finished and completed, lanes are released; then the process ends. Cloud
Run gives ten seconds.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime, timedelta
from random import SystemRandom

from starlette.types import ASGIApp

from firestore_outbox import log
from firestore_outbox.clock import system_clock
from firestore_outbox.errors import OutboxError, Unavailable
from firestore_outbox.firestore.streams import query_channel
from firestore_outbox.handlers.registration import load
from firestore_outbox.handlers.remote import RemoteHandler, registrations
from firestore_outbox.lane.engine import Failed, NotHeld
from firestore_outbox.lane.ref import LaneRef
from firestore_outbox.lane.state import overdue
from firestore_outbox.lane.tasks import CloudTasks
from firestore_outbox.lane.transitions import LaneState
from firestore_outbox.providers.built_in import ProviderSettings, providers
from firestore_outbox.providers.credentials import credentials_from
from firestore_outbox.providers.interakt.adapter import DEFAULT_URL as INTERAKT_URL
from firestore_outbox.providers.parts import PartJitter
from firestore_outbox.providers.whatsapp_cloud.adapter import URL as WHATSAPP_CLOUD_URL
from firestore_outbox.settings import CLOUD_RUN_VARIABLE, Settings
from firestore_outbox.web.auth import GOOGLE_CERTS, CallerCheck
from firestore_outbox.wiring import System, assemble, firestore_client, media_delivery, sealing_from, storage_from

STOP_WITHIN_SECONDS = 9.0
RECONNECT_SECONDS = 1.0
MOST_LANES = 300
"""Overdue lanes that a pulling worker starts after each of its sweeps."""


@asynccontextmanager
async def system_from_environment(
    settings: Settings, environment: Mapping[str, str] = os.environ
) -> AsyncIterator[System]:
    """Build everything that a process needs, inside the running loop, and close it at the end of the block."""
    client = firestore_client(settings)
    queries = query_channel(client)
    low, high = settings.part_jitter
    owner, random = owner_name(), SystemRandom()
    storage = storage_from(settings)
    delivery = media_delivery(settings, storage, client=client, owner=owner, clock=system_clock, random=random)
    sealing = sealing_from(settings, client=client, clock=system_clock, random=random)
    registry = providers(
        ProviderSettings(
            simulated_url=environment.get("OUTBOX_SIMULATED_URL", "http://127.0.0.1:8083"),
            interakt_url=environment.get("OUTBOX_INTERAKT_URL", INTERAKT_URL),
            whatsapp_cloud_url=environment.get("OUTBOX_WHATSAPP_CLOUD_URL", WHATSAPP_CLOUD_URL),
            part_jitter=PartJitter(shortest=low, longest=high),
        ),
        credentials=credentials_from(environment),
        media=delivery,
        opener=sealing,
    )
    remote = _remote_handler(settings)
    handlers = load(settings.handlers)
    if remote is not None:
        handlers |= registrations(settings.handler_kinds, remote, known=handlers)
    system = assemble(
        settings,
        client=client,
        tasks=CloudTasks.connect(settings, system_clock),
        providers=registry,
        owner=owner,
        clock=system_clock,
        random=random,
        queries=queries,
        handlers=handlers,
        sealing=sealing,
        storage=storage,
    )
    try:
        yield system
    finally:
        if remote is not None:
            await remote.close()
        queries.close()
        if delivery is not None:
            await delivery.close()
        if sealing is not None:
            await sealing.close()
        await registry.close()
        client.close()


def _remote_handler(settings: Settings) -> RemoteHandler | None:
    if not settings.handler_url:
        return None

    async def token() -> str | None:
        if not os.environ.get(CLOUD_RUN_VARIABLE):
            return None  # a laptop has no metadata server
        from google.auth.transport.requests import Request
        from google.oauth2.id_token import fetch_id_token

        return str(await asyncio.to_thread(fetch_id_token, Request(), settings.handler_url))

    return RemoteHandler(settings.handler_url, settings.handler_secret, system_clock, token)


def owner_name() -> str:
    """Different for each process, and telling: the revision or the host, and a random end."""
    return f"{os.environ.get('K_REVISION') or socket.gethostname()}-{secrets.token_hex(4)}"


def certs_url(settings: Settings) -> str:
    """Where the keys are that sign OIDC tokens: Google's, or those of the Cloud Tasks emulator."""
    host = settings.tasks_emulator_host
    return f"http://{host}/oidc/certs" if host else GOOGLE_CERTS


def caller_check(settings: Settings) -> CallerCheck:
    return CallerCheck(
        audience=settings.worker_url,
        email=settings.service_account,
        clock=system_clock,
        certs_url=certs_url(settings),
    )


async def serve_http(settings: Settings, host: str, port: int, ready: Callable[[str], None]) -> None:
    """Until SIGTERM or SIGINT; `ready` gets the address once it answers."""
    from firestore_outbox.web.app import app

    stop = asyncio.Event()
    listening = bound(host, port)
    async with (
        system_from_environment(settings) as system,
        served(app(system, caller_check(settings), stop), listening),
    ):
        on_signals(stop)
        ready(f"http://{host}:{listening.getsockname()[1]}")
        await stop.wait()
        await stopped(system)


@asynccontextmanager
async def served(application: ASGIApp, listening: socket.socket) -> AsyncIterator[None]:
    """Answer HTTP inside the block. Signals are the caller's: lanes stop first, while HTTP still answers."""
    import uvicorn

    class Server(uvicorn.Server):
        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

    config = uvicorn.Config(
        application,
        log_level="warning",
        access_log=False,
        lifespan="off",
        timeout_keep_alive=30,
        timeout_graceful_shutdown=1,
    )
    server = Server(config)
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    while not server.started and not serving.done():  # noqa: ASYNC110 - uvicorn offers no event
        await asyncio.sleep(0.005)
    try:
        yield
    finally:
        server.should_exit = True
        await serving


def bound(host: str, port: int) -> socket.socket:
    """Bound here and not by uvicorn, which ends the process over a taken port."""
    # The protocol is named because asyncio switches Nagle off only where it is.
    listening = socket.socket(
        socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP
    )
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        reason = error.strerror or error
        raise OutboxError(f"port {port} on {host} cannot be used ({reason}); choose another with --port") from None
    return listening


async def serve_pull(settings: Settings, ready: Callable[[str], None]) -> None:
    stop = asyncio.Event()
    on_signals(stop)
    async with system_from_environment(settings) as system:
        ready("pulling")
        await pull(system, stop)


async def pull(system: System, stop: asyncio.Event) -> None:
    """Follows ready lanes in the order in which they became ready, and sweeps by itself."""
    running: dict[LaneRef, asyncio.Task[None]] = {}
    again: set[LaneRef] = set()
    """Became ready while they ran here: it may be their own release that was seen, before the run has returned."""

    def start(ref: LaneRef) -> None:
        if ref in running:
            again.add(ref)
        elif not stop.is_set():
            task = running[ref] = asyncio.create_task(run(ref))
            task.add_done_callback(lambda _: ended(ref))

    def ended(ref: LaneRef) -> None:
        del running[ref]
        if ref in again:
            again.discard(ref)
            start(ref)

    async def run(ref: LaneRef) -> None:
        """And again when its time comes: the listener does not show when a lane that is held, or due later, is free."""
        at: datetime | None = system.clock()
        while at is not None and not stop.is_set():
            if await _came_first(stop, (at - system.clock()).total_seconds()):
                return
            try:
                ran = await system.engine.run(ref)
                if isinstance(ran, NotHeld):
                    at = ran.until
                else:
                    at = ran.retry_at if isinstance(ran, Failed) else await next_due(ref)
            except Unavailable:
                return  # the sweep finds it
            except Exception as error:  # noqa: BLE001 - one lane's error is no other lane's
                log.pull_failed(str(ref), error)
                return

    async def next_due(ref: LaneRef) -> datetime | None:
        lane = (await system.lanes.read(ref)).lane
        return lane.next_due_at if lane.state is LaneState.IDLE else None

    async def follow() -> None:
        while True:
            try:
                async for found in system.lanes.ready():
                    for ref, _ in sorted(found, key=lambda item: (item[1].ready_at or system.clock(), str(item[0]))):
                        start(ref)
            except Unavailable:
                pass  # it breaks from time to time, and is made again
            except Exception as error:  # noqa: BLE001 - without a listener the worker sees new work once a minute only
                log.pull_failed("follow", error)
            await asyncio.sleep(RECONNECT_SECONDS)

    async def start_overdue() -> None:
        now = system.clock()
        for found in await system.lanes.acquirable(now, MOST_LANES):
            if overdue(found.lane, now, timedelta(0)):
                start(found.ref)

    async def sweep() -> None:
        """Once a minute for as long as the worker runs, whatever the last one met."""
        while True:
            for step in (system.sweep.run, start_overdue):
                try:
                    await step()
                except Exception as error:  # noqa: BLE001 - the next sweep is worth trying
                    log.pull_failed("sweep", error)
            await asyncio.sleep(system.settings.sweep_seconds)

    following, sweeping = asyncio.create_task(follow()), asyncio.create_task(sweep())
    await stop.wait()
    following.cancel()
    sweeping.cancel()
    await asyncio.gather(following, sweeping, return_exceptions=True)
    await stopped(system)


async def _came_first(event: asyncio.Event, seconds: float) -> bool:
    """Whether it was set before these seconds had passed."""
    if seconds <= 0:
        return event.is_set()
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True


async def stopped(system: System) -> None:
    try:
        async with asyncio.timeout(STOP_WITHIN_SECONDS):
            await system.engine.stop()
    except TimeoutError:
        return  # what is still in flight is settled by the worker that takes over


def on_signals(stop: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
