"""Too late to send: a deadline that its author set, or the end of a delivery window.

    an author's deadline            skipped, `deadline_passed`
    a run's window, which stops     skipped, `window_closed`
    a run's window, which resumes   queued for the next opening, with the next end as its deadline
    the recipient's hours           queued until they open, if that is before the deadline; else `outside_hours`, or
                                    the run's next window in which they open

A message may still go at its deadline, and no more a moment later; a run's deadline is the last moment before its
window ends. The claim looks here, and so does every decision to try again later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from firestore_outbox.accounts.window import Window, are_open, next_open, opening_of_all, window_end_at
from firestore_outbox.messages.model import OutboxMessage
from firestore_outbox.providers.outcome import DeliveryError, ErrorCode

TICK = timedelta(microseconds=1)
"""The smallest step of a Firestore timestamp."""
_WINDOWS_TO_TRY = 3
"""Of a run that goes on: hours that are open in none of these are open in none."""


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
    if message.send_by is None or (at <= message.send_by and are_open(message.hours, at)):
        return None
    if message.window is not None or message.hours:
        later = next_chance(message.hours, message.window, at, message.send_by)
        if later is not None:
            return later
    if message.hours and at <= message.send_by:
        return TooLate(outside_hours(now))
    if message.run_id is not None:
        code, sentence = ErrorCode.WINDOW_CLOSED, f"its delivery window closed at {_shown(message.send_by + TICK)}"
    else:
        code, sentence = ErrorCode.DEADLINE_PASSED, f"it was to be sent by {_shown(message.send_by)}"
    if last:
        sentence = f"{sentence}; last: {last}"
    return TooLate(DeliveryError(code=code, message=sentence, retryable=False, at=now))


def next_chance(hours: Sequence[Window], window: Window | None, at: datetime, send_by: datetime) -> Deferred | None:
    """The first time from `at` on within the recipient's hours: until the deadline, or in a later window of a run that
    goes on. None: there is none."""
    opening, end = opening_of_all(hours, at, until=send_by), send_by + TICK
    for _ in range(_WINDOWS_TO_TRY if window is not None else 0):
        if opening is not None:
            break
        assert window is not None
        following = deferral(window, max(at, end))
        opening, end = opening_of_all(hours, following.to, until=following.send_by), following.window_end
    return None if opening is None else Deferred(opening, end)


def outside_hours(at: datetime) -> DeliveryError:
    sentence = "it is outside the recipient's hours until its delivery window closes"
    return DeliveryError(code=ErrorCode.OUTSIDE_HOURS, message=sentence, retryable=False, at=at)


def deferral(window: Window, at: datetime) -> Deferred:
    """The next opening from `at` on, and the end that goes with it."""
    opening = next_open(window, at)
    return Deferred(opening, window_end_at(window, opening))


def last_moment(window_end: datetime) -> datetime:
    """The deadline of a message that must go before its window ends."""
    return window_end - TICK


def _shown(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"
