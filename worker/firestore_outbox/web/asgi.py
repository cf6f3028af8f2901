"""The worker's HTTP service as an ASGI application, for a server of your own choice.

    # main.py
    from firestore_outbox import create_app
    app = create_app()                      # settings from OUTBOX_ variables

    uvicorn main:app

The application connects when its lifespan starts, and stops as `outbox worker` does when it ends: no new claims, then
what is in flight is finished. A server that runs no lifespan gets a 500 that says so.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.types import ASGIApp, Receive, Scope, Send

from firestore_outbox.settings import Settings
from firestore_outbox.web.app import app
from firestore_outbox.web.serve import caller_check, stopped, system_from_environment


def create_app(settings: Settings | None = None) -> Starlette:
    """The worker as an ASGI application: `/tasks/…`, `/healthz`, `/metrics`. None: settings from OUTBOX_ variables."""
    inner: ASGIApp | None = None

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        nonlocal inner
        chosen = settings or Settings.from_environment(os.environ)
        stop = asyncio.Event()
        async with system_from_environment(chosen) as system:
            inner = app(system, caller_check(chosen), stop)
            yield
            stop.set()
            await stopped(system)
        inner = None

    async def worker(scope: Scope, receive: Receive, send: Send) -> None:
        if inner is None:
            raise RuntimeError(
                "the outbox is not started: let the server run the application's lifespan "
                "(an application that mounts this one must enter its lifespan itself)"
            )
        await inner(scope, receive, send)

    return Starlette(routes=[Mount("/", app=worker)], lifespan=lifespan)
