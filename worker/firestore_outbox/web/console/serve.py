"""The console as a process: `outbox console`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping

from firestore_outbox.clock import system_clock
from firestore_outbox.settings import CLOUD_RUN_VARIABLE, Settings
from firestore_outbox.web.console.app import app
from firestore_outbox.web.console.identity import Identity
from firestore_outbox.web.console.screens import Console
from firestore_outbox.web.console.views import Views
from firestore_outbox.web.serve import bound, on_signals, served, system_from_environment


def dev_addresses(simulator: str | None, environment: Mapping[str, str]) -> tuple[str | None, str | None]:
    """Of the provider simulator and the Firestore emulator, for the page of the dev stack; none on Cloud Run."""
    emulator = environment.get("FIRESTORE_EMULATOR_HOST")
    if environment.get(CLOUD_RUN_VARIABLE) or not emulator:
        return None, None
    return simulator, emulator


async def serve_console(
    settings: Settings,
    host: str,
    port: int,
    ready: Callable[[str], None],
    *,
    simulator: str | None = None,
    environment: Mapping[str, str] = os.environ,
) -> None:
    """Until SIGTERM or SIGINT; `ready` is called with the address once it answers. `simulator` is the address of the
    provider simulator, for the page that only the dev stack has."""
    listening, stop = bound(host, port), asyncio.Event()
    identity = Identity(settings.project, settings.firebase_api_key, system_clock, environment)
    views = Views(system_clock)
    async with system_from_environment(settings, environment) as system:
        dev = dev_addresses(simulator, environment)
        async with served(app(Console(system, identity, views, *dev)), listening):
            on_signals(stop)
            ready(f"http://{host}:{listening.getsockname()[1]}")
            await stop.wait()
        await views.close()
        await identity.close()
