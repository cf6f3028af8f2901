"""The cap on marketing for one recipient, over runs and days, in virtual time over the production code."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from firestore_outbox.consent.frequency import Admitted, Capped, Counted, Counting, FrequencyCap, judge
from firestore_outbox.consent.suppressions import Source
from firestore_outbox.local.simulators.faults import Faults
from firestore_outbox.reminders.control import Taken
from tests.calm import START, Calm, Meter, simulate
from tests.reminders.support import call_times, only_run, remind, runs, targets_called, until_ended

DAY = timedelta(days=1)
ONCE_A_WEEK = {"messages": 1, "days": 7}
TWICE_A_WEEK = {"messages": 2, "days": 7}
PERSON = {"id": "one", "to": "+491510000001"}


def counting(at: datetime, *, messages: int = 2, days: int = 7, retry_of: str | None = None) -> Counting:
    return Counting(cap=FrequencyCap(messages=messages, days=days), at=at, run_id="new", retry_of=retry_of)


def counted(*times: datetime, run_id: str = "old") -> tuple[Counted, ...]:
    return tuple(Counted(at=at, run_id=run_id) for at in times)


def reasons(calm: Calm, run_id: str) -> Counter[str]:
    """Of the run's targets: the code of what was skipped, and the status of the others."""
    found = [one for one in calm.world.truth.collection("outbox").values() if one["runId"] == run_id]
    return Counter(one["lastError"]["code"] if one["status"] == "skipped" else one["status"] for one in found)


def frequencies(calm: Calm) -> dict[str, dict[str, Any]]:
    latest = calm.world.truth.latest()
    return {path.rsplit("/", 1)[-1]: data for path, data in latest.items() if "/frequency/" in path}


async def campaign(calm: Calm, name: str, **fields: Any) -> Counter[str]:
    """A marketing reminder that fires at once, until its run has ended."""
    before = set(runs(calm))
    await remind(calm, name, **{"category": "marketing", **fields})
    await until_ended(calm, len(before) + 1)
    (run_id,) = set(runs(calm)) - before
    return reasons(calm, run_id)


# --- the decision


def test_a_target_is_admitted_until_the_cap_and_again_when_the_period_is_behind_it() -> None:
    first, second = START, START + DAY
    assert isinstance(judge(counted(first), counting(second)), Admitted)
    assert judge(counted(first, second), counting(first + 7 * DAY - timedelta(microseconds=1))) == Capped()
    later = judge(counted(first, second), counting(first + 7 * DAY))
    assert later == Admitted((*counted(second), Counted(at=first + 7 * DAY, run_id="new")))


@pytest.mark.parametrize(("month", "day", "hours"), [(3, 28, 23), (10, 24, 25)])
def test_a_day_is_24_hours_also_where_clocks_change(month: int, day: int, hours: int) -> None:
    berlin = ZoneInfo("Europe/Berlin")
    nine = datetime(2026, month, day, 9, tzinfo=berlin).astimezone(ZoneInfo("UTC"))
    next_nine = datetime(2026, month, day + 1, 9, tzinfo=berlin).astimezone(ZoneInfo("UTC"))
    assert next_nine - nine == timedelta(hours=hours)
    judged = judge(counted(nine), counting(next_nine, messages=1, days=1))
    assert isinstance(judged, Capped if hours < 24 else Admitted)


def test_what_starts_later_counts_too_so_that_no_period_has_more_than_the_cap() -> None:
    tomorrow = counted(START + DAY)
    assert judge(tomorrow, counting(START, messages=1)) == Capped()
    admitted = judge(tomorrow, counting(START))
    assert isinstance(admitted, Admitted)
    assert admitted.expires_at(FrequencyCap(messages=2, days=7)) == START + 8 * DAY


def test_a_failed_target_that_is_tried_again_is_counted_once() -> None:
    failed = counted(START, run_id="failed")
    again = judge(failed, counting(START + DAY, messages=1, retry_of="failed"))
    assert again == Admitted((Counted(at=START + DAY, run_id="new"),))
    both = (*failed, *counted(START))
    assert judge(both, counting(START + DAY, messages=1, retry_of="failed")) == Capped()


# --- runs


def test_a_run_skips_recipients_who_got_the_cap_from_runs_before_it_and_its_counts_add_up() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(frequencyCap=TWICE_A_WEEK)
        assert await campaign(calm, "one", targets=5) == {"sent": 5}
        assert await campaign(calm, "two", targets=3) == {"sent": 3}
        assert await campaign(calm, "three", targets=5) == {"sent": 2, "frequency_capped": 3}
        (last,) = (run for run in runs(calm).values() if run["reminderId"] == "three")
        counts = last["counts"]
        assert (counts["sent"], counts["skipped"], counts["total"], last["status"]) == (2, 3, 5, "partial")
        assert set(targets_called(calm).values()) == {2}

    simulate(body)


def test_a_daily_reminder_reaches_a_recipient_twice_in_four_days_and_each_day_with_a_cap_of_one_a_day() -> None:
    daily = {"type": "cron", "cron": "0 9 * * *"}
    caps = {"seldom": {"messages": 2, "days": 4}, "daily": {"messages": 1, "days": 1}}

    async def body(calm: Calm) -> None:
        for account, cap in caps.items():
            await calm.account(account, frequencyCap=cap)
            await remind(calm, account, listed=[PERSON], accountId=account, schedule=daily, category="marketing")
        await calm.until(lambda: calm.world.clock() > START + 6 * DAY, within=7 * DAY)
        assert [(at - START).days for at in call_times(calm, "seldom")] == [0, 1, 4, 5]
        assert len(call_times(calm, "daily")) == 6

    simulate(body, receipts=False, sweeps=False)


