"""What one API is to the simulator. The core decides; an API only words it.

Each API is one file: it reads a call into `Asked`, gives it to `core.take`, and has `carry_out` answer. Faults, the
record, receipts and their delays are the core's, so they work for every API in the same way:

    def routes(simulator: Simulator) -> list[Route]

is what `app` mounts, under paths of the API's own (`/whatsapp_cloud/v23.0/…`). Receipts and inbound messages leave the
core as events of one form (receipts.py, app.py); `body` and `headers` make of them what this provider really posts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Any, Literal, Protocol

from starlette.requests import Request
from starlette.responses import Response

if TYPE_CHECKING:
    from firestore_outbox.local.simulators.core import Cut, Hang, ProviderCore, Verdict
    from firestore_outbox.local.simulators.inbound_files import InboundFiles
    from firestore_outbox.local.simulators.webhooks import Webhooks


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    status: int
    body: dict[str, Any]
    retry_after_seconds: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """What the core refuses, for an API to word."""

    error: str
    """One of `own.ERRORS`."""
    detail: str | None = None
    """In words, where there are any."""
    api_code: str | None = None
    """As ordered: a code of the API's own, which is meant in place of `error`."""
    scope: Literal["recipient", "account", "app"] = "account"
    """Of a throttle. The same for the next."""
    retry_after_seconds: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One call to send one part, as all APIs tell of it."""

    provider: str
    """The adapter's name, as in the webhook's path."""
    account_id: str
    to: str
    request_id: str
    """Ours, as far as the API's own fields tell: from the echo, or empty."""
    part: int = 0
    is_authorized: bool
    """A token was shown. Whether it was revoked since is the core's to say."""
    needs_session: bool = False
    idempotency_key: str | None = None
    echo: str | None = None
    message_id: str | None = None
    """Where the API lets the caller choose it."""
    refusal: Refusal | None = None
    """A fault of the call itself: it is refused before anything is drawn."""


class WebhookForm(Protocol):
    def body(self, account_id: str, event: Mapping[str, Any]) -> bytes:
        """`{"type": "receipt" | "inbound" | "session", …}` as this provider posts it."""
        ...

    def headers(self, secret: str, body: bytes, at: datetime) -> dict[str, str]:
        """The signature, and whatever else comes with it."""
        ...


class Api(WebhookForm, Protocol):
    def new_message_id(self, random: Random) -> str: ...

    def accepted(self, asked: Asked, identity: str) -> Answer: ...

    def refused(self, refusal: Refusal) -> Answer: ...


class Simulator(Protocol):
    """What `routes` is given."""

    @property
    def core(self) -> ProviderCore: ...

    @property
    def webhooks(self) -> Webhooks: ...

    @property
    def inbound_files(self) -> InboundFiles: ...

    async def carry_out(self, request: Request, verdict: Verdict) -> Response:
        """Send the receipts on their way, and answer."""
        ...

    async def answer(self, request: Request, then: Answer | Cut | Hang, latency: timedelta) -> Response:
        """Wait, and answer; or cut, or hang."""
        ...
