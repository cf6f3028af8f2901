"""Too late to send: a deadline that its author set, or the end of a delivery window.

    an author's deadline            skipped, `deadline_passed`
    a run's window, which stops     skipped, `window_closed`
    a run's window, which resumes   queued for the next opening, with the next end as its deadline

A message may still go at its deadline, and no more a moment later; a run's deadline is the last moment before its
window ends. The claim looks here, and so does every decision to try again later.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from firestore_outbox.accounts.window import Window, next_open, window_end_at
from firestore_outbox.messages.model import OutboxMessage
from firestore_outbox.providers.outcome import DeliveryError, ErrorCode

TICK = timedelta(microseconds=1)
"""The smallest step of a Firestore timestamp."""


@dataclass(frozen=True, slots=True)
class Deferred:
    to: datetime
    window_end: datetime

    @property
    def send_by(self) -> datetime:
        return last_moment(self.window_end)


@dataclass(frozen=True, slots=True)
class TooLate:
    error: DeliveryError


def lateness(message: OutboxMessage, at: datetime, now: datetime, last: str = "") -> Deferred | TooLate | None:
    """What an attempt at `at` would come too late for; None if it would not. `last` says why it was not sent before."""
    if message.send_by is None or at <= message.send_by:
        return None
    if message.window is not None:
        return deferral(message.window, at)
    if message.run_id is not None:
        code, sentence = ErrorCode.WINDOW_CLOSED, f"its delivery window closed at {_shown(message.send_by + TICK)}"
    else:
        code, sentence = ErrorCode.DEADLINE_PASSED, f"it was to be sent by {_shown(message.send_by)}"
    if last:
        sentence = f"{sentence}; last: {last}"
    return TooLate(DeliveryError(code=code, message=sentence, retryable=False, at=now))


def deferral(window: Window, at: datetime) -> Deferred:
    """The next opening from `at` on, and the end that goes with it."""
    opening = next_open(window, at)
    return Deferred(opening, window_end_at(window, opening))


def last_moment(window_end: datetime) -> datetime:
    """The deadline of a message that must go before its window ends."""
    return window_end - TICK


def _shown(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"
