"""The adapter for Meta's WhatsApp Cloud API.

A part is one `POST {base}/{phoneNumberId}/messages`. 200 means accepted; what became of it comes by webhook. Meta
promises no deduplication, and echoes `biz_opaque_callback_data` in every receipt: so an unknown outcome is settled by a
receipt, or by a person, and never by sending again.

A refusal's code decides (whatsapp_codes.py), and the HTTP status only where there is no code that we know. Files are
uploaded first; Meta keeps them for 30 days.

Recipients are written as WhatsApp writes them in `from`: country code and number, digits only. Meta takes other forms
too, but an answer would then land in a thread of its own.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, assert_never
from urllib.parse import quote

import httpx

from firestore_outbox.clock import Clock, system_clock
from firestore_outbox.messages.model import MediaPart, OutboxMessage, TemplatePart, TextPart
from firestore_outbox.messages.template_values import HeaderFile, TemplateValues
from firestore_outbox.providers.answers import by_status, json_object, text_of
from firestore_outbox.providers.body_signature import has_form, is_signed, only
from firestore_outbox.providers.credentials import WEBHOOK_SECRET, Credentials
from firestore_outbox.providers.http import Http
from firestore_outbox.providers.media import MediaHandle, MediaRefused, MediaStream, NotUploaded, Uploaded
from firestore_outbox.providers.outcome import AuthFailed, Capability, ErrorCode, Outcome, Rejected, Scope, Sent
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
from firestore_outbox.providers.redaction import redacted, written_in
from firestore_outbox.providers.whatsapp_cloud.codes import meaning, outcome
from firestore_outbox.providers.whatsapp_cloud.files import fetched
from firestore_outbox.providers.whatsapp_cloud.webhook import MEDIA_PREFIX, events_in

NAME = "whatsapp_cloud"
URL = "https://graph.facebook.com/v23.0"
SIGNATURE_HEADER = "X-Hub-Signature-256"
TOKEN, NUMBER, VERIFY_TOKEN = "token", "phoneNumberId", "verifyToken"
OWN_ID = "{accountId}"
"""In the phone number id: our own id of the account. For the entry of everybody, and for simulators."""
HANDLES_LAST = timedelta(days=29)
"""A day less than Meta keeps a file, so that none is named in its last hour."""

PROFILE = Profile(
    capability=Capability(resend_safe=False, echoes_request_id=True),
    part_types=frozenset({"text", "media", "template"}),
    media=MediaMode.UPLOAD,
    throttle_scopes=frozenset(Scope),
    secrets=(
        Secret(
            name=NUMBER,
            what="the phone number id, not the number itself: in the app's dashboard, WhatsApp > API Setup",
            hidden=False,
        ),
        Secret(name=TOKEN, what="a system user's token with whatsapp_business_messaging: Business settings > Users"),
        Secret(name=WEBHOOK_SECRET, what="the app secret, which signs webhooks: App settings > Basic"),
        Secret(
            name=VERIFY_TOKEN,
            what="a word that you choose and type in again where the app's webhook is set up",
            required=False,
        ),
    ),
    events_name_number=True,
)

_KINDS: Mapping[str, str] = {
    "image/jpeg": "image",
    "image/png": "image",
    "image/webp": "sticker",
    "video/mp4": "video",
    "video/3gpp": "video",
    "video/3gp": "video",
}
"""WhatsApp's kinds of media by the file's type. Audio is audio, and anything else goes as a document."""
_WITHOUT_CAPTION = frozenset({"audio", "sticker"})


@dataclass(frozen=True, slots=True)
class _Account:
    number: str
    token: str = field(repr=False)

    @classmethod
    def of(cls, account_id: str, credentials: Credentials) -> _Account | AuthFailed:
        # Without the blanks that come with copying: a header that ends in one cannot be sent.
        token, number = (credentials.get(TOKEN) or "").strip(), number_in(account_id, credentials)
        if not token:
            return AuthFailed(detail="the account has no token")
        if not number:
            return AuthFailed(detail=f"the account has no {NUMBER}")
        return cls(number, token)

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}


def number_in(account_id: str, credentials: Credentials) -> str:
    """The account's phone number id; empty if the credentials name none."""
    return (credentials.get(NUMBER) or "").strip().replace(OWN_ID, account_id)


