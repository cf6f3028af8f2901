"""A receiver of signed webhooks, at `/signed_webhook`: what the owner of an account writes, as the protocol asks.

It checks the signature, delivers a key once, and answers a key that it has seen before with 409 and the same id.
Calls and webhooks are signed by the simulator's one secret. With `apiCode` in the faults a refusal comes under that
HTTP status.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Mapping
from datetime import datetime
from random import Random
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from firestore_outbox.local.simulators.api import Answer, Asked, Refusal, Simulator
from firestore_outbox.local.simulators.own import ERRORS, signed

NAME = "signed_webhook"
SIGNATURE_HEADER = "Outbox-Signature"
KEY_HEADER = "Idempotency-Key"
TOLERANCE_SECONDS = 300

_Text = Annotated[str, StringConstraints(min_length=1, max_length=512)]


class _Message(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")
    accountId: _Text
    requestId: _Text
    to: _Text
    part: dict[str, Any]
    partIndex: Annotated[int, Field(ge=0)]
    echo: _Text


class SignedWebhookApi:
    def __init__(self, *, accepted_before: bool = False) -> None:
        self._accepted_before = accepted_before

    def new_message_id(self, random: Random) -> str:
        return f"received-{random.getrandbits(64):016x}"

    def accepted(self, asked: Asked, identity: str) -> Answer:
        return Answer(status=409 if self._accepted_before else 202, body={"id": identity})

    def refused(self, refusal: Refusal) -> Answer:
        status, message = ERRORS[refusal.error]
        code = refusal.api_code or ""
        fields = {"code": refusal.error, "message": refusal.detail or message}
        if refusal.error == "throttled":
            fields["scope"] = refusal.scope
        return Answer(
            status=int(code) if code.isdigit() else status,
            body={"error": fields},
            retry_after_seconds=1 if refusal.error == "overloaded" else refusal.retry_after_seconds,
        )

    def body(self, account_id: str, event: Mapping[str, Any]) -> bytes:
        return json.dumps({"events": [event]}).encode()

    def headers(self, secret: str, body: bytes, at: datetime) -> dict[str, str]:
        return {SIGNATURE_HEADER: signed(secret, body, at)}


API = SignedWebhookApi()
AGAIN = SignedWebhookApi(accepted_before=True)


def routes(simulator: Simulator) -> list[Route]:
    async def receive(request: Request) -> Response:
        body = await request.body()
        core = simulator.core
        genuine = is_genuine(request.headers.get(SIGNATURE_HEADER, ""), simulator.webhooks.secret, body, core.clock())
        if _is_check(body):
            return JSONResponse({}, 200 if genuine else 401)
        asked = _asked(body, request.headers.get(KEY_HEADER), genuine)
        known = asked.idempotency_key is not None and core.knows(asked.account_id, asked.idempotency_key)
        return await simulator.carry_out(request, core.take(asked, AGAIN if known else API))

    return [Route(f"/{NAME}", receive, methods=["POST"])]


def is_genuine(header: str, secret: str, body: bytes, now: datetime) -> bool:
    moment = header.partition(",")[0].removeprefix("t=")
    if not moment.isdigit() or abs(now.timestamp() - int(moment)) > TOLERANCE_SECONDS:
        return False
    return hmac.compare_digest(header, signed(secret, body, datetime.fromtimestamp(int(moment), now.tzinfo)))


def _is_check(body: bytes) -> bool:
    try:
        call = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(call, dict) and call.get("check") is True


def _asked(body: bytes, key: str | None, genuine: bool) -> Asked:
    try:
        message = _Message.model_validate_json(body)
    except ValidationError as error:
        return _refused(error.errors(include_url=False)[0])
    return Asked(
        provider=NAME,
        account_id=message.accountId,
        to=message.to,
        request_id=message.requestId,
        part=message.partIndex,
        is_authorized=genuine,
        idempotency_key=key,
        echo=message.echo,
        refusal=None if key else Refusal(error="invalid_message", detail=f"there is no {KEY_HEADER}"),
    )


def _refused(fault: Any) -> Asked:
    return Asked(
        provider=NAME,
        account_id="",
        to="",
        request_id="",
        is_authorized=False,
        refusal=Refusal(error="invalid_message", detail=f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}"),
    )
