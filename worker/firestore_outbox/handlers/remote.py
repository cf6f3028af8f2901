"""Handlers in any language: the worker posts what is new to OUTBOX_HANDLER_URL, and sends what the answer asks for.

    POST {OUTBOX_HANDLER_URL}
    Outbox-Signature: sha256=HEX           the HMAC-SHA256 of the body with OUTBOX_HANDLER_SECRET
    Authorization: Bearer TOKEN            on Google Cloud: an OIDC token of the worker's account for this URL

    {"kind": "conversation", "key": "shop__+491701", "deadline": "...", "messages": [...], "events": [...]}

An answer of 2xx is success. Its body may be empty, or JSON with what to send through the outbox:

    {"replies": [{"text": "Got it"}], "send": [{"accountId": "shop", "to": "+491701", "text": "...", "at": "..."}]}

400 to 499 is `Permanent`: a dead letter. 408, 429, 500 and above, and no answer at all, are errors that are retried.
The lane, the cursor and the derived requestIds are those of a handler in Python: a repeated call sends nothing twice.
"""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import Awaitable, Callable, Collection, Mapping
from datetime import datetime
from hashlib import sha256
from typing import Any

import httpx

from firestore_outbox.clock import Clock
from firestore_outbox.handlers.context import Context, NotSent, Permanent
from firestore_outbox.handlers.registration import CONVERSATION, KIND, RESERVED, BadHandlers, Registration

Token = Callable[[], Awaitable[str | None]]
"""The OIDC token of a call; None: without one."""
SHOWN_CONVERSATION = "conversation"
TRIED_AGAIN = frozenset({408, 429})
LONGEST_SECONDS = 300.0
MOST_ANSWER_BYTES = 1024 * 1024


class NoAnswer(Exception):
    """The service did not answer, or asked to be called again."""


class RemoteHandler:
    def __init__(
        self, url: str, secret: str, clock: Clock, token: Token, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        self._url = url
        self._secret = secret
        self._clock = clock
        self._token = token
        self._client = httpx.AsyncClient(transport=transport, trust_env=False, follow_redirects=False)

    async def __call__(self, context: Context) -> None:
        body = json.dumps(await _asked(context), ensure_ascii=False, default=_shown).encode()
        headers = {"Content-Type": "application/json", "Outbox-Signature": f"sha256={self._signature(body)}"}
        if (token := await self._token()) is not None:
            headers["Authorization"] = f"Bearer {token}"
        left = (context.deadline - self._clock()).total_seconds()
        limit = max(1.0, min(left, LONGEST_SECONDS))
        try:
            async with asyncio.timeout(limit):
                answer = await self._client.post(self._url, content=body, headers=headers, timeout=limit)
        except (httpx.HTTPError, TimeoutError) as error:
            raise NoAnswer(f"{type(error).__name__} from OUTBOX_HANDLER_URL") from error
        if answer.is_success:
            await _send(context, _wanted(answer.content))
        elif answer.status_code in TRIED_AGAIN or not answer.is_client_error:
            raise NoAnswer(f"OUTBOX_HANDLER_URL answered {answer.status_code}")
        else:
            raise Permanent(f"OUTBOX_HANDLER_URL answered {answer.status_code}")

    def _signature(self, body: bytes) -> str:
        return hmac.new(self._secret.encode(), body, sha256).hexdigest()

    async def close(self) -> None:
        await self._client.aclose()


def registrations(kinds: str, handler: RemoteHandler, known: Collection[str] = ()) -> dict[str, Registration]:
    """OUTBOX_HANDLER_KINDS: what the service handles. `conversation` is for inbound messages."""
    found: dict[str, Registration] = {}
    for name in (part.strip() for part in kinds.split(",") if part.strip()):
        kind = CONVERSATION if name == SHOWN_CONVERSATION else name
        if kind != CONVERSATION and (not KIND.fullmatch(kind) or kind in RESERVED):
            raise BadHandlers(f"OUTBOX_HANDLER_KINDS: {name!r} is no kind; take `conversation`, or a name of your own")
        if kind in known:
            raise BadHandlers(
                f"OUTBOX_HANDLER_KINDS: {name!r} has a handler in OUTBOX_HANDLERS already; a kind has one"
            )
        found[kind] = Registration(kind=kind, function=handler)
    return found


async def _asked(context: Context) -> dict[str, Any]:
    return {
        "kind": SHOWN_CONVERSATION if context.kind == CONVERSATION else context.kind,
        "key": context.key,
        "deadline": context.deadline,
        "messages": [
            {"id": one.id, "at": one.at, "sentAt": one.sent_at, "text": one.text, "parts": list(one.parts)}
            for one in await context.messages()
        ],
        "events": [{"id": one.id, "at": one.at, "data": one.data} for one in await context.events()],
    }


def _shown(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return dict(value) if isinstance(value, Mapping) else str(value)


def _wanted(content: bytes) -> dict[str, Any]:
    if not content.strip():
        return {}
    try:
        wanted = json.loads(content) if len(content) <= MOST_ANSWER_BYTES else None
    except (ValueError, RecursionError):
        wanted = None
    if not isinstance(wanted, dict):
        raise Permanent("the answer of OUTBOX_HANDLER_URL must be empty or a JSON object of at most 1 MiB")
    return wanted


async def _send(context: Context, wanted: Mapping[str, Any]) -> None:
    for reply in _list(wanted, "replies"):
        await context.reply(reply.get("text"), parts=reply.get("parts"))
    for message in _list(wanted, "send"):
        await context.send(
            _text(message, "accountId"),
            _text(message, "to"),
            message.get("text"),
            parts=message.get("parts"),
            at=_time(message.get("at")),
        )


def _list(wanted: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    found = wanted.get(name, [])
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise NotSent(f"{name} must be a list of objects")
    return found


def _text(message: Mapping[str, Any], name: str) -> str:
    if not isinstance(value := message.get(name), str):
        raise NotSent(f"send[].{name} must be a text")
    return value


def _time(value: Any) -> datetime | None:
    if value is None:
        return None
    try:
        at = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        at = None
    if at is None or at.tzinfo is None:
        raise NotSent("send[].at must be a time with an offset, such as 2026-03-01T12:00:00Z")
    return at
