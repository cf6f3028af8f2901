"""The Cloud Run service: Cloud Tasks and Cloud Scheduler call it. What they ask for is in tasks.py."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from firestore_outbox import metrics
from firestore_outbox.settings import Settings
from firestore_outbox.web.auth import Allowed, CallerCheck, Forbidden, Unauthenticated
from firestore_outbox.web.bodies import Bodies, NotRead, has_body
from firestore_outbox.web.tasks import SWEEP_TASK, TaskEndpoint, sweep_work
from firestore_outbox.wiring import System

MAX_BODY_BYTES = 64 * 1024
TOO_LARGE = 413


def app(system: System, callers: CallerCheck, stop: asyncio.Event | None = None) -> Starlette:
    """`stop` is set when the worker begins to stop: from then on tasks are sent away, to be tried again elsewhere."""
    stopping = stop or asyncio.Event()
    bodies = bodies_of(system.settings)
    tasks = TaskEndpoint.of(system, stopping.is_set)

    async def health(request: Request) -> Response:
        return PlainTextResponse("ok")

    async def show_metrics(request: Request) -> Response:
        return Response(metrics.as_text(), media_type=metrics.CONTENT_TYPE)

    metrics.watch_lanes(lambda: system.engine.held, lambda: system.engine.waiting)
    return Starlette(
        routes=[
            *(Route(path, _task(callers, bodies, tasks, path), methods=["POST"]) for path in tasks.paths),
            Route("/healthz", health),
            Route("/metrics", show_metrics),
        ]
    )


def bodies_of(settings: Settings) -> Bodies:
    return Bodies(most_bytes=round(settings.body_memory_mb * 1_000_000), seconds=settings.body_seconds)


def sweeping(system: System, callers: CallerCheck, bodies: Bodies) -> Callable[[Request], Awaitable[Response]]:
    """The sweep as a function of its own."""
    return _task(callers, bodies, TaskEndpoint({SWEEP_TASK: sweep_work(system.sweep)}), SWEEP_TASK)


def _task(
    callers: CallerCheck, bodies: Bodies, tasks: TaskEndpoint, path: str
) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        match await callers.check(request.headers.get("authorization")):
            case Unauthenticated(reason=reason):
                return refused(request, {"error": reason}, 401)
            case Forbidden(reason=reason):
                return refused(request, {"error": reason}, 403)
            case Allowed():
                pass
        async with bodies.read(request, MAX_BODY_BYTES) as data:
            if isinstance(data, NotRead):
                if data.status != TOO_LARGE:  # perhaps the next attempt comes whole
                    return refused(request, {"error": data.reason}, 503)
                return refused(request, tasks.dropped(data.reason).body, 200)
        answer = await tasks.answer(path, data, request.headers)
        return JSONResponse(answer.body, status_code=answer.status)

    return endpoint


def refused(request: Request, content: dict[str, Any], status: int) -> Response:
    """An answer that may come before the body: it closes the connection if there is one to leave unread."""
    headers = {"Connection": "close"} if has_body(request.headers) else None
    return JSONResponse(content, status_code=status, headers=headers)
