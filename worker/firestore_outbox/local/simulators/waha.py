"""WAHA 2026.7, under `/waha`: sending, sessions, and the webhooks of both.

The account is the session's name. A send to a session that is not WORKING waits for it, for some seconds, as the real
one does.

`PUT /_sim/waha/sessions/{name}` orders a session's state (waha_sessions.py); `GET /_sim/waha/sessions` tells of all.
"""

from __future__ import annotations

import asyncio
import binascii
import json
from base64 import b64decode
from dataclasses import replace
from datetime import timedelta
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from firestore_outbox.local.simulators.api import Asked, Refusal, Simulator
from firestore_outbox.local.simulators.receipts import Delivery, Planned
from firestore_outbox.local.simulators.waha_sessions import Session, SessionOrder, SessionTable, Status
from firestore_outbox.local.simulators.waha_words import API as API
from firestore_outbox.local.simulators.waha_words import WahaApi, nest

NAME = "waha"
_CHAT = r"^[0-9A-Za-z.:-]+@(c\.us|g\.us|lid)$"


class _Sending(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")
    session: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,54}$")]
    chatId: Annotated[str, StringConstraints(pattern=_CHAT)]


class _Text(_Sending):
    text: str
    id: Annotated[str, StringConstraints(min_length=1, max_length=128)] | None = None


