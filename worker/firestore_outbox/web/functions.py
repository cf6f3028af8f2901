"""Cloud Functions: parse, call, map the outcome to a status. No logic.

Served by functions-framework, here as in production. Each instance builds its `System` once, inside its event loop.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import cache
from typing import Any, TypeVar

import functions_framework.aio as functions_framework
from cloudevents.http import CloudEvent
from google.events.cloud import firestore as firestore_events
from google.protobuf.message import DecodeError
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from firestore_outbox import log
from firestore_outbox.clock import system_clock
from firestore_outbox.firestore.values import from_fields
from firestore_outbox.inbound.webhook import Answer
from firestore_outbox.providers.registry import MAX_WEBHOOK_BYTES
from firestore_outbox.reminders.report import Report
from firestore_outbox.settings import Settings
from firestore_outbox.web.accounts_api import VERBS, AccountsApi, call_in
from firestore_outbox.web.app import bodies_of, refused, sweeping
from firestore_outbox.web.auth import CallerCheck, User, UserCheck
from firestore_outbox.web.billing_api import STRIPE_SIGNATURE, billing_event
from firestore_outbox.web.bodies import Bodies, NotRead, declared, has_body
from firestore_outbox.web.cors import for_browsers
from firestore_outbox.web.events_api import MAX_EVENT_BYTES, TOO_MANY_REQUESTS, EventsApi
from firestore_outbox.web.files_api import MAX_BODY_BYTES as MAX_FILES_BYTES
from firestore_outbox.web.files_api import FilesApi, files_call_in
from firestore_outbox.web.http_api import Answer as ApiAnswer
from firestore_outbox.web.http_api import signed_in
from firestore_outbox.web.messages_api import MAX_BODY_BYTES, MessagesApi
from firestore_outbox.web.run_file import CSV, TARGETS, csv_file
from firestore_outbox.web.runs_api import ACTIONS, REMINDER_ACTIONS, RemindersApi, RunsApi
from firestore_outbox.web.runs_api import MAX_BODY_BYTES as MAX_REMINDER_BYTES
from firestore_outbox.web.sealed_api import MAX_BODY_BYTES as MAX_SEALED_BYTES
from firestore_outbox.web.sealed_api import SealedApi
from firestore_outbox.web.serve import caller_check, certs_url, system_from_environment
from firestore_outbox.wiring import System

T = TypeVar("T")

MAX_COMMAND_BYTES = 64 * 1024
"""Commands have no body; what comes with one is not used."""

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
    """Whether the next call must try again: an instance may live for hours."""
    return ready.done() and (ready.cancelled() or ready.exception() is not None)


def _settings() -> Settings:
    return Settings.from_environment(os.environ)


@cache
def _users() -> UserCheck:
    return UserCheck(_settings().project)


@cache
def _callers() -> CallerCheck:
    return caller_check(_settings())


@cache
def _bodies() -> Bodies:
    return bodies_of(_settings())


@cache
def _events() -> EventsApi:
    settings = _settings()
    return EventsApi(settings.events, os.environ, system_clock, certs_url(settings))


@functions_framework.cloud_event
async def on_outbox_created(event: CloudEvent) -> None:
    """Eventarc, `google.cloud.firestore.document.v1.created` on `outbox/{requestId}`."""
    if (read := _read(event, lambda document: (_last(document, 1)[0], from_fields(document.fields)))) is not None:
        system = await _system()
        await system.trigger.created(*read)


@functions_framework.cloud_event
async def on_cancel_created(event: CloudEvent) -> None:
    """Eventarc, the same on `cancels/{requestId}`: an author wants a message back, now and not at the next sweep."""
    if (request_id := _read(event, lambda document: _last(document, 1)[0])) is not None:
        system = await _system()
        await system.cancel.asked_for(request_id)


@functions_framework.cloud_event
async def on_event_created(event: CloudEvent) -> None:
    """Eventarc, the same on `inbox/{lane}/events/{eventId}`: an event for one of the user's handlers."""
    if (lane_id := _read(event, lambda document: _last(document, 3)[0])) is not None:
        system = await _system()
        await system.events.stored(lane_id)


