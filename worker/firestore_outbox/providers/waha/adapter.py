"""The adapter for WAHA, a gateway that speaks WhatsApp's own protocol over sessions of real phones (2026.7).

The gateway is self-hosted, one or many, so its address is part of an account's credentials. It sends only while the
account's session is up; starting and stopping sessions is `WahaSessions`, and who keeps which one up is decided
elsewhere (docs/sessions.md).

The gateway fetches a file from a signed URL that is good for minutes. Where storage has no URLs, or the account's
`media` is `inline` because its gateway cannot reach them, the file travels inside of the call, in base64. Such a call
holds the whole file in memory for as long as it lasts, and encodes it while it is sent; hence `MAX_FILE_BYTES`.

WAHA promises no deduplication and echoes nothing of ours. But the id of a text is ours to choose (waha_ids.py), so its
receipts can be foretold.

A webhook's signature covers the body and not the time, so a recorded one can be replayed. Nothing comes of it: receipts
move a message forward or not at all, inbound messages are stored once, and news of a session only make us look.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import httpx

from firestore_outbox.messages.correlation import Correlation
from firestore_outbox.messages.model import MediaPart, OutboxMessage, TextPart
from firestore_outbox.providers.body_signature import has_form, is_signed, only
from firestore_outbox.providers.credentials import WEBHOOK_SECRET, Credentials
from firestore_outbox.providers.http import Http, Streamed
from firestore_outbox.providers.media import MediaContent, MediaLink
from firestore_outbox.providers.outcome import (
    AuthFailed,
    Capability,
    ErrorCode,
    Outcome,
    Rejected,
    Scope,
    Sent,
)
from firestore_outbox.providers.parts import OnePart, PartSender
from firestore_outbox.providers.protocol import (
    Checked,
    Contacts,
    MediaMode,
    Pairing,
    Profile,
    Provider,
    Secret,
    Sessions,
    SessionState,
    WebhookEvent,
)
from firestore_outbox.providers.servers import BASE_URL
from firestore_outbox.providers.waha.answers import outcome_of
from firestore_outbox.providers.waha.contacts import WahaContacts
from firestore_outbox.providers.waha.files import WahaFiles
from firestore_outbox.providers.waha.gateway import (
    API_KEY,
    DEFAULT_SESSION,
    SESSION,
    gateway_of,
    session_in,
)
from firestore_outbox.providers.waha.ids import chat_of, chosen_id
from firestore_outbox.providers.waha.sessions import WahaPairing, WahaSessions
from firestore_outbox.providers.waha.webhook import events_in

NAME = "waha"
MEDIA, INLINE = "media", "inline"
SIGNATURE_HEADER, ALGORITHM_HEADER = "X-Webhook-Hmac", "X-Webhook-Hmac-Algorithm"
MAX_FILE_BYTES = 32 * 1024 * 1024
_PIECE_BYTES = 3 * 64 * 1024
"""A multiple of three: each piece is whole base64."""
LONGEST_ANSWER = timedelta(seconds=15)
"""WAHA keeps a call waiting for ten seconds while the session is not up, and only then says so, which is proof that
nothing was sent. Hanging up before would leave that in doubt."""

_IMAGES = frozenset({"image/jpeg", "image/png"})
"""Shown as pictures. Anything else goes as a file, which is always taken."""

PROFILE = Profile(
    capability=Capability(resend_safe=False, echoes_request_id=False),
    part_types=frozenset({"text", "media"}),
    media=MediaMode.LINK_OR_INLINE,
    throttle_scopes=frozenset({Scope.ACCOUNT}),
    secrets=(
        Secret(
            name=BASE_URL,
            what="where your WAHA answers, such as https://waha.example.com; several share the accounts",
            hidden=False,
        ),
        Secret(name=API_KEY, what="the API key of your WAHA: WAHA_API_KEY in its environment"),
        Secret(
            name=SESSION,
            what=f"the session's name; {DEFAULT_SESSION} if you leave it empty",
            required=False,
            hidden=False,
        ),
        Secret(
            name=MEDIA,
            what=f"{INLINE} if your WAHA cannot fetch files from your bucket; empty otherwise",
            required=False,
            hidden=False,
        ),
        Secret(name=WEBHOOK_SECRET, what="the HMAC key of the session's webhook (config.webhooks[].hmac.key)"),
    ),
    events_name_number=True,
)


_INLINE_PROFILE = replace(PROFILE, media=MediaMode.INLINE)


class Waha(Provider):
    def __init__(self, http: Http, parts: PartSender) -> None:
        self._http = http
        self._parts = parts
        self._sessions = WahaSessions(http)
        self._pairing = WahaPairing(http)
        self._contacts = WahaContacts(http)
        self._files = WahaFiles(http)

    @property
    def name(self) -> str:
        return NAME

    @property
    def profile(self) -> Profile:
        return PROFILE

    @property
    def sessions(self) -> Sessions:
        return self._sessions

    @property
    def contacts(self) -> Contacts:
        return self._contacts

    @property
    def inbound_files(self) -> WahaFiles:
        return self._files

    @property
    def pairing(self) -> Pairing:
        return self._pairing

    async def send(self, message: OutboxMessage, credentials: Credentials, *, limit: timedelta) -> Outcome:
        gateway = gateway_of(message.account_id, credentials)
        if isinstance(gateway, AuthFailed):
            return gateway
        chat = chat_of(message.to)
        if chat is None:
            return Rejected(
                code=ErrorCode.RECIPIENT_INVALID,
                detail="the recipient must be a phone number in digits, or a chat such as 123@g.us",
            )

        async def send_part(one: OnePart) -> Outcome:
            call = _call(one, gateway.session, chat)
            if isinstance(call, Rejected):
                return call
            path, body = call
            # WAHA writes X-Request-Id into its log, so that a message can be found there.
            headers = gateway.headers | {"X-Request-Id": str(one.correlation)}
            answer = await self._http.post(
                f"{gateway.base_url}/api/{path}", headers=headers, content=body, limit=one.limit, read=LONGEST_ANSWER
            )
            return outcome_of(answer) if isinstance(answer, httpx.Response) else answer

        profile = _INLINE_PROFILE if credentials.get(MEDIA) == INLINE else PROFILE
        return await self._parts.send(message, NAME, profile, send_part, limit=limit)

    def foretold_id(self, message: OutboxMessage) -> str | None:
        """The id that receipts of the message will carry, if that can be known before it is sent."""
        last = len(message.parts) - 1
        if not isinstance(message.parts[last], TextPart):
            return None
        return chosen_id(Correlation.of(message, last))

    async def check(self, account_id: str, credentials: Credentials, *, limit: timedelta) -> Checked:
        gateway = gateway_of(account_id, credentials)
        if isinstance(gateway, AuthFailed):
            return Checked(works=False, detail=gateway.detail)
        state = await self._sessions.state(account_id, credentials, limit=limit)
        if not isinstance(state, SessionState):
            detail = "no answer" if isinstance(state, Sent) else state.detail
            return Checked(works=False, detail=detail)
        if state is SessionState.NEEDS_PAIRING:
            detail = f"the key is right, but the session {gateway.session!r} must be paired with the phone first"
            return Checked(works=True, detail=detail)
        return Checked(works=True, detail=f"the session {gateway.session!r} is {state.value}")

    def number_of(self, account_id: str, credentials: Credentials) -> str | None:
        return session_in(account_id, credentials)

    def looks_signed(self, headers: Mapping[str, str], *, now: datetime) -> bool:
        algorithm = only(headers, ALGORITHM_HEADER)
        is_known = algorithm is None or algorithm.lower() == "sha512"
        return is_known and has_form(only(headers, SIGNATURE_HEADER), algorithm="sha512")

    def verify(self, headers: Mapping[str, str], raw_body: bytes, secret: str, *, now: datetime) -> bool:
        signature = only(headers, SIGNATURE_HEADER)
        return self.looks_signed(headers, now=now) and is_signed(signature, raw_body, secret, algorithm="sha512")

    def parse(self, raw_body: bytes) -> tuple[WebhookEvent, ...]:
        return events_in(raw_body)


def _call(one: OnePart, session: str, chat: str) -> tuple[str, bytes | Streamed] | Rejected:
    """The path and the body that send this part."""
    fields: dict[str, Any] = {"session": session, "chatId": chat}
    if isinstance(one.part, TextPart):
        # Without it the gateway fetches every address in a text, from whatever network it is in, to draw a preview.
        fields |= {"text": one.part.text, "id": chosen_id(one.correlation), "linkPreview": False}
        return "sendText", json.dumps(fields).encode()
    if not isinstance(one.part, MediaPart) or not isinstance(one.media, MediaContent | MediaLink):
        return Rejected(code=ErrorCode.INVALID_MESSAGE, detail="the gateway takes text and files")
    if one.part.caption:
        fields["caption"] = one.part.caption
    if isinstance(one.media, MediaLink):
        mime_type = one.media.mime_type or one.part.mimeType
        filename = one.part.filename or one.media.filename or one.part.mediaId
        fields["file"] = {"mimetype": mime_type, "filename": filename, "url": one.media.url}
        return _verb(mime_type), json.dumps(fields).encode()
    if len(one.media.content) > MAX_FILE_BYTES:
        return Rejected(
            code=ErrorCode.REJECTED,
            detail=f"the file has {len(one.media.content):,} bytes; the gateway is sent {MAX_FILE_BYTES:,} at most",
        )
    return _verb(one.media.mime_type), _with_file(fields, one.media)


def _verb(mime_type: str) -> str:
    return "sendImage" if mime_type.partition(";")[0].strip().lower() in _IMAGES else "sendFile"


def _with_file(fields: dict[str, Any], media: MediaContent) -> Streamed:
    """Encoded piece by piece while it is sent: the file is in memory once, its base64 never is."""
    head = json.dumps(fields)[:-1]
    file = json.dumps({"mimetype": media.mime_type, "filename": media.filename})[:-1]

    async def encoded() -> AsyncIterator[bytes]:
        content = memoryview(media.content)
        for start in range(0, len(content), _PIECE_BYTES):
            yield b64encode(content[start : start + _PIECE_BYTES])

    size = 4 * ((len(media.content) + 2) // 3)
    body = Streamed(size_bytes=size, pieces=encoded)
    return body.between(f'{head}, "file": {file}, "data": "'.encode(), b'"}}')