class _File(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")
    mimetype: str
    filename: str | None = None
    url: str | None = None
    data: str | None = None


class _Media(_Sending):
    file: _File
    caption: str | None = None


class _NewSession(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")
    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,54}$")] = "default"
    start: bool = True
    config: dict[str, Any] = Field(default_factory=dict)


class Waha:
    def __init__(self, simulator: Simulator) -> None:
        self._simulator = simulator
        self._core = simulator.core
        self._sessions = SessionTable()

    def routes(self) -> list[Route]:
        api, one = "/waha/api", "/waha/api/sessions/{name}"
        return [
            Route(f"{api}/sendText", self._send_text, methods=["POST"]),
            Route(f"{api}/sendImage", self._send_media, methods=["POST"]),
            Route(f"{api}/sendFile", self._send_media, methods=["POST"]),
            Route(f"{api}/sessions", self._list),
            Route(f"{api}/sessions", self._create, methods=["POST"]),
            Route(one, self._show),
            *(Route(f"{one}/{verb}", self._order, methods=["POST"]) for verb in ("start", "stop", "restart", "logout")),
            Route(f"{api}/{{name}}/new-message-id", self._new_message_id),
            Route("/_sim/waha/sessions", self._all),
            Route("/_sim/waha/sessions/{name}", self._put, methods=["PUT"]),
        ]

    # Sending

    async def _send_text(self, request: Request) -> Response:
        return await self._send(request, _Text)

    async def _send_media(self, request: Request) -> Response:
        return await self._send(request, _Media)

    async def _send(self, request: Request, form: type[_Text | _Media]) -> Response:
        raw = await request.body()
        fields = _fields(raw)
        try:
            message = form.model_validate(fields)
            fault = _fault(message)
        except ValidationError as error:
            message, fault = None, str(error.errors(include_url=False)[0]["msg"])
        name = message.session if message else str(fields.get("session", ""))
        waits_for = None
        if message is not None and fault is None and self._may_call(request, name):
            waits_for = await self._until_working(self._sessions[name])
        chat = message.chatId if message else ""
        asked = self._asked(request, name, chat, message.id if isinstance(message, _Text) else None)
        if fault is not None:
            asked = _refusing(asked, "invalid_message", fault)
        elif waits_for is not None:
            asked = _refusing(asked, "session_down", waits_for)
        text = message.text if isinstance(message, _Text) else ""
        path = request.url.path.removeprefix("/waha")
        api = WahaApi(path=path, request=fields, chat=chat, text=text)
        return await self._simulator.carry_out(request, self._core.take(asked, api))

    async def _until_working(self, session: Session) -> str | None:
        """The status that it has instead, when the wait for WORKING is over."""
        now = self._core.clock()
        if not session.exists or session.status(now) == "STOPPED":
            return "STOPPED"
        ends = now + timedelta(milliseconds=session.wait_ms)
        while (status := session.status(now)) != "WORKING":
            if now >= ends:
                return status
            changes_at = session.changes_at(now) or ends
            await asyncio.sleep(max(0.001, (min(changes_at, ends) - now).total_seconds()))
            now = self._core.clock()
        return None

    def _asked(self, request: Request, name: str, chat: str, message_id: str | None) -> Asked:
        request_id, _, rest = request.headers.get("x-request-id", "").partition(":")
        part = rest.partition(":")[0]
        return Asked(
            provider=NAME,
            account_id=name,
            to=chat.removesuffix("@c.us"),
            request_id=request_id,
            part=int(part) if part.isdigit() else 0,
            is_authorized=bool(request.headers.get("x-api-key")),
            needs_session=True,
            message_id=message_id,
        )

    async def _new_message_id(self, request: Request) -> Response:
        return JSONResponse({"id": API.new_message_id(self._core.random)})

    # Sessions

    def _may_call(self, request: Request, name: str) -> bool:
        return bool(request.headers.get("x-api-key")) and self._core.account(name).credentials != "revoked"

    async def _list(self, request: Request) -> Response:
        if not request.headers.get("x-api-key"):
            return JSONResponse(nest(401, "Unauthorized"), 401)
        return JSONResponse([self._shown(name) for name, one in self._sessions.sessions.items() if one.exists])

    async def _create(self, request: Request) -> Response:
        try:
            new = _NewSession.model_validate(_fields(await request.body()))
        except ValidationError as error:
            return JSONResponse(nest(400, [str(error.errors(include_url=False)[0]["msg"])], "Bad Request"), 400)
        if not self._may_call(request, new.name):
            return JSONResponse(nest(401, "Unauthorized"), 401)
        session = self._sessions[new.name]
        if not session.exists:
            self._sessions.sessions[new.name] = session = Session(paired=False)
            session.put("STOPPED")
        if new.start:
            self._tell(new.name, session.start(self._core.clock()))
        return JSONResponse(self._shown(new.name), 201)

    async def _show(self, request: Request) -> Response:
        return self._found(request) or JSONResponse(self._shown(request.path_params["name"]))

    async def _order(self, request: Request) -> Response:
        if refused := self._found(request):
            return refused
        name, now = request.path_params["name"], self._core.clock()
        session = self._sessions[name]
        match request.url.path.rsplit("/", 1)[-1]:
            case "start":
                changes = session.start(now)
            case "stop":
                changes = session.stop(now)
            case "restart":
                changes = session.restart(now)
            case _:
                changes = session.logout()
        self._tell(name, changes)
        return JSONResponse(self._shown(name), 201)

    def _found(self, request: Request) -> Response | None:
        name = request.path_params["name"]
        if not self._may_call(request, name):
            return JSONResponse(nest(401, "Unauthorized"), 401)
        if not self._sessions[name].exists:
            return JSONResponse(nest(404, "Session not found", "Not Found"), 404)
        return None

    def _shown(self, name: str) -> dict[str, Any]:
        status = self._sessions[name].status(self._core.clock())
        me = {"id": "10000000000@c.us", "pushName": "simulator"} if status == "WORKING" else None
        return {"name": name, "status": status, "config": {}, "me": me, "engine": {"engine": "GOWS"}}

    def _tell(self, name: str, changes: list[tuple[Status, timedelta]]) -> None:
        """Webhooks of the changes, when they happen."""
        if not changes:
            return
        now = self._core.clock()
        self._sessions.most_running = max(self._sessions.most_running, len(self._sessions.running(now)))
        planned = tuple(
            Planned(event={"type": "session", "status": status, "at": (now + delay).isoformat()}, delay=delay)
            for status, delay in changes
        )
        delivery = Delivery(account_id=name, provider=NAME, provider_message_id="", receipts=planned, in_order=True)
        self._simulator.webhooks.deliver(delivery)

    # Whoever tests with it

    async def _all(self, request: Request) -> Response:
        now = self._core.clock()
        shown = {
            name: {"status": one.status(now), "paired": one.paired, "starts": one.starts, "stops": one.stops}
            for name, one in sorted(self._sessions.sessions.items())
        }
        running = self._sessions.running(now)
        return JSONResponse({"running": running, "mostRunning": self._sessions.most_running, "sessions": shown})

    async def _put(self, request: Request) -> Response:
        name = request.path_params["name"]
        try:
            order = SessionOrder.model_validate_json(await request.body())
        except ValidationError as error:
            words = "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors())
            return JSONResponse({"error": {"code": "invalid_argument", "message": words}}, 400)
        self._tell(name, self._sessions.order(name, order))
        return JSONResponse(self._shown(name))


def _fields(raw: bytes) -> dict[str, Any]:
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    return body if isinstance(body, dict) else {}


def _fault(message: _Text | _Media) -> str | None:
    if isinstance(message, _Text):
        return None
    file = message.file
    if (file.url is None) == (file.data is None):
        return "file must have either url or data"
    try:
        b64decode(file.data or "", validate=True)
    except binascii.Error:
        return "file.data is not base64"
    return None


def _refusing(asked: Asked, error: str, detail: str) -> Asked:
    return replace(asked, refusal=Refusal(error=error, detail=detail))


def routes(simulator: Simulator) -> list[Route]:
    return Waha(simulator).routes()
