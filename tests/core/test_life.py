"""A message's life where people and time interfere: cancelled, too late, for later, paused, parked, in doubt."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from emulator.providers.core import Account
from emulator.providers.faults import NO_FAULTS, Faults
from tests.core.support import Calm, Meter, simulate
from worker.outbox.claim import Candidates
from worker.outbox.trigger import lane_of
from worker.settings import Settings
from worker.store import paths
from worker.store.gateway import Committed, Conflict, WriteOp, update
from worker.store.messages import MessageStore


async def cancel(calm: Calm, request_id: str) -> None:
    await calm.write(update(paths.outbox(request_id), {"cancelRequested": True}, version=None))


async def resume(calm: Calm, account_id: str = "shop") -> None:
    await calm.change_account(account_id, status="active")
    await calm.world.client.system.waker.wake(lane_of(account_id))


def test_a_message_is_sent_at_once_and_the_receipts_follow() -> None:
    async def body(calm: Calm) -> dict[str, Any]:
        await calm.account()
        await calm.send("request-1")
        await calm.until(lambda: calm.document("threads/shop__+491/messages/request-1")["status"] == "read")
        assert calm.sent_at("request-1") < 1
        return calm.document("threads/shop__+491/messages/request-1")

    shown = simulate(body)

    assert shown["sentAt"] <= shown["deliveredAt"] <= shown["readAt"]
    assert shown["providerMessageId"]


# --- cancel


def test_a_message_that_waits_is_cancelled_before_its_turn() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(pace={"perMinute": 10})
        await calm.send_many(5, threads=5)
        await cancel(calm, "shop-00003")
        await calm.until(lambda: calm.statuses() == {"sent": 4, "cancelled": 1})
        assert calm.document("threads/shop__+493/messages/shop-00003")["status"] == "cancelled"

    simulate(body)


@pytest.mark.parametrize("status", ["active", "paused"])
def test_a_message_for_next_month_is_cancelled_within_a_sweep(status: str) -> None:
    async def body(calm: Calm) -> None:
        await calm.account(status=status)
        await calm.send("request-1", send_at=calm.world.clock() + timedelta(days=30))
        await asyncio.sleep(5)
        await cancel(calm, "request-1")
        await calm.until(lambda: calm.status("request-1") == "cancelled", within=timedelta(seconds=90))

    simulate(body)


def test_a_cancel_that_comes_while_it_is_being_sent_changes_nothing() -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        calm.world.provider.faults = Faults(latencyMs=3000)
        await calm.send("request-1")
        await calm.until(lambda: calm.status("request-1") == "sending")
        await cancel(calm, "request-1")
        await calm.until(lambda: calm.status("request-1") == "sent")

    simulate(body)


def test_a_cancel_ends_the_retries() -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        calm.world.provider.faults = Faults(errorRate=1.0)
        await calm.send("request-1")
        await calm.until(lambda: calm.outbox("request-1")["attempts"] == 2)
        await cancel(calm, "request-1")
        await calm.send("behind-it")
        calm.world.provider.faults = NO_FAULTS
        await calm.until(lambda: calm.statuses() == {"cancelled": 1, "sent": 1})

    simulate(body)


# --- time


def test_past_its_deadline_a_message_is_skipped_also_while_the_account_is_paused() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(status="paused")
        await calm.send("request-1", send_by=calm.world.clock() + timedelta(seconds=30))
        await calm.until(lambda: calm.status("request-1") == "skipped", within=timedelta(seconds=45))
        assert calm.outbox("request-1")["lastError"]["code"] == "deadline_passed"

    simulate(body)


def test_a_message_is_sent_100_days_ahead_to_the_second_by_hops_of_tasks() -> None:
    async def body(calm: Calm) -> float:
        await calm.account()
        await calm.send("request-1", send_at=calm.world.clock() + timedelta(days=100))
        await asyncio.sleep(timedelta(days=100, seconds=-10).total_seconds())
        assert calm.status("request-1") == "queued"
        await calm.until(lambda: calm.status("request-1") == "sent", within=timedelta(minutes=1))
        return calm.sent_at("request-1") - timedelta(days=100).total_seconds()

    late = simulate(body, sweeps=False)

    assert 0 <= late < 2


def test_a_lost_hop_is_found_by_the_sweep() -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        at = calm.world.clock() + timedelta(days=40)
        await calm.send("request-1", send_at=at)
        await asyncio.sleep(60)
        calm.world.tasks.engine.reset()
        await calm.world.tasks._ensure_queues()
        await asyncio.sleep(timedelta(days=40).total_seconds())
        await calm.world.sweep()
        await calm.until(lambda: calm.status("request-1") == "sent", within=timedelta(minutes=2))

    simulate(body, sweeps=False)


def test_a_lost_event_is_found_by_the_sweep_although_the_lane_sleeps_for_a_far_message() -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        await calm.send("far-away", send_at=calm.world.clock() + timedelta(days=100))
        await asyncio.sleep(5)
        calm.world.functions[0].process.die()
        await calm.send("request-2")
        await calm.until(lambda: calm.status("request-2") == "sent", within=timedelta(minutes=3))

    simulate(body)


def test_outside_its_window_an_account_sends_nothing_and_begins_when_it_opens() -> None:
    async def body(calm: Calm) -> float:
        await calm.account(timezone="Europe/Berlin", window={"startHour": 15, "endHour": 18})
        await calm.send("request-1")  # it is 13:00 in Berlin
        await calm.until(lambda: calm.status("request-1") == "sent", within=timedelta(hours=3))
        return calm.sent_at("request-1")

    assert simulate(body) == pytest.approx(2 * 3600, abs=2)


# --- the account


def test_a_paused_account_keeps_its_messages_until_it_is_resumed() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(pace={"perMinute": 60})
        await calm.send_many(20)
        await asyncio.sleep(5)
        await calm.change_account(status="paused")
        await asyncio.sleep(12)
        sent = calm.statuses()["sent"]
        await asyncio.sleep(120)
        assert calm.statuses() == {"sent": sent, "queued": 20 - sent}
        assert 0 < sent < 20
        await resume(calm)
        await calm.until(lambda: calm.statuses()["sent"] == 20, within=timedelta(seconds=30))

    simulate(body)


def test_refused_credentials_park_the_account_and_keep_its_messages_queued() -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        calm.world.provider.set_account("shop", Account(credentials="revoked"))
        await calm.send_many(5)
        await calm.until(lambda: calm.document("accounts/shop")["status"] == "parked")
        await asyncio.sleep(600)
        assert calm.statuses() == {"queued": 5}
        assert calm.document("accounts/shop")["parkedBecause"]["code"] == "auth"
        calls = len(calm.world.truth.calls)
        calm.world.provider.set_account("shop", Account())
        await asyncio.sleep(600)
        assert len(calm.world.truth.calls) == calls <= 5, "nobody called before a person said so"
        await calm.change_account(status="active")  # and nobody wakes the lane: the sweep finds out
        await calm.until(lambda: calm.statuses() == {"sent": 5}, within=timedelta(minutes=2))
        assert all(calm.outbox(f"shop-{n:05d}").get("failures", 0) == 0 for n in range(5))

    simulate(body)


def test_a_session_that_is_down_makes_the_lane_wait_and_no_message_fail() -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        calm.world.provider.set_account("shop", Account(session="down"))
        await calm.send("request-1")
        await asyncio.sleep(300)
        assert calm.status("request-1") == "queued"
        calm.world.provider.set_account("shop", Account())
        await calm.until(lambda: calm.status("request-1") == "sent", within=timedelta(minutes=2))

    simulate(body)


# --- poison


def test_a_message_that_always_fails_uses_its_attempts_and_delays_only_its_thread() -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        calm.world.provider.faults = Faults(invalidRecipients=("+666",))
        await calm.send("poison-1", to="+666")
        await calm.send("behind-it", to="+666")
        await calm.send_many(10)
        await calm.until(lambda: calm.statuses() == {"sent": 10, "failed": 2}, within=timedelta(seconds=10))
        assert calm.outbox("poison-1")["lastError"]["code"] == "recipient_invalid"

    simulate(body)


def test_a_message_that_never_gets_through_is_given_up_after_five_attempts() -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        calm.world.provider.faults = Faults(errorRate=1.0, accounts=("shop",))
        await calm.account("other")
        await calm.send("request-1")
        await calm.send("elsewhere", account_id="other")
        await calm.until(lambda: calm.statuses() == {"failed": 1, "sent": 1})
        assert calm.outbox("request-1")["lastError"]["code"] == "max_attempts"
        assert calm.outbox("request-1")["attempts"] == 5

    simulate(body)


def test_an_adapter_that_breaks_on_one_message_does_not_stop_the_lane(monkeypatch: pytest.MonkeyPatch) -> None:
    """The call raises in the middle of everything: the turn ends, the lease ends, and the message is in doubt."""

    async def body(calm: Calm) -> None:
        await calm.account(onUncertain="hold", provider="simulated-mute")
        providers = calm.world.workers[0].system.providers
        send = providers.send

        async def breaks(name: str, message: Any, *, limit: timedelta) -> Any:
            if message.request_id == "poison-1":
                raise ZeroDivisionError
            return await send(name, message, limit=limit)

        monkeypatch.setattr(providers, "send", breaks)
        await calm.send("poison-1")
        await calm.send_many(5)
        await calm.until(lambda: calm.statuses() == {"uncertain": 1, "sent": 5}, within=timedelta(minutes=4))

    simulate(body, workers=1)


# --- doubt


@pytest.mark.parametrize(
    ("provider", "on_uncertain", "status", "delivered"),
    [
        ("simulated", "hold", "sent", 1),
        ("simulated-idempotent", "hold", "sent", 1),
        ("simulated-mute", "hold", "uncertain", 1),
        ("simulated-mute", "resend", "sent", 2),
    ],
)
def test_a_call_that_was_never_answered(provider: str, on_uncertain: str, status: str, delivered: int) -> None:
    async def body(calm: Calm) -> None:
        await calm.account(provider=provider, onUncertain=on_uncertain)
        calm.world.provider.faults = Faults(lostResponseRate=1.0, forCalls=1, receiptDelayMs=2000)
        await calm.send("request-1")
        await asyncio.sleep(600)
        assert calm.status("request-1") == status
        assert sum(call.delivered for call in calm.world.truth.calls) == delivered

    simulate(body)


@pytest.mark.parametrize("end", ["cancel", "deadline", "rejected", "given up"])
def test_a_doubt_is_not_forgotten_when_a_later_attempt_fails(end: str) -> None:
    """It was delivered, and nobody heard of it. Whatever follows, nobody may say that it was not sent."""

    async def body(calm: Calm) -> None:
        await calm.account(provider="simulated-idempotent")
        calm.world.provider.faults = Faults(lostResponseRate=1.0, receiptLossRate=1.0)
        deadline = calm.world.clock() + timedelta(seconds=20) if end == "deadline" else None
        await calm.send("request-1", send_by=deadline)
        await calm.until(lambda: len(calm.world.truth.calls) == 1)
        code = {"rejected": "rejected", "given up": "overloaded"}.get(end)
        throttled = {"throttleRate": 1.0, "throttleScope": "recipient", "retryAfterSeconds": 15}
        calm.world.provider.faults = Faults.model_validate({"errorRate": 1.0, "errorCode": code} if code else throttled)
        await calm.until(lambda: len(calm.world.truth.calls) == 2)
        if end == "cancel":
            await cancel(calm, "request-1")
        await calm.until(lambda: calm.status("request-1") == "failed")
        assert calm.outbox("request-1")["lastError"]["code"] == "outcome_unknown"

    simulate(body)


@pytest.mark.parametrize(("provider", "status"), [("simulated-idempotent", "sent"), ("simulated-mute", "uncertain")])
def test_a_worker_killed_in_the_middle_of_a_call(provider: str, status: str) -> None:
    async def body(calm: Calm) -> None:
        await calm.account(provider=provider)
        calm.world.provider.faults = Faults(latencyMs=2000)
        await calm.send("request-1")
        await calm.send("behind-it")
        await calm.until(lambda: calm.status("request-1") == "sending")
        await asyncio.sleep(0.5)
        calm.world.crash(calm.world.workers, 0)
        await calm.until(lambda: calm.status("behind-it") == "sent", within=timedelta(minutes=4))
        assert calm.status("request-1") == status
        assert sum(call.delivered for call in calm.world.truth.calls) == 2
        assert calm.order_of_calls()[-1] == "behind-it"

    simulate(body, workers=1)


@pytest.mark.parametrize("steps", range(1, 9))
def test_a_worker_that_stalls_between_claim_and_call_makes_no_call_when_it_goes_on(steps: int) -> None:
    """The claim is made, and some steps later the machine stands still until another one has taken over."""

    async def body(calm: Calm) -> None:
        await calm.account(provider="simulated-mute", onUncertain="hold")
        stalled = calm.world.workers[0].process

        def stall(changes: Any, micros: int) -> None:
            if any(c.new is not None and c.new.fields["status"].string_value == "sending" for c in changes):
                calm.world.firestore.engine.after_commit.remove(stall)
                stalled.after_steps(steps, stalled.pause)
                calm.world.workers[0] = calm.world.machine("worker")

        calm.world.firestore.engine.after_commit.append(stall)
        await calm.send("request-1")
        await calm.send("behind-it")
        await calm.until(lambda: calm.status("behind-it") == "sent", within=timedelta(minutes=4))
        calls_before = calm.order_of_calls()
        stalled.go_on()
        await asyncio.sleep(60)
        assert calm.order_of_calls() == calls_before, "nothing is called after a takeover"
        assert calm.status("request-1") in ("uncertain", "sent")

    simulate(body, workers=1)


def test_a_claim_that_arrives_after_its_lane_was_taken_over_is_settled_before_anything_overtakes_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def body(calm: Calm) -> None:
        await calm.account(provider="simulated-idempotent")
        network = calm.world.network
        there = network._there
        held: list[str] = []
        arrives = asyncio.Event()

        async def slow(path: str, carry: Any, luck: Any) -> Any:
            lane = calm.world.truth.latest().get("lanes/outbox:shop", {})
            if path.endswith("/Commit") and lane.get("state") == "running" and not held:
                held.append(path)
                await arrives.wait()
            return await there(path, carry, luck)

        monkeypatch.setattr(network, "_there", slow)
        await calm.send("request-1")
        await calm.send("behind-it")
        await calm.until(lambda: bool(held))
        calm.world.crash(calm.world.workers, 0)
        await calm.change_account(status="paused")
        await calm.until(lambda: calm.lane()["state"] == "idle", within=timedelta(minutes=3))
        arrives.set()
        await calm.until(lambda: calm.status("request-1") == "sending")
        await resume(calm)
        await calm.until(lambda: calm.statuses()["sent"] == 2, within=timedelta(minutes=3))
        assert calm.order_of_calls() == ["request-1", "behind-it"]

    simulate(body, workers=1)


def test_what_a_takeover_puts_back_goes_first_also_if_the_answer_to_its_write_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The message was in flight when its worker died, and its thread already waited for it from an earlier attempt."""
    real = MessageStore.write
    crashed = False
    unanswered: list[str] = []

    async def deaf(store: MessageStore, writes: Sequence[WriteOp]) -> Committed | Conflict:
        result = await real(store, writes)
        if unanswered or not crashed or not isinstance(result, Committed):
            return result
        unanswered.append(writes[0].path)
        await asyncio.sleep(20)  # by then the hold has elapsed
        return Conflict(maybe_ours=True)

    async def body(calm: Calm) -> None:
        nonlocal crashed
        await calm.account(provider="simulated-idempotent", onUncertain="resend")
        calm.world.provider.faults = Faults(throttleRate=1.0, throttleScope="recipient", retryAfterSeconds=1)
        await calm.send("request-1")
        await calm.send("behind-it")
        await calm.until(lambda: bool(calm.order_of_calls()))
        await calm.until(lambda: bool(calm.lane().get("holds")))
        calm.world.provider.faults = Faults(latencyMs=9000, receiptLossRate=1.0)
        await calm.until(lambda: calm.order_of_calls() == ["request-1"] * 2)
        calm.world.crash(calm.world.workers, 0)
        crashed = True
        calm.world.provider.faults = Faults()
        await calm.until(lambda: calm.statuses()["sent"] == 2, within=timedelta(minutes=4))
        assert unanswered == ["outbox/request-1"]
        assert calm.order_of_calls()[-1] == "behind-it"
        assert "behind-it" not in calm.order_of_calls()[:-1]

    monkeypatch.setattr(MessageStore, "write", deaf)
    simulate(body, workers=1)


