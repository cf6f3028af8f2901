"""An adapter for Acme, a service that exists only here. Copy it, and write your own service's words in place of Acme's.

Acme takes `POST /messages` with `{"to", "text", "reference"}` and a bearer key, and answers `{"id"}`. It sends the
reference back in its receipts, which it signs with an HMAC of the body.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from collections.abc import Mapping
from datetime import datetime, timedelta

import httpx

from firestore_outbox import (
    Arrived,
    AuthFailed,
    Capability,
    Checked,
    Correlation,
    Credentials,
    ErrorCode,
    OnePart,
    OutboxMessage,
    Outcome,
    PartReceipt,
    Profile,
    Progress,
    Provider,
    ProviderTools,
    Rejected,
    Retryable,
    Scope,
    Secret,
    Sent,
    TextPart,
    Throttled,
    Unknown,
    Unrecognised,
    WebhookEvent,
)

URL = "https://api.acme.example"
API_KEY, WEBHOOK_SECRET = "apiKey", "webhookSecret"
SIGNATURE = "acme-signature"


class Acme(Provider):
    name = "acme"
    profile = Profile(
        capability=Capability(
            resend_safe=False,  # the same message twice is delivered twice: an unknown outcome waits for a receipt
            echoes_request_id=True,  # receipts carry the reference of the part
        ),
        part_types=frozenset({"text"}),
        media=None,
        throttle_scopes=frozenset({Scope.ACCOUNT}),
        secrets=(  # `outbox accounts add` asks for them
            Secret(name=API_KEY, what="the key on Acme's settings page"),
            Secret(name=WEBHOOK_SECRET, what="the secret below it, which signs webhooks"),
        ),
    )

    def __init__(self, tools: ProviderTools, url: str = URL) -> None:
        self._http = tools.http
        self._parts = tools.parts
        self._url = url

    async def send(self, message: OutboxMessage, credentials: Credentials, *, limit: timedelta) -> Outcome:
        key = credentials.get(API_KEY)
        if not key:
            return AuthFailed(detail=f"the account has no {API_KEY}")

        async def send_part(one: OnePart) -> Outcome:
            assert isinstance(one.part, TextPart), "the profile names no other type"
            body = {"to": one.to, "text": one.part.text, "reference": str(one.correlation)}
            answer = await self._call("POST", "/messages", key, one.limit, json.dumps(body).encode())
            # No connection is Retryable: nothing was processed. No answer is Unknown: perhaps it was.
            return outcome_of(answer) if isinstance(answer, httpx.Response) else answer

        return await self._parts.send(message, self.name, self.profile, send_part, limit=limit)

    async def check(self, account_id: str, credentials: Credentials, *, limit: timedelta) -> Checked:
        key = credentials.get(API_KEY)
        if not key:
            return Checked(works=False, detail=f"the account has no {API_KEY}")
        answer = await self._call("GET", "/me", key, limit)
        if not isinstance(answer, httpx.Response):
            return Checked(works=False, detail=f"Acme could not be asked: {answer.detail}")
        if answer.is_success:
            return Checked(works=True, detail="Acme knows the key")
        return Checked(works=False, detail=f"Acme answers {answer.status_code}: is the {API_KEY} right?")

    async def _call(
        self, method: str, path: str, key: str, limit: timedelta, content: bytes | None = None
    ) -> httpx.Response | Retryable | Unknown:
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        if content is None:
            return await self._http.get(f"{self._url}{path}", headers=headers, limit=limit)
        return await self._http.post(f"{self._url}{path}", headers=headers, content=content, limit=limit)

    def verify(self, headers: Mapping[str, str], raw_body: bytes, secret: str, *, now: datetime) -> bool:
        given = {name.lower(): value for name, value in headers.items()}.get(SIGNATURE, "")
        return hmac.compare_digest(given.encode(), signature_of(raw_body, secret).encode())

    def parse(self, raw_body: bytes) -> tuple[WebhookEvent, ...]:
        try:
            event = json.loads(raw_body)
            receipt = Arrived(
                progress=Progress(event["status"]),
                at=datetime.fromisoformat(event["at"]),
                provider_message_id=str(event["id"]),
            )
            return (PartReceipt(receipt=receipt, correlation=Correlation.parse(event["reference"])),)
        except (ValueError, KeyError, TypeError, RecursionError):
            return (Unrecognised(detail="not a receipt"),)


def outcome_of(answer: httpx.Response) -> Outcome:
    """What Acme's answers mean. Never quote its words: they may hold the message."""
    match answer.status_code:
        case 200:
            identity = id_in(answer)
            return Sent(provider_message_id=identity) if identity else Unknown(detail="Acme answered without an id")
        case 429:
            wait = answer.headers.get("retry-after", "")
            retry_after = timedelta(seconds=int(wait)) if wait.isdecimal() else None
            return Throttled(scope=Scope.ACCOUNT, detail="Acme: too fast", retry_after=retry_after)
        case 401 | 403:
            return AuthFailed(detail="Acme refuses the key")  # parks the account; its messages stay queued
        case 400 | 422:
            return Rejected(code=ErrorCode.REJECTED, detail="Acme refuses the message")
        case status:
            return Unknown(detail=f"Acme answered {status}")  # in doubt, never claim more


def id_in(answer: httpx.Response) -> str | None:
    try:
        identity = answer.json()["id"]
    except (ValueError, KeyError, TypeError):
        return None
    return identity if isinstance(identity, str) and identity else None


def signature_of(body: bytes, secret: str) -> str:
    return hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def provider(tools: ProviderTools) -> Provider:
    """The entry point. ACME_URL is for a test system."""
    return Acme(tools, os.environ.get("ACME_URL", URL))
