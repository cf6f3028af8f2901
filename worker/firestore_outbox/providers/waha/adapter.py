"""The adapter for WAHA, a gateway that speaks WhatsApp's own protocol over sessions of real phones (2026.7).

The gateway is self-hosted, one or many, so its address is part of an account's credentials. It sends only while the
account's session is up; starting and stopping sessions is `WahaSessions`, and who keeps which one up is decided
elsewhere (docs/sessions.md).

Media travels inside of the call, in base64: a gateway in a network of its own may not reach the place where our files
are. The call holds the whole file in memory for as long as it lasts, and encodes it while it is sent; hence
`MAX_FILE_BYTES`.

WAHA promises no deduplication and echoes nothing of ours. But the id of a text is ours to choose (waha_ids.py), so its
receipts can be foretold.

A webhook's signature covers the body and not the time, so a recorded one can be replayed. Nothing comes of it: receipts
move a message forward or not at all, inbound messages are stored once, and news of a session only make us look.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, assert_never
from urllib.parse import urlsplit

import httpx

from firestore_outbox.messages.correlation import Correlation
from firestore_outbox.messages.model import MediaPart, OutboxMessage, TextPart
from firestore_outbox.providers.answers import json_object
from firestore_outbox.providers.body_signature import has_form, is_signed, only
from firestore_outbox.providers.credentials import WEBHOOK_SECRET, Credentials
from firestore_outbox.providers.http import Http, Streamed, retry_after
from firestore_outbox.providers.media import MediaContent
from firestore_outbox.providers.outcome import (
    AuthFailed,
    Capability,
    ErrorCode,
    NotConnected,
    Outcome,
    Rejected,
    Scope,
    Sent,
    Throttled,
    Unknown,
)
from firestore_outbox.providers.parts import OnePart, PartSender
from firestore_outbox.providers.protocol import (
    Checked,
    MediaMode,
    Profile,
    Provider,
    Secret,
    Sessions,
    SessionState,
    WebhookEvent,
)
from firestore_outbox.providers.waha.codes import SESSION_STATES, Trouble, is_of_a_session, trouble_in
from firestore_outbox.providers.waha.ids import chat_of, chosen_id, message_id_in
from firestore_outbox.providers.waha.webhook import events_in

NAME = "waha"
BASE_URL, API_KEY, SESSION = "baseUrl", "apiKey", "session"
DEFAULT_SESSION = "default"
ACCOUNT_ID = "{accountId}"
"""In a session's name it stands for the account's id: one entry of credentials can then serve many accounts."""
SIGNATURE_HEADER, ALGORITHM_HEADER = "X-Webhook-Hmac", "X-Webhook-Hmac-Algorithm"
MAX_FILE_BYTES = 32 * 1024 * 1024
_PIECE_BYTES = 3 * 64 * 1024
"""A multiple of three: each piece is whole base64."""
LONGEST_ANSWER = timedelta(seconds=15)
"""WAHA keeps a call waiting for ten seconds while the session is not up, and only then says so, which is proof that
nothing was sent. Hanging up before would leave that in doubt."""
PAIRING_PAUSE = timedelta(minutes=5)
"""Between two attempts while a person has to pair the phone first."""

_IMAGES = frozenset({"image/jpeg", "image/png"})
"""Shown as pictures. Anything else goes as a file, which is always taken."""
_SESSION_NAME = re.compile(r"[A-Za-z0-9_-]{1,54}", re.ASCII)

PROFILE = Profile(
    capability=Capability(resend_safe=False, echoes_request_id=False),
    part_types=frozenset({"text", "media"}),
    media=MediaMode.INLINE,
    throttle_scopes=frozenset({Scope.ACCOUNT}),
    secrets=(
        Secret(name=BASE_URL, what="where your WAHA answers, such as https://waha.example.com", hidden=False),
        Secret(name=API_KEY, what="the API key of your WAHA: WAHA_API_KEY in its environment"),
        Secret(
            name=SESSION,
            what=f"the session's name; {DEFAULT_SESSION} if you leave it empty",
            required=False,
            hidden=False,
        ),
        Secret(name=WEBHOOK_SECRET, what="the HMAC key of the session's webhook (config.webhooks[].hmac.key)"),
    ),
    events_name_number=True,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gateway:
    """Where an account's session is, and the key to it. Never shown: it holds a secret."""

    base_url: str
    api_key: str
    session: str

    def __repr__(self) -> str:
        return f"Gateway(session={self.session!r})"

    @property
    def headers(self) -> dict[str, str]:
        return {"X-Api-Key": self.api_key, "Content-Type": "application/json", "Accept": "application/json"}

    @property
    def session_url(self) -> str:
        return f"{self.base_url}/api/sessions/{self.session}"


class Waha(Provider):
    def __init__(self, http: Http, parts: PartSender) -> None:
        self._http = http
        self._parts = parts
        self._sessions = WahaSessions(http)

    @property
    def name(self) -> str:
        return NAME

    @property
    def profile(self) -> Profile:
        return PROFILE

    @property
    def sessions(self) -> Sessions:
        return self._sessions

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
            return _outcome(answer) if isinstance(answer, httpx.Response) else answer

        return await self._parts.send(message, NAME, PROFILE, send_part, limit=limit)

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


