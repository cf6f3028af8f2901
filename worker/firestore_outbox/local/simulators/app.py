"""The HTTP side: the provider's own API, and `/_sim` for tests that order faults and ask for the truth.

A call is carried out in this order: it is recorded, its receipts are on their way, and then it is answered, late,
wrongly or not at all. A caller that hangs up meanwhile changes nothing of what happened.

To cut a connection is no part of ASGI. The server offers it as an extension of the scope (server.py, inprocess.py).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, assert_never

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from firestore_outbox.local.simulators import interakt, signed_webhook, waha, whatsapp_cloud
from firestore_outbox.local.simulators.api import Api, Simulator
from firestore_outbox.local.simulators.core import Answer, Cut, Hang, ProviderCore, Verdict
from firestore_outbox.local.simulators.faults import BadFaults, parse_faults
from firestore_outbox.local.simulators.fcm import FcmStandIn
from firestore_outbox.local.simulators.inbound_files import InboundFiles
from firestore_outbox.local.simulators.own import OWN
from firestore_outbox.local.simulators.webhooks import Webhooks

CUT_EXTENSION = "outbox.cut"
"""In `scope["extensions"]`: a function that ends the connection at once."""

APIS: tuple[Callable[[Simulator], list[Route]], ...] = (
    whatsapp_cloud.routes,
    interakt.routes,
    signed_webhook.routes,
    waha.routes,
)
"""The real providers' APIs, each under paths of its own."""
FORMS: dict[str, Api] = {
    whatsapp_cloud.NAME: whatsapp_cloud.API,
    interakt.NAME: interakt.API,
    signed_webhook.NAME: signed_webhook.API,
    waha.NAME: waha.API,
}
"""What each of them posts, by the provider's name."""

_Text = Annotated[str, StringConstraints(min_length=1, max_length=256)]


