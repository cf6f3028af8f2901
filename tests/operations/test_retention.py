"""`retentionDays`: the sweep deletes what an account keeps no longer, and nothing else."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from firestore_outbox.accounts.retention import EVERY, FIRST, cutoff, days_of, is_time, sent_cutoff
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.writes import DELETE, create, update
from firestore_outbox.local.simulators.faults import Faults
from firestore_outbox.messages.correlation import Correlation
from firestore_outbox.operations import retain, sweep
from firestore_outbox.operations.audit.auditor import audit
from firestore_outbox.plans.plan import Plan
from firestore_outbox.providers.protocol import PartReceipt
from firestore_outbox.receipts.apply import Applied
from firestore_outbox.receipts.rules import Arrived, Progress
from firestore_outbox.settings import Settings
from firestore_outbox.web.tasks import SWEEP_TASK, TaskAnswer, TaskEndpoint
from tests.calm import Calm, Meter, simulate

NOW = datetime(2026, 3, 20, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
DAYS = 7
ALL_OF_IT = timedelta(days=DAYS) + EVERY


# --- decisions


@pytest.mark.parametrize(
    ("value", "days"), [(1, 1), (3650, 3650), (0, None), (3651, None), (True, None), (7.0, None), ("7", None)]
)
def test_only_a_whole_number_of_days_deletes_anything(value: Any, days: int | None) -> None:
    assert days_of(value) == days


def test_what_a_plan_still_counts_is_kept() -> None:
    week = cutoff(7, NOW)
    assert sent_cutoff(7, None, NOW) == week
    assert sent_cutoff(7, Plan(name="daily", per_day=5), NOW) == week
    assert sent_cutoff(7, Plan(name="monthly", per_month=5), NOW) == datetime(2026, 3, 1, tzinfo=UTC)
    assert sent_cutoff(7, Plan(name="free", total=5), NOW) < NOW - timedelta(days=10_000)


@pytest.mark.parametrize("seconds", [60, 300, 3600])
def test_of_the_sweeps_of_a_day_four_begin_a_pass(seconds: int) -> None:
    apart = timedelta(seconds=seconds)
    for begin in (NOW, NOW + timedelta(seconds=17)):
        sweeps = [begin + apart * number for number in range(timedelta(days=1) // apart)]
        assert sum(is_time(at, apart) for at in sweeps) == 4


# --- the sweep


async def swept(calm: Calm, worker: int = 0) -> TaskAnswer:
    """The next sweep at which a pass begins, as Cloud Scheduler asks for it."""
    midnight = calm.world.clock().replace(hour=0, minute=0, second=0, microsecond=0)
    await asyncio.sleep(((midnight + FIRST - calm.world.clock()) % EVERY).total_seconds())
    endpoint = TaskEndpoint.of(calm.world.workers[worker].system)
    return await endpoint.answer(SWEEP_TASK, b"{}", {})


async def sleep(span: timedelta) -> None:
    await asyncio.sleep(span.total_seconds())


async def there(calm: Calm, *paths_: str) -> list[str]:
    found = await calm.gateway.get_all(paths_)
    return [path for path in paths_ if path in found]


def of(account_id: str, to: str, request_id: str) -> tuple[str, str]:
    """A thread and its message."""
    thread = f"{account_id}__{to}"
    return paths.thread(thread), paths.message(thread, request_id)


async def comes_in(calm: Calm, account_id: str, sender: str, identity: str) -> None:
    event = {
        "type": "inbound",
        "providerMessageId": identity,
        "from": sender,
        "at": calm.world.clock().isoformat(),
        "parts": [{"type": "text", "text": "a question"}],
    }
    calm.world.webhooks.post("simulated", account_id, event)


async def sent(calm: Calm, request_id: str, **options: Any) -> None:
    await calm.send(request_id, **options)
    await calm.until(lambda: calm.status(request_id) == "sent")


def test_old_messages_of_every_end_are_deleted_with_their_threads_and_another_account_keeps_its_own() -> None:
    async def body(calm: Calm) -> None:
        for account_id in ("shop", "other"):
            await calm.account(account_id)
            await sent(calm, f"{account_id}-sent", to="+491", account_id=account_id)
            await calm.send(f"{account_id}-fails", to="+492", account_id=account_id, parts=MISSING_FILE)
            await calm.until(lambda name=f"{account_id}-fails": calm.status(name) == "failed")  # type: ignore[misc]
            later = calm.world.clock() + timedelta(days=2)
            await calm.send(f"{account_id}-cancelled", to="+493", account_id=account_id, send_at=later)
            await calm.world.client.system.cancel(f"{account_id}-cancelled")
            await comes_in(calm, account_id, "+494", f"{account_id}-in")
        await asyncio.sleep(60)
        ours, theirs = (
            [
                path
                for to, name in (("+491", "sent"), ("+492", "fails"), ("+493", "cancelled"), ("+494", "in"))
                for path in of(account_id, to, f"{account_id}-{name}")
            ]
            for account_id in ("shop", "other")
        )
        assert await there(calm, *ours, *theirs) == [*ours, *theirs]

        await sleep(ALL_OF_IT)
        await calm.change_account("shop", retentionDays=DAYS + 3)
        assert (await swept(calm)).status == 200
        assert await there(calm, *ours) == ours, "they are not old enough"

        await calm.change_account("shop", retentionDays=DAYS)
        assert (await swept(calm)).status == 200
        assert await there(calm, *ours) == [], "also what is older than the setting"
        assert await there(calm, *theirs) == theirs
        assert await there(calm, paths.outbox("shop-sent")) == [paths.outbox("shop-sent")], "it expires by itself"
        found = await audit(calm.gateway, calm.world.client.system.accounts, now=calm.world.clock(), overlap=MINUTE)
        assert found == []

    simulate(body, sweeps=False)


MISSING_FILE = [{"type": "media", "mediaId": "x", "mimeType": "a/b"}]


def test_what_waits_or_is_in_doubt_is_kept_and_so_is_its_thread() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(onUncertain="hold", retentionDays=1)
        await calm.send("scheduled", to="+491", send_at=calm.world.clock() + timedelta(days=20))
        calm.world.provider.faults = Faults(lostResponseRate=1.0, receiptLossRate=1.0)
        await calm.send("in-doubt", to="+492")
        await calm.until(lambda: calm.status("in-doubt") == "uncertain")
        calm.world.provider.faults = Faults(receiptLossRate=1.0)
        kept = [*of("shop", "+491", "scheduled"), *of("shop", "+492", "in-doubt")]
        await sleep(timedelta(days=10))
        assert (await swept(calm)).status == 200
        assert await there(calm, *kept) == kept

        # Sent on the 20th day, it is kept for a day from then on.
        await calm.until(lambda: calm.status("scheduled") == "sent", within=timedelta(days=12))
        assert (await swept(calm)).status == 200
        assert await there(calm, *kept) == kept
        await sleep(timedelta(days=1))
        await swept(calm)
        assert await there(calm, *kept) == [*of("shop", "+492", "in-doubt")]

    simulate(body, sweeps=False)


@pytest.mark.parametrize("commits", range(1, 6))
def test_a_pass_that_dies_after_any_commit_is_finished_by_the_next(
    commits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retain, "PAGE", 2)

    async def body(calm: Calm) -> None:
        await calm.account(retentionDays=DAYS)
        await calm.account("other")
        for account_id in ("shop", "other"):
            await calm.send_many(5, account_id=account_id, threads=3)
        await calm.until(lambda: calm.statuses() == {"sent": 10})
        messages = [of("shop", f"+49{n % 3}", f"shop-{n:05d}")[1] for n in range(5)]
        await sleep(ALL_OF_IT)
        left = commits
        dying = asyncio.create_task(swept(calm))

        def count(path: str, answer: Any) -> None:
            nonlocal left
            if path.endswith("/Commit"):
                left -= 1
                if left == 0:
                    dying.cancel()

        calm.world.network.on_answer = count
        with pytest.raises(asyncio.CancelledError):
            await dying
        assert len(await there(calm, *messages)) == max(0, 5 - 2 * commits)
        await swept(calm, worker=1)
        documents = await calm.gateway.get_all([paths.thread(f"shop__+49{n}") for n in range(3)] + messages)
        assert documents == {}
        theirs = [path for n in range(5) for path in of("other", f"+49{n % 3}", f"other-{n:05d}")]
        assert await there(calm, *theirs) == theirs

    simulate(body, sweeps=False, receipts=False)


def test_a_pass_that_runs_out_of_time_goes_on_at_the_next_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retain, "PAGE", 2)
    monkeypatch.setattr(sweep, "LONGEST", timedelta(seconds=1))

    async def body(calm: Calm) -> list[int]:
        await calm.account(retentionDays=DAYS)
        await calm.send_many(30, threads=30)
        await calm.until(lambda: calm.statuses() == {"sent": 30})
        threads = [paths.thread(f"shop__+49{n}") for n in range(30)]
        await sleep(ALL_OF_IT)
        calm.world.network.added_seconds = 0.05
        await swept(calm)
        left = [len(await there(calm, *threads))]
        while left[-1] and len(left) < 20:
            await asyncio.sleep(60)
            await calm.world.workers[0].system.sweep.run()
            left.append(len(await there(calm, *threads)))
        return left

    left = simulate(body, sweeps=False, receipts=False)

    assert left[0] == 30, "the first sweep has time for messages alone"
    assert left[-1] == 0


def test_what_changed_after_it_was_read_stays() -> None:
    """Such as a failed message that an operator redrives, and a thread that gets a message."""

    async def body(calm: Calm) -> None:
        system, both = calm.world.workers[0].system, [paths.thread("shop__+491"), paths.thread("shop__+492")]
        await calm.write(*(create(path, {"accountId": "shop"}) for path in both))
        found = await system.gateway.get_all(both)
        await calm.write(update(both[0], {"unreadCount": 1}, version=None))
        deleting = retain.Retain(system.gateway, {}, system.clock, window=MINUTE)
        assert await deleting._delete([found[path] for path in both]) == 1
        assert await there(calm, *both) == both[:1]

    simulate(body, sweeps=False)


def test_a_late_receipt_of_a_runs_message_that_was_deleted_brings_nothing_back() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(retentionDays=1)
        await sent(calm, "request-1")
        await calm.write(update(paths.outbox("request-1"), {"runId": "run-1", "targetId": "t"}, version=None))
        await sleep(timedelta(days=2))
        await swept(calm)
        thread, message = of("shop", "+491", "request-1")
        assert await there(calm, thread, message) == []
        read = Arrived(progress=Progress.READ, at=calm.world.clock())
        mark = Correlation(request_id="request-1", part=0, parts=1)
        event = PartReceipt(receipt=read, correlation=mark)
        assert await calm.world.workers[0].system.receipts.apply("shop", event) is Applied.UNMATCHED
        assert await there(calm, thread, message) == []
        assert calm.status("request-1") == "sent"

    simulate(body, sweeps=False, receipts=False)


@pytest.mark.parametrize(("plan", "kept"), [("monthly", True), ("free", True), ("pro", False)])
def test_sent_messages_stay_while_a_plan_counts_them(plan: str, kept: bool) -> None:
    async def body(calm: Calm) -> None:
        await calm.account(plan=plan, retentionDays=DAYS)
        await sent(calm, "request-1")
        await sleep(ALL_OF_IT)
        await swept(calm)
        message = of("shop", "+491", "request-1")[1]
        assert bool(await there(calm, message)) is kept
        await sleep(timedelta(days=31))
        await swept(calm)
        assert bool(await there(calm, message)) is (plan == "free")

    simulate(body, sweeps=False, settings=Settings(plans="monthly=month:9 free=total:9 pro="))


# --- what it costs


def test_accounts_without_the_setting_cost_nothing() -> None:
    async def body(calm: Calm) -> tuple[list[int], int]:
        for number in range(20):
            await calm.account(f"shop-{number}")
            await calm.send(f"request-{number}", account_id=f"shop-{number}")
        await calm.until(lambda: calm.statuses() == {"sent": 20})
        await sleep(ALL_OF_IT)
        meter = Meter(calm)
        reads = []
        for _ in range(2):
            await swept(calm)
            reads.append(meter.reads)
            await asyncio.sleep(60)
            meter.reset()
            await calm.world.workers[0].system.sweep.run()
            reads.append(meter.reads)
            meter.reset()
        return reads, meter.writes

    reads, writes = simulate(body, sweeps=False, receipts=False)

    assert reads == [5, 4, 5, 4], "four reads of each sweep, and one more four times a day"
    assert writes == 0


def test_a_pass_costs_five_reads_for_an_account_and_a_read_and_a_deletion_for_each_message() -> None:
    async def body(calm: Calm) -> list[tuple[int, int]]:
        await calm.account(retentionDays=DAYS)
        await calm.send_many(10, threads=2)
        await calm.until(lambda: calm.statuses() == {"sent": 10})
        await sleep(ALL_OF_IT)
        meter, costs = Meter(calm), []
        for _ in range(2):
            await swept(calm)
            costs.append((meter.reads, meter.writes))
            meter.reset()
        await calm.change_account(retentionDays=DELETE)
        meter.reset()
        await swept(calm)
        return [*costs, (meter.reads, meter.writes)]

    first, second, off = simulate(body, sweeps=False, receipts=False)

    of_the_sweep, of_the_account, queries, messages, threads = 4, 1, 4, 10, 2
    empty_queries = queries - 2
    assert first == (of_the_sweep + of_the_account + empty_queries + messages + 2 * threads, messages + threads)
    assert second == (of_the_sweep + of_the_account + queries, 0)
    assert off == (of_the_sweep + 1, 0)
