"""The provider, pure: a call in, a verdict out. The clock and the random numbers are passed in.

A call is accepted or refused at the moment it arrives, and recorded as such. All that may go wrong afterwards (the
answer is late, wrong, cut or never comes; receipts are late, doubled, shuffled or lost) changes what the caller learns,
not what happened. So the record is the truth, whatever anybody was told.

A message with an idempotency key is delivered once for that key, however often it is accepted. One without is
delivered each time.

How a call looks and how a verdict is worded is an API's business (api.py), and nothing here depends on which it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from random import Random
from typing import Literal

from firestore_outbox.local.simulators.api import Answer as Answer
from firestore_outbox.local.simulators.api import Api, Asked, Refusal
from firestore_outbox.local.simulators.faults import NO_FAULTS, Faults
from firestore_outbox.local.simulators.files import File, Files
from firestore_outbox.local.simulators.own import DEFAULT_PROVIDER, OWN, bearer, read
from firestore_outbox.local.simulators.receipts import Delivery, plan_receipts
from firestore_outbox.local.simulators.record import Call, Record

Clock = Callable[[], datetime]


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
class FileVerdict:
    refusal: Refusal | None
    """None: taken."""
    is_lost: bool
    """Taken, and the connection is to be cut in place of an answer."""
    latency: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    session: Literal["up", "down"] = "up"
    credentials: Literal["valid", "revoked"] = "valid"
    provider: str = DEFAULT_PROVIDER
    """The name under which it sent last; its webhooks go there."""


class ProviderCore:
    def __init__(self, record: Record, *, clock: Clock, random: Random) -> None:
        self.record = record
        self.files = Files()
        """All that were uploaded, by whichever API."""
        self.clock = clock
        self.random = random
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
        """The record and the keys: as before the first call."""
        self.record.clear()
        self.files.clear()
        self._keys.clear()

    def new_message_id(self) -> str:
        return OWN.new_message_id(self.random)

    def knows(self, account_id: str, idempotency_key: str) -> bool:
        """Whether a message with this key was accepted before."""
        return (account_id, idempotency_key) in self._keys

    # A call

    def receive(self, account_id: str, authorization: str, body: bytes) -> Verdict:
        """A call of the simulator's own API."""
        return self.take(read(account_id, authorization, body, lambda handle: self.has_file(account_id, handle)), OWN)

    def receive_file(
        self, account_id: str, authorization: str, mime_type: str, content: bytes
    ) -> tuple[Answer | Cut, timedelta]:
        """An upload by the simulator's own API: what to do, and after how long."""
        verdict = self.take_file(account_id, is_authorized=bool(bearer(authorization)))
        file = File.of(content, account_id=account_id, mime_type=mime_type, at=self.clock())
        if verdict.refusal is not None:
            self.files.add(file)
            return OWN.refused(verdict.refusal), verdict.latency
        file = file.taken(OWN.new_message_id(self.random), lasts_seconds=self._faults.handleSeconds)
        self.files.add(file)
        return Cut() if verdict.is_lost else OWN.took_file(file), verdict.latency

    def take(self, asked: Asked, api: Api) -> Verdict:
        """Decides, and records it. The caller carries the verdict out."""
        verdict = self._decide(asked, api)
        self.record.add(verdict.call)
        return verdict

    def take_file(self, account_id: str, *, is_authorized: bool) -> FileVerdict:
        """An upload. It sends nothing to anybody, so no record has it, and `forCalls` does not count it."""
        faults = self._faults if self._faults.concern(account_id) else NO_FAULTS
        latency = self._latency(faults) + timedelta(milliseconds=faults.uploadMs)
        refusal = None
        if not is_authorized or self.account(account_id).credentials == "revoked":
            refusal = Refusal(error="unauthorized")
        elif self._happens(faults.uploadErrorRate):
            pause = faults.retryAfterSeconds if faults.errorCode == "throttled" else None
            refusal = Refusal(
                error=faults.errorCode,
                api_code=faults.apiCode,
                scope=faults.throttleScope,
                retry_after_seconds=pause,
            )
        is_lost = refusal is None and self._happens(faults.uploadLostRate)
        return FileVerdict(refusal=refusal, is_lost=is_lost, latency=latency)

    def has_file(self, account_id: str, handle: str) -> bool:
        """Whether a message may name it."""
        if self._faults.concern(account_id) and self._happens(self._faults.handleLostRate):
            self.files.lose(account_id, handle)
        return self.files.knows(account_id, handle, self.clock())

    def _decide(self, asked: Asked, api: Api) -> Verdict:
        faults = self._faults_for(asked.account_id)
        latency = self._latency(faults)
        call = _call(asked, self.clock())
        if asked.refusal:
            return Verdict(call=call, then=api.refused(asked.refusal), latency=latency)
        account = replace(self.account(asked.account_id), provider=asked.provider)
        self._accounts[asked.account_id] = account
        if refusal := self._refusal(asked, account, faults):
            return Verdict(call=call, then=api.refused(refusal), latency=latency)
        return self._accept(asked, api, call, faults, latency)

    def _refusal(self, asked: Asked, account: Account, faults: Faults) -> Refusal | None:
        if not asked.is_authorized or account.credentials == "revoked":
            return Refusal(error="unauthorized")
        if asked.needs_session and account.session == "down":
            return Refusal(error="session_down")
        if asked.to in faults.invalidRecipients:
            return Refusal(error="recipient_invalid")
        if self._happens(faults.throttleRate):
            pause = faults.retryAfterSeconds
            return Refusal(error="throttled", scope=faults.throttleScope, retry_after_seconds=pause)
        if self._happens(faults.errorRate):
            return Refusal(error=faults.errorCode, api_code=faults.apiCode)
        return None

    def _accept(self, asked: Asked, api: Api, call: Call, faults: Faults, latency: timedelta) -> Verdict:
        key = (call.account_id, asked.idempotency_key)
        known = self._keys.get(key) if asked.idempotency_key else None
        if known:
            call = replace(call, accepted=True, provider_message_id=known)
            return Verdict(call=call, then=self._reply(asked, api, known, faults), latency=latency)
        count = 2 if self._happens(faults.deliverTwiceRate) else 1
        identities = [api.new_message_id(self.random) for _ in range(count)]
        identities[0] = asked.message_id or identities[0]
        if asked.idempotency_key:
            self._keys[key] = identities[0]
        deliveries = tuple(
            Delivery(
                account_id=call.account_id,
                provider=asked.provider,
                provider_message_id=identity,
                receipts=plan_receipts(identity, asked.echo, faults, to=asked.to, now=call.at, random=self.random),
                in_order=not faults.receiptShuffle,
            )
            for identity in identities
        )
        call = replace(call, accepted=True, delivered=count, provider_message_id=identities[0])
        reply = self._reply(asked, api, identities[0], faults)
        return Verdict(call=call, then=reply, latency=latency, deliveries=deliveries)

    def _reply(self, asked: Asked, api: Api, identity: str, faults: Faults) -> Answer | Cut | Hang:
        if self._happens(faults.acceptedErrorRate):
            return api.refused(Refusal(error="internal"))
        if self._happens(faults.lostResponseRate):
            return Cut()
        if self._happens(faults.hangRate):
            return Hang()
        return api.accepted(asked, identity)

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
        return rate > 0 and self.random.random() < rate

    def _latency(self, faults: Faults) -> timedelta:
        jitter = faults.latencyJitterMs * self.random.random() if faults.latencyJitterMs else 0.0
        return timedelta(milliseconds=faults.latencyMs + jitter)


def _call(asked: Asked, at: datetime) -> Call:
    return Call(
        request_id=asked.request_id,
        account_id=asked.account_id,
        to=asked.to,
        at=at,
        accepted=False,
        part=asked.part,
        delivered=0,
        idempotency_key=asked.idempotency_key,
    )
