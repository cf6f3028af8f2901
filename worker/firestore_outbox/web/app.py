"""The Cloud Run service: Cloud Tasks and Cloud Scheduler call it; what they ask for is done in `System`.

Answers to Cloud Tasks: 200 means done, or handed on; 503 means try again, here or at another worker; a body that no
retry can repair is logged and answered 200.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from firestore_outbox import log, metrics
from firestore_outbox.errors import Unavailable
from firestore_outbox.lane.engine import Failed, NotHeld
from firestore_outbox.lane.ref import RUN, LaneRef
from firestore_outbox.receipts.late import BadBatch, parse_batch
from firestore_outbox.settings import Settings
from firestore_outbox.web.auth import Allowed, CallerCheck, Forbidden, Unauthenticated
from firestore_outbox.web.bodies import Bodies, NotRead, has_body
from firestore_outbox.wiring import System

MAX_BODY_BYTES = 64 * 1024
MAX_KEY_BYTES = 1_400
"""With its kind before it, still within the 1,500 that a name may have."""
TOO_LARGE = 413
RETRY_COUNT = "x-cloudtasks-taskretrycount"


class BadTask(ValueError):
    """A body that retrying cannot mend."""


class SweepFailed(Unavailable):
    """Some steps of a sweep failed. The caller learns it by a 503: Cloud Scheduler counts and shows those."""


class Stopping(Exception):
    """This worker is about to end, and starts nothing any more."""


def app(system: System, callers: CallerCheck, stop: asyncio.Event | None = None) -> Starlette:
    """`stop` is set when the worker begins to stop: from then on tasks are sent away, to be tried again elsewhere."""
    stopping = stop or asyncio.Event()
    bodies = bodies_of(system.settings)

    async def run_lane(body: dict[str, Any], is_retry: bool) -> dict[str, Any]:
        kind, key = body.get("kind"), body.get("key")
        if not isinstance(kind, str) or not isinstance(key, str):
            raise BadTask("a lane task needs a kind and a key")
        if kind not in system.engine.handlers:
            raise BadTask(f"there are no lanes of kind {kind[:40]!r}")
        ref = LaneRef(kind, _checked(key))
        ran = NotHeld(None) if stopping.is_set() else await system.engine.run(ref)
        if isinstance(ran, NotHeld) and stopping.is_set():
            raise Stopping  # a 200 would lose the task, and with it a minute until the sweep
        if isinstance(ran, NotHeld) and is_retry and ran.until is not None:
            # The worker that had this task may have died with the lane in hand: look again when its lease ends.
            await system.waker.enqueue(ref, ran.until)
        if isinstance(ran, Failed):
            return {"held": True, "failed": True}  # handed on: a task comes for the next try
        return {"held": not isinstance(ran, NotHeld)}

    async def end_window(body: dict[str, Any], is_retry: bool) -> dict[str, Any]:
        """A run's own lane knows when its window ends; whoever asks here makes it look."""
        run_id = body.get("runId")
        if not isinstance(run_id, str):
            raise BadTask("a window-end task needs a runId")
        await system.waker.wake(LaneRef(RUN, _checked(run_id)))
        return await run_lane({"kind": RUN, "key": run_id}, is_retry)

    async def look_at_receipts(body: dict[str, Any], is_retry: bool) -> dict[str, Any]:
        try:
            batch = parse_batch(body)
        except BadBatch as error:
            raise BadTask(str(error)) from None
        except Exception as error:  # noqa: BLE001 - the border: Cloud Tasks would send the same body for ever
            raise BadTask(f"a receipt task cannot be read ({type(error).__name__})") from None
        return {"unknown": await system.late_receipts.run(batch)}

    async def health(request: Request) -> Response:
        return PlainTextResponse("ok")

    async def show_metrics(request: Request) -> Response:
        return Response(metrics.as_text(), media_type=metrics.CONTENT_TYPE)

    metrics.watch_lanes(lambda: system.engine.held, lambda: system.engine.waiting)
    return Starlette(
        routes=[
            Route("/tasks/lane", _task(callers, bodies, run_lane), methods=["POST"]),
            Route("/tasks/window-end", _task(callers, bodies, end_window), methods=["POST"]),
            Route("/tasks/receipt", _task(callers, bodies, look_at_receipts), methods=["POST"]),
            Route("/tasks/sweep", sweeping(system, callers, bodies), methods=["POST"]),
            Route("/healthz", health),
            Route("/metrics", show_metrics),
        ]
    )


Work = Callable[[dict[str, Any], bool], Awaitable[dict[str, Any]]]
"""Given the body, and whether an earlier attempt at the same task failed."""


def _checked(key: str) -> str:
    if not key or "/" in key:
        raise BadTask("a lane's key is neither empty nor has it a slash")
    try:
        length = len(key.encode())
    except UnicodeEncodeError:
        raise BadTask("a lane's key has half of a surrogate pair in it") from None
    if length > MAX_KEY_BYTES:
        raise BadTask("the key is too long for a document's name")
    return key


def bodies_of(settings: Settings) -> Bodies:
    return Bodies(most_bytes=round(settings.body_memory_mb * 1_000_000), seconds=settings.body_seconds)


def sweeping(system: System, callers: CallerCheck, bodies: Bodies) -> Callable[[Request], Awaitable[Response]]:
    """The endpoint that Cloud Scheduler calls each minute, here or as a function of its own."""

    async def sweep(body: dict[str, Any], is_retry: bool) -> dict[str, Any]:
        swept = await system.sweep.run()
        if swept.failed:
            raise SweepFailed(f"steps of the sweep failed: {', '.join(swept.failed)}; the log has each error")
        return {"lanes": swept.lanes, "accounts": swept.accounts}

    return _task(callers, bodies, sweep)


def _task(callers: CallerCheck, bodies: Bodies, work: Work) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        match await callers.check(request.headers.get("authorization")):
            case Unauthenticated(reason=reason):
                return refused(request, {"error": reason}, 401)
            case Forbidden(reason=reason):
                return refused(request, {"error": reason}, 403)
            case Allowed():
                pass
        try:
            is_retry = request.headers.get(RETRY_COUNT, "0") != "0"
            async with bodies.read(request, MAX_BODY_BYTES) as data:
                if isinstance(data, NotRead) and data.status != TOO_LARGE:  # perhaps the next attempt comes whole
                    return refused(request, {"error": data.reason}, 503)
                body = _body(data)
            return JSONResponse(await work(body, is_retry))
        except BadTask as error:
            log.bad_task(str(error))
            return refused(request, {"dropped": str(error)}, 200)
        except Unavailable as error:
            return JSONResponse({"error": str(error)}, status_code=503)
        except Stopping:
            return JSONResponse({"error": "this worker is stopping"}, status_code=503)

    return endpoint


def refused(request: Request, content: dict[str, Any], status: int) -> Response:
    """An answer that may come before the body: it closes the connection if there is one to leave unread."""
    headers = {"Connection": "close"} if has_body(request.headers) else None
    return JSONResponse(content, status_code=status, headers=headers)


def _body(data: bytes | NotRead) -> dict[str, Any]:
    if isinstance(data, NotRead):
        raise BadTask(data.reason)
    try:
        body = json.loads(data or b"{}")
    except (ValueError, RecursionError):
        raise BadTask("the body is not JSON") from None
    if not isinstance(body, dict):
        raise BadTask("the body is not an object")
    return body
