"""A message's life where people and time interfere: cancelled, too late, for later, paused, parked, in doubt."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from firestore_outbox.firestore import paths
from firestore_outbox.firestore.writes import update
from firestore_outbox.lane.ref import outbox_lane
from firestore_outbox.local.simulators.core import Account
from firestore_outbox.local.simulators.faults import NO_FAULTS, Faults
from firestore_outbox.sending.account_in_use import ACCOUNT_FRESH
from tests.calm import Calm, simulate


async def cancel(calm: Calm, request_id: str) -> None:
    await calm.write(update(paths.outbox(request_id), {"cancelRequested": True}, version=None))


async def resume(calm: Calm, account_id: str = "shop") -> None:
    await calm.change_account(account_id, status="active")
    await calm.world.client.system.waker.wake(outbox_lane(account_id))


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
        await calm.until(lambda: calm.outbox("request-1").get("failures") == 2)
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
        await calm.send_many(60)
        await asyncio.sleep(5)
        await calm.change_account(status="paused")
        await asyncio.sleep(ACCOUNT_FRESH.total_seconds() + 1)
        sent = calm.statuses()["sent"]
        await asyncio.sleep(120)
        assert calm.statuses() == {"sent": sent, "queued": 60 - sent}
        assert 0 < sent < 30
        await resume(calm)
        await calm.until(lambda: calm.statuses()["sent"] == 60, within=timedelta(seconds=60))

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
        assert len(calm.world.truth.calls) == calls <= 5, "no worker called before a person said so"
        await calm.change_account(status="active")  # and nothing wakes the lane: the sweep finds out
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
    """It was delivered, and the answer was lost. Whatever follows, no status may say that it was not sent."""

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
