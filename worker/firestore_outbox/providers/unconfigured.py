"""A provider that this installation does not have: it refuses everything."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from firestore_outbox.messages.model import OutboxMessage
from firestore_outbox.providers.credentials import Credentials
from firestore_outbox.providers.outcome import (
    AuthFailed,
    Capability,
    Outcome,
)
from firestore_outbox.providers.protocol import (
    Checked,
    Profile,
    Provider,
    Unrecognised,
    WebhookEvent,
)


class Unconfigured(Provider):
    """Stands for a provider that this installation does not have."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def name(self) -> str:
        return self._name

    @property
    def profile(self) -> Profile:
        return _NO_PROMISES

    async def send(self, message: OutboxMessage, credentials: Credentials, *, limit: timedelta) -> Outcome:
        return AuthFailed(detail=f"the account names the provider {self._name[:60]!r}, which is not configured here")

    async def check(self, account_id: str, credentials: Credentials, *, limit: timedelta) -> Checked:
        return Checked(works=False, detail=f"there is no provider {self._name[:60]!r} here")

    def verify(self, headers: Mapping[str, str], raw_body: bytes, secret: str, *, now: datetime) -> bool:
        return False

    def parse(self, raw_body: bytes) -> tuple[WebhookEvent, ...]:
        return (Unrecognised(detail="no such provider"),)


_NO_PROMISES = Profile(
    capability=Capability(resend_safe=False, echoes_request_id=False),
    part_types=frozenset(),
    media=None,
    throttle_scopes=frozenset(),
)