def test_a_worker_that_stalls_after_a_call_still_tells_what_it_knows() -> None:
    """Another one took over and put the message in doubt. The late worker knows better, and nobody resends."""

    async def body(calm: Calm) -> None:
        await calm.account(provider="simulated-mute", onUncertain="hold")
        stalled = calm.world.workers[0].process

        class Stall(list[tuple[str, str]]):
            def append(self, known: tuple[str, str]) -> None:
                stalled.pause()
                calm.world.workers[0] = calm.world.machine("worker")

        calm.world.truth.accepted = Stall()
        await calm.send("request-1")
        await calm.until(lambda: calm.status("request-1") == "uncertain", within=timedelta(minutes=4))
        stalled.go_on()
        await calm.until(lambda: calm.status("request-1") == "sent", within=timedelta(seconds=10))
        assert calm.document("threads/shop__+491/messages/request-1")["status"] == "sent"
        assert len(calm.world.truth.calls) == 1

    simulate(body, workers=1)


def test_a_worker_that_stops_finishes_what_it_began_and_hands_on_the_rest() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(pace={"perMinute": 60})
        calm.world.provider.faults = Faults(latencyMs=1000)
        await calm.send_many(10)
        await calm.until(lambda: calm.statuses()["sending"] == 1)
        old = calm.world.workers[0]
        await old.process.serve(stop(old.system))
        assert calm.statuses()["sending"] == 0
        calm.world.crash(calm.world.workers, 0)
        await calm.until(lambda: calm.statuses() == {"sent": 10}, within=timedelta(seconds=30))
        assert len(calm.world.truth.calls) == 10

    async def stop(system: Any) -> None:
        await system.engine.stop()

    simulate(body, workers=1, sweeps=False)