class WhatsAppCloud(Provider):
    def __init__(self, base_url: str, http: Http, parts: PartSender, *, clock: Clock = system_clock) -> None:
        self._base_url = base_url.rstrip("/")
        self._http = http
        self._parts = parts
        self._clock = clock

    @property
    def name(self) -> str:
        return NAME

    @property
    def profile(self) -> Profile:
        return PROFILE

    @property
    def inbound_files(self) -> InboundFiles:
        return self

    async def fetch(
        self, account_id: str, credentials: Credentials, media_id: str, *, most_bytes: int, limit: timedelta
    ) -> InboundFile | Outcome:
        account = _Account.of(account_id, credentials)
        if isinstance(account, AuthFailed):
            return account
        return await fetched(
            self._http,
            self._base_url,
            account.headers,
            media_id.removeprefix(MEDIA_PREFIX),
            most_bytes=most_bytes,
            limit=limit,
        )

    async def send(self, message: OutboxMessage, credentials: Credentials, *, limit: timedelta) -> Outcome:
        account = _Account.of(message.account_id, credentials)
        if isinstance(account, AuthFailed):
            return account
        if refused := _without_place_for_caption(message):
            return refused

        async def send_part(one: OnePart) -> Outcome | MediaRefused:
            answer = await self._http.post(
                self._url(account.number, "messages"),
                headers=account.headers | {"Content-Type": "application/json"},
                content=json.dumps(_body(one)).encode(),
                limit=one.limit,
            )
            if not isinstance(answer, httpx.Response):
                return answer
            private = (account.token, one.to, *written_in(one.part))
            return _sent(answer) or _refusal(answer, private, attempt=message.attempts)

        async def upload(file: MediaStream, limit: timedelta) -> Uploaded | NotUploaded:
            return await self._upload(account, file, limit)

        return await self._parts.send(message, NAME, PROFILE, send_part, upload=upload, limit=limit)

    async def _upload(self, account: _Account, file: MediaStream, limit: timedelta) -> Uploaded | NotUploaded:
        answer = await self._http.post_form(
            self._url(account.number, "media"),
            headers=account.headers,
            fields={"messaging_product": "whatsapp", "type": file.mime_type},
            file=(file.filename, file.body, file.mime_type),
            limit=limit,
        )
        if not isinstance(answer, httpx.Response):
            return answer
        identity = json_object(answer).get("id")
        if answer.is_success and isinstance(identity, str) and identity:
            return Uploaded(handle=identity, expires_at=self._clock() + HANDLES_LAST)
        refused = _refusal(answer, (account.token, file.filename), attempt=1)
        if isinstance(refused, MediaRefused):
            return Rejected(code=ErrorCode.MEDIA_MISSING, detail=refused.detail)
        return refused

    async def check(self, account_id: str, credentials: Credentials, *, limit: timedelta) -> Checked:
        account = _Account.of(account_id, credentials)
        if isinstance(account, AuthFailed):
            return Checked(works=False, detail=account.detail)
        fields = "display_phone_number,verified_name,quality_rating"
        answer = await self._http.get(
            f"{self._url(account.number)}?fields={fields}", headers=account.headers, limit=limit
        )
        if not isinstance(answer, httpx.Response):
            return Checked(works=False, detail=answer.detail)
        number = json_object(answer)
        if answer.is_success and text_of(number, "display_phone_number"):
            named = f"{text_of(number, 'display_phone_number')} ({text_of(number, 'verified_name')})"
            return Checked(works=True, detail=f"sends as {named.removesuffix(' ()')}")
        return Checked(works=False, detail=_refusal(answer, (account.token,), attempt=1).detail)

    def asks_handshake(self, query: Mapping[str, str]) -> bool:
        # The challenge is a number, in all that is known. Nothing is sent back that a browser could take for a page.
        challenge = query.get("hub.challenge", "")
        is_plain = challenge.isascii() and challenge.isalnum() and len(challenge) <= 256
        return query.get("hub.mode") == "subscribe" and is_plain and bool(query.get("hub.verify_token"))

    def number_of(self, account_id: str, credentials: Credentials) -> str | None:
        return number_in(account_id, credentials) or None

    def handshake(self, query: Mapping[str, str], credentials: Credentials) -> str | None:
        expected, given = credentials.get(VERIFY_TOKEN), query.get("hub.verify_token", "")
        if not expected or not self.asks_handshake(query):
            return None
        is_right = hmac.compare_digest(expected.encode(), given.encode(errors="replace"))
        return query["hub.challenge"] if is_right else None

    def looks_signed(self, headers: Mapping[str, str], *, now: datetime) -> bool:
        return has_form(only(headers, SIGNATURE_HEADER), prefix="sha256=")

    def verify(self, headers: Mapping[str, str], raw_body: bytes, secret: str, *, now: datetime) -> bool:
        return is_signed(only(headers, SIGNATURE_HEADER), raw_body, secret, prefix="sha256=")

    def parse(self, raw_body: bytes) -> tuple[WebhookEvent, ...]:
        return events_in(raw_body)

    def _url(self, *path: str) -> str:
        return "/".join((self._base_url, *(quote(step, safe="") for step in path)))


