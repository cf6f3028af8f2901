"""A stand-in for Firebase Cloud Messaging on a laptop: `messages:send` with Google's path and answers.

It keeps the messages that it accepted, the last 1,000 of them, for a person or a test to look at. A token that begins
with `unregistered` is answered as one of an app that was removed from its device.
"""

from __future__ import annotations

import json
from collections import deque
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

KEPT = 1000
GONE_PREFIX = "unregistered"
_ERROR_TYPE = "type.googleapis.com/google.firebase.fcm.v1.FcmError"


class FcmStandIn:
    def __init__(self) -> None:
        self.accepted: deque[dict[str, Any]] = deque(maxlen=KEPT)
        self._count = 0

    def routes(self) -> list[Route]:
        """Before those of Cloud KMS, which takes every path of a project."""
        return [
            Route("/v1/projects/{project}/messages:send", self._send, methods=["POST"]),
            Route("/_sim/notifications", self._shown),
        ]

    async def _send(self, request: Request) -> Response:
        try:
            message = json.loads(await request.body())["message"]
            token = message["token"]
        except (ValueError, KeyError, TypeError, RecursionError):
            return _refused(400, "INVALID_ARGUMENT", "INVALID_ARGUMENT", "the message names no token")
        if not isinstance(token, str) or not all(isinstance(one, str) for one in message.get("data", {}).values()):
            return _refused(400, "INVALID_ARGUMENT", "INVALID_ARGUMENT", "the token and all data must be strings")
        if token.startswith(GONE_PREFIX):
            return _refused(404, "NOT_FOUND", "UNREGISTERED", "Requested entity was not found.")
        self._count += 1
        self.accepted.append(message)
        return JSONResponse({"name": f"projects/{request.path_params['project']}/messages/{self._count}"})

    async def _shown(self, request: Request) -> Response:
        return JSONResponse(list(self.accepted))


def _refused(status: int, name: str, code: str, message: str) -> Response:
    details = [{"@type": _ERROR_TYPE, "errorCode": code}]
    return JSONResponse({"error": {"code": status, "status": name, "message": message, "details": details}}, status)
