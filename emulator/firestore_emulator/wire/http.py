"""The HTTP side, at the same paths as Google's emulator: health, REST, a browser's streams, clearing, event triggers,
security rules.

Some of what Google's has is left out here, and each is refused by name, rather than let a test pass for the wrong
reason.
"""

from __future__ import annotations

from typing import Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from firestore_emulator.events.triggers import BadTrigger, Triggers, parse_trigger
from firestore_emulator.rpc.errors import RpcError, invalid_argument, not_found, unimplemented
from firestore_emulator.rpc.service import BidiStream, Service, refusal_of
from firestore_emulator.rules.guard import Guard
from firestore_emulator.storage.databases import Databases
from firestore_emulator.storage.engine import Engine
from firestore_emulator.wire.databases_http import databases_routes
from firestore_emulator.wire.meters_http import meters_routes
from firestore_emulator.wire.rest import Rest, read_body
from firestore_emulator.wire.rest_bulk import delete_below, delete_groups
from firestore_emulator.wire.rest_messages import json_of, object_of, refused
from firestore_emulator.wire.rest_origins import for_any_origin
from firestore_emulator.wire.rest_routes import FIRESTORE
from firestore_emulator.wire.rules_http import rules_routes
from firestore_emulator.wire.snapshots_http import snapshots_routes
from firestore_emulator.wire.webchannel import WebChannels
from firestore_emulator.wire.webchannel_http import channel

EXPORTS = "Google's export format is not read or written by this emulator; start it with --data DIRECTORY to keep data."
LEFT_OUT = {
    "/emulator/v1/projects/{project}:import": EXPORTS,
    "/emulator/v1/projects/{project}/databases/{database}:import": EXPORTS,
    "/emulator/v1/projects/{project}:export": EXPORTS,
    "/emulator/v1/projects/{project}/databases/{database}:export": EXPORTS,
    "/emulator/v1/projects/{project}:indexUsage": (
        "This emulator does not count the uses of indexes; start it with --indexes FILE to be told which are missing."
    ),
    "/emulator/v1/projects/{project}/triggers/{name}": (
        "Triggers of first-generation functions are not supported by this emulator: register an eventarcTrigger."
    ),
}
"""Paths that Google's emulator answers at and we do not, with the reason."""


def http_app(
    engine: Engine,
    triggers: Triggers,
    service: Service,
    channels: WebChannels,
    guard: Guard,
    databases: Databases,
) -> ASGIApp:
    async def health(request: Request) -> Response:
        return PlainTextResponse("Ok\n")

    async def clear(request: Request) -> Response:
        engine.clear("projects/{project}/databases/{database}".format(**request.path_params))
        await engine.settled()
        return JSONResponse({})

    async def clear_below(request: Request) -> Response:
        root = "projects/{project}/databases/{database}/documents".format(**request.path_params)
        await delete_below(service, root, request.path_params["path"])
        return JSONResponse({})

    async def bulk_delete(request: Request) -> Response:
        await delete_groups(service, object_of(await read_body(request)))
        return JSONResponse({})

    async def register(request: Request) -> Response:
        definition = json_of(await read_body(request))
        name = request.query_params.get("eventarcTriggerId", "")
        try:
            trigger = parse_trigger(request.path_params["project"], name, definition)
        except BadTrigger as error:
            raise invalid_argument(str(error)) from None
        triggers.register(trigger, definition)
        await engine.settled()
        return JSONResponse({})

    admin = "/emulator/v1/projects/{project}"
    app = Starlette(
        routes=[
            Route("/", health),
            Route("/v1/{path:path}", Rest(service, FIRESTORE)),
            *(
                Route(f"/{service.name}/{name}/channel", channel(channels, name), methods=["GET", "POST"])
                for name, method in service.methods.items()
                if isinstance(method, BidiStream)
            ),
            *(Route(path, _refusing(reason), methods=_ANY_METHOD) for path, reason in LEFT_OUT.items()),
            Route(admin + "/databases/{database}/documents", clear, methods=["DELETE"]),
            Route(admin + "/databases/{database}/documents/{path:path}", clear_below, methods=["DELETE"]),
            Route(admin + ":bulkDelete", bulk_delete, methods=["POST"]),
            Route(admin + "/eventarcTrigger", register, methods=["POST"]),
            *databases_routes(engine, databases, admin),
            *snapshots_routes(engine, databases, admin),
            *meters_routes(engine, admin),
            *rules_routes(guard, admin),
        ],
        exception_handlers={
            404: _nothing_here,
            405: _nothing_here,
            RpcError: _refused,
            ClientDisconnect: _gone,
            Exception: _failed,
        },
    )
    app.router.redirect_slashes = False
    return for_any_origin(app)


_ANY_METHOD = ["GET", "POST", "PUT", "PATCH", "DELETE"]


def _refusing(reason: str) -> Any:
    async def refuse(request: Request) -> Response:
        raise unimplemented(reason)

    return refuse


async def _nothing_here(request: Request, error: Exception) -> Response:
    return await _refused(request, not_found(f"Nothing is at {request.method} {request.url.path}."))


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, RpcError)
    status, content = refused(error)
    return JSONResponse(content, status)


async def _gone(request: Request, error: Exception) -> Response:
    return Response(status_code=499)


async def _failed(request: Request, error: Exception) -> Response:
    return await _refused(request, refusal_of(error, request.url.path))
