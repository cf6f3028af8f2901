from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from firestore_outbox.accounts.window import Window, is_open
from firestore_outbox.providers.outcome import ErrorCode
from firestore_outbox.sending.deadline import Deferred, TooLate, deferral, last_moment, lateness
from tests.builders import NOW, at, message

BERLIN = ZoneInfo("Europe/Berlin")
DAY = Window(start_hour=6, end_hour=18, zone=BERLIN)
NIGHT = Window(start_hour=22, end_hour=6, zone=BERLIN)


def local(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=BERLIN).astimezone(UTC)


def test_what_has_no_deadline_is_never_late() -> None:
    assert lateness(message(), at(10**7), NOW) is None


def test_a_message_may_go_at_its_deadline_and_no_more_a_moment_later() -> None:
    one = message(send_by=at(60))
    assert lateness(one, at(60), NOW) is None
    assert lateness(one, at(60) + timedelta(microseconds=1), NOW) is not None


def test_past_its_authors_deadline_a_message_says_so() -> None:
    late = lateness(message(send_by=at(60)), at(61), at(61))
    assert isinstance(late, TooLate)
    assert late.error.code is ErrorCode.DEADLINE_PASSED
    assert late.error.message == "it was to be sent by 2026-03-02 09:01:00 UTC"
    assert late.error.at == at(61)
    assert not late.error.retryable


def test_past_its_window_a_message_of_a_run_says_when_that_closed() -> None:
    one = message(send_by=last_moment(at(60)), run_id="r")
    assert lateness(one, at(60) - timedelta(microseconds=1), NOW) is None
    late = lateness(one, at(60), NOW, last="the provider was down")
    assert isinstance(late, TooLate)
    assert late.error.code is ErrorCode.WINDOW_CLOSED
    assert late.error.message == "its delivery window closed at 2026-03-02 09:01:00 UTC; last: the provider was down"


@pytest.mark.parametrize(
    ("window", "late_at", "opens", "ends"),
    [
        (DAY, "2026-03-02T18:00", "2026-03-03T06:00", "2026-03-03T18:00"),
        (DAY, "2026-03-03T03:00", "2026-03-03T06:00", "2026-03-03T18:00"),
        (DAY, "2026-03-03T09:00", "2026-03-03T09:00", "2026-03-03T18:00"),  # it is open again by now
        (NIGHT, "2026-03-03T06:00", "2026-03-03T22:00", "2026-03-04T06:00"),
        (NIGHT, "2026-03-03T23:00", "2026-03-03T23:00", "2026-03-04T06:00"),
        (NIGHT, "2026-03-28T12:00", "2026-03-28T22:00", "2026-03-29T06:00"),  # seven hours: the clock jumps
        (DAY, "2026-10-24T18:00", "2026-10-25T06:00", "2026-10-25T18:00"),  # thirteen hours away, not twelve
    ],
)
def test_a_run_that_resumes_goes_on_at_the_next_opening_until_that_window_ends(
    window: Window, late_at: str, opens: str, ends: str
) -> None:
    one = message(send_by=NOW, run_id="r", window=window)
    deferred = lateness(one, local(late_at), NOW)
    assert isinstance(deferred, Deferred)
    assert deferred == deferral(window, local(late_at))
    assert deferred.to == local(opens)
    assert deferred.window_end == local(ends)
    assert is_open(window, deferred.send_by)
    assert deferred.send_by < deferred.window_end
