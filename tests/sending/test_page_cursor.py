"""Where the next page begins."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from firestore_outbox.sending.page_cursor import Cursor, is_confirmed, next_cursor

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
OVERLAP = timedelta(seconds=10)


def at(seconds: float) -> Cursor:
    due = NOW + timedelta(seconds=seconds)
    return Cursor(due_at=due, created_at=due, request_id="request-1")


def test_an_old_backlog_is_continued_behind_its_last_document() -> None:
    assert next_cursor(at(-3600), NOW, OVERLAP) == at(-3600)


def test_a_page_that_ends_within_the_overlap_is_followed_by_one_that_begins_where_the_overlap_begins() -> None:
    assert next_cursor(at(-1), NOW, OVERLAP) == Cursor(due_at=NOW - OVERLAP)


def test_a_page_without_a_place_to_continue_from_is_followed_by_one_from_the_start() -> None:
    assert next_cursor(None, NOW, OVERLAP) is None


times = st.floats(min_value=0, max_value=60, allow_nan=False)


@given(read=times, last=times, stamp=times, gap=st.floats(min_value=0, max_value=9.999))
def test_no_document_that_becomes_visible_after_a_page_was_read_lies_before_the_next_cursor(
    read: float, last: float, stamp: float, gap: float
) -> None:
    visible = stamp + gap
    if last > read or visible <= read:
        return  # a page holds nothing from its future; what was visible, it has
    cursor = next_cursor(at(last), NOW + timedelta(seconds=read), OVERLAP)
    assert cursor is not None
    assert cursor.due_at <= NOW + timedelta(seconds=stamp)


def test_a_document_that_came_due_after_the_scan_began_waits_for_the_next_scan() -> None:
    """A message scheduled for 06:00 is visible at 05:00; a scan of 05:59 has not seen what is written at 05:59:30."""
    written, scan, due = (datetime(2026, 3, 1, hour, minute, tzinfo=UTC) for hour, minute in ((5, 0), (5, 59), (6, 0)))
    assert not is_confirmed(visible_at=written, due_at=due, scan_at=scan)
    assert is_confirmed(visible_at=written, due_at=due, scan_at=due)
    assert not is_confirmed(visible_at=due, due_at=written, scan_at=scan)
