"""A lane whose handler keeps raising errors: tried less and less often, by every worker, and reported."""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime, timedelta
from itertools import pairwise

import pytest

from firestore_outbox import metrics
from firestore_outbox.firestore import paths
from firestore_outbox.log_safety import lane_shown
from firestore_outbox.settings import Settings
from tests.calm import Calm, handling, simulate
from tests.inbound.test_receive import comes_in

LANE = paths.lane("inbound", "shop__one")
NOMINAL = [60, 120, 240, 480, 900, 900]
"""Seconds between tries: the lease, doubled each time, up to OUTBOX_LANE_BACKOFF_MAX_SECONDS."""


class Application:
    """The user's code, which raises an error for the first calls of each conversation."""

    def __init__(self, fails: int) -> None:
        self.calls: list[tuple[datetime, str]] = []
        self.calm: Calm | None = None
        self._fails = fails

    async def __call__(self, thread_id: str) -> None:
        assert self.calm is not None
        who = thread_id.rpartition("__")[2]
        self.calls.append((self.calm.world.clock(), who))
        if len(self.times(who)) <= self._fails:
            raise ValueError("an error in the application")

    def times(self, who: str = "one") -> list[datetime]:
        """When the lane ran: the repetitions within one run, seconds apart, count once."""
        calls = [at for at, caller in self.calls if caller == who]
        gaps = [timedelta(minutes=1), *(later - earlier for earlier, later in pairwise(calls))]
        return [at for at, gap in zip(calls, gaps, strict=bool(calls)) if gap > timedelta(seconds=10)]

    def gaps(self) -> list[float]:
        return [(later - earlier).total_seconds() for earlier, later in pairwise(self.times())]


def play(application: Application, *, hours: float, crash_each_minutes: float | None = None) -> dict[str, object]:
    """One message comes in, and time goes by. The lane as it is in the end."""

    async def body(calm: Calm) -> dict[str, object]:
        application.calm = calm
        await calm.account()
        await comes_in(calm, "one")
        if crash_each_minutes is None:
            await asyncio.sleep(hours * 3600)
        else:
            for _ in range(round(hours * 60 / crash_each_minutes)):
                await asyncio.sleep(crash_each_minutes * 60)
                calm.world.crash(calm.world.workers, 0)
        return dict(calm.document(LANE))

    return simulate(body, handlers=handling(application), workers=1)


def assert_backed_off(gaps: list[float]) -> None:
    for gap, nominal in zip(gaps, [*NOMINAL, *[NOMINAL[-1]] * len(gaps)], strict=False):
        assert max(60, nominal * 0.75) <= gap <= nominal * 1.25 + 15  # the jitter, and the task that has to come


def test_a_handler_that_keeps_failing_is_tried_less_and_less_often() -> None:
    application = Application(fails=10**6)
    lane = play(application, hours=2)
    gaps = application.gaps()
    assert len(gaps) >= len(NOMINAL)
    assert_backed_off(gaps)
    assert lane["failures"] == len(application.times())
    assert lane["leaseUntil"] == lane["retryAt"], "so that a worker of the release before waits as well"


def test_the_wait_outlives_the_worker() -> None:
    application = Application(fails=10**6)
    play(application, hours=2, crash_each_minutes=5)
    assert_backed_off(application.gaps())


def test_a_handler_that_succeeds_again_begins_anew() -> None:
    application = Application(fails=3)
    lane = play(application, hours=1)
    assert len(application.times()) == 4, "three that failed, and the one that did not"
    assert lane["state"] == "idle"
    assert not {"failures", "retryAt"} & lane.keys()


def test_news_for_a_failing_lane_wait_for_the_next_try_and_other_lanes_do_not() -> None:
    application = Application(fails=1)

    async def body(calm: Calm) -> None:
        application.calm = calm
        await calm.account()
        await comes_in(calm, "one")
        await asyncio.sleep(10)  # it has failed once
        for _ in range(5):
            await comes_in(calm, "one")
        await comes_in(calm, "two")
        await asyncio.sleep(300)

    simulate(body, handlers=handling(application), workers=1, settings=Settings(lane_concurrency=1))
    first, second, *_ = application.times("one")
    assert (second - first).total_seconds() >= 60
    assert application.times("two")[0] < second


def test_a_failure_is_logged_with_its_count_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    def count() -> float:
        lines = [
            line for line in metrics.as_text().decode().splitlines() if line.startswith("outbox_lane_failures_total")
        ]
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if 'kind="inbound"' in line)

    before = count()
    application = Application(fails=2)

    async def body(calm: Calm) -> None:
        logging.disable(logging.NOTSET)  # `simulate` silences expected errors; here they are the subject
        application.calm = calm
        await calm.account()
        await comes_in(calm, "one")
        await asyncio.sleep(600)

    with caplog.at_level(logging.ERROR, logger="outbox"):
        simulate(body, handlers=handling(application), workers=1)
    lines = [getattr(record, "fields", {}) for record in caplog.records]
    failed = [(line["lane"], line["failures"]) for line in lines if line.get("action") == "lane_failed"]
    shown = lane_shown("inbound:shop__one")
    assert failed == [(shown, 1), (shown, 2)]
    assert count() - before == 2
