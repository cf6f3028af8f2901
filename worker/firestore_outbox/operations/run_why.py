"""Why a run has not ended: what its messages wait for, from the same decisions that the worker makes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from firestore_outbox.accounts.account import Account
from firestore_outbox.accounts.window import is_open, next_open
from firestore_outbox.lane.state import Lane
from firestore_outbox.operations.why import Reason, account_reasons, day_reasons, lane_reasons
from firestore_outbox.reminders.choices import OnWindowEnd
from firestore_outbox.reminders.forecast import Forecast
from firestore_outbox.reminders.run import ENDED, Command, Counts, Run, RunStatus, paused_sentence
from firestore_outbox.shown_time import shown_time


@dataclass(frozen=True, slots=True, kw_only=True)
class RunWhy:
    sentences: tuple[str, ...]
    """What the run waits for, the most important first; never empty."""
    ends_at: datetime | None
    """None: it has ended, or its end is not known."""


def run_why(
    run: Run, counts: Counts, account: Account, lane: Lane, forecast: Forecast, error_summary: str | None, now: datetime
) -> RunWhy:
    """`error_summary` is the run document's own, present after an end that was not a success."""
    if run.status in ENDED:
        return RunWhy(sentences=(f"It has ended: {run.status}.", *filter(None, (error_summary,))), ends_at=None)
    if run.requested is Command.CANCEL:
        return RunWhy(sentences=("Its cancellation is requested; what has not been sent is cancelled.",), ends_at=None)
    if run.status is RunStatus.PAUSED or run.requested is Command.PAUSE:
        return RunWhy(sentences=(paused_sentence(run),), ends_at=None)
    sentences = list(waits_for(run, counts, account, lane, now))
    ends_at = forecast.ends_at
    if ends_at is not None and not any(reason.until is None for reason in _reasons(account, lane, now)):
        sentences.append(f"As things are now it ends at {shown_time(ends_at)}.")
    return RunWhy(sentences=tuple(sentences), ends_at=ends_at)


def waits_for(run: Run, counts: Counts, account: Account, lane: Lane, now: datetime) -> tuple[str, ...]:
    """What a run waits for that is neither paused nor cancelled, the most important first; never empty."""
    sentences = [reason.sentence for reason in _reasons(account, lane, now)]
    if not is_open(run.window, now):
        sentences.append(f"Its window is closed until {shown_time(next_open(run.window, now))}.")
    if now >= run.window_end_at and run.on_window_end is OnWindowEnd.STOP:
        sentences.append("Its window has ended; what has not been sent is skipped.")
    if not run.is_expanded:
        sentences.append(f"Its targets become messages; {run.total:,} have so far.")
    if counts.uncertain and not counts.pending:
        sentences.append(
            f"{counts.uncertain:,} of its messages are uncertain: outbox list --run {run.run_id} --status uncertain"
        )
    if not sentences:
        sentences.append(f"{counts.pending:,} of {counts.total:,} messages wait for their turn at the account's pace.")
    return tuple(sentences)


def _reasons(account: Account, lane: Lane, now: datetime) -> list[Reason]:
    return [*account_reasons(account, now)[0], *lane_reasons(lane, now), *day_reasons(lane, account, now)]
