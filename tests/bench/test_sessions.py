"""The measurement of the hot set, with few accounts and one full hour: the figures that must hold at any size."""

from __future__ import annotations

from datetime import timedelta

from bench.sessions import MORNING, faults_in, measured


def test_accounts_that_share_two_slots_all_send_and_no_document_is_written_too_often() -> None:
    row = measured(12, 2, 2, MORNING + timedelta(hours=3))
    assert row["messages"] > 2
    assert faults_in(row) == []
    assert row["delayMedianSeconds"] < 60


def test_the_measurement_says_what_is_wrong() -> None:
    row = {
        "messages": 3,
        "sent": 2,
        "mostUp": 6,
        "slots": 5,
        "shards": 5,
        "busiestDocument": "hotsets/default",
        "busiestWritesASecond": 4.2,
    }
    assert faults_in(row) == [
        "1 messages were not sent",
        "6 sessions were up at once",
        "hotsets/default took 4.2 writes a second",
    ]