@functions_framework.cloud_event
async def on_reminder_created(event: CloudEvent) -> None:
    """Eventarc, the same on `reminders/{reminderId}`: a client added a reminder."""
    if (read := _read(event, lambda document: (_last(document, 1)[0], from_fields(document.fields)))) is not None:
        system = await _system()
        await system.announce.reminder(*read)


@functions_framework.cloud_event
async def on_request_created(event: CloudEvent) -> None:
    """Eventarc, the same on `{collection}/{id}/requests/{requestId}`: what a member asks for."""
    read = _read(event, lambda document: (_last(document, 4), from_fields(document.fields).get("createdAt")))
    if read is not None:
        (collection, parent_id, _, request_id), created_at = read
        system = await _system()
        await system.announce.request(collection, parent_id, request_id, created_at)


@functions_framework.http
async def provider_webhook(request: Request) -> Response | tuple[str, int]:
    """`/{provider}/{accountId}`, called by the provider: signed with POST, or with GET to make sure of the address."""
    segments = [segment for segment in request.scope["path"].split("/") if segment]
    if len(segments) < 2:
        return _refused(request, "no such webhook", 404)
    provider, account_id = segments[-2:]
    if request.method == "GET":
        return await _handshake(provider, account_id, request)
    if request.method != "POST":
        return _refused(request, "method not allowed", 405)
    if (too_large := declared(request.headers, MAX_WEBHOOK_BYTES)) is not None:
        return _refused(request, too_large.reason, too_large.status)
    system = await _system()
    if (refusal := await system.webhook.admit(provider, account_id, request.headers)) is not None:
        return _refused(request, refusal.name.lower(), refusal.value)
    async with _bodies().read(request, MAX_WEBHOOK_BYTES) as body:
        if isinstance(body, NotRead):
            return _refused(request, body.reason, body.status)
        answer = await system.webhook.take(provider, account_id, request.headers, body)
    return answer.name.lower(), answer.value


async def _handshake(provider: str, account_id: str, request: Request) -> Response | tuple[str, int]:
    system = await _system()
    answer = await system.webhook.handshake(provider, account_id, request.query_params)
    if isinstance(answer, Answer):
        return _refused(request, answer.name.lower(), answer.value)
    # What is echoed came from outside: no browser may take it for a page.
    return PlainTextResponse(answer, headers={"X-Content-Type-Options": "nosniff"})


@functions_framework.http
@for_browsers
async def enqueue(request: Request) -> Response:
    """`POST /v1/messages`, called with a Firebase ID token by apps that have no Firestore SDK."""
    if not request.scope["path"].endswith("/v1/messages"):
        return refused(request, {"error": "no such path; messages are posted to /v1/messages"}, 404)
    if request.method != "POST":
        return refused(request, {"error": "method not allowed; messages are posted"}, 405)

    async def post(system: System, user: User, body: bytes) -> ApiAnswer:
        return await MessagesApi(system.gateway, system.enqueue, system.plan_check, system.clock).post(user, body)

    return await _called(request, MAX_BODY_BYTES, post)


@functions_framework.http
@for_browsers
async def open_messages(request: Request) -> Response:
    """`POST /v1/messages:open`: members read what is sealed. Called as `enqueue` is."""
    if not request.scope["path"].endswith("/v1/messages:open"):
        return refused(request, {"error": "no such path; sealed messages are posted to /v1/messages:open"}, 404)
    if request.method != "POST":
        return refused(request, {"error": "method not allowed; sealed messages are posted"}, 405)

    async def post(system: System, user: User, body: bytes) -> ApiAnswer:
        return await SealedApi(system.gateway, system.sealing).post(user, body)

    return await _called(request, MAX_SEALED_BYTES, post)