class WahaSessions:
    """Start and stop are idempotent at WAHA's side."""

    def __init__(self, http: Http) -> None:
        self._http = http

    async def state(self, account_id: str, credentials: Credentials, *, limit: timedelta) -> SessionState | Outcome:
        gateway = gateway_of(account_id, credentials)
        if isinstance(gateway, AuthFailed):
            return gateway
        answer = await self._http.get(gateway.session_url, headers=gateway.headers, limit=limit)
        return _session_state(answer, None)

    async def start(self, account_id: str, credentials: Credentials, *, limit: timedelta) -> SessionState | Outcome:
        return await self._order(account_id, credentials, "start", SessionState.STARTING, limit)

    async def stop(self, account_id: str, credentials: Credentials, *, limit: timedelta) -> SessionState | Outcome:
        return await self._order(account_id, credentials, "stop", SessionState.DOWN, limit)

    async def _order(
        self, account_id: str, credentials: Credentials, verb: str, otherwise: SessionState, limit: timedelta
    ) -> SessionState | Outcome:
        """`otherwise` is the state after an answer that names none."""
        gateway = gateway_of(account_id, credentials)
        if isinstance(gateway, AuthFailed):
            return gateway
        answer = await self._http.post(
            f"{gateway.session_url}/{verb}", headers=gateway.headers, content=b"{}", limit=limit
        )
        return _session_state(answer, otherwise)


def session_in(account_id: str, credentials: Credentials) -> str:
    """The name of the account's session."""
    return (credentials.get(SESSION) or DEFAULT_SESSION).replace(ACCOUNT_ID, account_id)


def gateway_of(account_id: str, credentials: Credentials) -> Gateway | AuthFailed:
    base_url = (credentials.get(BASE_URL) or "").rstrip("/")
    api_key = credentials.get(API_KEY)
    session = session_in(account_id, credentials)
    if not _is_address(base_url):
        return AuthFailed(detail=f"the account's {BASE_URL} must be an address such as https://waha.example.com")
    if not api_key:
        return AuthFailed(detail=f"the account has no {API_KEY}")
    if not _SESSION_NAME.fullmatch(session):
        return AuthFailed(detail=f"the account's {SESSION} must be 1 to 54 letters, digits, hyphens or underscores")
    return Gateway(base_url=base_url, api_key=api_key, session=session)


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and not parts.query and not parts.fragment
    except ValueError:
        return False


def _call(one: OnePart, session: str, chat: str) -> tuple[str, bytes | Streamed] | Rejected:
    """The path and the body that send this part."""
    fields: dict[str, Any] = {"session": session, "chatId": chat}
    if isinstance(one.part, TextPart):
        fields |= {"text": one.part.text, "id": chosen_id(one.correlation)}
        return "sendText", json.dumps(fields).encode()
    if not isinstance(one.part, MediaPart) or not isinstance(one.media, MediaContent):
        return Rejected(code=ErrorCode.INVALID_MESSAGE, detail="the gateway takes text and files")
    if len(one.media.content) > MAX_FILE_BYTES:
        return Rejected(
            code=ErrorCode.REJECTED,
            detail=f"the file has {len(one.media.content):,} bytes; the gateway is sent {MAX_FILE_BYTES:,} at most",
        )
    if one.part.caption:
        fields["caption"] = one.part.caption
    mime_type = one.media.mime_type.partition(";")[0].strip().lower()
    return ("sendImage" if mime_type in _IMAGES else "sendFile"), _with_file(fields, one.media)


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


def _outcome(response: httpx.Response) -> Outcome:
    if response.is_success:
        return _accepted(response)
    trouble = trouble_in(response.status_code, json_object(response))
    detail = f"{response.status_code}: {trouble.value}"
    match trouble:
        case Trouble.SESSION_DOWN:
            return NotConnected(detail=detail)
        case Trouble.NEEDS_PAIRING:
            return NotConnected(detail=detail, retry_after=PAIRING_PAUSE)
        case Trouble.AUTH | Trouble.WRONG_ADDRESS:
            return AuthFailed(detail=detail)
        case Trouble.INVALID:
            return Rejected(code=ErrorCode.INVALID_MESSAGE, detail=detail)
        case Trouble.TOO_LARGE | Trouble.NOT_OFFERED | Trouble.REACH_OUT_LOCK:
            return Rejected(code=ErrorCode.REJECTED, detail=detail)
        case Trouble.THROTTLED:
            return Throttled(scope=Scope.ACCOUNT, detail=detail, retry_after=retry_after(response.headers))
        case Trouble.NOBODY_KNOWS:
            return Unknown(detail=detail)
        case _:
            assert_never(trouble)


def _accepted(response: httpx.Response) -> Sent | Unknown:
    """Most engines answer with the id as a text; some with their own object around it."""
    answer = json_object(response)
    given = answer.get("id")
    if isinstance(given, dict):
        given = given.get("id")
    if given is None and isinstance(key := answer.get("key"), dict):
        given = key.get("id")
    identity = message_id_in(given) if isinstance(given, str) else None
    if identity is None:
        return Unknown(detail=f"{response.status_code} with an answer that names no message")
    return Sent(provider_message_id=identity)


def _session_state(answer: httpx.Response | Outcome, otherwise: SessionState | None) -> SessionState | Outcome:
    if not isinstance(answer, httpx.Response):
        return answer
    body = json_object(answer)
    if answer.is_success:
        named = body.get("status")
        state = SESSION_STATES.get(named, otherwise) if isinstance(named, str) else otherwise
        return state or Unknown(detail=f"{answer.status_code} with an answer that names no status of the session")
    if answer.status_code == 404 and is_of_a_session(body):
        return SessionState.NEEDS_PAIRING  # nobody has made it yet
    return _outcome(answer)
