"""Any receiver of yours: one part, POSTed as JSON to the account's own address, signed, with an Idempotency-Key.

The protocol is ours, so it promises what others do not (docs/providers.md describes it for authors of receivers):

    Idempotency-Key     the same for each attempt at a part, and for nothing else. The receiver delivers a key once, so
                        an unknown outcome is simply sent again.
    Outbox-Signature    `t=…,v1=…` over the raw body, by the account's signingSecret

    2xx                 accepted; `{"id"}` names the message, otherwise its key does
    409 with `{"id"}`   accepted before, under that id
    409 without         another attempt with this key is under way: sent again
    429                 slow down; `{"error": {"scope": "recipient"}}` if only for this one
    401, 403            the signature or the account is refused: the account is parked
    301, 308, 404, 405, 410    nothing takes messages at this address: the account is parked, and nothing is lost
    other 4xx           refused for good; `{"error": {"code"}}` may be one of our own codes
    503 with Retry-After       not processed: sent again after that time
    other 5xx, no answer       unknown: sent again, with the same key

Receipts and inbound messages come to the account's webhook in our own envelope (event_envelope.py), signed in the same
way by the webhookSecret. The two secrets differ so that nothing which we sent can be played back to us.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import httpx

from firestore_outbox.clock import Clock
from firestore_outbox.messages.model import OutboxMessage
from firestore_outbox.providers.answers import by_status, json_object
from firestore_outbox.providers.body_signature import only
from firestore_outbox.providers.credentials import WEBHOOK_SECRET, Credentials
from firestore_outbox.providers.event_envelope import events_in
from firestore_outbox.providers.http import Http, retry_after
from firestore_outbox.providers.media import MediaLink
from firestore_outbox.providers.outcome import (
    AuthFailed,
    Capability,
    ErrorCode,
    Outcome,
    Rejected,
    Retryable,
    Scope,
    Sent,
    Throttled,
    Unknown,
)
from firestore_outbox.providers.parts import OnePart, PartSender
from firestore_outbox.providers.protocol import Checked, MediaMode, Profile, Provider, Secret, WebhookEvent
from firestore_outbox.providers.redaction import redacted, written_in
from firestore_outbox.providers.signature import has_form, is_genuine, signed

NAME = "signed_webhook"
URL = "url"
SIGNING_SECRET = "signingSecret"
SIGNATURE_HEADER = "Outbox-Signature"
KEY_HEADER = "Idempotency-Key"

CODES: Mapping[str, ErrorCode] = {
    "invalid_message": ErrorCode.INVALID_MESSAGE,
    "recipient_invalid": ErrorCode.RECIPIENT_INVALID,
    "media_missing": ErrorCode.MEDIA_MISSING,
    "window_closed": ErrorCode.WINDOW_CLOSED,
    "rejected": ErrorCode.REJECTED,
}
"""What a receiver may name as the reason of a 4xx."""
_NO_RECEIVER = frozenset({301, 308, 404, 405, 410})
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_LONGEST_ID = 512

_PROFILE = Profile(
    capability=Capability(resend_safe=True, echoes_request_id=True),
    part_types=frozenset({"text", "media", "template"}),
    media=MediaMode.LINK,
    throttle_scopes=frozenset({Scope.ACCOUNT, Scope.RECIPIENT}),
    secrets=(
        Secret(name=URL, what="the receiver's address, with https", hidden=False),
        Secret(name=SIGNING_SECRET, what="what we sign calls to the receiver with: a long random text"),
        Secret(
            name=WEBHOOK_SECRET,
            what="what the receiver signs its receipts with: another long random text; empty if it sends none",
            required=False,
        ),
    ),
)


class SignedWebhook(Provider):
    def __init__(self, http: Http, parts: PartSender, clock: Clock) -> None:
        self._http = http
        self._parts = parts
        self._clock = clock

    @property
    def name(self) -> str:
        return NAME

    @property
    def profile(self) -> Profile:
        return _PROFILE

    async def send(self, message: OutboxMessage, credentials: Credentials, *, limit: timedelta) -> Outcome:
        receiver = _receiver(credentials)
        if isinstance(receiver, str):
            return AuthFailed(detail=receiver)
        url, secret = receiver

        async def send_part(one: OnePart) -> Outcome:
            key = one.correlation.key
            answer = await self._post(url, secret, _body(one), one.limit, {KEY_HEADER: key})
            hide = (secret, url, one.to, *written_in(one.part))
            return _outcome(answer, key, hide) if isinstance(answer, httpx.Response) else answer

        return await self._parts.send(message, NAME, _PROFILE, send_part, limit=limit)

    async def check(self, account_id: str, credentials: Credentials, *, limit: timedelta) -> Checked:
        """A call without a message and without a key: `{"check": true}`."""
        receiver = _receiver(credentials)
        if isinstance(receiver, str):
            return Checked(works=False, detail=receiver)
        answer = await self._post(*receiver, {"check": True, "accountId": account_id}, limit)
        if not isinstance(answer, httpx.Response):
            return Checked(works=False, detail=f"the receiver could not be asked: {answer.detail}")
        return _checked(answer.status_code)

    async def _post(
        self, url: str, secret: str, body: Mapping[str, Any], limit: timedelta, headers: Mapping[str, str] | None = None
    ) -> httpx.Response | Retryable | Unknown:
        content = json.dumps(body).encode()
        signature = signed(content, secret, self._clock())
        return await self._http.post(
            url,
            headers={"Content-Type": "application/json", SIGNATURE_HEADER: signature, **(headers or {})},
            content=content,
            limit=limit,
        )

    def looks_signed(self, headers: Mapping[str, str], *, now: datetime) -> bool:
        return has_form(only(headers, SIGNATURE_HEADER) or "", now)

    def verify(self, headers: Mapping[str, str], raw_body: bytes, secret: str, *, now: datetime) -> bool:
        return is_genuine(only(headers, SIGNATURE_HEADER) or "", raw_body, secret, now)

    def parse(self, raw_body: bytes) -> tuple[WebhookEvent, ...]:
        return events_in(raw_body)


def _receiver(credentials: Credentials) -> tuple[str, str] | str:
    """Its address and the secret; or what is wrong with them."""
    url, secret = credentials.get(URL), credentials.get(SIGNING_SECRET)
    if not url or not secret:
        return f"the account needs {URL} and {SIGNING_SECRET}"
    try:
        address = httpx.URL(url)
    except httpx.InvalidURL:
        return f"the account's {URL} is no address"
    if address.scheme != "https" and not (address.scheme == "http" and address.host in _LOOPBACK):
        return f"the account's {URL} must begin with https://"
    if not address.host or "%" in address.host:  # what no host has was escaped
        return f"the account's {URL} is no address"
    return url, secret


def _body(one: OnePart) -> dict[str, Any]:
    part = one.part.model_dump(mode="json", exclude_none=True)
    if isinstance(one.media, MediaLink):
        part["url"] = one.media.url
    return {
        "accountId": one.account_id,
        "requestId": one.correlation.request_id,
        "to": one.to,
        "part": part,
        "partIndex": one.correlation.part,
        "partCount": one.correlation.parts,
        "echo": str(one.correlation),
    }


def _outcome(response: httpx.Response, key: str, hide: tuple[str, ...]) -> Outcome:
    answer, status = json_object(response), response.status_code
    identity = answer.get("id")
    named = identity if isinstance(identity, str) and 0 < len(identity) <= _LONGEST_ID else None
    if response.is_success or (status == 409 and named):
        return Sent(provider_message_id=named or key)
    refusal = _Refusal.of(answer)
    reason = ": ".join(filter(None, (refusal.code, redacted(refusal.message, hide))))
    detail = f"{status} {reason}".rstrip()
    if status in _NO_RECEIVER and refusal.code not in CODES:
        return AuthFailed(detail=f"{detail}: nothing takes messages at the account's {URL}")
    if status == 503 and (wait := retry_after(response.headers)) is not None:
        return Retryable(code=ErrorCode.PROVIDER_UNAVAILABLE, detail=detail, retry_after=wait)
    match by_status(response, detail):
        case Throttled() as throttled if refusal.scope == Scope.RECIPIENT:
            return Throttled(scope=Scope.RECIPIENT, detail=detail, retry_after=throttled.retry_after)
        case Rejected():
            return Rejected(code=CODES.get(refusal.code, ErrorCode.REJECTED), detail=detail)
        case outcome:
            return outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class _Refusal:
    code: str
    """One of CODES, or empty."""
    message: str
    scope: str

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> _Refusal:
        error = answer.get("error")
        fields = error if isinstance(error, dict) else {}
        texts = {name: value for name, value in fields.items() if isinstance(value, str)}
        code = texts.get("code", "")
        return cls(code=code if code in CODES else "", message=texts.get("message", ""), scope=texts.get("scope", ""))


def _checked(status: int) -> Checked:
    if 200 <= status < 300:
        return Checked(works=True, detail="the receiver accepts our signature")
    if status in (401, 403):
        return Checked(works=False, detail=f"the receiver answers {status}: does it have the same {SIGNING_SECRET}?")
    if status in _NO_RECEIVER:
        return Checked(works=False, detail=f"the receiver answers {status}: is the {URL} right?")
    return Checked(works=False, detail=f'the receiver answers {status} to {{"check": true}}, where 2xx was expected')