@functions_framework.http
@for_browsers
async def reminders(request: Request) -> Response:
    """`POST /v1/reminders`, called as `enqueue` is; and what is done with one, at `/v1/reminders/{reminderId}`."""
    _, found, name = request.scope["path"].rpartition("/v1/reminders")
    reminder_id, _, action = name.removeprefix("/").partition(":")
    if not found or "/" in reminder_id or (action and action not in REMINDER_ACTIONS) or (action and not reminder_id):
        known = "reminders are posted to /v1/reminders; one is /v1/reminders/ID, its commands ID:pause and ID:resume"
        return refused(request, {"error": f"no such path; {known}"}, 404)
    allowed = ("POST",) if action or not reminder_id else ("GET", "PATCH", "DELETE")
    if request.method not in allowed:
        return refused(request, {"error": f"method not allowed; here it is {', '.join(allowed)}"}, 405)

    async def answer(system: System, user: User, body: bytes) -> ApiAnswer:
        api = RemindersApi(system.gateway, system.remind, system.change_reminder)
        return await (api(user, request.method, reminder_id, action, body) if reminder_id else api.post(user, body))

    return await _called(request, MAX_REMINDER_BYTES, answer)


@functions_framework.http
async def events(request: Request) -> Response:
    """`POST /v1/events/{kind}`: a webhook of any service, signed as OUTBOX_EVENTS says, for a handler of the user's."""
    _, found, kind = request.scope["path"].rpartition("/v1/events/")
    if not found or not kind or "/" in kind:
        return refused(request, {"error": "no such path; events are posted to /v1/events/KIND"}, 404)
    if request.method != "POST":
        return refused(request, {"error": "method not allowed; events are posted"}, 405)
    if (too_large := declared(request.headers, MAX_EVENT_BYTES)) is not None:
        return refused(request, {"error": too_large.reason}, too_large.status)
    api = _events()
    if (refusal := await api.admit(kind, request.headers, _address(request))) is not None:
        response = refused(request, refusal.body, refusal.status)
        if refusal.status == TOO_MANY_REQUESTS:
            response.headers["Retry-After"] = str(refusal.body["retryAfterSeconds"])
        return response
    async with _bodies().read(request, MAX_EVENT_BYTES) as body:
        if isinstance(body, NotRead):
            return refused(request, {"error": body.reason}, body.status)
        answer = await api.post((await _system()).events, kind, request.headers, body)
    return JSONResponse(answer.body, status_code=answer.status)


@functions_framework.http
async def billing_webhook(request: Request) -> Response | tuple[str, int]:
    """Called by Stripe with a signed event, at any path."""
    if request.method != "POST":
        return _refused(request, "method not allowed", 405)
    if (too_large := declared(request.headers, MAX_WEBHOOK_BYTES)) is not None:
        return _refused(request, too_large.reason, too_large.status)
    signature = request.headers.get(STRIPE_SIGNATURE)
    if signature is None:
        return _refused(request, "no signature", 400)
    async with _bodies().read(request, MAX_WEBHOOK_BYTES) as body:
        if isinstance(body, NotRead):
            return _refused(request, body.reason, body.status)
        return await billing_event((await _system()).billing, body, signature)


def _address(request: Request) -> str:
    """Whose call this is. Google's front end writes the caller's address last; a caller may have written the rest."""
    forwarded = request.headers.get("x-forwarded-for", "").rpartition(",")[2].strip()
    return forwarded or (request.client.host if request.client else "")


@functions_framework.http
@for_browsers
async def runs(request: Request) -> Response:
    """`GET /v1/runs?accountId=ID`, `GET /v1/runs/{runId}` with its `/targets` and `/targets.csv`, and `POST
    /v1/runs/{runId}:pause`, or resume, cancel, retry-failed."""
    _, found, name = request.scope["path"].rpartition("/v1/runs")
    run_id, _, action = name.removeprefix("/").partition(":")
    run_id, _, listed = run_id.partition("/")
    is_path = found and listed in ("", *TARGETS) and not (listed and (action or not run_id))
    if not is_path or (action and (action not in ACTIONS or not run_id)):
        known = f"a run is /v1/runs/ID, its targets ID/{' and ID/'.join(TARGETS)}, its commands ID:{'|'.join(ACTIONS)}"
        return refused(request, {"error": f"no such path; {known}"}, 404)
    if request.method != ("POST" if action else "GET"):
        return refused(request, {"error": "method not allowed; a run is read with GET, its commands are POST"}, 405)

    async def command(system: System, user: User, body: bytes) -> ApiAnswer | Response:
        report = Report(system.gateway, system.messages)
        api = RunsApi(system.gateway, system.runs, system.control, system.summary, report)
        if not run_id:
            return await api.list(user, request.query_params.get("accountId"))
        if listed == CSV:
            lines = await api.file(user, run_id)
            return lines if isinstance(lines, ApiAnswer) else csv_file(lines)
        if listed:
            return await api.targets(user, run_id, request.query_params)
        return await (api.post(user, run_id, action) if action else api.get(user, run_id))

    return await _called(request, MAX_COMMAND_BYTES, command)


