"""How far a notification is with each of its receivers: the account's webhook, and each device of a member.

Each receiver has attempts and a backoff of its own, so one that does not accept delays no other, and one that accepted
is not called again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from firestore_outbox.notifications.notification import DELIVERED, FAILED, WAITING, next_attempt

WEBHOOK = ""
"""The webhook among the receivers. All others are ids of devices, which are never empty."""
NO_RECEIVER = "the account has no webhook for notifications (notify.webhook), and no member has a device"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Of one receiver."""

    state: str = WAITING
    attempts: int = 0
    next_attempt_at: datetime | None = None
    error: str | None = None

    def is_due(self, now: datetime) -> bool:
        return self.state == WAITING and (self.next_attempt_at is None or self.next_attempt_at <= now)

    def accepted(self) -> Progress:
        return Progress(state=DELIVERED, attempts=self.attempts + 1)

    def refused(self, reason: str) -> Progress:
        """For good."""
        return Progress(state=FAILED, attempts=self.attempts + 1, error=reason)

    def not_accepted(self, reason: str, now: datetime) -> Progress:
        attempts = self.attempts + 1
        if (at := next_attempt(attempts, now)) is None:
            return self.refused(reason)
        return replace(self, attempts=attempts, next_attempt_at=at, error=reason)


def stored_progress(data: Mapping[str, Any]) -> dict[str, Progress]:
    """Receiver -> what the document says of it. A receiver that was not called yet may be absent."""
    devices = data.get("devices")
    found = {str(key): _parsed(one) for key, one in devices.items()} if isinstance(devices, dict) else {}
    if int(data.get("attempts") or 0) == 0:
        return found
    webhook = _parsed(data)
    if data.get("deliveredAt") is not None:
        return {WEBHOOK: replace(webhook, state=DELIVERED), **found}
    is_given_up = webhook.next_attempt_at is None
    return {WEBHOOK: replace(webhook, state=FAILED if is_given_up else WAITING), **found}


def with_receivers(stored: Mapping[str, Progress], receivers: Collection[str]) -> dict[str, Progress]:
    """Receivers of now, and what was settled with earlier ones. One that went away meanwhile is waited for no more."""
    settled = {key: one for key, one in stored.items() if one.state != WAITING}
    return settled | {key: stored.get(key, Progress()) for key in receivers}


def state_of(progress: Mapping[str, Progress]) -> str:
    """`failed`: the webhook did not accept it; without a webhook: no device did."""
    if any(one.state == WAITING for one in progress.values()):
        return WAITING
    webhook = progress.get(WEBHOOK)
    if webhook is not None:
        return webhook.state
    return DELIVERED if any(one.state == DELIVERED for one in progress.values()) else FAILED


def next_look(progress: Mapping[str, Progress], now: datetime) -> datetime | None:
    """When a receiver is due; None: all is settled."""
    return min((one.next_attempt_at or now for one in progress.values() if one.state == WAITING), default=None)


def progress_fields(progress: Mapping[str, Progress], now: datetime, *, called: str | None) -> dict[str, Any]:
    """What the document says after a call of one receiver; `called` is None if there was none to call. A field that is
    None is deleted."""
    fields: dict[str, Any] = {"state": state_of(progress)}
    if called is None:
        return fields if progress else {**fields, "error": NO_RECEIVER}
    one = progress[called]
    if called != WEBHOOK:
        devices = {key: _device_fields(device) for key, device in progress.items() if key != WEBHOOK}
        return {**fields, "devices": devices}
    accepted = {"deliveredAt": now} if one.state == DELIVERED else {}
    times = {"attempts": one.attempts, "nextAttemptAt": one.next_attempt_at}
    return {**fields, **times, "error": one.error, **accepted}


def _device_fields(one: Progress) -> dict[str, Any]:
    at = {} if one.next_attempt_at is None else {"nextAttemptAt": one.next_attempt_at}
    error = {} if one.error is None else {"error": one.error}
    return {"state": one.state, "attempts": one.attempts, **at, **error}


def _parsed(data: Any) -> Progress:
    if not isinstance(data, Mapping):
        return Progress()
    at, error = data.get("nextAttemptAt"), data.get("error")
    return Progress(
        state=str(data.get("state") or WAITING),
        attempts=int(data.get("attempts") or 0),
        next_attempt_at=at if isinstance(at, datetime) else None,
        error=None if error is None else str(error),
    )