# --- what is sent


def _body(one: OnePart) -> dict[str, Any]:
    kind, content = _content(one)
    return {
        "messaging_product": "whatsapp",
        "recipient_type": "individual",
        "to": one.to,
        "type": kind,
        kind: content,
        "biz_opaque_callback_data": str(one.correlation),
    }


def _content(one: OnePart) -> tuple[str, dict[str, Any]]:
    match one.part:
        case TextPart(text=text):
            return "text", {"body": text, "preview_url": False}
        case TemplatePart():
            return "template", _template(one.part)
        case MediaPart():
            assert isinstance(one.media, MediaHandle), "the profile says UPLOAD"
            return _media(one.part, one.media)
        case _:
            assert_never(one.part)


def _template(part: TemplatePart) -> dict[str, Any]:
    template: dict[str, Any] = {"name": part.name, "language": {"code": part.language}}
    if components := list(_components(part.values)):
        template["components"] = components
    return template


def _components(values: TemplateValues) -> Iterator[dict[str, Any]]:
    match values.header:
        case HeaderFile() as header:
            kind, value = header.given[0]
            is_link = value.startswith(("https://", "http://"))
            yield {"type": "header", "parameters": [{"type": kind, kind: {"link" if is_link else "id": value}}]}
        case (_, *_) as texts:
            yield {"type": "header", "parameters": _text_parameters(texts)}
    if values.body:
        yield {"type": "body", "parameters": _text_parameters(values.body)}
    for place, value in enumerate(values.buttons or ()):
        if value:
            button = {"type": "button", "sub_type": "url", "index": str(place)}
            yield button | {"parameters": _text_parameters((value,))}


def _text_parameters(values: Iterable[str]) -> list[dict[str, str]]:
    return [{"type": "text", "text": value} for value in values]


def _media(part: MediaPart, media: MediaHandle) -> tuple[str, dict[str, Any]]:
    kind = _kind(part)
    content = {"id": media.handle}
    if part.caption:
        content["caption"] = part.caption
    if part.filename and kind == "document":
        content["filename"] = part.filename
    return kind, content


def _kind(part: MediaPart) -> str:
    bare = part.mimeType.partition(";")[0].strip().lower()
    return "audio" if bare.startswith("audio/") else _KINDS.get(bare, "document")


def _without_place_for_caption(message: OutboxMessage) -> Rejected | None:
    """A caption that WhatsApp has no place for is refused before anything is sent: if it were left out, no sender would
    notice."""
    for part in message.parts:
        if isinstance(part, MediaPart) and part.caption and (kind := _kind(part)) in _WITHOUT_CAPTION:
            detail = f"WhatsApp shows no caption with {part.mimeType} ({kind}): send it as a text part of its own"
            return Rejected(code=ErrorCode.INVALID_MESSAGE, detail=detail)
    return None


# --- what is answered


def _sent(response: httpx.Response) -> Sent | None:
    messages = json_object(response).get("messages")
    first = messages[0] if isinstance(messages, list) and messages else None
    identity = first.get("id") if isinstance(first, dict) else None
    if response.is_success and isinstance(identity, str) and identity:
        return Sent(provider_message_id=identity)
    return None


def _refusal(response: httpx.Response, private: Iterable[str], *, attempt: int) -> NotUploaded | MediaRefused:
    """By its code; by the status where there is none that we know. A success without a message in it is in doubt."""
    found = json_object(response).get("error")
    error: dict[str, Any] = found if isinstance(found, dict) else {}
    data = error.get("error_data")
    theirs = text_of(data if isinstance(data, dict) else {}, "details") or text_of(error, "message")
    code, subcode = _number(error.get("code")), _number(error.get("error_subcode"))
    known = None if code is None else meaning(code, subcode)
    ours = known.words if known else "" if error else "an answer that is not understood"
    said = redacted(theirs, private)
    head = str(response.status_code) if code is None else f"{response.status_code}, code {code}"
    detail = f"{head}: {'; '.join(words for words in (ours, said) if words)}".removesuffix(": ")
    if known is not None:
        return outcome(known.kind, detail, attempt=attempt)
    by_its_status = by_status(response, detail)
    assert not isinstance(by_its_status, Sent)  # a status alone never proves it
    return by_its_status


def _number(value: Any) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 9:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