@functions_framework.http
@for_browsers
async def accounts(request: Request) -> Response:
    """`/v1/accounts/{accountId}` for its owners: settings, members, the action log, a check of its credentials."""
    call = call_in(request.scope["path"], request.method)
    if call is None:
        members = "PUT or DELETE /v1/accounts/ID/members/UID"
        known = f"GET, PATCH or DELETE /v1/accounts/ID, {members}, POST /v1/accounts/ID:{'|'.join(VERBS)}"
        return refused(request, {"error": f"no such call; there are {known}"}, 404)

    async def answer(system: System, user: User, body: bytes) -> ApiAnswer:
        api = AccountsApi(
            system.gateway, system.administration, system.providers, system.connect, system.suppressions, system.billing
        )
        return await api(user, call, body)

    return await _called(request, MAX_COMMAND_BYTES, answer)


@functions_framework.http
@for_browsers
async def files(request: Request) -> Response:
    """`POST /v1/accounts/{accountId}/uploads` and `GET /v1/accounts/{accountId}/files/{mediaId}`, for its members."""
    call = files_call_in(request.scope["path"], request.method)
    if call is None:
        known = "POST /v1/accounts/ID/uploads, GET /v1/accounts/ID/files/MEDIA_ID"
        return refused(request, {"error": f"no such call; there are {known}"}, 404)

    async def answer(system: System, user: User, body: bytes) -> ApiAnswer:
        return await FilesApi(system.gateway, system.intake)(user, call, body, origin=request.headers.get("origin"))

    return await _called(request, MAX_FILES_BYTES, answer)


@functions_framework.http
async def sweep(request: Request) -> Response | tuple[str, int]:
    """Called by Cloud Scheduler where it cannot call the worker, which then pulls and has no address."""
    if request.method != "POST":
        return _refused(request, "method not allowed", 405)
    return await sweeping(await _system(), _callers(), _bodies())(request)


async def _called(
    request: Request, most: int, api: Callable[[System, User, bytes], Awaitable[ApiAnswer | Response]]
) -> Response:
    """The Content-Length first, then the token, then the body, then the call."""
    if (too_large := declared(request.headers, most)) is not None:
        return refused(request, {"error": too_large.reason}, too_large.status)
    user = await signed_in(_users(), request.headers.get("authorization"))
    if isinstance(user, ApiAnswer):
        return refused(request, user.body, user.status)
    async with _bodies().read(request, most) as body:
        if isinstance(body, NotRead):
            return refused(request, {"error": body.reason}, body.status)
        answer = await api(await _system(), user, body)
    if isinstance(answer, Response):
        return answer
    return JSONResponse(answer.body, status_code=answer.status)


def _refused(request: Request, text: str, status: int) -> Response:
    """As `refused`, for callers that are no apps."""
    headers = {"Connection": "close"} if has_body(request.headers) else None
    return PlainTextResponse(text, status_code=status, headers=headers)


def _read(event: CloudEvent, read: Callable[[Any], T]) -> T | None:
    """Apply `read` to the event's new document. None: the event cannot be read, which is logged."""
    try:
        return read(_document(event.data))
    except Exception as error:  # noqa: BLE001 - the border: Eventarc would send the same event for ever
        log.bad_task(f"an event that cannot be read ({type(error).__name__})")
        return None


def _last(document: Any, count: int) -> list[str]:
    """The last segments of the document's path."""
    segments: list[str] = document.name.rsplit("/", count)
    if len(segments) <= count:
        raise ValueError("the path of the document is too short")
    return segments[-count:]


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
