"""What a run's forecast says beside what happens. In virtual time over the real code."""

from __future__ import annotations

from firestore_outbox.local.simulators.faults import Faults
from tests.calm import Calm, simulate
from tests.reminders.support import only_run, refreshes, remind, until_ended


def test_parts_pauses_and_concurrency_are_foreseen_within_a_quarter() -> None:
    """1,000 targets at 1,200 a minute are 50 seconds by the pace alone; three at a time with two parts each they take
    three to four minutes."""

    async def body(calm: Calm) -> None:
        calm.world.provider.faults = Faults(receiptLossRate=1.0, latencyMs=150)
        await calm.account(pace={"perMinute": 1200, "burst": 20}, concurrency=3)
        parts = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
        await remind(calm, targets=1000, parts=parts)
        await until_ended(calm)
        run = only_run(calm)
        took = (run["finishedAt"] - run["startedAt"]).total_seconds()
        assert took > 150, "this is the case in which the pace says 50 seconds"
        for one in refreshes(calm, run["runId"])[:-1]:
            told = (one["forecast"]["endsAt"] - run["startedAt"]).total_seconds()
            assert abs(told - took) <= took / 4, (told, took)

    simulate(body)


def test_after_a_third_of_a_run_a_provider_that_is_slower_than_expected_is_learned_within_a_tenth() -> None:
    async def body(calm: Calm) -> None:
        calm.world.provider.faults = Faults(receiptLossRate=1.0, latencyMs=2_000)
        await calm.account(pace={"perMinute": 600}, concurrency=2)
        await remind(calm, targets=200)
        await until_ended(calm)
        run = only_run(calm)
        took = (run["finishedAt"] - run["startedAt"]).total_seconds()
        assert took > 150, "600 a minute would be 20 seconds"
        for one in refreshes(calm, run["runId"])[:-1]:
            passed = (one["countedAt"] - run["startedAt"]).total_seconds()
            told = (one["forecast"]["endsAt"] - run["startedAt"]).total_seconds()
            assert passed < took / 3 or abs(told - took) <= took / 10, (passed, told, took)

    simulate(body)


def test_two_runs_of_an_account_name_each_other_and_both_foresee_the_shared_pace() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(pace={"perMinute": 60})
        await remind(calm, "one", targets=200)
        await remind(calm, "two", targets=200)
        await until_ended(calm, 2)
        for run_id, run in calm.world.truth.collection("runs").items():
            seen = refreshes(calm, run_id)[:-1]
            other = next(one for one in calm.world.truth.collection("runs") if one != run_id)
            assert seen[len(seen) // 2]["overlaps"] == [other]
            assert any(other in sentence for sentence in seen[len(seen) // 2]["waitsFor"])
            took = (run["finishedAt"] - run["startedAt"]).total_seconds()
            told = (seen[len(seen) // 3]["forecast"]["endsAt"] - run["startedAt"]).total_seconds()
            assert abs(told - took) <= took / 5, (told, took)

    simulate(body, receipts=False)
