"""What is remembered of an account's session while it is cold, and how long to wait after trouble."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import assert_never

CONNECT_WAITS = tuple(timedelta(seconds=seconds) for seconds in (30, 60, 120, 300, 600, 1800))
RESTART_WAITS = tuple(timedelta(seconds=seconds) for seconds in (0, 30, 60, 120))
LONGEST_RESTART_WAIT = timedelta(seconds=120)
PARKED_AFTER_RESTARTS = 5
PARK = timedelta(minutes=10)
PAIRING_WAIT = timedelta(minutes=30)
STEADY = timedelta(minutes=1)
"""What happens to a session that was up for so long is not in a row with what happened before."""
JITTER = 0.25


class Trouble(StrEnum):
    """Why a session is not up."""

    TOO_SLOW = "too_slow"
    BROKEN = "broken"
    UNREACHABLE = "unreachable"
    """Its gateway does not answer."""
    REFUSED = "refused"
    """The account's credentials are."""
    NEEDS_PAIRING = "needs_pairing"
    """Only a person with the phone can bring it up."""
    RESTARTED = "restarted"
    """It was up, and began to connect again by itself."""


class Shown(StrEnum):
    """What members see of the session: `accounts/{accountId}/session/current`. A session that sleeps until its next
    message stays `connected`."""

    STARTING = "starting"
    """A person asked to connect; the gateway has shown no code yet, or the account waits for a slot."""
    SCAN = "scan"
    """A code waits to be scanned."""
    CONNECTED = "connected"
    DISCONNECTED = "disconnected"
    """The phone is not linked: never, by `disconnect`, by the phone, or because no person scanned in time."""
    FAILED = "failed"
    """The session does not come up; it is tried again."""


class Astray(StrEnum):
    """A session that is up without a slot in the set."""

    REPORTED = "reported"
    """A webhook reported it: its lane checks."""
    UNWANTED = "unwanted"
    """It is up, or may be, and no slot is free: its lane stops it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """`sessions/{accountId}`."""

    provider: str = ""
    """The account's, when it was last heard of here. Empty: never."""
    failures: int = 0
    """In a row. Grows with each trouble except restarts; back to 0 when the session ends in good order."""
    restarts: int = 0
    """In a row. The same, for restarts."""
    retry_at: datetime | None = None
    """Nothing is tried before. Set with each trouble, cleared when it comes up."""
    trouble: Trouble | None = None
    """The last one. Set and cleared with `retry_at`."""
    sticky_left: timedelta | None = None
    """Of the budget, when the session was last cold. None: it was never up."""
    astray: Astray | None = None
    """Set by a report; cleared when the session has a slot, or is stopped."""
    pair_until: datetime | None = None
    """A person links the phone, and may take until then. Set by `connect`; cleared when the session is up, fails or is
    disconnected."""
    logout: bool = False
    """A person unlinks the phone. Set by `disconnect`, cleared when the gateway has done it."""
    contacts_next: int | None = None
    """Where the next page of contacts begins. 0 with the first login and after a pairing; grows with each page that is
    stored. None: all are stored, or none are wanted."""
    contacts: int = 0
    """How many were stored since it began."""
    shown: Shown | None = None
    """What members see. Changes with the document that they read, in one commit. None: nothing was written yet."""

    def troubled(self, trouble: Trouble, now: datetime, *, steady: bool, jitter: float) -> Memory:
        """`steady`: it had been up for long enough that this is the first trouble in a row."""
        failures, restarts = (0, 0) if steady else (self.failures, self.restarts)
        if trouble is Trouble.RESTARTED:
            restarts += 1
        else:
            failures += 1
        wait = wait_after(trouble, restarts if trouble is Trouble.RESTARTED else failures, jitter=jitter)
        return replace(
            self, failures=failures, restarts=restarts, trouble=trouble, retry_at=now + wait, pair_until=None
        )

    def came_up(self, budget: timedelta) -> Memory:
        """How often it failed before is kept: it may fall again at once."""
        left = budget if self.sticky_left is None else self.sticky_left  # the first login
        up = replace(self, retry_at=None, trouble=None, sticky_left=left, astray=None, pair_until=None)
        is_new = self.sticky_left is None or self.pair_until is not None
        return replace(up, contacts_next=0, contacts=0) if is_new and budget > timedelta(0) else up

    def ended(self, sticky_left: timedelta | None) -> Memory:
        """The session is down, by our order. `sticky_left` is None if it never was up."""
        left = self.sticky_left if sticky_left is None else sticky_left
        if self.trouble is None:
            return replace(self, failures=0, restarts=0, sticky_left=left, astray=None)
        return replace(self, sticky_left=left, astray=None)

    def dropped(self, sticky_left: timedelta | None) -> Memory:
        """Its entry is gone, and it is unknown whether it is down."""
        return replace(self.ended(sticky_left), astray=Astray.UNWANTED)

    def pairs(self, now: datetime) -> bool:
        """Whether a person is about to scan a code."""
        return self.pair_until is not None and self.pair_until > now

    def waits(self, now: datetime) -> bool:
        return self.retry_at is not None and self.retry_at > now


def wait_after(trouble: Trouble, in_a_row: int, *, jitter: float) -> timedelta:
    """`in_a_row` counts from 1. `jitter` is a uniform random number in [0, 1)."""
    spread = 1 - JITTER + 2 * JITTER * jitter
    match trouble:
        case Trouble.RESTARTED:
            if in_a_row >= PARKED_AFTER_RESTARTS:
                return PARK * (1 + jitter / 2)
            return min(_nth(RESTART_WAITS, in_a_row) * spread, LONGEST_RESTART_WAIT)
        case Trouble.NEEDS_PAIRING:
            return PAIRING_WAIT * spread
        case Trouble.TOO_SLOW | Trouble.BROKEN | Trouble.UNREACHABLE | Trouble.REFUSED:
            return _nth(CONNECT_WAITS, in_a_row) * spread
        case _:
            assert_never(trouble)


def _nth(waits: tuple[timedelta, ...], number: int) -> timedelta:
    return waits[min(max(number, 1), len(waits)) - 1]
