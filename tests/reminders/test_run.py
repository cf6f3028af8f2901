from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firestore_outbox.accounts.window import Window
from firestore_outbox.messages.model import TextPart
from firestore_outbox.reminders.choices import OnWindowEnd
from firestore_outbox.reminders.run import (
    ENDED,
    CancelRest,
    Command,
    Counts,
    DeferRest,
    Expand,
    Look,
    ParkRest,
    Rest,
    Run,
    RunStatus,
    SkipRest,
    Step,
    UnparkRest,
    Whose,
    accepts,
    error_summary,
    next_step,
    request_id_of,
    run_id_of,
    verdict,
    whose,
)

FIRED = datetime(2026, 3, 2, 1, 0, tzinfo=UTC)
ENDS = datetime(2026, 3, 2, 10, 0, tzinfo=UTC)  # 18:00 in Kuala Lumpur
DURING, AFTER = ENDS - timedelta(hours=1), ENDS
KUALA_LUMPUR = Window(start_hour=6, end_hour=18, zone=ZoneInfo("Asia/Kuala_Lumpur"))


def run(**fields: Any) -> Run:
    return Run(
        **{
            "run_id": "r",
            "account_id": "acme",
            "parts": (TextPart(type="text", text="hello"),),
            "window": KUALA_LUMPUR,
            "on_window_end": OnWindowEnd.STOP,
            "fire_at": FIRED,
            "reminder_id": "rem",
            "window_end_at": ENDS,
            "is_expanded": True,
            "status": RunStatus.RUNNING,
            **fields,
        }
    )


# --- what comes first


@pytest.mark.parametrize(
    ("fields", "now", "step"),
    [
        ({"is_expanded": False, "status": RunStatus.PENDING}, DURING, Expand()),
        ({"is_expanded": False, "status": RunStatus.PENDING}, AFTER, Expand()),
        ({"is_expanded": False, "requested": Command.PAUSE}, DURING, Expand()),
        ({"is_expanded": False, "requested": Command.CANCEL}, DURING, CancelRest()),
        ({"requested": Command.CANCEL}, AFTER, CancelRest()),
        ({}, DURING, Look()),
        ({}, ENDS - timedelta(microseconds=1), Look()),
        ({}, AFTER, SkipRest()),
        ({"on_window_end": OnWindowEnd.RESUME_NEXT_DAY}, AFTER, DeferRest()),
        ({"status": RunStatus.PAUSED}, AFTER, SkipRest()),
        ({"requested": Command.PAUSE}, DURING, ParkRest()),
        ({"requested": Command.PAUSE}, AFTER, SkipRest()),
        ({"requested": Command.PAUSE, "status": RunStatus.PAUSED}, DURING, ParkRest()),
        ({"requested": Command.RESUME, "status": RunStatus.PAUSED}, DURING, UnparkRest()),
        ({"requested": Command.RESUME}, DURING, UnparkRest()),
        ({"status": RunStatus.PAUSED}, DURING, Look()),
        ({"status": RunStatus.SUCCESS}, AFTER, Rest()),
        ({"status": RunStatus.CANCELLED, "requested": Command.PAUSE}, DURING, Rest()),
    ],
)
def test_the_first_thing_to_do_is(fields: dict[str, Any], now: datetime, step: Step) -> None:
    assert next_step(run(**fields), now) == step


def test_a_run_that_has_ended_rests_whatever_is_asked_of_it() -> None:
    for status, requested, now in product(ENDED, [None, *Command], [DURING, AFTER]):
        assert next_step(run(status=status, requested=requested), now) == Rest()


# --- what may be asked


@pytest.mark.parametrize("status", sorted(ENDED))
@pytest.mark.parametrize("command", Command)
def test_nothing_is_asked_of_a_run_that_has_ended(status: RunStatus, command: Command) -> None:
    assert accepts(run(status=status), command) == f"the run has ended ({status})"


@pytest.mark.parametrize(
    ("status", "requested", "command", "objection"),
    [
        (RunStatus.RUNNING, None, Command.PAUSE, None),
        (RunStatus.PENDING, None, Command.PAUSE, None),
        (RunStatus.RUNNING, None, Command.CANCEL, None),
        (RunStatus.RUNNING, None, Command.RESUME, "the run is not paused"),
        (RunStatus.RUNNING, Command.PAUSE, Command.RESUME, None),
        (RunStatus.RUNNING, Command.RESUME, Command.RESUME, None),
        (RunStatus.PAUSED, None, Command.PAUSE, "the run is paused already"),
        (RunStatus.PAUSED, None, Command.RESUME, None),
        (RunStatus.PAUSED, None, Command.CANCEL, None),
        (RunStatus.PAUSED, Command.RESUME, Command.PAUSE, None),
        (RunStatus.RUNNING, Command.CANCEL, Command.PAUSE, "the run is being cancelled"),
        (RunStatus.PAUSED, Command.CANCEL, Command.RESUME, "the run is being cancelled"),
        (RunStatus.RUNNING, Command.CANCEL, Command.CANCEL, None),
    ],
)
def test_a_command_is_taken_if_it_makes_sense(
    status: RunStatus, requested: Command | None, command: Command, objection: str | None
) -> None:
    assert accepts(run(status=status, requested=requested), command) == objection


# --- how it ends


def test_counts_add_up_when_each_document_is_in_one_of_them() -> None:
    assert Counts(total=10, sent=6, failed=2, skipped=1, uncertain=1, delivered=3, read=2).adds_up
    assert not Counts(total=10, sent=6).adds_up
    assert not Counts(total=3, sent=3, delivered=3, read=1).adds_up


