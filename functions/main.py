"""Cloud Functions: parse, call, map the outcome to a status. No logic.

Served by functions-framework, here as in production. Each instance builds its `System` once, inside its event loop.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import logging
import os
from contextlib import AsyncExitStack
from typing import Any

import functions_framework.aio as functions_framework
from cloudevents.http import CloudEvent
from google.events.cloud import firestore as firestore_events
from google.protobuf.message import DecodeError
from starlette.requests import Request

from worker import log
from worker.providers.registry import MAX_WEBHOOK_BYTES
from worker.serve import system_from_environment
from worker.settings import Settings
from worker.store.values import from_fields
from worker.wiring import System

if not logging.getLogger().handlers:  # whoever serves us may have its own way
    log.configure(os.environ.get("OUTBOX_LOG_LEVEL", "INFO"))

_DocumentEventData: Any = firestore_events.DocumentEventData.pb()
_ready: asyncio.Future[System] | None = None
_open = AsyncExitStack()


async def _system() -> System:
    global _ready
    if _ready is None:
        _ready = asyncio.ensure_future(
            _open.enter_async_context(system_from_environment(Settings.from_environment(os.environ)))
        )
    return await asyncio.shield(_ready)


@functions_framework.cloud_event
async def on_outbox_created(event: CloudEvent) -> None:
    """Eventarc, `google.cloud.firestore.document.v1.created` on `outbox/{requestId}`."""
    try:
        document = _document(event.data)
    except (DecodeError, binascii.Error) as error:
        log.bad_task(f"an event that cannot be read: {error}")
        return
    system = await _system()
    await system.trigger.created(document.name.rsplit("/", 1)[-1], from_fields(document.fields))


@functions_framework.http
async def provider_webhook(request: Request) -> tuple[str, int]:
    """`/{provider}/{accountId}`, called by the provider and signed by it."""
    segments = [segment for segment in request.url.path.split("/") if segment]
    if len(segments) < 2:
        return "no such webhook", 404
    if request.method != "POST":
        return "method not allowed", 405
    provider, account_id = segments[-2:]
    body = await _body(request)
    if body is None:
        return "too large", 413
    system = await _system()
    answer = await system.webhook.take(provider, account_id, request.headers, body)
    return answer.name.lower(), answer.value


async def _body(request: Request) -> bytes | None:
    """None: more than any webhook has, and not read to its end."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_WEBHOOK_BYTES:
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
