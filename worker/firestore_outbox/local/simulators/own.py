"""The simulator's own API, in its plain form: what the adapter `simulated` speaks.

`POST /v1/{accountId}/messages` is answered with `{"providerMessageId"}` or `{"error": {"code", "message", "scope"?}}`;
`POST /v1/{accountId}/media`, whose body is the file, with `{"handle", "expiresAt"}`; a message names the handle;
webhooks are `{"events": […]}`. The codes here are also the words in which the core tells other APIs what to refuse.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable, Mapping
from datetime import datetime
from random import Random
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from firestore_outbox.local.simulators.api import Answer, Asked, Refusal
from firestore_outbox.local.simulators.files import File

DEFAULT_PROVIDER = "simulated"
SIGNATURE_HEADER = "X-Simulated-Signature"

ERRORS: dict[str, tuple[int, str]] = {
    "throttled": (429, "Too many messages."),
    "overloaded": (503, "Nothing was processed; try again."),
    "internal": (500, "Something went wrong."),
    "rejected": (400, "The message is refused."),
    "invalid_message": (400, "The message is malformed."),
    "unauthorized": (401, "The token is not valid."),
    "account_blocked": (403, "The account is blocked."),
    "session_down": (409, "The account's session is not connected."),
    "recipient_invalid": (422, "There is no such recipient."),
    "media_missing": (422, "The media cannot be found."),
    "media_expired": (422, "The handle of the file is not known, or not any more."),
    "window_closed": (422, "The recipient has not written lately; a template is needed."),
}

_Text = Annotated[str, StringConstraints(min_length=1, max_length=512)]


class _Message(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")
    requestId: _Text
    to: _Text
    part: dict[str, Any]
    partIndex: Annotated[int, Field(ge=0)] = 0
    provider: Annotated[str, StringConstraints(pattern=r"^[a-z0-9_-]{1,64}$")] = DEFAULT_PROVIDER
    idempotencyKey: _Text | None = None
    echo: _Text | None = None
    mediaHandle: _Text | None = None


def read(account_id: str, authorization: str, body: bytes, has_file: Callable[[str], bool]) -> Asked:
    """`has_file` tells of a handle whether the account's file is there."""
    try:
        message = _Message.model_validate_json(body)
    except ValidationError as error:
        return _unreadable(account_id, body, _words(error))
    refusal = None
    if message.part.get("type") == "media" and message.mediaHandle is None:
        refusal = Refusal(error="invalid_message", detail="mediaHandle is missing: the file must be uploaded first")
    elif message.mediaHandle is not None and not has_file(message.mediaHandle):
        refusal = Refusal(error="media_expired")
    return Asked(
        provider=message.provider,
        account_id=account_id,
        to=message.to,
        request_id=message.requestId,
        part=message.partIndex,
        is_authorized=bool(bearer(authorization)),
        needs_session=True,
        idempotency_key=message.idempotencyKey,
        echo=message.echo,
        refusal=refusal,
    )


def bearer(authorization: str) -> str:
    """The token in the header; empty if there is none."""
    return authorization.partition("Bearer ")[2].strip()


def _unreadable(account_id: str, body: bytes, detail: str) -> Asked:
    """What can be told of a malformed call: it was seen, too."""
    try:
        raw = json.loads(body)
    except (ValueError, RecursionError):
        raw = None
    fields = raw if isinstance(raw, dict) else {}
    request_id, to = (value if isinstance(value := fields.get(name), str) else "" for name in ("requestId", "to"))
    return Asked(
        provider=DEFAULT_PROVIDER,
        account_id=account_id,
        to=to,
        request_id=request_id,
        is_authorized=False,
        refusal=Refusal(error="invalid_message", detail=detail),
    )


class OwnApi:
    def new_message_id(self, random: Random) -> str:
        return f"sim-{random.getrandbits(80):020x}"

    def accepted(self, asked: Asked, identity: str) -> Answer:
        return Answer(status=202, body={"providerMessageId": identity})

    def took_file(self, file: File) -> Answer:
        expires_at = None if file.expires_at is None else file.expires_at.isoformat()
        return Answer(status=201, body={"handle": file.handle, "expiresAt": expires_at})

    def refused(self, refusal: Refusal) -> Answer:
        status, message = ERRORS[refusal.error]
        fields = {"code": refusal.error, "message": refusal.detail or message}
        if refusal.error == "throttled":
            fields["scope"] = refusal.scope
        return Answer(status=status, body={"error": fields}, retry_after_seconds=refusal.retry_after_seconds)

    def body(self, account_id: str, event: Mapping[str, Any]) -> bytes:
        return json.dumps({"events": [event]}).encode()

    def headers(self, secret: str, body: bytes, at: datetime) -> dict[str, str]:
        return {SIGNATURE_HEADER: signed(secret, body, at)}


OWN = OwnApi()


def signed(secret: str, body: bytes, at: datetime) -> str:
    """Written here on its own, and not taken from the adapter: a simulator that shared the code could not find an error
    in it. `t=<unix seconds>,v1=<hex>`, HMAC-SHA256 over `<t>.<raw body>`."""
    moment = str(int(at.timestamp()))
    mac = hmac.new(secret.encode(), moment.encode() + b"." + body, hashlib.sha256)
    return f"t={moment},v1={mac.hexdigest()}"


def _words(error: ValidationError) -> str:
    fault = error.errors(include_url=False)[0]
    return f"{'.'.join(map(str, fault['loc'])) or 'the body'}: {fault['msg']}"
