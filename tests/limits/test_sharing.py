"""Limits that instances share: never above the rate, close to it, fair, and kept across crashes and restarts."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta

import pytest

from firestore_outbox.firestore.writes import create, update
from firestore_outbox.limits.line import Rate
from firestore_outbox.limits.store import BadLimit, LimitStore
from tests.calm import Calm, simulate
from tests.limits.worlds import Instance, most_in_a_window, never_above

HUNDRED = Rate(per_second=100, burst=10)
NOTION = Rate(per_second=3, burst=3)


def shard_writes(calm: Calm) -> Counter[str]:
    return Counter(change.path for change in calm.world.truth.changes if change.path.startswith("limits/"))


def test_eight_instances_use_the_whole_rate_and_never_more() -> None:
    _eight_instances(seconds=60)


def test_eight_instances_use_the_whole_rate_for_five_minutes() -> None:
    _eight_instances(seconds=300)


def _eight_instances(*, seconds: int) -> None:
    async def body(calm: Calm) -> None:
        instances = [Instance(calm, HUNDRED) for _ in range(8)]
        for instance in instances:
            instance.work(50)
        await asyncio.sleep(seconds)
        calls = [at for instance in instances for at in instance.calls]
        assert never_above(calls, HUNDRED)
        assert len(calls) >= 0.97 * HUNDRED.per_second * seconds
        assert max(shard_writes(calm).values()) <= seconds  # one write a second for each document
        share = [len(instance.calls) / len(calls) for instance in instances]
        assert min(share) > 0.7 / 8, share
        # With one central bucket, a caller's turns are 400 / 100 = 4 s apart, because 400 callers wait.
        gaps = [
            later - at for instance in instances for at, later in zip(instance.calls, instance.calls[1:], strict=False)
        ]
        assert max(gaps) <= timedelta(seconds=5)
        for instance in instances:
            await instance.die()

    simulate(body, sweeps=False)


def test_one_instance_alone_uses_nine_tenths_of_the_rate() -> None:
    async def body(calm: Calm) -> None:
        instance = Instance(calm, HUNDRED)
        Instance(calm, HUNDRED)  # another that has nothing to do
        instance.work(200)
        await asyncio.sleep(30)
        assert never_above(instance.calls, HUNDRED)
        assert len(instance.calls) >= 0.9 * 30 * HUNDRED.per_second
        await instance.die()

    simulate(body, sweeps=False)


def test_calls_one_after_another_do_not_cost_a_write_each() -> None:
    async def body(calm: Calm) -> None:
        instance = Instance(calm, HUNDRED)
        instance.work(1, pause=0.02)
        await asyncio.sleep(20)
        assert len(instance.calls) > 500
        assert sum(shard_writes(calm).values()) < len(instance.calls) / 8
        await instance.die()

    simulate(body, sweeps=False)


def test_killed_and_new_instances_never_exceed_the_rate() -> None:
    async def body(calm: Calm) -> None:
        instances = [Instance(calm, NOTION) for _ in range(3)]
        dead: list[Instance] = []
        for instance in instances:
            instance.work(5)
        for place in (0, 1, 2, 0, 1):
            await asyncio.sleep(3.3)
            await instances[place].die()
            dead.append(instances[place])
            instances[place] = Instance(calm, NOTION)
            instances[place].work(5)
        await asyncio.sleep(5)
        calls = [at for instance in (*instances, *dead) for at in instance.calls]
        assert never_above(calls, NOTION)
        assert len(calls) > 40
        for instance in instances:
            await instance.die()

    simulate(body, sweeps=False)


def test_the_document_of_an_operator_sets_the_rate_and_a_change_takes_effect() -> None:
    async def body(calm: Calm) -> None:
        await calm.write(create("limits/api", {"perSecond": 10, "burst": 2}))
        instance = Instance(calm, HUNDRED)
        instance.work(20)
        await asyncio.sleep(30)
        assert 270 <= len(instance.calls) <= 302
        await calm.write(update("limits/api", {"perSecond": 2}, version=None))
        await asyncio.sleep(70)
        before = len(instance.calls)
        await asyncio.sleep(30)
        assert 55 <= len(instance.calls) - before <= 62
        await instance.die()

    simulate(body, sweeps=False)


def test_a_429_pauses_all_instances_then_halves_the_rate_which_recovers() -> None:
    async def body(calm: Calm) -> None:
        slow, fast = Instance(calm, NOTION), Instance(calm, NOTION)
        for instance in (slow, fast):
            instance.work(10)
        await asyncio.sleep(20)
        at = calm.world.clock()
        await slow.limiter.throttled(timedelta(seconds=30))
        await asyncio.sleep(100)
        calls = [(call - at).total_seconds() for instance in (slow, fast) for call in instance.calls]
        assert not [call for call in calls if 5 <= call < 30], "what was reserved before the 429 goes within 5 s"
        early, late = sum(30 <= call < 40 for call in calls), sum(80 <= call < 90 for call in calls)
        assert 10 <= early <= 22, early
        assert 27 <= late <= 33, late
        for instance in (slow, fast):
            await instance.die()

    simulate(body, sweeps=False)


def test_a_caller_that_gives_up_takes_nothing() -> None:
    async def body(calm: Calm) -> None:
        instance = Instance(calm, Rate(per_second=1, burst=1))
        await instance.call()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(instance.call(), 0.2)
        began = calm.world.clock()
        await instance.call()
        assert calm.world.clock() - began < timedelta(seconds=1.1)
        await instance.limiter.close()

    simulate(body, sweeps=False)


@pytest.mark.parametrize("fields", [{"perSecond": 0}, {"perSecond": "3"}, {"burst": 3}, {"perSecond": 3, "burst": 0}])
def test_a_document_that_cannot_be_used_is_an_error_that_names_it(fields: dict[str, object]) -> None:
    async def body(calm: Calm) -> None:
        await calm.write(create("limits/api", fields))
        with pytest.raises(BadLimit, match="limits/api"):
            await Instance(calm, HUNDRED).call()

    simulate(body, sweeps=False)


def test_a_limit_without_a_rate_says_where_to_write_one() -> None:
    async def body(calm: Calm) -> None:
        with pytest.raises(BadLimit, match="OUTBOX_LIMITS=api=3/3"):
            await Instance(calm, None).call()

    simulate(body, sweeps=False)


def test_after_a_rest_the_burst_goes_at_once() -> None:
    async def body(calm: Calm) -> None:
        instance = Instance(calm, NOTION)
        await instance.call()
        await asyncio.sleep(10)
        await asyncio.gather(*(instance.call() for _ in range(3)))
        assert most_in_a_window(instance.calls[1:], timedelta(seconds=0.5)) == 3
        await instance.limiter.close()

    simulate(body, sweeps=False)


def test_an_error_reaches_every_caller_that_waits_and_the_next_call_asks_anew() -> None:
    async def body(calm: Calm) -> None:
        await calm.write(create("limits/api", {"perSecond": "wrong"}))
        instance = Instance(calm, None)
        failed = await asyncio.gather(*(instance.call() for _ in range(3)), return_exceptions=True)
        assert [type(error) for error in failed] == [BadLimit] * 3
        await calm.write(update("limits/api", {"perSecond": 10}, version=None))
        await instance.call()
        await instance.limiter.close()

    simulate(body, sweeps=False)


def test_an_error_that_is_no_error_of_ours_reaches_the_caller_too(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refused(self: LimitStore, name: str) -> Rate:
        raise PermissionError("the account may not read limits")

    async def body(calm: Calm) -> None:
        with pytest.raises(PermissionError):
            await asyncio.wait_for(Instance(calm, NOTION).call(), 60)

    monkeypatch.setattr(LimitStore, "rate", refused)
    simulate(body, sweeps=False)
