"""WAHA 2026.7, under `/waha`: sending, and the webhooks of it. waha_session_api.py has its sessions.

The account is the session's name. A send to a session that is not WORKING waits for it, for some seconds, as the real
one does.
"""

from __future__ import annotations

import asyncio
import binascii
from base64 import b64decode
from dataclasses import replace
from datetime import timedelta
from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from firestore_outbox.local.simulators.api import Asked, Refusal, Simulator
from firestore_outbox.local.simulators.waha_fetches import Fetched
from firestore_outbox.local.simulators.waha_session_api import NAME as NAME
from firestore_outbox.local.simulators.waha_session_api import SessionApi, fields_of, may_call
from firestore_outbox.local.simulators.waha_sessions import Session, SessionTable
from firestore_outbox.local.simulators.waha_words import API as API
from firestore_outbox.local.simulators.waha_words import WahaApi

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


class Waha:
    def __init__(self, simulator: Simulator) -> None:
        self._simulator = simulator
        self._core = simulator.core
        self._sessions = SessionTable()
        self._fetched = Fetched()

    def routes(self) -> list[Route]:
        api = "/waha/api"
        return [
            Route(f"{api}/sendText", self._send_text, methods=["POST"]),
            Route(f"{api}/sendImage", self._send_media, methods=["POST"]),
            Route(f"{api}/sendFile", self._send_media, methods=["POST"]),
            Route(f"{api}/{{name}}/new-message-id", self._new_message_id),
            Route("/_sim/waha/fetches", self._fetched.shown),
            *SessionApi(self._simulator, self._sessions).routes(),
        ]

    async def _send_text(self, request: Request) -> Response:
        return await self._send(request, _Text)

    async def _send_media(self, request: Request) -> Response:
        return await self._send(request, _Media)

    async def _send(self, request: Request, form: type[_Text | _Media]) -> Response:
        raw = await request.body()
        fields = fields_of(raw)
        try:
            message = form.model_validate(fields)
            fault = _fault(message)
        except ValidationError as error:
            message, fault = None, str(error.errors(include_url=False)[0]["msg"])
        name = message.session if message else str(fields.get("session", ""))
        waits_for = None
        if message is not None and fault is None and may_call(request, self._core, name):
            waits_for = await self._until_working(self._sessions[name])
        if isinstance(message, _Media) and message.file.url and fault is None and waits_for is None:
            fault = await self._fetched.fetch(name, message.file.url)
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
        """The status that it has instead, when the wait for WORKING ends."""
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
