"""Order within a thread, over pages, wrong clocks, late claims and takeovers: nothing overtakes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from firestore_outbox.firestore.gateway import Committed, Conflict
from firestore_outbox.firestore.writes import WriteOp
from firestore_outbox.lane.ref import outbox_lane
from firestore_outbox.local.simulators.faults import Faults
from firestore_outbox.messages.enqueue import Enqueued, NewMessage
from firestore_outbox.messages.model import OutboxMessage
from firestore_outbox.messages.outbox_document import Stored
from firestore_outbox.messages.store import MessageStore, Page
from firestore_outbox.providers.outcome import DeliveryError, ErrorCode
from firestore_outbox.sending.candidates import Candidates
from firestore_outbox.settings import Settings
from tests.calm import START, Calm, Meter, simulate

BY_WORKERS = Settings(short_turns=False)
"""Short turns have tests of their own (test_short_turns.py)."""


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

    simulate(body, settings=BY_WORKERS, workers=1)


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

    simulate(body, settings=BY_WORKERS, workers=1)


async def claimed_late(calm: Calm, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker dies, and its claim of the first of two messages arrives when the lane has no holder any more. Then the
    lane is woken."""
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
    await calm.change_account(status="active")
    await calm.world.client.system.waker.wake(outbox_lane("shop"))


def test_a_claim_that_arrives_after_its_lane_was_taken_over_is_settled_before_anything_overtakes_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def body(calm: Calm) -> None:
        await calm.account(provider="simulated-idempotent")
        await claimed_late(calm, monkeypatch)
        await calm.until(lambda: calm.statuses()["sent"] == 2, within=timedelta(minutes=3))
        assert calm.order_of_calls() == ["request-1", "behind-it"]

    simulate(body, settings=BY_WORKERS, workers=1)


@pytest.mark.parametrize("provider", ["simulated-idempotent", "simulated-mute"])
def test_a_late_claim_that_is_given_back_just_after_a_page_was_read_is_not_overtaken(
    monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    """The page does not have the message, for it was in flight; and when the lane looks for what is in flight, it is
    queued again."""
    real = MessageStore.due
    given_back: list[str] = []

    async def then_given_back(store: MessageStore, *args: Any) -> Page:
        page = await real(store, *args)
        for stored in await store.get(["request-1"]):
            if stored.status == "sending" and not given_back:
                assert isinstance(stored.message, OutboxMessage)
                given_back.append(stored.request_id)
                await store.end(stored, stored.message.unclaimed())
        return page

    async def body(calm: Calm) -> None:
        await calm.account(provider=provider)
        await claimed_late(calm, monkeypatch)
        monkeypatch.setattr(MessageStore, "due", then_given_back)
        await calm.until(lambda: calm.statuses()["sent"] == 2, within=timedelta(minutes=3))
        assert given_back == ["request-1"]
        assert calm.order_of_calls() == ["request-1", "behind-it"]

    simulate(body, settings=BY_WORKERS, workers=1)


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
    simulate(body, settings=BY_WORKERS, workers=1)


def test_a_worker_that_stalls_after_a_call_still_tells_what_it_knows() -> None:
    """Another one took over and put the message in doubt. The late worker knows better, and no worker resends."""

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

    simulate(body, settings=BY_WORKERS, workers=1)


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

    simulate(body, settings=Settings(claim_page=3, short_turns=False))


def test_a_message_that_a_hold_waits_for_is_a_candidate_also_as_the_last_of_its_page() -> None:
    """Else its thread would seem to wait for no message, and the message behind it would go first."""

    async def body(calm: Calm) -> None:
        await calm.account(status="paused")
        await calm.send("behind-it")
        await asyncio.sleep(1)
        await calm.send("waited-for")
        candidates = Candidates(
            calm.world.client.system.messages, outbox_lane("shop"), Settings().overlap, calm.world.clock
        )
        await candidates.read_more(calm.world.clock(), calm.world.clock(), 2, ())
        assert _ids(candidates) == ["behind-it"], "the last of a page waits for the next page"
        await candidates.read_named(["waited-for"], ())
        assert _ids(candidates) == ["behind-it", "waited-for"]

    def _ids(candidates: Candidates) -> list[str]:
        return [one.request_id for one in candidates.in_order()]

    simulate(body, settings=BY_WORKERS)


def test_a_message_that_was_in_flight_when_it_was_looked_for_is_a_candidate_when_its_doubt_has_ended() -> None:
    """A late claim had it when the hold that names it elapsed; it was put in doubt, and holds its thread again."""

    async def body(calm: Calm) -> None:
        await calm.account(status="paused")
        await calm.send("waited-for")
        messages, now = calm.world.client.system.messages, calm.world.clock()
        candidates = Candidates(messages, outbox_lane("shop"), Settings().overlap, calm.world.clock)
        (queued,) = await messages.get(["waited-for"])
        (claimed,) = await claim(messages, queued.valid.claimed(by="gone#1", lease_until=now), queued)
        await candidates.read_named(["waited-for"], ())
        assert "waited-for" not in candidates
        unknown = DeliveryError(code=ErrorCode.OUTCOME_UNKNOWN, message="no answer", retryable=True, at=now)
        doubted = claimed.valid.in_doubt(resolve_at=now, error=unknown, failures=1)
        (in_doubt,) = await claim(messages, doubted, claimed)
        candidates.settled(in_doubt)
        await candidates.read_named(["waited-for"], ())
        assert "waited-for" in candidates

    async def claim(messages: MessageStore, new: OutboxMessage, old: Stored) -> list[Stored]:
        written = await messages.claim([(old, new)])
        assert not isinstance(written, Conflict)
        return written

    simulate(body, settings=BY_WORKERS)


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

    simulate(body, settings=BY_WORKERS, workers=1, draw_skew=lambda: timedelta(seconds=5))


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

    assert simulate(body, settings=BY_WORKERS, workers=1, draw_skew=lambda: timedelta(seconds=5)) < 40


def test_a_message_whose_time_to_send_at_has_passed_does_not_overtake_the_queue() -> None:
    """Neither what others wrote before it, nor what its own thread did."""

    async def body(calm: Calm) -> None:
        await calm.account(status="paused", pace={"perMinute": 40})
        for number in range(12):
            await calm.send(f"earlier-{number:03}", to=f"+49{number:03}")
        await calm.send("same-thread-1", to="+4777")
        await asyncio.sleep(5)
        system = calm.world.client.system
        late = NewMessage(
            request_id="jumper-0001",
            account_id="shop",
            to="+4777",
            parts=[{"type": "text", "text": "me first"}],
            created_by="u",
            send_at=START - timedelta(days=9000),
        )
        assert isinstance(await system.enqueue(late), Enqueued)
        await system.resume("shop")
        await calm.until(lambda: calm.statuses()["sent"] == 14)
        assert calm.order_of_calls()[-2:] == ["same-thread-1", "jumper-0001"]

    simulate(body, settings=BY_WORKERS, receipts=False)
