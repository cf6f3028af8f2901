"""Interakt's public API, under `/interakt/{accountId}`: the base URL to give to the adapter, placeholder and all.

The real API knows an account by its key; here the address tells, so that one key can serve all accounts. Any key is
taken unless the account's credentials were revoked.

Interakt has no error codes, only sentences, in an answer that says `"result": false`. With `apiCode` in the faults the
same sentence comes under that HTTP status; 200 is one of those that the real API uses.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from mimetypes import guess_extension
from random import Random
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from firestore_outbox.local.simulators.api import Answer, Asked, Refusal, Simulator

NAME = "interakt"
SIGNATURE_HEADER = "Interakt-Signature"

SENTENCES: dict[str, tuple[int, str]] = {
    "throttled": (429, "Rate limit exceeded for this resource"),
    "overloaded": (503, "Service Unavailable"),
    "internal": (500, "Something went wrong"),
    "rejected": (400, "Please correct the following error - Message cannot be sent"),
    "invalid_message": (400, "Please correct the following error - Template does not exist in this language"),
    "unauthorized": (401, "Invalid authentication credentials"),
    "account_blocked": (403, "Public APIs are not part of your plan"),
    "session_down": (403, "The WhatsApp number of this organization is not connected"),
    "recipient_invalid": (400, "Please correct the following error - Phone number is invalid"),
    "media_missing": (400, "Please correct the following error - Media url cannot be downloaded"),
    "media_expired": (400, "Please correct the following error - Media url has expired"),
    "window_closed": (400, "Please correct the following error - Customer has not messaged within last 24 hours"),
}
_STATUSES = {"sent": "Sent", "delivered": "Delivered", "read": "Read", "failed": "Failed"}
_FAILED_CODE = "131026"

_Text = Annotated[str, StringConstraints(min_length=1)]
_Url = Annotated[str, StringConstraints(pattern=r"^https?://[^\s]+$")]


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class _Call(_Strict):
    countryCode: Annotated[str, StringConstraints(pattern=r"^\+[1-9][0-9]{0,2}$")]
    phoneNumber: Annotated[str, StringConstraints(pattern=r"^[0-9]{4,14}$")]
    callbackData: Annotated[str, StringConstraints(max_length=512)] | None = None


class _Words(_Strict):
    message: _Text


class _TextCall(_Call):
    type: Literal["Text"]
    data: _Words


class _File(_Strict):
    mediaUrl: _Url
    message: str | None = None
    fileName: str | None = None


class _MediaCall(_Call):
    type: Literal["Image", "Video", "Audio", "Document"]
    data: _File


class _Template(_Strict):
    name: _Text
    languageCode: _Text
    headerValues: list[str] | None = None
    bodyValues: list[str] | None = None
    buttonValues: dict[Annotated[str, StringConstraints(pattern=r"^[0-9]$")], list[str]] | None = None


class _TemplateCall(_Call):
    type: Literal["Template"]
    template: _Template


_ANY: TypeAdapter[_TextCall | _MediaCall | _TemplateCall] = TypeAdapter(
    Annotated[_TextCall | _MediaCall | _TemplateCall, Field(discriminator="type")]
)


class InteraktApi:
    def new_message_id(self, random: Random) -> str:
        return str(UUID(int=random.getrandbits(128), version=4))

    def accepted(self, asked: Asked, identity: str) -> Answer:
        sentence = "Message queued for sending via Interakt. Check webhook for delivery status"
        return Answer(status=200, body={"result": True, "message": sentence, "id": identity})

    def refused(self, refusal: Refusal) -> Answer:
        status, sentence = SENTENCES[refusal.error]
        code = refusal.api_code or ""
        return Answer(
            status=int(code) if code.isdigit() else status,
            body={"result": False, "message": refusal.detail or sentence},
            retry_after_seconds=refusal.retry_after_seconds,
        )

    def body(self, account_id: str, event: Mapping[str, Any]) -> bytes:
        at = _time(event["at"])
        match event["type"]:
            case "receipt":
                kind, message = f"message_api_{event['status']}", _sent_message(event, at)
                number = str(event.get("to", ""))
            case "inbound":
                kind, message, number = "message_received", _received_message(event, at), str(event["from"])
            case other:
                kind, message, number = f"account_{other}", {}, ""
        data = {"customer": _customer(number), "message": message}
        return json.dumps({"version": "1.0", "timestamp": at, "type": kind, "data": data}).encode()

    def headers(self, secret: str, body: bytes, at: datetime) -> dict[str, str]:
        return {SIGNATURE_HEADER: f"sha256={hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()}"}


API = InteraktApi()


def routes(simulator: Simulator) -> list[Route]:
    async def message(request: Request) -> Response:
        asked = _asked(request, await request.body())
        return await simulator.carry_out(request, simulator.core.take(asked, API))

    async def users(request: Request) -> Response:
        account = simulator.core.account(request.path_params["account_id"])
        if not _is_authorized(request) or account.credentials == "revoked":
            answer = API.refused(Refusal(error="unauthorized"))
            return JSONResponse(answer.body, answer.status)
        data = {"total_customers": 0, "has_next_page": False, "customers": []}
        return JSONResponse({"result": True, "message": "Customers", "data": data})

    base = f"/{NAME}/{{account_id}}/v1/public"
    return [
        Route(f"{base}/message/", message, methods=["POST"]),
        Route(f"{base}/apis/users/", users, methods=["POST"]),
    ]


def _asked(request: Request, body: bytes) -> Asked:
    account_id = request.path_params["account_id"]
    try:
        call = _ANY.validate_json(body)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        words = f"{'.'.join(map(str, fault['loc'])) or 'the body'}: {fault['msg']}"
        return Asked(
            provider=NAME,
            account_id=account_id,
            to="",
            request_id="",
            is_authorized=_is_authorized(request),
            refusal=Refusal(error="invalid_message", detail=f"Please correct the following error - {words}"),
        )
    request_id, part = _own(call.callbackData or "")
    return Asked(
        provider=NAME,
        account_id=account_id,
        to=call.countryCode + call.phoneNumber,
        request_id=request_id,
        part=part,
        is_authorized=_is_authorized(request),
        echo=call.callbackData,
    )


def _is_authorized(request: Request) -> bool:
    return bool(request.headers.get("authorization", "").partition("Basic ")[2].strip())


def _own(echo: str) -> tuple[str, int]:
    """What our callers write there: `requestId:part:parts`."""
    request_id, _, rest = echo.partition(":")
    part = rest.partition(":")[0]
    return request_id, int(part) if part.isdigit() else 0


def _sent_message(event: Mapping[str, Any], at: str) -> dict[str, Any]:
    status, failed = event["status"], event.get("error", {})
    return {
        "id": event["providerMessageId"],
        "chat_message_type": "PublicApiMessage",
        "message_status": _STATUSES[status],
        "received_at_utc": at,
        "delivered_at_utc": at if status in ("delivered", "read") else None,
        "seen_at_utc": at if status == "read" else None,
        "channel_failure_reason": failed.get("message") if failed else None,
        "channel_error_code": failed.get("apiCode", _FAILED_CODE) if failed else None,
        "meta_data": {"source": "PublicAPI", "source_data": {"callback_data": event.get("echo", "")}},
    }


def _received_message(event: Mapping[str, Any], at: str) -> dict[str, Any]:
    """Interakt tells of one content a message: the first part."""
    part = event["parts"][0]
    message: dict[str, Any] = {
        "id": event["providerMessageId"],
        "chat_message_type": "CustomerMessage",
        "message_status": "Sent",
        "received_at_utc": at,
        "channel_failure_reason": None,
        "channel_error_code": None,
        "meta_data": {},
    }
    if part.get("type") != "media":
        return message | {"message_content_type": "Text", "message": part.get("text", ""), "media_url": None}
    mime_type = part.get("mimeType", "")
    kind = mime_type.partition("/")[0].capitalize()
    return message | {
        "message_content_type": kind if kind in ("Image", "Video", "Audio") else "Document",
        "message": part.get("caption", ""),
        "media_url": f"https://media.interakt.example/{part.get('mediaId', '')}{guess_extension(mime_type) or ''}",
    }


def _customer(number: str) -> dict[str, Any]:
    digits = number.removeprefix("+")
    customer: dict[str, Any] = {"channel_phone_number": digits, "traits": {}}
    if digits.startswith("91"):  # most of theirs are Indian; the others show that the whole number is enough
        customer |= {"country_code": "+91", "phone_number": digits[2:]}
    return customer


def _time(text: str) -> str:
    """UTC, and without saying so."""
    return datetime.fromisoformat(text).astimezone(UTC).replace(tzinfo=None).isoformat()