@pytest.mark.parametrize("per_minute", [0, 60])
def test_many_messages_for_one_time_go_in_the_order_of_their_making_over_pages(per_minute: int) -> None:
    async def body(calm: Calm) -> list[str]:
        await calm.account(concurrency=5, pace={"perMinute": per_minute})
        at = calm.world.clock() + timedelta(seconds=60)
        names = [f"request-{(number * 7) % 12:04d}" for number in range(12)]
        for name in names:
            await calm.send(name, send_at=at)
        await calm.until(lambda: calm.statuses()["sent"] == 12, within=timedelta(seconds=80))
        assert calm.order_of_calls() == names
        return names

    simulate(body, settings=Settings(claim_page=3))


def test_a_message_that_a_hold_waits_for_is_a_candidate_also_as_the_last_of_its_page() -> None:
    """Else its thread would seem to wait for nobody, and the message behind it would go first."""

    async def body(calm: Calm) -> None:
        await calm.account(status="paused")
        await calm.send("behind-it")
        await asyncio.sleep(1)
        await calm.send("waited-for")
        candidates = Candidates(calm.world.client.system.messages, lane_of("shop"), page=2)
        await candidates.read_more(calm.world.clock(), calm.world.clock(), ())
        assert _ids(candidates) == ["behind-it"], "the last of a page waits for the next page"
        await candidates.read_named(["waited-for"], ())
        assert _ids(candidates) == ["behind-it", "waited-for"]

    def _ids(candidates: Candidates) -> list[str]:
        return [one.request_id for one in candidates.in_order()]

    simulate(body)


