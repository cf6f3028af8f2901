"""The provider, pure: a call in, a verdict out. The clock and the random numbers are passed in.

A call is accepted or refused at the moment it arrives, and recorded as such. All that may go wrong afterwards (the
answer is late, wrong, cut or never comes; receipts are late, doubled, shuffled or lost) changes what the caller learns,
not what happened. So the record is the truth, whatever anybody was told.

A message with an idempotency key is delivered once for that key, however often it is accepted. One without is
delivered each time.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from random import Random
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from emulator.providers.faults import NO_FAULTS, Faults
from emulator.providers.receipts import Delivery, plan_receipts
from emulator.providers.record import Call, Record

Clock = Callable[[], datetime]

DEFAULT_PROVIDER = "simulated"

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    status: int
    body: dict[str, Any]
    retry_after_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class Cut:
    """Close the connection without a word."""


@dataclass(frozen=True, slots=True)
class Hang:
    """Keep the connection and say nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    call: Call
    then: Answer | Cut | Hang
    latency: timedelta = timedelta(0)
    """Before `then`."""
    deliveries: tuple[Delivery, ...] = ()
    """What arrives at the recipient, each with its receipts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    session: Literal["up", "down"] = "up"
    credentials: Literal["valid", "revoked"] = "valid"
    provider: str = DEFAULT_PROVIDER
    """The name under which it sent last; its webhooks go there."""


class ProviderCore:
    def __init__(self, record: Record, *, clock: Clock, random: Random) -> None:
        self.record = record
        self.clock = clock
        self._random = random
        self._faults = NO_FAULTS
        self._calls_left: int | None = None
        self._accounts: dict[str, Account] = {}
        self._keys: dict[tuple[str, str | None], str | None] = {
            (call.account_id, call.idempotency_key): call.provider_message_id
            for call in record.calls()
            if call.accepted and call.idempotency_key
        }

    # What is ordered

    @property
    def faults(self) -> Faults:
        """As they are now: `forCalls` counts down."""
        return self._faults.model_copy(update={"forCalls": self._calls_left})

    @faults.setter
    def faults(self, faults: Faults) -> None:
        self._faults = faults
        self._calls_left = faults.forCalls

    def account(self, account_id: str) -> Account:
        return self._accounts.get(account_id, Account())

    def set_account(self, account_id: str, account: Account) -> None:
        self._accounts[account_id] = account

    def forget_calls(self) -> None:
        """The record and the keys: as if nobody had called yet."""
        self.record.clear()
        self._keys.clear()

    def new_message_id(self) -> str:
        return f"sim-{self._random.getrandbits(80):020x}"

    # A call

    def receive(self, account_id: str, authorization: str, body: bytes) -> Verdict:
        """Decides, and records it. Whoever calls carries the verdict out."""
        verdict = self._decide(account_id, authorization, body)
        self.record.add(verdict.call)
        return verdict

    def _decide(self, account_id: str, authorization: str, body: bytes) -> Verdict:
        faults = self._faults_for(account_id)
        latency = self._latency(faults)
        try:
            message = _Message.model_validate_json(body)
        except ValidationError as error:
            return _refused(self._unreadable(account_id, body), "invalid_message", latency, detail=_words(error))
        call = self._call(account_id, message)
        account = replace(self.account(account_id), provider=message.provider)
        self._accounts[account_id] = account
        if refusal := self._refusal(message, account, authorization, faults):
            return _refused(call, refusal, latency, faults=faults)
        return self._accept(message, call, faults, latency)

    def _refusal(self, message: _Message, account: Account, authorization: str, faults: Faults) -> str | None:
        if not authorization.partition("Bearer ")[2].strip() or account.credentials == "revoked":
            return "unauthorized"
        if account.session == "down":
            return "session_down"
        if message.to in faults.invalidRecipients:
            return "recipient_invalid"
        if self._happens(faults.throttleRate):
            return "throttled"
        if self._happens(faults.errorRate):
            return faults.errorCode
        return None

    def _accept(self, message: _Message, call: Call, faults: Faults, latency: timedelta) -> Verdict:
        key = (call.account_id, message.idempotencyKey)
        known = self._keys.get(key) if message.idempotencyKey else None
        if known:
            call = replace(call, accepted=True, provider_message_id=known)
            return Verdict(call=call, then=self._reply(known, faults), latency=latency)
        identities = [self.new_message_id() for _ in range(2 if self._happens(faults.deliverTwiceRate) else 1)]
        if message.idempotencyKey:
            self._keys[key] = identities[0]
        deliveries = tuple(
            Delivery(
                account_id=call.account_id,
                provider=message.provider,
                provider_message_id=identity,
                receipts=plan_receipts(identity, message.echo, faults, now=call.at, random=self._random),
                in_order=not faults.receiptShuffle,
            )
            for identity in identities
        )
        call = replace(call, accepted=True, delivered=len(identities), provider_message_id=identities[0])
        return Verdict(call=call, then=self._reply(identities[0], faults), latency=latency, deliveries=deliveries)

    def _reply(self, identity: str, faults: Faults) -> Answer | Cut | Hang:
        if self._happens(faults.acceptedErrorRate):
            return _error("internal")
        if self._happens(faults.lostResponseRate):
            return Cut()
        if self._happens(faults.hangRate):
            return Hang()
        return Answer(status=202, body={"providerMessageId": identity})

    def _faults_for(self, account_id: str) -> Faults:
        faults = self._faults
        if not faults.concern(account_id):
            return NO_FAULTS
        if self._calls_left is not None:
            self._calls_left -= 1
            if self._calls_left == 0:
                self.faults = NO_FAULTS
        return faults

    def _happens(self, rate: float) -> bool:
        return rate > 0 and self._random.random() < rate

    def _latency(self, faults: Faults) -> timedelta:
        jitter = faults.latencyJitterMs * self._random.random() if faults.latencyJitterMs else 0.0
        return timedelta(milliseconds=faults.latencyMs + jitter)

    def _call(self, account_id: str, message: _Message) -> Call:
        return Call(
            request_id=message.requestId,
            account_id=account_id,
            to=message.to,
            at=self.clock(),
            accepted=False,
            part=message.partIndex,
            delivered=0,
            idempotency_key=message.idempotencyKey,
        )

    def _unreadable(self, account_id: str, body: bytes) -> Call:
        """What can be told of a malformed call: it was seen, too."""
        try:
            raw = json.loads(body)
        except (ValueError, RecursionError):
            raw = None
        fields = raw if isinstance(raw, dict) else {}
        request_id, to = (value if isinstance(value := fields.get(name), str) else "" for name in ("requestId", "to"))
        return Call(
            request_id=request_id, account_id=account_id, to=to, at=self.clock(), accepted=False, part=0, delivered=0
        )


def _refused(
    call: Call, code: str, latency: timedelta, *, faults: Faults = NO_FAULTS, detail: str | None = None
) -> Verdict:
    answer = _error(code, detail)
    if code == "throttled":
        error = answer.body["error"] | {"scope": faults.throttleScope}
        answer = replace(answer, body={"error": error}, retry_after_seconds=faults.retryAfterSeconds)
    return Verdict(call=call, then=answer, latency=latency)


def _error(code: str, detail: str | None = None) -> Answer:
    status, message = ERRORS[code]
    return Answer(status=status, body={"error": {"code": code, "message": detail or message}})


def _words(error: ValidationError) -> str:
    fault = error.errors(include_url=False)[0]
    return f"{'.'.join(map(str, fault['loc'])) or 'the body'}: {fault['msg']}"
