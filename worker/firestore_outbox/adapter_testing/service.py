"""A fake of a provider's service: how it behaves, what it accepted, and what it posts to the webhook."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import assert_never

import httpx

from firestore_outbox.clock import Clock
from firestore_outbox.providers.outcome import Scope
from firestore_outbox.receipts.rules import Progress


class Behaviour(StrEnum):
    """What the service does with the calls that come from now on."""

    ACCEPTS = "accepts"
    THROTTLES = "throttles"
    """It refuses calls because they come too fast, and processes none of them."""
    REFUSES = "refuses"
    """It refuses the message for good: the recipient does not exist."""
    REVOKED = "revoked"
    """It does not know the credentials any more."""
    LOSES_ANSWERS = "loses answers"
    """It accepts the message, and the connection breaks before the answer."""
    NEVER_ANSWERS = "never answers"
    """It accepts the message, and the answer does not come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceCall:
    """A call to send one part."""

    accepted: bool
    provider_message_id: str | None = None
    """As the answer names it. None: the call was not accepted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """A call of the service to the account's webhook."""

    headers: Mapping[str, str]
    body: bytes


class Service(ABC):
    """The fake that the contract runs an adapter against."""

    throttled_scope: Scope = Scope.ACCOUNT
    """The scope that a throttle of this service means."""
    throttled_for: timedelta | None = timedelta(seconds=7)
    """The time that its throttles name. None: they name none."""
    reports: frozenset[Progress] = frozenset({Progress.DELIVERED, Progress.READ})
    """What the receipts of a message that was read say."""

    @property
    @abstractmethod
    def transport(self) -> httpx.AsyncBaseTransport:
        """The network between the adapter and this service."""

    @property
    @abstractmethod
    def calls(self) -> Sequence[ServiceCall]:
        """The calls that send a part, in their order. A check of credentials is none."""

    @abstractmethod
    async def behave(self, how: Behaviour) -> None: ...

    @abstractmethod
    async def webhooks(self) -> Sequence[Webhook]:
        """What it has posted: the receipts of accepted messages."""

    @abstractmethod
    def sign(self, body: bytes) -> Mapping[str, str]:
        """The headers of a webhook with this body, signed now."""

    async def close(self) -> None:
        """Called at the end of each test."""
        return


class RecordedService(Service, httpx.AsyncBaseTransport):
    """A service of recorded answers. Write each as the real service gives it; the rest is here."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._behaviour = Behaviour.ACCEPTS
        self._calls: list[ServiceCall] = []
        self._bodies: list[bytes] = []

    # --- to write

    @abstractmethod
    def accepted(self, request: httpx.Request, number: int) -> tuple[str, httpx.Response]:
        """The id and the answer of a part that the service accepts; the number of the call makes ids different."""

    @abstractmethod
    def throttled(self, request: httpx.Request) -> httpx.Response:
        """The answer to a call that comes too fast. It names `throttled_for`."""

    @abstractmethod
    def refused(self, request: httpx.Request) -> httpx.Response:
        """The answer to a message to a recipient that does not exist."""

    @abstractmethod
    def unauthorized(self, request: httpx.Request) -> httpx.Response:
        """The answer to credentials that are not valid."""

    @abstractmethod
    def is_send(self, request: httpx.Request) -> bool:
        """Whether the request sends a part. Others check credentials, and are answered by `checked`."""

    def checked(self, request: httpx.Request) -> httpx.Response:
        """The answer to a check of valid credentials. Not called if the adapter's check asks nothing."""
        raise NotImplementedError(f"the adapter asked for {request.url.path}: write `checked`")

    def receipts(self, request: httpx.Request, provider_message_id: str) -> Sequence[bytes]:
        """The bodies of the webhooks about an accepted part: all that `reports` names."""
        return ()

    # --- the rest

    @property
    def transport(self) -> httpx.AsyncBaseTransport:
        return self

    @property
    def calls(self) -> Sequence[ServiceCall]:
        return self._calls

    async def behave(self, how: Behaviour) -> None:
        self._behaviour = how

    async def webhooks(self) -> Sequence[Webhook]:
        return [Webhook(headers=self.sign(body), body=body) for body in self._bodies]

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await request.aread()
        if not self.is_send(request):
            return self.unauthorized(request) if self._behaviour is Behaviour.REVOKED else self.checked(request)
        match self._behaviour:
            case Behaviour.THROTTLES:
                return self._not_accepted(self.throttled(request))
            case Behaviour.REFUSES:
                return self._not_accepted(self.refused(request))
            case Behaviour.REVOKED:
                return self._not_accepted(self.unauthorized(request))
            case Behaviour.ACCEPTS:
                return self._accept(request)
            case Behaviour.LOSES_ANSWERS:
                self._accept(request)
                raise httpx.ReadError("the connection was reset", request=request)
            case Behaviour.NEVER_ANSWERS:
                self._accept(request)
                await asyncio.Event().wait()
                raise AssertionError("nothing sets this event")
            case _:
                assert_never(self._behaviour)

    def _accept(self, request: httpx.Request) -> httpx.Response:
        identity, answer = self.accepted(request, len(self._calls))
        self._calls.append(ServiceCall(accepted=True, provider_message_id=identity))
        self._bodies += self.receipts(request, identity)
        return answer

    def _not_accepted(self, answer: httpx.Response) -> httpx.Response:
        self._calls.append(ServiceCall(accepted=False))
        return answer
