"""CORS as Google's emulator has it: a page of any origin may call, and a preflight is always granted.

That is for tools in a browser. It also means that any page that is open on this machine can read the emulator, as with
Google's: it is no place for data that matters.
"""

from __future__ import annotations

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

METHODS = "DELETE,GET,HEAD,PATCH,POST,PUT"


def for_any_origin(app: ASGIApp) -> ASGIApp:
    async def answering(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        asked = Headers(scope=scope)
        allowed = _allowed(asked)

        async def allowing(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(allowed)
            await send(message)

        if scope["method"] == "OPTIONS":
            await Response()(scope, receive, allowing)
        else:
            await app(scope, receive, allowing)

    return answering


def _allowed(asked: Headers) -> dict[str, str]:
    if "origin" not in asked:
        return {}
    allowed = {
        "access-control-allow-origin": asked["origin"],
        "access-control-allow-methods": METHODS,
        "access-control-allow-credentials": "true",
        "vary": "origin",
    }
    if "access-control-request-headers" in asked:
        allowed["access-control-allow-headers"] = asked["access-control-request-headers"]
    return allowed
