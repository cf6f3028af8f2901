"""Our functions on one port of this machine, each served by functions-framework as in production.

Production runs each function as a service of its own; here one process routes by path:

    /functions/projects/{project}/triggers/{name}   Firestore events, as emulators deliver them
    /v1/messages, /v1/reminders, /v1/runs/{runId}   the HTTP API
    /v1/events/{kind}                               events for the user's handlers
    /sweep                                          the sweep, where a scheduler calls the function
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
TRIGGERS = {OUTBOX_TRIGGER: "outbox/{requestId}", "on_event_created": "inbox/{lane}/events/{eventId}"}
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
            Route("/v1/reminders", function("reminders")),
            Mount("/v1/runs", function("runs")),
            Mount("/v1/events", function("events")),
            Mount("/v1", function("enqueue")),
            Route("/sweep", function("sweep")),
            Mount("/", function("provider_webhook")),
        ]
    )
