"""A run: one firing of a reminder, whose targets are outbox documents.

    pending    made; not every target has its outbox document yet
    running    all targets have one; the account's lane sends them
    paused     the account's lane does not see the documents
    success, partial, failed, cancelled      ended, with counts

Who is authoritative: the outbox documents, about every target; the run document, about what was asked for. A command is
a wish on the run document (`requested`); the holder of the run's lane carries it out and then moves the status. Each
step below is one page of work that may be done twice: a crash leaves the page half done or done, and the next holder
asks `next_step` again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, StrEnum
from hashlib import sha256
from typing import Any

from firestore_outbox.accounts.window import Window
from firestore_outbox.messages.model import Part, StoredPart
from firestore_outbox.reminders.choices import Category, OnWindowEnd
from firestore_outbox.transitions import after


class RunStatus(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    PAUSED = "paused"
    SUCCESS = "success"
    PARTIAL = "partial"
    FAILED = "failed"
    CANCELLED = "cancelled"


ENDED = frozenset({RunStatus.SUCCESS, RunStatus.PARTIAL, RunStatus.FAILED, RunStatus.CANCELLED})


class RunEvent(StrEnum):
    EXPANDED = "expanded"
    """Every target has its outbox document."""
    PAUSED = "paused"
    RESUMED = "resumed"
    ALL_SENT = "all_sent"
    SOME_SENT = "some_sent"
    NONE_SENT = "none_sent"
    CANCELLED = "cancelled"


_S, _E = RunStatus, RunEvent

TRANSITIONS: Mapping[tuple[RunStatus, RunEvent], RunStatus] = {
    (_S.PENDING, _E.EXPANDED): _S.RUNNING,
    (_S.PENDING, _E.CANCELLED): _S.CANCELLED,
    (_S.RUNNING, _E.PAUSED): _S.PAUSED,
    (_S.RUNNING, _E.ALL_SENT): _S.SUCCESS,
    (_S.RUNNING, _E.SOME_SENT): _S.PARTIAL,
    (_S.RUNNING, _E.NONE_SENT): _S.FAILED,
    (_S.RUNNING, _E.CANCELLED): _S.CANCELLED,
    (_S.PAUSED, _E.PAUSED): _S.PAUSED,  # a pause that followed a resume before the resume began
    (_S.PAUSED, _E.RESUMED): _S.RUNNING,
    (_S.PAUSED, _E.ALL_SENT): _S.SUCCESS,  # the window closed, or receipts settled the rest, while it was paused
    (_S.PAUSED, _E.SOME_SENT): _S.PARTIAL,
    (_S.PAUSED, _E.NONE_SENT): _S.FAILED,
    (_S.PAUSED, _E.CANCELLED): _S.CANCELLED,
}


class Command(StrEnum):
    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "cancel"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    target_id: str
    to: str
    variables: Mapping[str, str] = field(default_factory=dict)
    timezone: str | None = None
    """Where the recipient is; None: as its phone number tells."""
    parts: tuple[StoredPart, ...] | None = None
    """Its own, with its values in them: of a target that is tried again. None: those of the run."""
    fault: str | None = None
    """Why nothing can be sent to it, in words. None: it is good."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """How far the expansion got: everything up to and with this target has its document."""

    chunk: str
    """The document of targets it stands in; empty for those in the reminder itself."""
    index: int
    """The next target within it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Of outbox documents. `delivered` and `read` are among `sent`; the others add up to `total`."""

    total: int
    pending: int = 0
    sending: int = 0
    sent: int = 0
    failed: int = 0
    skipped: int = 0
    cancelled: int = 0
    uncertain: int = 0
    """It is unknown whether they were sent: settled by a receipt, or by a person."""
    delivered: int = 0
    read: int = 0

    @property
    def adds_up(self) -> bool:
        parts = self.pending + self.sending + self.sent + self.failed + self.skipped + self.cancelled + self.uncertain
        return parts == self.total and self.delivered + self.read <= self.sent + self.failed


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    # What was asked for. These never change.
    run_id: str
    account_id: str
    parts: tuple[Part, ...]
    window: Window
    on_window_end: OnWindowEnd
    fire_at: datetime
    reminder_id: str | None
    seed: str | None = None
    """128 random bits in hexadecimal, from which the targets' ids are derived. None: made before runs had seeds."""
    retry_of: str | None = None
    """The run whose failed targets these are."""
    is_personal: bool = False
    """Whether the parts have placeholders for the targets' variables."""
    category: Category = Category.UTILITY

    status: RunStatus = RunStatus.PENDING
    """Moves as TRANSITIONS says."""
    requested: Command | None = None
    """Set by a person, cleared when it is carried out."""
    window_end_at: datetime
    """Moves to the next day's if the run goes on then."""
    cursor: Cursor | None = None
    """Moves with each page of targets."""
    is_expanded: bool = False
    total: int = 0
    """Outbox documents made so far."""
    window_closed: bool = False
    """Set when the window ended with documents left."""
    started_at: datetime | None = None
    paused_because: str | None = None
    """Set when the run pauses itself, cleared when it is resumed. None: a person paused it, or it is not paused."""

    @property
    def has_ended(self) -> bool:
        return self.status in ENDED


@dataclass(frozen=True, slots=True)
class Expand:
    """Make the next page of outbox documents."""


@dataclass(frozen=True, slots=True)
class CancelRest:
    """Queued documents become `cancelled`."""


@dataclass(frozen=True, slots=True)
class SkipRest:
    """The window closed: queued documents become `skipped`."""


