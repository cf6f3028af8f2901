"""A person's word: a doubt settled, a failed message put back, an account paused and resumed, a message taken back."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from firestore_outbox.firestore import paths
from firestore_outbox.local.simulators.core import Account
from firestore_outbox.local.simulators.faults import NO_FAULTS, Faults
from firestore_outbox.messages.correlation import Correlation
from firestore_outbox.messages.shown_store import ShownStore
from firestore_outbox.operations.redrive import NotRedriven, Redriven
from firestore_outbox.operations.settle import NotSettled, Settled, SettledAs
from firestore_outbox.providers.protocol import PartReceipt
from firestore_outbox.receipts.apply import Applied
from firestore_outbox.receipts.batch import ReceiptBatch
from firestore_outbox.receipts.rules import Arrived, Progress
from firestore_outbox.wiring import System
from tests.calm import Calm, simulate
from tests.reminders.support import only_run, remind, until_ended

UNANSWERED = Faults(lostResponseRate=1.0, forCalls=1, receiptLossRate=1.0)
SHOWN = paths.message("shop__+491", "request-1")


def system(calm: Calm) -> System:
    return calm.world.client.system


async def in_doubt(calm: Calm, **account: Any) -> None:
    """request-1 was sent, and its answer was lost; behind-it waits in the same thread."""
    await calm.account(onUncertain="hold", **account)
    calm.world.provider.faults = UNANSWERED
    await calm.send("request-1")
    await calm.until(lambda: calm.status("request-1") == "uncertain")
    calm.world.provider.faults = NO_FAULTS
    await calm.send("behind-it")
    await asyncio.sleep(5)
    assert calm.status("behind-it") == "queued"


# --- settle


@pytest.mark.parametrize("settled_as", SettledAs)
def test_a_person_settles_a_doubt_and_the_thread_goes_on_at_once(settled_as: SettledAs) -> None:
    async def body(calm: Calm) -> None:
        await in_doubt(calm)
        assert await system(calm).settle("request-1", settled_as) == Settled("request-1", settled_as)
        await calm.until(lambda: calm.status("behind-it") == "sent", within=timedelta(seconds=5))
        assert calm.status("request-1") == calm.document(SHOWN)["status"] == settled_as
        assert calm.order_of_calls() == ["request-1", "behind-it"], "it was not sent again"

    simulate(body, sweeps=False)


def test_what_a_person_called_sent_is_moved_on_by_a_receipt_that_comes_later() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(onUncertain="hold")
        calm.world.provider.faults = Faults(lostResponseRate=1.0, forCalls=1, receiptDelayMs=60_000)
        await calm.send("request-1")
        await calm.until(lambda: calm.status("request-1") == "uncertain")
        await system(calm).settle("request-1", SettledAs.SENT)
        sent_at = calm.document(SHOWN)["sentAt"]
        await calm.until(lambda: calm.document(SHOWN)["status"] == "read")
        assert calm.document(SHOWN)["sentAt"] == sent_at

    simulate(body)


def test_what_a_person_called_failed_can_be_sent_again() -> None:
    async def body(calm: Calm) -> None:
        await in_doubt(calm)
        await system(calm).settle("request-1", SettledAs.FAILED)
        assert calm.outbox("request-1")["lastError"]["code"] == "outcome_unknown"
        assert await system(calm).redrive.one("request-1") == Redriven("request-1")
        await calm.until(lambda: calm.document(SHOWN)["status"] == "read")
        assert {"error", "failedAt"}.isdisjoint(calm.document(SHOWN))

    simulate(body)


def test_only_a_doubt_is_settled() -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        await calm.send("request-1")
        await calm.until(lambda: calm.document(SHOWN)["status"] == "read")
        before = calm.outbox("request-1")
        refused = await system(calm).settle("request-1", SettledAs.FAILED)
        assert refused == NotSettled("request-1 is not uncertain: it is sent")
        assert await system(calm).settle("no-such", SettledAs.SENT) == NotSettled("there is no message no-such")
        assert calm.outbox("request-1") == before

    simulate(body)


@pytest.mark.parametrize(("settled_as", "is_shown"), [(SettledAs.SENT, True), (SettledAs.FAILED, False)])
def test_a_runs_message_is_seen_in_its_thread_only_if_it_is_called_sent(settled_as: SettledAs, is_shown: bool) -> None:
    async def body(calm: Calm) -> None:
        await calm.account(onUncertain="hold", provider="simulated-mute")
        calm.world.provider.faults = UNANSWERED
        await remind(calm, targets=1)
        await calm.until(lambda: calm.statuses() == {"uncertain": 1})
        (path,) = (path for path in calm.world.truth.latest() if path.startswith("outbox/"))
        request_id = path.removeprefix("outbox/")
        assert isinstance(await system(calm).settle(request_id, settled_as), Settled)
        assert calm.status(request_id) == settled_as
        shown = [path for path in calm.world.truth.latest() if path.startswith("threads/")]
        assert bool(shown) == is_shown, shown

    simulate(body)


# --- redrive


async def all_redriven(calm: Calm) -> list[Redriven | NotRedriven]:
    return [result async for page in system(calm).redrive.failed_of("shop") for result in page]


def test_all_failed_messages_of_an_account_are_put_back_over_pages_and_no_others() -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        await calm.account("other")
        calm.world.provider.faults = Faults(errorRate=1.0, errorCode="rejected")
        await calm.send_many(230)
        await calm.send("elsewhere", account_id="other")
        await calm.until(lambda: calm.statuses() == {"failed": 231})
        calm.world.provider.faults = NO_FAULTS
        results = await all_redriven(calm)
        assert sorted(result.request_id for result in results) == [f"shop-{number:05d}" for number in range(230)]
        assert {type(result) for result in results} == {Redriven}
        await calm.until(lambda: calm.statuses() == {"sent": 230, "failed": 1})
        assert await all_redriven(calm) == []

    simulate(body)


def test_what_the_provider_failed_after_it_took_it_is_not_shown_as_sent_while_it_waits_again() -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        calm.world.provider.faults = Faults(receiptFailedRate=1.0)
        await calm.send("request-1")
        await calm.until(lambda: calm.document(SHOWN)["status"] == "failed")
        first_sent_at = calm.document(SHOWN)["sentAt"]
        await system(calm).pause("shop")
        assert await system(calm).redrive.one("request-1") == Redriven("request-1")
        assert {"sentAt", "failedAt", "error"}.isdisjoint(calm.document(SHOWN))
        assert "sentAt" not in calm.outbox("request-1")
        calm.world.provider.faults = NO_FAULTS
        await system(calm).resume("shop")
        await calm.until(lambda: calm.document(SHOWN)["status"] == "read")
        assert calm.document(SHOWN)["sentAt"] > first_sent_at

    simulate(body)


def test_what_bounced_and_is_put_back_goes_out_again_also_through_a_provider_that_delivers_a_key_once() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(provider="simulated-idempotent")
        calm.world.provider.faults = Faults(receiptFailedRate=1.0)
        await calm.send("request-1")
        await calm.until(lambda: calm.document(SHOWN)["status"] == "failed")
        calm.world.provider.faults = NO_FAULTS
        await system(calm).redrive.one("request-1")
        await calm.until(lambda: calm.status("request-1") == "sent")
        assert [call.delivered for call in calm.world.truth.calls] == [1, 1]

    simulate(body)


def test_an_unknown_outcome_is_put_back_under_the_same_key_and_arrives_once() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(provider="simulated-idempotent")
        calm.world.provider.faults = Faults(lostResponseRate=1.0, receiptLossRate=1.0)
        await calm.send("request-1")
        await calm.until(lambda: calm.status("request-1") in ("failed", "uncertain"))
        calm.world.provider.faults = NO_FAULTS
        await system(calm).redrive.one("request-1")
        await calm.until(lambda: calm.status("request-1") == "sent")
        assert sum(call.delivered for call in calm.world.truth.calls) == 1

    simulate(body)


def test_a_message_fails_when_a_part_bounces_that_no_attempt_would_send_again_and_then_goes_whole() -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        provider = calm.world.provider
        provider.faults = Faults(receiptFailedRate=1.0, receiptDelayMs=5_000)
        await calm.send("request-1", parts=[{"type": "text", "text": text} for text in ("first", "second")])
        while not calm.world.truth.calls:  # noqa: ASYNC110 - virtual time, and the record has no signal
            await asyncio.sleep(0.05)  # less than the pause between two parts
        provider.faults = Faults(throttleRate=1.0, throttleScope="recipient", retryAfterSeconds=600)
        await calm.until(lambda: calm.outbox("request-1").get("partsSent") == 1)
        await calm.until(lambda: calm.status("request-1") == "failed", within=timedelta(minutes=1))
        assert calm.document(SHOWN)["status"] == "failed"
        provider.faults = NO_FAULTS
        await system(calm).redrive.one("request-1")
        await calm.until(lambda: calm.document(SHOWN)["status"] == "read", within=timedelta(minutes=1))
        assert [call.part for call in calm.world.truth.calls if call.accepted] == [0, 0, 1]

    simulate(body)


def test_receipts_of_a_send_that_bounced_say_nothing_of_the_next_one() -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        calm.world.provider.faults = Faults(receiptFailedRate=1.0)
        await calm.send("request-1")
        await calm.until(lambda: calm.document(SHOWN)["status"] == "failed")
        await system(calm).pause("shop")
        await system(calm).redrive.one("request-1")
        later = calm.world.clock() + timedelta(minutes=1)
        told = Arrived(progress=Progress.DELIVERED, at=later, provider_message_id="by another name")
        of_the_first = PartReceipt(receipt=told, correlation=Correlation(request_id="request-1", part=0, parts=1))
        assert await system(calm).receipts.apply("shop", of_the_first) is Applied.IGNORED
        assert calm.document(SHOWN)["status"] == calm.status("request-1") == "queued"
        calm.world.provider.faults = Faults(receiptLossRate=1.0)
        await system(calm).resume("shop")
        await calm.until(lambda: calm.status("request-1") == "sent")
        second = Correlation(request_id="request-1", part=0, parts=1, series=1)
        read = replace(of_the_first, receipt=replace(told, progress=Progress.READ))
        applied: dict[int, Applied] = {}
        batch = ReceiptBatch(system(calm).receipts, ShownStore(system(calm).gateway))
        await batch.apply("shop", [read, replace(of_the_first, correlation=second)], applied.__setitem__)
        assert applied == {0: Applied.IGNORED, 1: Applied.ADVANCED}
        assert calm.document(SHOWN)["status"] == "delivered"

    simulate(body)


def test_a_runs_failed_messages_are_left_to_the_run_and_its_counts_still_add_up() -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        calm.world.provider.faults = Faults(errorRate=1.0, errorCode="rejected")
        await remind(calm, targets=3)
        await until_ended(calm)
        calm.world.provider.faults = NO_FAULTS
        results = await all_redriven(calm)
        run_id = only_run(calm)["runId"]
        assert len(results) == 3
        for result in results:
            assert isinstance(result, NotRedriven)
            assert result.sentence.endswith(f"outbox runs retry-failed {run_id}")
        assert calm.statuses() == {"failed": only_run(calm)["counts"]["failed"]}

    simulate(body)


# --- pause and resume


def test_a_pause_holds_although_an_earlier_one_had_an_end() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(pausedUntil=calm.world.clock() - timedelta(minutes=1))
        assert await system(calm).pause("shop")
        await calm.send("request-1")
        await asyncio.sleep(300)
        assert calm.status("request-1") == "queued"
        assert await system(calm).resume("shop")
        await calm.until(lambda: calm.status("request-1") == "sent", within=timedelta(seconds=5))

    simulate(body)


def test_resume_ends_a_pause_that_would_have_ended_by_itself() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(pausedUntil=calm.world.clock() + timedelta(hours=1))
        await calm.send("request-1")
        await asyncio.sleep(30)
        assert calm.status("request-1") == "queued"
        await system(calm).resume("shop")
        await calm.until(lambda: calm.status("request-1") == "sent", within=timedelta(seconds=5))

    simulate(body)


def test_a_parked_account_that_is_resumed_sends_at_once_and_no_longer_says_why_it_was_parked() -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        calm.world.provider.set_account("shop", Account(credentials="revoked"))
        await calm.send("request-1")
        await calm.until(lambda: calm.document("accounts/shop")["status"] == "parked")
        calm.world.provider.set_account("shop", Account())
        await system(calm).resume("shop")
        await calm.until(lambda: calm.status("request-1") == "sent", within=timedelta(seconds=5))
        assert "parkedBecause" not in calm.document("accounts/shop")

    simulate(body, sweeps=False)


def test_an_account_that_does_not_exist_is_neither_paused_nor_made() -> None:
    async def body(calm: Calm) -> None:
        assert not await system(calm).pause("unknown")
        assert not await system(calm).resume("unknown")
        assert "accounts/unknown" not in calm.world.truth.latest()

    simulate(body)


# --- cancel


def test_an_operator_cancels_in_one_commit_what_is_still_queued() -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        await calm.send("request-1", send_at=calm.world.clock() + timedelta(days=30))
        assert await system(calm).cancel("request-1") == "cancelled"
        assert calm.document(SHOWN)["status"] == "cancelled"
        assert await system(calm).cancel("request-1") == "cancelled"
        assert await system(calm).cancel("no-such") is None

    simulate(body, sweeps=False)