@pytest.mark.parametrize(
    ("counts", "fields", "status"),
    [
        (Counts(total=5, sent=5), {}, RunStatus.SUCCESS),
        (Counts(total=5, sent=4, failed=1), {}, RunStatus.PARTIAL),
        (Counts(total=5, sent=1, skipped=4), {"window_closed": True}, RunStatus.PARTIAL),
        (Counts(total=5, skipped=5), {"window_closed": True}, RunStatus.FAILED),
        (Counts(total=5, failed=5), {}, RunStatus.FAILED),
        (Counts(total=5, uncertain=5), {}, RunStatus.FAILED),
        (Counts(total=0), {}, RunStatus.FAILED),
        (Counts(total=5, sent=2, cancelled=3), {"requested": Command.CANCEL}, RunStatus.CANCELLED),
    ],
)
def test_the_verdict(counts: Counts, fields: dict[str, Any], status: RunStatus) -> None:
    assert verdict(run(**fields), counts) is status


def test_a_window_that_closed_is_reported_as_people_were_promised() -> None:
    counts = Counts(total=1000, sent=412, skipped=588)
    assert error_summary(run(window_closed=True), counts, most_often=None) == (
        "Delivery window closed at 18:00 (Asia/Kuala_Lumpur). 412 of 1000 groups delivered. "
        "This account is at capacity for this fan-out — consider sending the remainder from another paired account."
    )


@pytest.mark.parametrize(
    ("counts", "fields", "most_often", "summary"),
    [
        (Counts(total=5, sent=5), {}, None, None),
        (Counts(total=5, sent=5), {"window_closed": True}, None, None),
        (Counts(total=0), {}, None, "There were no targets."),
        (Counts(total=9, sent=7, failed=2), {}, "rejected", "7 of 9 groups delivered. 2 failed. Most often: rejected."),
        (
            Counts(total=9, sent=7, uncertain=2),
            {},
            None,
            "7 of 9 groups delivered. 0 failed. 2 are uncertain: it is unknown whether they were sent.",
        ),
        (
            Counts(total=9, sent=7, cancelled=2),
            {"requested": Command.CANCEL},
            None,
            "Cancelled. 7 of 9 groups delivered.",
        ),
    ],
)
def test_the_summary(counts: Counts, fields: dict[str, Any], most_often: str | None, summary: str | None) -> None:
    assert error_summary(run(**fields), counts, most_often=most_often) == summary


def test_the_summary_says_why_targets_were_skipped() -> None:
    summary = error_summary(run(), Counts(total=2, skipped=2), most_often=None, skipped_because="window_closed")
    assert summary == "0 of 2 groups delivered. 0 failed. 2 skipped: window_closed."


numbers = st.integers(0, 1000)


@given(sent=numbers, failed=numbers, skipped=numbers, uncertain=numbers)
def test_a_run_is_a_success_exactly_if_nothing_needs_to_be_explained(
    sent: int, failed: int, skipped: int, uncertain: int
) -> None:
    counts = Counts(
        total=sent + failed + skipped + uncertain, sent=sent, failed=failed, skipped=skipped, uncertain=uncertain
    )
    ended = run(window_closed=skipped > 0)
    is_success = verdict(ended, counts) is RunStatus.SUCCESS
    assert is_success == (error_summary(ended, counts, most_often=None) is None)


# --- ids


def test_a_run_is_named_after_its_reminder_and_its_time() -> None:
    assert run_id_of("rem", FIRED) == "rem-20260302T010000Z"


SEEDS = st.integers(0, 2**128 - 1).map(lambda number: f"{number:032x}")


@given(SEEDS | st.none(), st.text(min_size=1), st.integers(0, 9), st.text(min_size=1), st.integers(0, 9))
def test_two_targets_have_one_document_only_if_they_are_one(
    seed: str | None, target: str, taken: int, other_target: str, other_taken: int
) -> None:
    it = run(seed=seed)
    one, other = request_id_of(it, target, taken), request_id_of(it, other_target, other_taken)
    assert (one == other) == ((target, taken) == (other_target, other_taken))
    assert re.fullmatch("[0-9a-f]{32}", one)


@given(SEEDS, SEEDS, st.text(min_size=1))
def test_a_target_has_the_same_id_in_two_runs_only_if_their_seeds_are_the_same(
    seed: str, other: str, target: str
) -> None:
    assert (request_id_of(run(seed=seed), target) == request_id_of(run(seed=other), target)) == (seed == other)


def test_a_run_from_before_seeds_keeps_the_ids_of_its_targets() -> None:
    old = run(run_id="rem-20260302T010000Z")
    assert request_id_of(old, "t00000") == "9925c1553d0b404a1055df076e3769e7"
    assert request_id_of(old, "t00000", taken=1) != request_id_of(old, "t00000")


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        (None, Whose.FREE),
        ({"accountId": "ACCOUNT", "runId": "RUN"}, Whose.OURS),
        ({"accountId": "another", "runId": "RUN"}, Whose.TAKEN),
        ({"accountId": "ACCOUNT", "runId": "another"}, Whose.TAKEN),
        ({"accountId": "ACCOUNT"}, Whose.TAKEN),
        ({}, Whose.TAKEN),
    ],
)
def test_a_document_is_a_targets_only_with_its_account_and_its_run(
    stored: dict[str, str] | None, expected: Whose
) -> None:
    it = run()
    names = {"ACCOUNT": it.account_id, "RUN": it.run_id}
    found = None if stored is None else {name: names.get(value, value) for name, value in stored.items()}
    assert whose(it, found) is expected
