"""The gap between a server timestamp and visibility."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from firestore_outbox.sending.visibility import gap_of, is_near
from tests.builders import NOW, message

SECOND = timedelta(seconds=1)


def test_the_gap_is_the_time_from_the_server_timestamp_to_the_end_of_the_commit() -> None:
    new = replace(message(), created_at=NOW, next_attempt_at=NOW)
    assert gap_of(new, NOW + SECOND) == SECOND


def test_a_message_for_later_or_one_that_was_tried_again_says_nothing_of_the_gap() -> None:
    assert gap_of(replace(message(), created_at=NOW, next_attempt_at=NOW + SECOND), NOW + SECOND) is None


def test_a_time_after_the_commit_was_not_set_by_the_server() -> None:
    assert gap_of(replace(message(), created_at=NOW, next_attempt_at=NOW), NOW - SECOND) is None


def test_a_gap_is_near_from_half_of_the_overlap_on() -> None:
    assert is_near(5 * SECOND, 10 * SECOND)
    assert not is_near(4 * SECOND, 10 * SECOND)
