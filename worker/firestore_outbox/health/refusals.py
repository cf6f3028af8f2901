"""Whether a run pauses itself, because the provider refuses too much of it. Pure.

Counted from the run's own counts, which are taken when its document is refreshed: a message whose failure comes later,
in a receipt, is in them as well. A sample begins where the last one ended, so old successes do not hide what goes wrong
now, and a run that a person resumes is judged by what it sends from then on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from firestore_outbox.providers.outcome import ErrorCode

REFUSED = frozenset({ErrorCode.RECIPIENT_INVALID.value, ErrorCode.REJECTED.value})
"""Codes with which a provider refuses a recipient or a text. Others tell of the account, the network or time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseRunsAt:
    """Changes only when a person changes the account."""

    percent: float
    """More than this part of the sample refused: the run pauses."""
    outcomes: int
    """Messages of a run in a sample, at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What a run's counts said at one time."""

    outcomes: int = 0
    """Sent or failed."""
    refused: int = 0


@dataclass(frozen=True, slots=True)
class GoOn:
    since: Tally
    """Where the present sample began."""


@dataclass(frozen=True, slots=True)
class Pause:
    since: Tally
    """Where the next sample begins, when the run is resumed."""
    sentence: str


def tally(sent: int, failed: int, failed_by_code: Mapping[str, int]) -> Tally:
    refused = sum(count for code, count in failed_by_code.items() if code in REFUSED)
    return Tally(outcomes=sent + failed, refused=min(refused, failed))


def judged(since: Tally, now: Tally, at: PauseRunsAt) -> GoOn | Pause:
    outcomes, refused = now.outcomes - since.outcomes, now.refused - since.refused
    if outcomes < at.outcomes:
        return GoOn(since)
    if refused * 100 > at.percent * outcomes:
        sentence = f"the provider refused {refused:,} of its last {outcomes:,} messages, more than {at.percent:g} %"
        return Pause(now, sentence)
    return GoOn(now)