class _AccountOrder(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")
    session: Literal["up", "down"] | None = None
    credentials: Literal["valid", "revoked"] | None = None


class _Inbound(BaseModel):
    """`{accountId, from, text}` or `{accountId, from, parts}`."""

    model_config = ConfigDict(extra="forbid")
    accountId: _Text
    sender: Annotated[_Text, Field(alias="from")]
    text: Annotated[str, StringConstraints(min_length=1)] | None = None
    parts: list[dict[str, Any]] | None = None
    provider: Annotated[str, StringConstraints(pattern=r"^[a-z0-9_-]{1,64}$")] | None = None
    """The name whose webhook gets it; by default the one under which the account sent last."""
    providerMessageId: _Text | None = None
    """To send the same one twice."""
    at: AwareDatetime | None = None


class SimulatorApp:
    def __init__(self, core: ProviderCore, webhooks: Webhooks, others: Sequence[Route] = ()) -> None:
        """`others` are served beside the provider's: APIs of Google that a laptop needs a stand-in for."""
        self.core = core
        self.webhooks = webhooks
        self.inbound_files = InboundFiles()
        self._stopping = asyncio.Event()
        self.starlette = Starlette(
            routes=[
                Route("/v1/{account_id}/messages", self._messages, methods=["POST"]),
                Route("/v1/{account_id}/media", self._media, methods=["POST"]),
                Route("/_sim/health", self._health),
                Route("/_sim/calls", self._calls),
                Route("/_sim/calls", self._forget_calls, methods=["DELETE"]),
                Route("/_sim/media", self._uploads),
                Route("/_sim/faults", self._faults),
                Route("/_sim/faults", self._set_faults, methods=["PUT"]),
                Route("/_sim/inbound", self._inbound, methods=["POST"]),
                Route("/_sim/accounts/{account_id}", self._account),
                Route("/_sim/accounts/{account_id}", self._set_account, methods=["PUT"]),
                *self.inbound_files.routes(),
                *FcmStandIn().routes(),
                *(route for mounted in APIS for route in mounted(self)),
                *others,
            ]
        )

    def release(self) -> None:
        """End all waiting: what is late is answered now, what hangs is cut. The server is about to stop."""
        self._stopping.set()

    # The provider

    async def _messages(self, request: Request) -> Response:
        account_id = request.path_params["account_id"]
        body = await request.body()
        return await self.carry_out(
            request, self.core.receive(account_id, request.headers.get("authorization", ""), body)
        )

    async def _media(self, request: Request) -> Response:
        headers, content = request.headers, await request.body()
        token, mime_type = headers.get("authorization", ""), headers.get("content-type", "")
        then, latency = self.core.receive_file(request.path_params["account_id"], token, mime_type, content)
        return await self.answer(request, then, latency)

    async def carry_out(self, request: Request, verdict: Verdict) -> Response:
        for delivery in verdict.deliveries:
            self.webhooks.deliver(delivery)
        return await self.answer(request, verdict.then, verdict.latency)

    async def answer(self, request: Request, then: Answer | Cut | Hang, latency: timedelta) -> Response:
        await self._linger(latency.total_seconds())
        match then:
            case Answer() as answer:
                retry_after = answer.retry_after_seconds
                headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
                return JSONResponse(answer.body, answer.status, headers)
            case Cut():
                return await _cut(request)
            case Hang():
                await self._hang(request)
                return await _cut(request)
            case _:
                assert_never(then)

    async def _linger(self, seconds: float) -> None:
        if seconds > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._stopping.wait()

    async def _hang(self, request: Request) -> None:
        gone, stopping = asyncio.create_task(_hung_up(request)), asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait({gone, stopping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
            stopping.cancel()

    # For tests

    async def _health(self, request: Request) -> Response:
        return JSONResponse({"status": "ok", "webhooksPending": self.webhooks.pending})

    async def _calls(self, request: Request) -> Response:
        calls = self.core.record.calls(request.query_params.get("accountId"))
        return JSONResponse([call.shown() for call in calls])

    async def _uploads(self, request: Request) -> Response:
        files = self.core.files.uploads(request.query_params.get("accountId"))
        return JSONResponse([file.shown() for file in files])

    async def _forget_calls(self, request: Request) -> Response:
        self.core.forget_calls()
        return Response(status_code=204)

    async def _faults(self, request: Request) -> Response:
        return JSONResponse(self.core.faults.model_dump(mode="json"))

    async def _set_faults(self, request: Request) -> Response:
        try:
            self.core.faults = parse_faults(json.loads(await request.body()))
        except BadFaults as error:
            return _bad_request(str(error))
        except (ValueError, RecursionError):
            return _bad_request("the body is not JSON")
        return await self._faults(request)

    async def _account(self, request: Request) -> Response:
        account = self.core.account(request.path_params["account_id"])
        return JSONResponse({"session": account.session, "credentials": account.credentials})

    async def _set_account(self, request: Request) -> Response:
        account_id = request.path_params["account_id"]
        try:
            order = _AccountOrder.model_validate_json(await request.body())
        except ValidationError as error:
            return _bad_request(_words(error))
        before = self.core.account(account_id)
        after = replace(before, **order.model_dump(exclude_none=True))
        self.core.set_account(account_id, after)
        if after.session != before.session:
            event = {"type": "session", "status": after.session, "at": self._now().isoformat()}
            self.webhooks.post(after.provider, account_id, event)
        return await self._account(request)

    async def _inbound(self, request: Request) -> Response:
        try:
            inbound = _Inbound.model_validate_json(await request.body())
        except ValidationError as error:
            return _bad_request(_words(error))
        if (inbound.text is None) == (inbound.parts is None):
            return _bad_request("either text or parts is needed")
        provider = inbound.provider or self.core.account(inbound.accountId).provider
        identity = inbound.providerMessageId or FORMS.get(provider, OWN).new_message_id(self.core.random)
        event = {
            "type": "inbound",
            "providerMessageId": identity,
            "from": inbound.sender,
            "at": (inbound.at or self._now()).isoformat(),
            "parts": [{"type": "text", "text": inbound.text}] if inbound.parts is None else inbound.parts,
        }
        self.webhooks.post(provider, inbound.accountId, event)
        return JSONResponse({"providerMessageId": identity}, 202)

    def _now(self) -> datetime:
        return self.core.clock()


async def _cut(request: Request) -> Response:
    cut: Callable[[], Awaitable[None]] | None = request.scope.get("extensions", {}).get(CUT_EXTENSION)
    if cut is None:
        return _error(500, "internal", "this server cannot cut a connection")
    await cut()
    await _hung_up(request)
    return Response()  # goes nowhere


async def _hung_up(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _words(error: ValidationError) -> str:
    return "; ".join(
        f"{'.'.join(map(str, fault['loc'])) or 'the body'}: {fault['msg']}" for fault in error.errors(include_url=False)
    )


def _bad_request(message: str) -> Response:
    return _error(400, "invalid_argument", message)


def _error(status: int, code: str, message: str) -> Response:
    return JSONResponse({"error": {"code": code, "message": message}}, status)
