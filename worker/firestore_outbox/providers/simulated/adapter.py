"""The adapter for our own provider simulator (local/simulators/).

One adapter, three names, because what follows an unknown outcome depends on what a provider promises:

    simulated              echoes our id in receipts; the same message sent twice is delivered twice
    simulated-idempotent   the same, and it delivers a key once however often it is sent
    simulated-mute         neither: an unknown outcome stays unknown

Call: `POST {base}/v1/{accountId}/messages`, bearer token, JSON. A file goes to `POST {base}/v1/{accountId}/media`
first, as it is, and the message names the handle that came back. Refusals: `{"error": {"code", "message", "scope"?}}`:
the code decides, and the HTTP status only where there is no code that we know.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

import httpx

from firestore_outbox.messages.model import OutboxMessage
from firestore_outbox.providers.answers import by_status, json_object, text_of
from firestore_outbox.providers.body_signature import only
from firestore_outbox.providers.credentials import WEBHOOK_SECRET, Credentials
from firestore_outbox.providers.event_envelope import events_in
from firestore_outbox.providers.http import Http, retry_after
from firestore_outbox.providers.media import MediaHandle, MediaRefused, MediaStream, NotUploaded, Uploaded
from firestore_outbox.providers.outcome import (
    AuthFailed,
    Capability,
    ErrorCode,
    NotConnected,
    Outcome,
    Rejected,
    Retryable,
    Scope,
    Sent,
    Throttled,
    Unknown,
)
from firestore_outbox.providers.parts import OnePart, PartSender
from firestore_outbox.providers.protocol import (
    Checked,
    InboundFile,
    InboundFiles,
    MediaMode,
    Profile,
    Provider,
    Secret,
    WebhookEvent,
)
from firestore_outbox.providers.signature import has_form, is_genuine

SIGNATURE_HEADER = "X-Simulated-Signature"
TOKEN = "token"

CAPABILITIES: Mapping[str, Capability] = {
    "simulated": Capability(resend_safe=False, echoes_request_id=True),
    "simulated-idempotent": Capability(resend_safe=True, echoes_request_id=True),
    "simulated-mute": Capability(resend_safe=False, echoes_request_id=False),
}

REJECTIONS: Mapping[str, ErrorCode] = {
    "invalid_message": ErrorCode.INVALID_MESSAGE,
    "recipient_invalid": ErrorCode.RECIPIENT_INVALID,
    "media_missing": ErrorCode.MEDIA_MISSING,
    "window_closed": ErrorCode.WINDOW_CLOSED,
    "rejected": ErrorCode.REJECTED,
}
"""Refused for good."""
HANDLE_REFUSED = "media_expired"
_AUTH = frozenset({"unauthorized", "account_blocked"})


class Simulated(Provider):
    def __init__(self, name: str, base_url: str, http: Http, parts: PartSender) -> None:
        self._name = name
        self._base_url = base_url.rstrip("/")
        self._http = http
        self._parts = parts
        self._profile = Profile(
            capability=CAPABILITIES[name],
            part_types=frozenset({"text", "media", "template"}),
            media=MediaMode.UPLOAD,
            throttle_scopes=frozenset(Scope),
            secrets=(
                Secret(name=TOKEN, what="the simulator's token: anything"),
                Secret(name=WEBHOOK_SECRET, what="what the simulator signs its webhooks with"),
            ),
        )

    @property
    def name(self) -> str:
        return self._name

    @property
    def profile(self) -> Profile:
        return self._profile

    async def send(self, message: OutboxMessage, credentials: Credentials, *, limit: timedelta) -> Outcome:
        token = credentials.get(TOKEN)
        if not token:
            return AuthFailed(detail="the account has no token")

        account = f"{self._base_url}/v1/{quote(message.account_id, safe='')}"

        async def send_part(one: OnePart) -> Outcome | MediaRefused:
            answer = await self._http.post(
                f"{account}/messages",
                headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
                content=json.dumps(self._body(one)).encode(),
                limit=one.limit,
            )
            return _outcome(answer) if isinstance(answer, httpx.Response) else answer

        async def upload(file: MediaStream, within: timedelta) -> Uploaded | NotUploaded:
            answer = await self._http.post(
                f"{account}/media",
                headers={"Authorization": f"Bearer {token}", "Content-Type": file.mime_type},
                content=file.body,
                limit=within,
            )
            return _uploaded(answer) if isinstance(answer, httpx.Response) else answer

        return await self._parts.send(message, self._name, self._profile, send_part, upload=upload, limit=limit)

    @property
    def inbound_files(self) -> InboundFiles:
        return self

    async def fetch(
        self, account_id: str, credentials: Credentials, media_id: str, *, most_bytes: int, limit: timedelta
    ) -> InboundFile | Outcome:
        url = f"{self._base_url}/v1/{quote(account_id, safe='')}/files/{quote(media_id, safe='')}"
        headers = {"Authorization": f"Bearer {credentials.get(TOKEN) or ''}"}
        answer = await self._http.download(url, headers=headers, most_bytes=most_bytes, limit=limit)
        if not isinstance(answer, httpx.Response):
            return answer
        if answer.is_success:
            return InboundFile(content=answer.content)
        return by_status(answer, f"the file was not given ({answer.status_code})")

    def _body(self, one: OnePart) -> dict[str, Any]:
        body: dict[str, Any] = {
            "requestId": one.correlation.request_id,
            "to": one.to,
            "part": one.part.model_dump(mode="json", exclude_none=True),
            "partIndex": one.correlation.part,
            "provider": self._name,
        }
        if self._profile.capability.resend_safe:
            body["idempotencyKey"] = one.correlation.key
        if self._profile.capability.echoes_request_id:
            body["echo"] = str(one.correlation)
        if isinstance(one.media, MediaHandle):
            body["mediaHandle"] = one.media.handle
        return body

    async def check(self, account_id: str, credentials: Credentials, *, limit: timedelta) -> Checked:
        if not credentials.get(TOKEN):
            return Checked(works=False, detail="the account has no token")
        return Checked(works=True, detail="the simulator takes every token")

    def looks_signed(self, headers: Mapping[str, str], *, now: datetime) -> bool:
        return has_form(only(headers, SIGNATURE_HEADER) or "", now)

    def verify(self, headers: Mapping[str, str], raw_body: bytes, secret: str, *, now: datetime) -> bool:
        return is_genuine(only(headers, SIGNATURE_HEADER) or "", raw_body, secret, now)

    def parse(self, raw_body: bytes) -> tuple[WebhookEvent, ...]:
        return events_in(raw_body)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Refusal:
    code: str
    message: str
    scope: str


def _outcome(response: httpx.Response) -> Outcome | MediaRefused:
    if response.is_success:
        return _accepted(response)
    refusal = _refusal(response)
    if refusal.code == HANDLE_REFUSED:
        return MediaRefused(detail=refusal.message)
    return _refused(response, refusal)


def _uploaded(response: httpx.Response) -> Uploaded | NotUploaded:
    if not response.is_success:
        outcome = _refused(response, _refusal(response))
        assert not isinstance(outcome, Sent), "a refusal accepts nothing"
        return outcome
    answer = json_object(response)
    handle = answer.get("handle")
    if not isinstance(handle, str) or not handle:
        return Unknown(detail=f"{response.status_code} with an answer that names no handle")
    return Uploaded(handle=handle, expires_at=_time(text_of(answer, "expiresAt")))


def _time(text: str) -> datetime | None:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return None if at.tzinfo is None else at


def _refused(response: httpx.Response, refusal: _Refusal) -> Outcome:
    detail = f"{response.status_code} {refusal.code}: {refusal.message}".strip(" :")
    return _by_code(refusal, response, detail) or by_status(response, detail)


def _accepted(response: httpx.Response) -> Sent | Unknown:
    answer = json_object(response)
    identity = answer.get("providerMessageId")
    if isinstance(identity, str) and identity:
        return Sent(provider_message_id=identity)
    return Unknown(detail=f"{response.status_code} with an answer that names no message")


def _by_code(refusal: _Refusal, response: httpx.Response, detail: str) -> Outcome | None:
    code = refusal.code
    if code == "throttled":
        return Throttled(scope=_scope(refusal.scope), detail=detail, retry_after=retry_after(response.headers))
    if code in REJECTIONS:
        return Rejected(code=REJECTIONS[code], detail=detail)
    if code in _AUTH:
        return AuthFailed(detail=detail)
    if code == "session_down":
        return NotConnected(detail=detail, retry_after=retry_after(response.headers))
    if code == "overloaded":  # says of itself that nothing was processed
        return Retryable(code=ErrorCode.PROVIDER_UNAVAILABLE, detail=detail, retry_after=retry_after(response.headers))
    return None


def _scope(text: str) -> Scope:
    """An unknown scope is taken for the account: narrower would keep calling, wider would stop others."""
    return Scope(text) if text in set(Scope) else Scope.ACCOUNT


def _refusal(response: httpx.Response) -> _Refusal:
    error = json_object(response).get("error")
    fields = error if isinstance(error, dict) else {}
    return _Refusal(code=text_of(fields, "code"), message=text_of(fields, "message"), scope=text_of(fields, "scope"))
