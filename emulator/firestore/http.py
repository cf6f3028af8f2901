"""The HTTP side, at the same paths as Google's emulator: health, clearing, event triggers."""

from __future__ import annotations

import json
from json import JSONDecodeError

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from emulator.firestore.engine import Engine
from emulator.firestore.triggers import BadTrigger, Triggers, parse_trigger


def http_app(engine: Engine, triggers: Triggers) -> Starlette:
    async def health(request: Request) -> Response:
        return PlainTextResponse("Ok\n")

    async def clear(request: Request) -> Response:
        engine.clear("projects/{project}/databases/{database}".format(**request.path_params))
        await engine.settled()
        return JSONResponse({})

    async def register(request: Request) -> Response:
        try:
            definition = json.loads(await request.body())
        except (JSONDecodeError, UnicodeDecodeError) as error:
            return _refusal(f"the body is not JSON: {error}")
        name = request.query_params.get("eventarcTriggerId", "")
        try:
            trigger = parse_trigger(request.path_params["project"], name, definition)
        except BadTrigger as error:
            return _refusal(str(error))
        triggers.register(trigger, definition)
        await engine.settled()
        return JSONResponse({})

    admin = "/emulator/v1/projects/{project}"
    return Starlette(
        routes=[
            Route("/", health),
            Route(admin + "/databases/{database}/documents", clear, methods=["DELETE"]),
            Route(admin + "/eventarcTrigger", register, methods=["POST"]),
        ]
    )


def _refusal(message: str) -> Response:
    return JSONResponse({"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}, status_code=400)
