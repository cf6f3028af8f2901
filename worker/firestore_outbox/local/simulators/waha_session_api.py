"""WAHA's sessions, under `/waha/api`: made, started, stopped, linked by a QR code, and their webhooks.

`PUT /_sim/waha/sessions/{name}` orders a session's state (waha_sessions.py); `GET /_sim/waha/sessions` lists all.
"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from firestore_outbox.local.simulators.api import Simulator
from firestore_outbox.local.simulators.core import ProviderCore
from firestore_outbox.local.simulators.receipts import Delivery, Planned
from firestore_outbox.local.simulators.waha_sessions import DOWN, Session, SessionOrder, SessionTable, Status
from firestore_outbox.local.simulators.waha_words import nest

NAME = "waha"


class _NewSession(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")
    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,54}$")] = "default"
    start: bool = True
    config: dict[str, Any] = Field(default_factory=dict)


class SessionApi:
    def __init__(self, simulator: Simulator, sessions: SessionTable) -> None:
        self._simulator = simulator
        self._core = simulator.core
        self._sessions = sessions

    def routes(self) -> list[Route]:
        api, one = "/waha/api", "/waha/api/sessions/{name}"
        return [
            Route(f"{api}/sessions", self._list),
            Route(f"{api}/sessions", self._create, methods=["POST"]),
            Route(one, self._show),
            Route(one, self._configure, methods=["PUT"]),
            Route(f"{api}/{{name}}/auth/qr", self._code),
            *(Route(f"{one}/{verb}", self._order, methods=["POST"]) for verb in ("start", "stop", "restart", "logout")),
            Route(f"{api}/contacts/all", self._contacts),
            Route("/_sim/waha/sessions", self._all),
            Route("/_sim/waha/sessions/{name}", self._put, methods=["PUT"]),
        ]

    async def _list(self, request: Request) -> Response:
        if not request.headers.get("x-api-key"):
            return JSONResponse(nest(401, "Unauthorized"), 401)
        return JSONResponse([self._shown(name) for name, one in self._sessions.sessions.items() if one.exists])

    async def _create(self, request: Request) -> Response:
        try:
            new = _NewSession.model_validate(fields_of(await request.body()))
        except ValidationError as error:
            return JSONResponse(nest(400, [str(error.errors(include_url=False)[0]["msg"])], "Bad Request"), 400)
        if not may_call(request, self._core, new.name):
            return JSONResponse(nest(401, "Unauthorized"), 401)
        session = self._sessions[new.name]
        if not session.exists:
            self._sessions.sessions[new.name] = session = Session(paired=False)
            session.put("STOPPED")
        _aim(self._simulator, new)
        if new.start:
            self._tell(new.name, session.start(self._core.clock()))
        return JSONResponse(self._shown(new.name), 201)

    async def _configure(self, request: Request) -> Response:
        """A session that runs is restarted with its new configuration, as the real one does."""
        if refused := self._found(request):
            return refused
        name = request.path_params["name"]
        try:
            new = _NewSession.model_validate(fields_of(await request.body()) | {"name": name})
        except ValidationError as error:
            return JSONResponse(nest(400, [str(error.errors(include_url=False)[0]["msg"])], "Bad Request"), 400)
        _aim(self._simulator, new)
        session, now = self._sessions[name], self._core.clock()
        if session.status(now) not in DOWN:
            self._tell(name, session.restart(now))
        return JSONResponse(self._shown(name))

    async def _code(self, request: Request) -> Response:
        if refused := self._found(request):
            return refused
        name = request.path_params["name"]
        session = self._sessions[name]
        if session.lose_codes > 0:
            session.lose_codes -= 1
            return JSONResponse(nest(500, "Internal server error"), 500)
        code = session.code(name, self._core.clock())
        if code is None:
            return JSONResponse(nest(422, "Session status is not as expected"), 422)
        return JSONResponse({"value": code})

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

    async def _contacts(self, request: Request) -> Response:
        name = request.query_params.get("session", "")
        if not may_call(request, self._core, name):
            return JSONResponse(nest(401, "Unauthorized"), 401)
        offset, count = (int(request.query_params.get(key, "0")) for key in ("offset", "limit"))
        return JSONResponse(self._sessions[name].contact_page(offset, count))

    def _found(self, request: Request) -> Response | None:
        name = request.path_params["name"]
        if not may_call(request, self._core, name):
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

    # For tests

    async def _all(self, request: Request) -> Response:
        now = self._core.clock()
        shown = {
            name: {"status": one.status(now), "paired": one.paired, "starts": one.starts, "stops": one.stops}
            | {"scans": one.scans}
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
        self._tell(name, self._sessions.order(name, order, self._core.clock()))
        return JSONResponse(self._shown(name))


def may_call(request: Request, core: ProviderCore, name: str) -> bool:
    return bool(request.headers.get("x-api-key")) and core.account(name).credentials != "revoked"


def fields_of(raw: bytes) -> dict[str, Any]:
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    return body if isinstance(body, dict) else {}


def _aim(simulator: Simulator, new: _NewSession) -> None:
    for webhook in new.config.get("webhooks", []):
        simulator.webhooks.aim(NAME, new.name, webhook["url"], webhook.get("hmac", {}).get("key", ""))