@dataclass(frozen=True, slots=True)
class DeferRest:
    """The window closed: queued documents move to its next opening, and the run with them."""


@dataclass(frozen=True, slots=True)
class ParkRest:
    """Queued documents are taken out of sight."""


@dataclass(frozen=True, slots=True)
class UnparkRest:
    """They come back."""


@dataclass(frozen=True, slots=True)
class Look:
    """See whether anything is left open; end the run if not."""


@dataclass(frozen=True, slots=True)
class Rest:
    """The run has ended: nothing is to be done."""


Step = Expand | CancelRest | SkipRest | DeferRest | ParkRest | UnparkRest | Look | Rest


def next_step(run: Run, now: datetime) -> Step:
    """What comes first. A run that is cancelled is expanded no further; otherwise every target gets its document, even
    if only to be skipped, so that the counts speak of all of them."""
    if run.status in ENDED:
        return Rest()
    if run.requested is Command.CANCEL:
        return CancelRest()
    if not run.is_expanded:
        return Expand()
    if now >= run.window_end_at:
        return SkipRest() if run.on_window_end is OnWindowEnd.STOP else DeferRest()
    if run.requested is Command.PAUSE:
        return ParkRest()  # also if it is paused: a resume may have been taken back before it began
    if run.requested is Command.RESUME:
        return UnparkRest()
    return Look()


def accepts(run: Run, command: Command) -> str | None:
    """Why the command makes no sense now; None if it does."""
    if run.status in ENDED:
        return f"the run has ended ({run.status})"
    if run.requested is Command.CANCEL and command is not Command.CANCEL:
        return "the run is being cancelled"
    if command is Command.PAUSE and run.status is RunStatus.PAUSED and run.requested is not Command.RESUME:
        return "the run is paused already"
    if command is Command.RESUME and run.status is not RunStatus.PAUSED and run.requested is None:
        return "the run is not paused"
    return None


def verdict(run: Run, counts: Counts) -> RunStatus:
    """The status of a run with nothing left open."""
    return after(TRANSITIONS, run.status, _ending(run, counts))


def _ending(run: Run, counts: Counts) -> RunEvent:
    if run.requested is Command.CANCEL:
        return RunEvent.CANCELLED
    if not counts.sent:
        return RunEvent.NONE_SENT
    return RunEvent.ALL_SENT if counts.sent == counts.total else RunEvent.SOME_SENT


def error_summary(
    run: Run, counts: Counts, *, most_often: str | None, skipped_because: str | None = None
) -> str | None:
    """For a person, and for the notification. `most_often` is the commonest error of the failed ones,
    `skipped_because` the commonest reason of the skipped ones."""
    if not counts.total and run.requested is not Command.CANCEL:
        return "There were no targets."
    if counts.sent == counts.total:
        return None
    reached = f"{counts.sent:,} of {counts.total:,} groups delivered.".replace(",", "")
    if run.requested is Command.CANCEL:
        return f"Cancelled. {reached}"
    if run.window_closed and counts.skipped:
        capacity = "This account is at capacity for this fan-out"
        return (
            f"{closed_sentence(run, counts)} {capacity} — consider sending the remainder from another paired account."
        )
    because = f" Most often: {most_often}." if most_often else ""
    doubtful = f" {counts.uncertain} are uncertain: it is unknown whether they were sent." if counts.uncertain else ""
    skipped = f" {counts.skipped} skipped: {skipped_because}." if counts.skipped and skipped_because else ""
    return f"{reached} {counts.failed} failed.{because}{skipped}{doubtful}"


def paused_sentence(run: Run) -> str:
    """What a paused run waits for."""
    because = f" It paused itself: {run.paused_because}." if run.paused_because else ""
    return f"The run is paused until it is resumed: outbox runs resume {run.run_id}.{because}"


def closed_sentence(run: Run, counts: Counts) -> str:
    """That the window closed, and how far the run got."""
    local = run.window_end_at.astimezone(run.window.zone)
    reached = f"{counts.sent} of {counts.total} groups delivered."
    return f"Delivery window closed at {local:%H:%M} ({run.window.zone.key}). {reached}"


def run_id_of(reminder_id: str, fire_at: datetime) -> str:
    """The same for the same fire, so that it can be made once only."""
    return f"{reminder_id}-{fire_at:%Y%m%dT%H%M%SZ}"


def request_id_of(run: Run, target_id: str, taken: int = 0) -> str:
    """The id of a target's outbox document: the same for the same target, whichever worker makes it.

    `outbox/` is one namespace for all accounts. The run's seed keeps other accounts from guessing an id and writing a
    message of their own under it; where that happened nevertheless, `taken` counts the ids that were not free. A run
    from before seeds keeps the ids that it has. A hash, because ids that begin alike make a hot key range.
    """
    if run.seed is None and not taken:
        return sha256(f"{run.run_id}\n{target_id}".encode()).hexdigest()[:32]
    return sha256(json.dumps([run.seed or run.run_id, target_id, taken]).encode()).hexdigest()[:32]


class Whose(Enum):
    """What stands under the id that a run chose for a target."""

    FREE = "free"
    OURS = "ours"
    """The target has its document: it is listed twice, or an earlier page wrote it."""
    TAKEN = "request-id-taken"
    """A document of another account, or none of this run."""


def whose(run: Run, stored: Mapping[str, Any] | None) -> Whose:
    """`stored` is the outbox document under the id; None: there is none."""
    if stored is None:
        return Whose.FREE
    is_ours = stored.get("accountId") == run.account_id and stored.get("runId") == run.run_id
    return Whose.OURS if is_ours else Whose.TAKEN
