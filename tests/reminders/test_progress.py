"""What a run document says while the run goes on, and how good its forecast is. In virtual time over the real code."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from firestore_outbox.reminders.progress import (
    CALL,
    CLOSED_EVERY,
    LEAST_EVERY,
    MOST_EVERY,
    Rate,
    estimated,
    later_if_nothing_changed,
    learned,
    refresh_at,
)
from firestore_outbox.reminders.run import Command, Counts
from tests.calm import Calm, simulate
from tests.reminders.support import only_run, refreshes, remind, until_ended

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


# --- the estimate before anything was sent


def test_without_a_pace_parts_pauses_and_concurrency_bound_the_rate() -> None:
    pause = timedelta(milliseconds=350)
    assert estimated(None, parts=1, concurrency=1, pause=pause) == CALL
    assert estimated(None, parts=3, concurrency=2, pause=pause) == (3 * CALL + 2 * pause) / 2


def test_a_slow_pace_bounds_the_rate_alone() -> None:
    assert estimated(timedelta(seconds=1.5), parts=2, concurrency=3, pause=timedelta(0)) == timedelta(seconds=1.5)


# --- what is learned


def test_the_rate_follows_what_was_done_and_forgets_four_fifths() -> None:
    first = learned(None, 100, NOW, is_open=True)
    second = learned(first, 90, NOW + 20 * SECOND, is_open=True)
    assert second.each == 2 * SECOND
    assert learned(second, 80, NOW + 60 * SECOND, is_open=True).each == 3.6 * SECOND


def test_too_few_messages_teach_nothing_and_count_with_the_next() -> None:
    first = Rate(waiting=100, at=NOW, each=None)
    assert learned(first, 98, NOW + 2 * SECOND, is_open=True) is first
    assert learned(first, 85, NOW + 30 * SECOND, is_open=True).each == 2 * SECOND


def test_the_time_in_which_an_account_is_closed_teaches_nothing() -> None:
    before = Rate(waiting=90, at=NOW, each=2 * SECOND)
    closed = learned(before, 90, NOW + timedelta(hours=8), is_open=False)
    assert closed == Rate(waiting=90, at=NOW + timedelta(hours=8), each=2 * SECOND)


def test_new_messages_before_the_runs_last_one_begin_the_sample_anew() -> None:
    before = Rate(waiting=90, at=NOW, each=2 * SECOND)
    assert learned(before, 95, NOW + SECOND, is_open=True) == Rate(waiting=95, at=NOW + SECOND, each=2 * SECOND)


# --- when it is refreshed


def test_a_run_is_refreshed_about_ten_times_and_within_bounds() -> None:
    assert refresh_at(NOW, NOW + 400 * SECOND, NOW) == NOW + 40 * SECOND
    assert refresh_at(NOW, NOW + 40 * SECOND, NOW) == NOW + LEAST_EVERY
    assert refresh_at(NOW, NOW + timedelta(days=2), NOW) == NOW + MOST_EVERY
    assert refresh_at(NOW, None, NOW) == NOW + CLOSED_EVERY
    assert refresh_at(NOW, NOW, NOW) == NOW + LEAST_EVERY, "a run that is late is not asked again at once"


def test_a_run_whose_counts_stay_the_same_is_refreshed_less_and_less_often() -> None:
    at, counted_at, now, waits = NOW, NOW, NOW + LEAST_EVERY, []
    for _ in range(8):
        at = later_if_nothing_changed(now + LEAST_EVERY, counted_at, now)
        waits.append((at - now) / SECOND)
        counted_at, now = now, at
    assert waits == [10, 20, 40, 80, 160, 300, 300, 300]


def test_a_run_that_waits_for_tomorrow_is_not_counted_every_few_seconds() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(recipientHours={"startHour": 8, "endHour": 20}, pace={"perMinute": 40})
        tokyo = {"id": "tokyo", "to": "+81312345678"}
        await remind(calm, listed=[tokyo])
        await until_ended(calm, within=timedelta(days=2))
        assert only_run(calm)["status"] == "success"
        seen = refreshes(calm, only_run(calm)["runId"])
        waited = (seen[-1]["countedAt"] - seen[0]["countedAt"]) / timedelta(minutes=5)
        assert waited > 12, "the case is about a run that waits for hours"
        assert len(seen) < waited + 15

    simulate(body, receipts=False)


def test_a_page_sees_the_run_get_on_and_every_count_adds_up() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(pace={"perMinute": 40})
        await remind(calm, targets=100)
        await until_ended(calm)
        run = only_run(calm)
        seen = refreshes(calm, run["runId"])
        assert all(Counts(**one["counts"]).adds_up for one in seen)
        assert len({one["counts"]["sent"] for one in seen}) >= 8
        assert [one["counts"]["sent"] for one in seen] == sorted(one["counts"]["sent"] for one in seen)
        middle = seen[len(seen) // 2]
        waits = f"{middle['counts']['pending']} of 100 messages wait for their turn at the account's pace."
        assert waits in middle["waitsFor"] or any("pace" in one for one in middle["waitsFor"])
        times = [one["countedAt"] for one in seen]
        assert all(after - before >= LEAST_EVERY for before, after in pairwise(times[:-1]))
        assert not {"waitsFor", "rate", "overlaps"} & run.keys(), "the end needs none of it"

    simulate(body, receipts=False)


def test_reasons_are_counted_by_status() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(pace={"perMinute": 1})
        at = calm.world.clock() + timedelta(minutes=50)
        await remind(calm, targets=20, window={"startHour": 6, "endHour": 13}, schedule={"type": "once", "at": at})
        await until_ended(calm)
        run = only_run(calm)
        assert run["counts"]["skipped"] > 5
        assert run["reasons"] == {"skipped": {"window_closed": run["counts"]["skipped"]}}

    simulate(body, receipts=False)


def test_a_paused_run_shows_the_counts_of_its_pause() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(pace={"perMinute": 60})
        await remind(calm, targets=50)
        await calm.until(lambda: calm.statuses()["sent"] > 10)
        await calm.world.client.system.control.ask(only_run(calm)["runId"], Command.PAUSE)
        await calm.until(lambda: only_run(calm)["status"] == "paused")
        run = only_run(calm)
        assert run["counts"]["sent"] == calm.statuses()["sent"]
        assert run["counts"]["pending"] == calm.statuses()["queued"]
        assert "paused" in run["waitsFor"][0]

    simulate(body, receipts=False)
