"""Runs that pause themselves because the provider refuses too much."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from firestore_outbox.health.refusals import GoOn, Pause, PauseRunsAt, Tally, judged, tally
from firestore_outbox.local.simulators.faults import Faults
from firestore_outbox.reminders.run import Command
from tests.calm import Calm, simulate
from tests.reminders.support import only_run, remind, until_ended

FIFTH = PauseRunsAt(percent=20, outcomes=50)


@pytest.mark.parametrize(
    ("outcomes", "refused", "pauses"), [(50, 10, False), (50, 11, True), (49, 49, False), (100, 20, False)]
)
def test_a_run_pauses_above_the_threshold_of_a_whole_sample(outcomes: int, refused: int, pauses: bool) -> None:
    since = Tally(outcomes=1000, refused=7)
    verdict = judged(since, Tally(outcomes=1000 + outcomes, refused=7 + refused), FIFTH)
    assert isinstance(verdict, Pause) is pauses


def test_a_sample_begins_where_the_last_one_ended() -> None:
    first = judged(Tally(), Tally(outcomes=60, refused=3), FIFTH)
    assert first == GoOn(Tally(outcomes=60, refused=3))
    assert judged(first.since, Tally(outcomes=80, refused=20), FIFTH) == first
    assert isinstance(judged(first.since, Tally(outcomes=110, refused=20), FIFTH), Pause)


def test_only_refusals_of_the_recipient_or_the_text_count() -> None:
    assert tally(40, 10, {"recipient_invalid": 2, "rejected": 3, "max_attempts": 5}) == Tally(outcomes=50, refused=5)


def refused(calm: Calm, *, of: int, every: int) -> None:
    """One recipient of `every` is refused by the provider."""
    invalid = tuple(f"{number:05}@g.us" for number in range(0, of, every))
    calm.world.provider.faults = Faults(invalidRecipients=invalid)


def notified(calm: Calm, kind: str) -> list[dict[str, Any]]:
    found = calm.world.truth.latest()
    return [data for path, data in found.items() if "/notifications/" in path and data["kind"] == kind]


def test_a_run_whose_recipients_are_refused_pauses_itself_and_says_so_once() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(
            pace={"perMinute": 60},
            pauseRunsAt={"percent": 20.0, "outcomes": 20},
            notify={"webhook": "https://hooks.example.com/runs"},
        )
        refused(calm, of=150, every=3)
        await remind(calm, targets=150)
        await calm.until(lambda: bool(calm.world.truth.collection("runs")) and only_run(calm)["status"] == "paused")
        run = only_run(calm)
        assert "refused" in run["pausedBecause"]
        assert run["pausedBecause"] in run["waitsFor"][0]
        assert run["counts"]["pending"] > 60, "about one sample was sent"
        explained = await calm.world.client.system.explain_run(run["runId"])
        assert explained is not None
        assert run["pausedBecause"] in explained.sentences[0]
        (told,) = notified(calm, "run.paused")
        assert run["pausedBecause"] in told["text"]

        await calm.world.client.system.control.ask(run["runId"], Command.RESUME)
        await calm.until(lambda: only_run(calm)["status"] == "running" and "pausedBecause" not in only_run(calm))
        await calm.until(lambda: only_run(calm)["status"] == "paused")
        assert len(notified(calm, "run.paused")) == 2

    simulate(body)


def test_a_run_with_few_refusals_goes_on() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(pace={"perMinute": 60}, pauseRunsAt={"percent": 20.0, "outcomes": 20})
        refused(calm, of=100, every=10)
        await remind(calm, targets=100)
        await until_ended(calm)
        assert only_run(calm)["status"] == "partial"

    simulate(body)


def test_without_the_setting_no_run_pauses_itself() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(pace={"perMinute": 60})
        refused(calm, of=60, every=2)
        await remind(calm, targets=60)
        await until_ended(calm)
        assert "judged" not in only_run(calm)

    simulate(body)


def test_a_run_with_a_warm_up_spreads_over_days_as_its_forecast_said() -> None:
    """A thousand targets: 200, 400 and the rest on the third day, which the first forecast knew."""

    async def body(calm: Calm) -> None:
        warm_up = {"startPerDay": 200, "factor": 2.0, "untilPerDay": 2000, "since": "2026-03-01"}
        await calm.account(timezone="Asia/Magadan", pace={"perMinute": 40}, warmUp=warm_up)
        await remind(calm, targets=1000, onWindowEnd="resumeNextDay")
        await asyncio.sleep(60)
        forecast = only_run(calm)["forecast"]
        await until_ended(calm, within=timedelta(days=4))
        run = only_run(calm)
        assert run["status"] == "success"
        took = run["finishedAt"] - run["startedAt"]
        assert took > timedelta(days=1)
        assert abs(forecast["endsAt"] - run["finishedAt"]) <= took / 20

    simulate(body, receipts=False, sweeps=False)
