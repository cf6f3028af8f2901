from __future__ import annotations

import pytest

from firestore_outbox.lane.app_throttle import comes_back_at, is_worth_a_write
from tests.builders import NOW, at


@pytest.mark.parametrize(
    ("known", "until", "worth"),
    [
        (None, 30, True),
        (-5, 30, True),
        (30, 30.2, False),
        (30, 39, False),
        (30, 60, True),
        (60, 30, False),
        (None, 0, False),
        (None, -1, False),
    ],
)
def test_only_a_pause_that_lasts_clearly_longer_is_written(known: float | None, until: float, worth: bool) -> None:
    assert is_worth_a_write(None if known is None else at(known), at(until), NOW) == worth


def test_lanes_come_back_after_the_pause_and_not_all_at_once() -> None:
    assert comes_back_at(at(40), NOW, jitter=0.0) == at(40)
    assert comes_back_at(at(40), NOW, jitter=0.5) == at(45)