def test_utility_is_neither_counted_nor_capped_and_messages_in_person_go() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(frequencyCap=ONCE_A_WEEK)
        assert await campaign(calm, "one", listed=[PERSON], category="utility") == {"sent": 1}
        assert frequencies(calm) == {}
        assert await campaign(calm, "two", listed=[PERSON]) == {"sent": 1}
        assert await campaign(calm, "three", listed=[PERSON]) == {"frequency_capped": 1}
        await remind(calm, "four", listed=[PERSON])
        await until_ended(calm, 4)
        await calm.send("in-person", to=PERSON["to"])
        await calm.until(lambda: calm.status("in-person") == "sent")
        assert targets_called(calm)[PERSON["to"]] == 4

    simulate(body)


def test_a_number_counts_in_each_way_to_write_it_and_twice_if_it_is_listed_twice() -> None:
    ways = ("+491510000001", "491510000001", "491510000001@c.us")

    async def body(calm: Calm) -> None:
        await calm.account(frequencyCap=TWICE_A_WEEK)
        listed = [{"id": f"t{number}", "to": to} for number, to in enumerate(ways)]
        assert await campaign(calm, "one", listed=listed) == {"sent": 2, "frequency_capped": 1}
        assert list(frequencies(calm)) == ["491510000001"]

    simulate(body)


def test_what_is_skipped_for_another_reason_is_not_counted() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(frequencyCap=ONCE_A_WEEK)
        suppressions = calm.world.client.system.suppressions
        await suppressions.add("shop", PERSON["to"], Source.OPERATOR)
        assert await campaign(calm, "one", listed=[PERSON]) == {"opted_out": 1}
        await suppressions.remove("shop", PERSON["to"])
        assert await campaign(calm, "two", listed=[PERSON]) == {"sent": 1}

    simulate(body)


def test_failed_targets_that_are_tried_again_are_within_the_cap_and_counted_once() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(frequencyCap=ONCE_A_WEEK)
        calm.world.provider.faults = Faults(invalidRecipients=(PERSON["to"],))
        assert await campaign(calm, "one", listed=[PERSON]) == {"failed": 1}
        calm.world.provider.faults = Faults()
        taken = await calm.world.client.system.control.retry_failed(only_run(calm)["runId"])
        assert isinstance(taken, Taken)
        await until_ended(calm, 2)
        assert reasons(calm, taken.run_id) == {"sent": 1}
        (document,) = frequencies(calm).values()
        assert [one["runId"] for one in document["counted"]] == [taken.run_id]
        assert await campaign(calm, "two", listed=[PERSON]) == {"frequency_capped": 1}

    simulate(body)


def test_a_document_of_a_recipient_expires_with_what_it_counts() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(frequencyCap=ONCE_A_WEEK)
        await campaign(calm, "one", listed=[PERSON])
        (document,) = frequencies(calm).values()
        assert document["expireAt"] == document["counted"][0]["at"] + 7 * DAY

    simulate(body)


def made(calm: Calm, count: int) -> bool:
    """Whether the targets of that many runs are all made. Accounts of these tests send one a minute."""
    return [run["expanded"] for run in runs(calm).values()] == [True] * count


def admitted(calm: Calm) -> Counter[str]:
    found = calm.world.truth.collection("outbox").values()
    return Counter(one["to"] for one in found if one["status"] != "skipped")


@pytest.mark.parametrize("seed", range(3))
def test_runs_that_make_their_targets_at_the_same_time_stay_within_the_cap_together(seed: int) -> None:
    async def body(calm: Calm) -> None:
        await calm.account(frequencyCap=TWICE_A_WEEK, pace={"perMinute": 1})
        await asyncio.gather(*(remind(calm, f"r{n}", targets=40, category="marketing") for n in range(4)))
        await calm.until(lambda: made(calm, 4))
        assert (len(admitted(calm)), set(admitted(calm).values())) == (40, {2})
        outbox = calm.world.truth.collection("outbox").values()
        assert Counter(one.get("lastError", {}).get("code") for one in outbox)["frequency_capped"] == 80

    simulate(body, receipts=False, seed=seed)


@pytest.mark.parametrize("moment", range(10))
def test_killed_at_any_moment_while_targets_are_made_a_run_counts_each_once(moment: int) -> None:
    async def body(calm: Calm) -> None:
        await calm.account(frequencyCap=TWICE_A_WEEK, pace={"perMinute": 1})
        await remind(calm, "one", targets=330, category="marketing")
        await asyncio.sleep(0.1 + 0.05 * moment)
        for place in range(len(calm.world.workers)):
            calm.world.crash(calm.world.workers, place)
        await calm.until(lambda: made(calm, 1))
        assert [len(one["counted"]) for one in frequencies(calm).values()] == [1] * 330
        assert (len(admitted(calm)), set(admitted(calm).values())) == (330, {1})

    simulate(body, receipts=False)


# --- what it costs


def test_a_target_costs_a_read_and_a_write_more_with_the_cap_and_nothing_without() -> None:
    def cost(of_account: dict[str, Any], of_reminder: dict[str, Any]) -> tuple[int, int]:
        async def body(calm: Calm) -> tuple[int, int]:
            await calm.account(**of_account)
            meter = Meter(calm)
            await remind(calm, targets=40, **of_reminder)
            await until_ended(calm)
            assert calm.statuses() == {"sent": 40}
            return meter.reads, meter.writes

        return simulate(body, receipts=False, sweeps=False)

    capped, marketing = {"frequencyCap": TWICE_A_WEEK}, {"category": "marketing"}
    reads, writes = cost({}, {})
    assert cost({}, marketing) == (reads, writes)
    assert cost(capped, {"category": "utility"}) == (reads, writes)
    assert cost(capped, marketing) == (reads + 40, writes + 40)
