"""Our functions on one port of this machine, each served by functions-framework as in production.

Production runs each function as a service of its own; here one process routes by path:

    /functions/projects/{project}/triggers/{name}   Firestore events, as emulators deliver them
    /v1/messages, /v1/reminders, /v1/runs/{runId}, /v1/accounts/{accountId}   the HTTP API
    /v1/accounts/{accountId}/uploads and /files     files of an account
    /v1/events/{kind}                               events for the user's handlers
    /sweep                                          the sweep, where a scheduler calls the function
    /billing                                        Stripe's events
    /{provider}/{accountId}                         webhooks
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from functions_framework.aio import create_asgi_app
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

SOURCE = Path(__file__).resolve().parents[1] / "web" / "functions.py"
OUTBOX_TRIGGER = "on_outbox_created"
TRIGGERS = {
    OUTBOX_TRIGGER: "outbox/{requestId}",
    "on_cancel_created": "cancels/{requestId}",
    "on_event_created": "inbox/{lane}/events/{eventId}",
    "on_reminder_created": "reminders/{reminderId}",
    "on_request_created": "{collection}/{id}/requests/{requestId}",
}
"""Function -> the documents whose creation calls it."""


def by_name(functions: Mapping[str, ASGIApp]) -> ASGIApp:
    """`/{project}/triggers/{name}` to the function of that name."""

    async def route(scope: Scope, receive: Receive, send: Send) -> None:
        chosen = functions.get(scope["path"].rpartition("/")[2])
        await (chosen or PlainTextResponse("no such trigger", status_code=404))(scope, receive, send)

    return route


def app() -> Starlette:
    async def health(request: Any) -> PlainTextResponse:
        return PlainTextResponse("ok")

    def function(target: str) -> Any:
        return create_asgi_app(target, str(SOURCE))

    return Starlette(
        routes=[
            Route("/healthz", health),
            Mount("/functions/projects", by_name({name: function(name) for name in TRIGGERS})),
            Route("/v1/reminders{rest:path}", function("reminders")),
            Route("/v1/runs{rest:path}", function("runs")),
            Route("/v1/accounts/{account_id}/uploads", function("files")),
            Route("/v1/accounts/{account_id}/files/{rest:path}", function("files")),
            Route("/v1/accounts{rest:path}", function("accounts")),
            Route("/v1/events{rest:path}", function("events")),
            Route("/v1/messages:open", function("open_messages")),
            Mount("/v1", function("enqueue")),
            Route("/sweep", function("sweep")),
            Route("/billing", function("billing_webhook"), methods=["POST"]),
            Mount("/", function("provider_webhook")),
        ]
    )
