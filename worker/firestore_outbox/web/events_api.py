"""`POST /v1/events/{kind}`: a webhook of any service as an event for one of your handlers (docs/handlers.md).

    202  stored, and the key's lane is woken; `isNew: false`: an event of this id came before
    200  `skipped: true`: the event concerns no key
    400  the body is at fault; `error` says where       401  not signed as OUTBOX_EVENTS says
    404  no such kind, or none that takes webhooks      408  the body came too slowly
    413  too large                                      429  too many calls from this address; see Retry-After
    503  Firestore, or Google's certificates: try again

A call that a service repeats is stored once. The address of the caller, and a secret or a token, are looked at before
the body is read; an HMAC needs the body.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, assert_never

from firestore_outbox import metrics
from firestore_outbox.clock import Clock
from firestore_outbox.errors import OutboxError, StoreUnavailable, Unwritable
from firestore_outbox.handlers.ingest import Ingest, NotTaken, Skipped, Taken
from firestore_outbox.handlers.sources import (
    Hmac,
    Oidc,
    SharedSecret,
    id_of,
    is_secret,
    is_signed,
    key_in,
    secret_variable,
    sources,
)
from firestore_outbox.web.auth import Allowed, CallerCheck
from firestore_outbox.web.http_api import Answer, refusal
from firestore_outbox.web.input_rate import InputRate

MAX_EVENT_BYTES = 256 * 1024
TOO_MANY_REQUESTS = 429


class BadEventSource(OutboxError):
    """OUTBOX_EVENTS cannot be used. The message says what is missing."""


class EventsApi:
    def __init__(self, configured: str, environment: Mapping[str, str], clock: Clock, certs_url: str) -> None:
        try:
            self._sources = sources(_text_of(configured))
        except ValueError as error:
            raise BadEventSource(f"OUTBOX_EVENTS: {error}") from error
        self._clock = clock
        self._rate = InputRate()
        self._secrets: dict[str, str] = {}
        self._checks: dict[str, CallerCheck] = {}
        for kind, source in self._sources.items():
            if isinstance(source, Oidc):
                self._checks[kind] = CallerCheck(
                    audience=source.audience, email=source.email, clock=clock, certs_url=certs_url
                )
            elif not (secret := environment.get(secret_variable(kind), "").strip()):
                raise BadEventSource(f"OUTBOX_EVENTS names {kind}: set its secret in {secret_variable(kind)}")
            else:
                self._secrets[kind] = secret

    async def admit(self, kind: str, headers: Mapping[str, str], address: str) -> Answer | None:
        """None: go on and read the body."""
        source = self._sources.get(kind)
        if source is None:
            return refusal(404, "no events of this kind are taken here; OUTBOX_EVENTS names the kinds")
        wait = self._rate.wait(kind, address, source.perMinute, self._clock())
        if wait is not None:
            metrics.event_refused("rate")
            seconds = math.ceil(wait.total_seconds())
            sentence = f"too many calls from this address; try again in {seconds} s"
            return Answer(TOO_MANY_REQUESTS, {"error": sentence, "retryAfterSeconds": seconds})
        if await self._is_allowed(kind, source, headers):
            return None
        metrics.event_refused("credential")
        return refusal(401, "the call is not signed as this kind of event must be")

    async def _is_allowed(self, kind: str, source: Hmac | SharedSecret | Oidc, headers: Mapping[str, str]) -> bool:
        match source:
            case Hmac():
                return headers.get(source.header) is not None
            case SharedSecret():
                return is_secret(self._secrets[kind], headers.get(source.header))
            case Oidc():
                return isinstance(await self._checks[kind].check(headers.get("authorization")), Allowed)
            case _:
                assert_never(source)

    async def post(self, ingest: Ingest, kind: str, headers: Mapping[str, str], body: bytes) -> Answer:
        source = self._sources[kind]
        if isinstance(source, Hmac) and not is_signed(source, self._secrets[kind], headers.get(source.header), body):
            metrics.event_refused("credential")
            return refusal(401, "the call is not signed as this kind of event must be")
        event = _event(body)
        if isinstance(event, Answer):
            return event
        try:
            # Without anything at the pointer the event concerns no key, and the empty key says so.
            key = key_in(source, event) or "" if source.key else None
            result = await ingest.event(kind, id_of(source, event, body), event, key)
        except Unwritable:
            return refusal(400, "the event is too large or too deep to be stored")
        except StoreUnavailable:
            return refusal(503, "the event could not be stored at the moment; send it again")
        match result:
            case Taken():
                return Answer(202, {"key": result.key, "isNew": result.is_new})
            case Skipped():
                return Answer(200, {"skipped": True})
            case NotTaken():
                return refusal(400, result.sentence)
            case _:
                assert_never(result)


def _text_of(configured: str) -> str:
    """The JSON itself, or that of the file that OUTBOX_EVENTS names."""
    if not configured or configured.lstrip().startswith("{"):
        return configured
    try:
        return Path(configured).read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise BadEventSource(f"OUTBOX_EVENTS names the file {configured}, which cannot be read") from error


def _event(body: bytes) -> dict[str, Any] | Answer:
    try:
        event = json.loads(body)
        json.dumps(event, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        return refusal(400, "the body is not JSON in UTF-8")
    return event if isinstance(event, dict) else refusal(400, "the body must be a JSON object")
