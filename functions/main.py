"""Cloud Functions: parse, call, map the outcome to a status. No logic.

Served by functions-framework, here as in production. Each instance builds its `System` once, inside its event loop.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
from contextlib import AsyncExitStack
from functools import cache
from typing import Any

import functions_framework.aio as functions_framework
from cloudevents.http import CloudEvent
from google.events.cloud import firestore as firestore_events
from google.protobuf.message import DecodeError
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from worker import log
from worker.app import sweeping
from worker.auth import CallerCheck, UserCheck
from worker.inbound.webhook import Answer
from worker.outbox.api import MAX_BODY_BYTES, MessagesApi
from worker.providers.registry import MAX_WEBHOOK_BYTES
from worker.runs.api import ACTIONS, RemindersApi, RunsApi
from worker.runs.api import MAX_BODY_BYTES as MAX_REMINDER_BYTES
from worker.serve import caller_check, system_from_environment
from worker.settings import Settings
from worker.store.values import from_fields
from worker.wiring import System

log.configure_beside(os.environ.get("OUTBOX_LOG_LEVEL", "INFO"))

_DocumentEventData: Any = firestore_events.DocumentEventData.pb()
_ready: asyncio.Future[System] | None = None
_open = AsyncExitStack()


async def _system() -> System:
    global _ready
    if _ready is None or _has_failed(_ready):
        _ready = asyncio.ensure_future(_open.enter_async_context(system_from_environment(_settings())))
    return await asyncio.shield(_ready)


def _has_failed(ready: asyncio.Future[System]) -> bool:
    """Then the next call tries again: an instance may live for hours."""
    return ready.done() and (ready.cancelled() or ready.exception() is not None)


def _settings() -> Settings:
    return Settings.from_environment(os.environ)


@cache
def _users() -> UserCheck:
    return UserCheck(_settings().project)


@cache
def _callers() -> CallerCheck:
    return caller_check(_settings())


@functions_framework.cloud_event
async def on_outbox_created(event: CloudEvent) -> None:
    """Eventarc, `google.cloud.firestore.document.v1.created` on `outbox/{requestId}`."""
    try:
        document = _document(event.data)
        request_id, fields = document.name.rsplit("/", 1)[-1], from_fields(document.fields)
    except Exception as error:  # noqa: BLE001 - the border: Eventarc would send the same event for ever
        log.bad_task(f"an event that cannot be read ({type(error).__name__})")
        return
    system = await _system()
    await system.trigger.created(request_id, fields)


@functions_framework.http
async def provider_webhook(request: Request) -> Response | tuple[str, int]:
    """`/{provider}/{accountId}`, called by the provider: signed with POST, or with GET to make sure of the address."""
    segments = [segment for segment in request.scope["path"].split("/") if segment]
    if len(segments) < 2:
        return "no such webhook", 404
    provider, account_id = segments[-2:]
    if request.method == "GET":
        return await _handshake(provider, account_id, request)
    if request.method != "POST":
        return "method not allowed", 405
    body = await _body(request, MAX_WEBHOOK_BYTES)
    if body is None:
        return "too large", 413
    system = await _system()
    answer = await system.webhook.take(provider, account_id, request.headers, body)
    return answer.name.lower(), answer.value


async def _handshake(provider: str, account_id: str, request: Request) -> Response | tuple[str, int]:
    system = await _system()
    answer = await system.webhook.handshake(provider, account_id, request.query_params)
    if isinstance(answer, Answer):
        return answer.name.lower(), answer.value
    # What is echoed came from outside: no browser may take it for a page.
    return PlainTextResponse(answer, headers={"X-Content-Type-Options": "nosniff"})


@functions_framework.http
async def enqueue(request: Request) -> tuple[dict[str, Any], int]:
    """`POST /v1/messages`, called with a Firebase ID token by apps that have no Firestore SDK."""
    if not request.scope["path"].endswith("/v1/messages"):
        return {"error": "no such path; messages are posted to /v1/messages"}, 404
    if request.method != "POST":
        return {"error": "method not allowed; messages are posted"}, 405
    body = await _body(request, MAX_BODY_BYTES)
    if body is None:
        return {"error": f"the body is larger than {MAX_BODY_BYTES:,} bytes"}, 413
    system = await _system()
    api = MessagesApi(_users(), system.gateway, system.enqueue, system.clock)
    answer = await api.post(request.headers.get("authorization"), body)
    return answer.body, answer.status


@functions_framework.http
async def reminders(request: Request) -> tuple[dict[str, Any], int]:
    """`POST /v1/reminders`, called as `enqueue` is."""
    if not request.scope["path"].endswith("/v1/reminders"):
        return {"error": "no such path; reminders are posted to /v1/reminders"}, 404
    if request.method != "POST":
        return {"error": "method not allowed; reminders are posted"}, 405
    body = await _body(request, MAX_REMINDER_BYTES)
    if body is None:
        return {"error": f"the body is larger than {MAX_REMINDER_BYTES:,} bytes"}, 413
    system = await _system()
    api = RemindersApi(_users(), system.gateway, system.remind)
    answer = await api.post(request.headers.get("authorization"), body)
    return answer.body, answer.status


@functions_framework.http
async def runs(request: Request) -> tuple[dict[str, Any], int]:
    """`GET /v1/runs/{runId}`, and `POST /v1/runs/{runId}:pause`, or resume, cancel, retry-failed."""
    _, found, name = request.scope["path"].rpartition("/v1/runs/")
    run_id, _, action = name.partition(":")
    if not found or not run_id or "/" in run_id or (action and action not in ACTIONS):
        return {"error": f"no such path; a run is /v1/runs/ID, and told by ID:{'|'.join(ACTIONS)}"}, 404
    if request.method != ("POST" if action else "GET"):
        return {"error": "method not allowed; a run is read with GET, and told with POST"}, 405
    system = await _system()
    api = RunsApi(_users(), system.gateway, system.runs, system.control, system.summary)
    authorization = request.headers.get("authorization")
    answer = await (api.post(authorization, run_id, action) if action else api.get(authorization, run_id))
    return answer.body, answer.status


@functions_framework.http
async def sweep(request: Request) -> Response | tuple[str, int]:
    """Called by Cloud Scheduler where it cannot call the worker, which then pulls and has no address."""
    if request.method != "POST":
        return "method not allowed", 405
    return await sweeping(await _system(), _callers())(request)


async def _body(request: Request, most: int) -> bytes | None:
    """None: it has more bytes than that, and was not read to its end."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            return None
    return bytes(body)


def _document(data: Any) -> Any:
    """Production sends protobuf as it is; Google's emulator sends it as base64 text.

    Text may pass for protobuf by accident, but never for a document with a name.
    """
    raw = data if isinstance(data, bytes) else str(data).encode()
    with contextlib.suppress(DecodeError):
        plain = _DocumentEventData.FromString(raw).value
        if plain.name:
            return plain
    decoded = _DocumentEventData.FromString(base64.b64decode(raw, validate=True)).value
    if not decoded.name:
        raise DecodeError("it names no document")
    return decoded
