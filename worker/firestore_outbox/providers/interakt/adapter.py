"""Interakt, a reseller of WhatsApp: `POST {base}/v1/public/message/`, with the API key as it was given.

    text       type "Text"                              data.message
    media      "Image", "Video", "Audio", "Document"    data.mediaUrl, and the caption as data.message
    template   type "Template"                          template.name, languageCode, headerValues, bodyValues,
                                                        buttonValues

`callbackData` is ours, and comes back in every receipt. There is no idempotency: an unknown outcome is settled by a
receipt or not at all.

    200 with "result": true and an id     accepted
    200 with "result": false, any 4xx     refused for good; the sentence tells why (interakt_codes.py)
    401, 403                              the key is refused
    429                                   slow down
    5xx, 200 without a result             unknown

The key says which account it is, so there is no account in the address. A base URL may have `{accountId}` in it, for a
gateway that tells accounts apart by their address; the simulator does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, assert_never
from urllib.parse import quote

import httpx

from firestore_outbox.messages.model import MediaPart, OutboxMessage, TemplatePart, TextPart
from firestore_outbox.messages.template_values import HeaderFile
from firestore_outbox.providers.answers import by_status, json_object
from firestore_outbox.providers.body_signature import has_form, is_signed, only
from firestore_outbox.providers.credentials import WEBHOOK_SECRET, Credentials
from firestore_outbox.providers.http import Http
from firestore_outbox.providers.interakt.codes import refusal
from firestore_outbox.providers.interakt.webhook import events_in
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
    Unknown,
)
from firestore_outbox.providers.parts import OnePart, PartSender
from firestore_outbox.providers.phone import PhoneNumber
from firestore_outbox.providers.protocol import Checked, MediaMode, Profile, Provider, Secret, WebhookEvent
from firestore_outbox.providers.redaction import redacted, written_in

NAME = "interakt"
DEFAULT_URL = "https://api.interakt.ai"
API_KEY = "apiKey"
SIGNATURE_HEADER = "Interakt-Signature"

_PROFILE = Profile(
    capability=Capability(resend_safe=False, echoes_request_id=True),
    part_types=frozenset({"text", "media", "template"}),
    media=MediaMode.LINK,
    throttle_scopes=frozenset({Scope.ACCOUNT}),
    secrets=(
        Secret(name=API_KEY, what="the secret key, from Interakt's settings, Developer Settings; as it is shown there"),
        Secret(name=WEBHOOK_SECRET, what="the webhook's secret, which you choose where you enter its address"),
    ),
)
_KINDS: Mapping[str, str] = {"image": "Image", "video": "Video", "audio": "Audio"}
"""By the first half of the mime type; anything else is a document."""

# No customer was created after that, so the answer is an empty list: the key is tried, and no customer is read.
_NO_CUSTOMER = {"filters": [{"trait": "created_at_utc", "op": "gt", "val": "2999-01-01T00:00:00.000Z"}]}


class Interakt(Provider):
    def __init__(self, base_url: str, http: Http, parts: PartSender) -> None:
        self._base_url = base_url.rstrip("/")
        self._http = http
        self._parts = parts

    @property
    def name(self) -> str:
        return NAME

    @property
    def profile(self) -> Profile:
        return _PROFILE

    async def send(self, message: OutboxMessage, credentials: Credentials, *, limit: timedelta) -> Outcome:
        key = credentials.get(API_KEY)
        if not key:
            return AuthFailed(detail="the account has no apiKey")
        number = PhoneNumber.parse(message.to)
        if number is None:
            return Rejected(
                code=ErrorCode.RECIPIENT_INVALID,
                detail="the recipient must be a phone number with + and its country code, as +919999999999",
            )

        async def send_part(one: OnePart) -> Outcome:
            body = _body(one, number)
            if isinstance(body, Rejected):
                return body
            answer = await self._post(one.account_id, "message/", key, body, one.limit)
            hide = (key, message.to, number.national, *written_in(one.part))
            return _outcome(answer, hide) if isinstance(answer, httpx.Response) else answer

        return await self._parts.send(message, NAME, _PROFILE, send_part, limit=limit)

    async def check(self, account_id: str, credentials: Credentials, *, limit: timedelta) -> Checked:
        """Asks for customers of a time to come, of whom there are none."""
        key = credentials.get(API_KEY)
        if not key:
            return Checked(works=False, detail="the account has no apiKey")
        answer = await self._post(account_id, "apis/users/?offset=0&limit=1", key, _NO_CUSTOMER, limit)
        if not isinstance(answer, httpx.Response):
            return Checked(works=False, detail=f"Interakt could not be asked: {answer.detail}")
        return _checked(answer, key)

    async def _post(
        self, account_id: str, path: str, key: str, body: Mapping[str, Any], limit: timedelta
    ) -> httpx.Response | Retryable | Unknown:
        base = self._base_url.replace("{accountId}", quote(account_id, safe=""))
        return await self._http.post(
            f"{base}/v1/public/{path}",
            headers={"Authorization": f"Basic {key}", "Content-Type": "application/json"},
            content=json.dumps(body).encode(),
            limit=limit,
        )

    def looks_signed(self, headers: Mapping[str, str], *, now: datetime) -> bool:
        return has_form(only(headers, SIGNATURE_HEADER), prefix="sha256=")

    def verify(self, headers: Mapping[str, str], raw_body: bytes, secret: str, *, now: datetime) -> bool:
        return is_signed(only(headers, SIGNATURE_HEADER), raw_body, secret, prefix="sha256=")

    def parse(self, raw_body: bytes) -> tuple[WebhookEvent, ...]:
        return events_in(raw_body)


def _body(one: OnePart, number: PhoneNumber) -> dict[str, Any] | Rejected:
    body: dict[str, Any] = {
        "countryCode": number.country_code,
        "phoneNumber": number.national,
        "callbackData": str(one.correlation),
    }
    match one.part:
        case TextPart() as part:
            return body | {"type": "Text", "data": {"message": part.text}}
        case TemplatePart() as part:
            return _template(part, body)
        case MediaPart() as part:
            if not isinstance(one.media, MediaLink):
                return Rejected(code=ErrorCode.MEDIA_MISSING, detail="the file has no address that Interakt can fetch")
            kind = _KINDS.get(part.mimeType.partition("/")[0], "Document")
            optional = {"message": part.caption, "fileName": part.filename}
            given = {name: value for name, value in optional.items() if value is not None}
            return body | {"type": kind, "data": {"mediaUrl": one.media.url} | given}
        case _:
            assert_never(one.part)


def _template(part: TemplatePart, body: dict[str, Any]) -> dict[str, Any] | Rejected:
    values = part.values
    template: dict[str, Any] = {
        "name": part.name,
        "languageCode": part.language,
        "bodyValues": list(values.body or ()),
    }
    if isinstance(values.header, HeaderFile):
        kind, link = values.header.given[0]
        if not link.startswith("https://"):
            detail = f"Interakt fetches the {kind} of a template's header: it takes an https link, and no id"
            return Rejected(code=ErrorCode.INVALID_MESSAGE, detail=detail)
        template["headerValues"] = [link]
    elif values.header:
        template["headerValues"] = list(values.header)
    if buttons := {str(place): [value] for place, value in enumerate(values.buttons or ()) if value}:
        template["buttonValues"] = buttons
    return body | {"type": "Template", "template": template}


def _outcome(response: httpx.Response, hide: tuple[str, ...]) -> Outcome:
    answer = json_object(response)
    sentence, result, identity = _sentence(answer), answer.get("result"), answer.get("id")
    detail = f"{response.status_code} {redacted(sentence, hide)}".strip()
    if not response.is_success:
        outcome = by_status(response, detail)
        return Rejected(code=refusal(sentence), detail=detail) if isinstance(outcome, Rejected) else outcome
    if result is False:
        return Rejected(code=refusal(sentence), detail=detail)
    if isinstance(identity, str) and identity:
        return Sent(provider_message_id=identity)
    return Unknown(detail=f"{response.status_code} with an answer that names no message")


def _sentence(answer: Mapping[str, Any]) -> str:
    """Whole, however long it is: it is searched, and cut later."""
    message = answer.get("message")
    return message if isinstance(message, str) else ""


def _checked(response: httpx.Response, key: str) -> Checked:
    answer = json_object(response)
    if response.is_success and answer.get("result") is True:
        return Checked(works=True, detail="Interakt accepts the key")
    if response.status_code in (401, 403):
        return Checked(works=False, detail="Interakt refuses the key: copy it again from its Developer Settings")
    words = redacted(_sentence(answer), (key,))
    return Checked(works=False, detail=f"Interakt answered {response.status_code} {words}".rstrip())