def test_a_worker_whose_clock_is_ahead_reads_no_further_than_the_database_is() -> None:
    """Its next page begins where the last one ended: what is written meanwhile would fall before that, and be overtaken
    by what is written later."""

    async def body(calm: Calm) -> None:
        await calm.account(concurrency=5)
        calm.world.provider.faults = Faults(latencyMs=8_000)
        await calm.send("request-slow", to="+491")
        await calm.until(lambda: bool(calm.order_of_calls()))
        calm.world.provider.faults = Faults()
        scheduled = calm.world.clock() + timedelta(seconds=2)
        await calm.send("request-scheduled", to="+492", send_at=scheduled)
        await asyncio.sleep(1)  # the worker looks for new documents meanwhile
        await calm.send("request-first", to="+493")
        await asyncio.sleep(1)
        await calm.send("request-second", to="+493")
        await calm.until(lambda: len(calm.order_of_calls()) == 4, within=timedelta(seconds=5))
        to_one = [name for name in calm.order_of_calls() if name in ("request-first", "request-second")]
        assert to_one == ["request-first", "request-second"]
        assert calm.sent_at("request-scheduled") >= calm.seconds(scheduled), "nor before its time"

    simulate(body, workers=1, draw_skew=lambda: timedelta(seconds=5))


def test_what_has_come_only_by_a_clock_that_is_ahead_is_waited_for_at_a_small_cost() -> None:
    async def body(calm: Calm) -> int:
        await calm.account()
        scheduled = calm.world.clock() + timedelta(seconds=4)
        await calm.send("request-now", to="+491")
        await calm.send("request-scheduled", to="+492", send_at=scheduled)
        meter = Meter(calm)
        await calm.until(lambda: len(calm.order_of_calls()) == 2, within=timedelta(seconds=10))
        assert 0 <= calm.sent_at("request-scheduled") - calm.seconds(scheduled) < 1
        return meter.reads + meter.writes

    assert simulate(body, workers=1, draw_skew=lambda: timedelta(seconds=5)) < 40


def test_a_message_that_comes_while_a_slow_call_is_in_flight_does_not_wait_for_it() -> None:
    async def body(calm: Calm) -> float:
        await calm.account()
        calm.world.provider.faults = Faults(latencyMs=8_000)
        await calm.send("request-slow", to="+491")
        await calm.until(lambda: bool(calm.order_of_calls()))
        await asyncio.sleep(1)
        written = calm.seconds(calm.world.clock())
        await calm.send("request-next", to="+492")
        await calm.until(lambda: "request-next" in calm.order_of_calls())
        return calm.sent_at("request-next") - written

    assert simulate(body) < 2.5
