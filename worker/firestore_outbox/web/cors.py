"""Calls from web pages: which origins a browser may call the HTTP API from (OUTBOX_ALLOWED_ORIGINS).

A browser asks first (OPTIONS), without a token, and shows an answer to a page only if its headers name the page's
origin. That protects people's browsers; what a caller may do is decided by their token alone.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from functools import wraps

from starlette.requests import Request
from starlette.responses import Response

from firestore_outbox.settings import Settings

METHODS = "GET, POST, PUT, PATCH, DELETE"
HEADERS = "Authorization, Content-Type"
KEPT_SECONDS = 3600
"""How long a browser need not ask again."""

Function = Callable[[Request], Awaitable[Response]]


def origin_headers(origin: str | None, allowed: tuple[str, ...]) -> dict[str, str]:
    """For any answer. Empty: this is no call from a page, or no page of ours."""
    if origin is None or not allowed:
        return {}
    if origin not in allowed and "*" not in allowed:
        return {"Vary": "Origin"}
    return {"Access-Control-Allow-Origin": origin, "Vary": "Origin"}


def for_browsers(function: Function) -> Function:
    """The function, which also answers browsers that ask whether a page may call it."""

    @wraps(function)
    async def answered(request: Request) -> Response:
        headers = origin_headers(request.headers.get("origin"), _allowed())
        if request.method == "OPTIONS" and "access-control-request-method" in request.headers:
            if "Access-Control-Allow-Origin" not in headers:
                return Response("this origin may not call; see OUTBOX_ALLOWED_ORIGINS", status_code=403)
            ways = {"Access-Control-Allow-Methods": METHODS, "Access-Control-Allow-Headers": HEADERS}
            return Response(status_code=204, headers={**headers, **ways, "Access-Control-Max-Age": str(KEPT_SECONDS)})
        response = await function(request)
        response.headers.update(headers)
        return response

    return answered


def _allowed() -> tuple[str, ...]:
    return Settings.from_environment(os.environ).origins
