"""The calls of the service over HTTP and JSON. Nothing is decided here: a request is parsed, and the same handler is
called that gRPC calls.

A stream is answered as one JSON array, written when the last message is known. So a call that is refused halfway has
the status of its refusal, and not half an array.
"""

from __future__ import annotations

from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from firestore_emulator.rpc.errors import RpcError, invalid_argument, not_found
from firestore_emulator.rpc.service import BidiStream, Call, Service, Unary, refusal_of
from firestore_emulator.wire.rest_messages import as_json, query_of, refused, request_of, written
from firestore_emulator.wire.rest_routes import Routes

MAX_BODY_BYTES = 64 * 1024 * 1024
"""More than any request within Firestore's limits can need, escapes included."""

FORM = "application/x-www-form-urlencoded"
"""What `curl -d` says unless told otherwise. Production takes such a body for query parameters."""


class Rest:
    """An ASGI application."""

    def __init__(self, service: Service, routes: Routes) -> None:
        self._service = service
        self._routes = routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            response = await self._answer(Request(scope, receive))
        except ClientDisconnect:
            return  # there is no client left to answer
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        query: list[tuple[str, str]] = []
        status = 200
        try:
            query = query_of(request.scope["query_string"])
            content = await self._called(request, query)
        except RpcError as error:
            status, content = refused(error)
        except ClientDisconnect:
            raise
        except Exception as error:  # noqa: BLE001 - the border: whatever a handler raises becomes a status
            status, content = refused(refusal_of(error, request.url.path))
        return Response(written(content, query), status, media_type="application/json")

    async def _called(self, request: Request, query: list[tuple[str, str]]) -> Any:
        found = self._routes.find(request.method, request.scope["raw_path"].decode("latin-1"))
        if found is None:
            raise not_found(f"No call of {self._service.name} is at {request.method} {request.url.path}.")
        _check_answer_form(query)
        method = self._service.methods[found.binding.call]
        assert not isinstance(method, BidiStream), "the annotations bind none"
        body = await read_body(request)
        if body and request.headers.get("content-type", "").startswith(FORM):
            raise invalid_argument(f"A body of type {FORM} is a form: send it with content-type: application/json.")
        message = request_of(method.request, found, query, body)
        call = Call(metadata=dict(request.headers))
        if isinstance(method, Unary):
            return as_json(await method.handler(message, call))
        return [as_json(answer) async for answer in method.handler(message, call)]


def _check_answer_form(query: list[tuple[str, str]]) -> None:
    for key, value in query:
        if key in ("alt", "$alt") and value.partition(";")[0] != "json":
            raise invalid_argument(f"Answers are JSON here: {key}={value} is not supported by this emulator.")


async def read_body(request: Request) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            raise invalid_argument(f"Request payload size exceeds the limit: {MAX_BODY_BYTES} bytes.")
    return bytes(body)
