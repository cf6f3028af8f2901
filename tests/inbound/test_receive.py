"""Inbound conversations: bursts become one run, the longest wait is kept, first come is first served, none is lost."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from firestore_outbox.settings import Settings
from tests.calm import START, Calm, handling, simulate
from tests.sending.test_pace import most_in, times_of


class Application:
    """Notes which conversation it was given when, and what it does with it takes a while."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.begun: list[tuple[float, str]] = []
        self.ended: list[tuple[float, str]] = []
        self.calm: Calm | None = None
        self.answers = 0
        self._seconds = seconds

    async def __call__(self, thread_id: str) -> None:
        assert self.calm is not None
        who = thread_id.rpartition("__")[2]
        self.begun.append((self._now(), who))
        for _ in range(self.answers):
            count = len(self.begun) * 100 + self.answers
            self.answers -= 1
            await self.calm.send(f"answer-{count:05d}-{self.answers}", to=who)
        await asyncio.sleep(self._seconds)
        self.ended.append((self._now(), who))

    def _now(self) -> float:
        assert self.calm is not None
        return (self.calm.world.clock() - START).total_seconds()


async def comes_in(calm: Calm, sender: str, *, identity: str | None = None) -> None:
    event = {
        "type": "inbound",
        "providerMessageId": identity or calm.world.provider.new_message_id(),
        "from": sender,
        "at": calm.world.clock().isoformat(),
        "parts": [{"type": "text", "text": "a question"}],
    }
    calm.world.webhooks.post("simulated", "shop", event)


def play(script: list[tuple[float, str]], application: Application, **options: Any) -> None:
    async def body(calm: Calm) -> None:
        application.calm = calm
        await calm.account()
        for at, sender in script:
            await asyncio.sleep(at - calm.seconds(calm.world.clock()))
            await comes_in(calm, sender)
        await asyncio.sleep(60)

    simulate(body, handlers=handling(application), **options)


def test_an_inbound_message_is_stored_once_and_shown_in_its_thread() -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        for _ in range(3):
            await comes_in(calm, "+491", identity="from/outside")
        await asyncio.sleep(5)
        message = calm.document("threads/shop__+491/messages/from%2Foutside")
        assert (message["direction"], message["status"]) == ("inbound", "delivered")
        thread = calm.document("threads/shop__+491")
        assert (thread["unreadCount"], thread["lastMessageText"]) == (1, "a question")

    simulate(body)


def test_a_burst_becomes_one_run_five_seconds_after_its_last_message() -> None:
    application = Application()
    play([(0, "a"), (2, "a"), (4, "a")], application)

    assert [who for _, who in application.begun] == ["a"]
    assert application.begun[0][0] == pytest.approx(9, abs=0.2)


def test_a_burst_that_does_not_end_is_run_after_fifteen_seconds() -> None:
    application = Application()
    play([(second, "a") for second in range(0, 40, 2)], application)

    starts = [at for at, _ in application.begun]
    assert starts[0] == pytest.approx(15, abs=0.3)
    assert all(later - earlier <= 17 for earlier, later in pairwise(starts))
    assert starts[-1] >= 38


def test_two_who_alternate_are_served_in_the_order_in_which_they_became_quiet() -> None:
    """Document 001: U1, U2, U1 again; U2 is ready first. An event during the run means one more, at the tail."""
    application = Application(seconds=4)
    play(
        [(0, "one"), (1, "two"), (3, "one"), (9, "one")], application, settings=Settings(lane_concurrency=1), workers=1
    )

    assert [who for _, who in application.begun] == ["two", "one", "one"][: len(application.begun)]
    assert application.begun[0][0] == pytest.approx(6, abs=0.2)
    assert all(end <= begin for (end, _), (begin, _) in zip(application.ended, application.begun[1:], strict=False))


@pytest.mark.parametrize("seconds", [4, 7])
def test_a_conversation_that_writes_during_its_run_goes_behind_those_that_wait(seconds: float) -> None:
    """Whether or not it is quiet again when its run ends: at 11 s, after 4 s or before 7 s are over."""
    application = Application(seconds=seconds)
    play([(0, "one"), (0.5, "two"), (6, "one")], application, settings=Settings(lane_concurrency=1), workers=1)

    assert [who for _, who in application.begun] == ["one", "two", "one"]


def test_a_conversation_that_writes_during_its_run_goes_on_at_once_if_none_waits() -> None:
    application = Application(seconds=7)
    play([(0, "one"), (6, "one")], application, settings=Settings(lane_concurrency=1), workers=1)

    assert [who for _, who in application.begun] == ["one", "one"]
    assert application.begun[1][0] == pytest.approx(application.ended[0][0], abs=0.5)


def test_a_message_during_the_run_is_not_lost() -> None:
    application = Application(seconds=10)
    play([(0, "one"), (7, "one")], application)

    starts = [at for at, _ in application.begun]
    assert len(starts) == 2
    assert starts[0] < 7 < starts[1]


def test_a_run_whose_worker_dies_is_made_again() -> None:
    application = Application(seconds=10)

    async def body(calm: Calm) -> None:
        application.calm = calm
        await calm.account()
        await comes_in(calm, "one")
        await asyncio.sleep(8)
        calm.world.crash(calm.world.workers, 0)
        await asyncio.sleep(180)
        assert len(application.begun) == 2
        assert len(application.ended) == 1

    simulate(body, handlers=handling(application), workers=1)


def test_answers_to_many_keep_to_three_a_second() -> None:
    application = Application()
    application.answers = 30

    async def body(calm: Calm) -> list[datetime]:
        application.calm = calm
        await calm.account()
        for number in range(10):
            await comes_in(calm, f"user-{number}")
        await calm.until(lambda: calm.statuses()["sent"] == 30)
        return times_of(calm)

    times = simulate(body, handlers=handling(application), settings=Settings(global_per_second=3), workers=1)

    assert most_in(times, timedelta(seconds=1)) <= 2 + 3
    assert most_in(times, timedelta(seconds=5)) <= 2 + 15


def test_an_answer_to_a_sender_whose_name_is_encoded_reaches_the_sender() -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        await comes_in(calm, "_mallory")
        await calm.until(lambda: bool(calm.world.truth.collection("threads")))
        ((thread_id, thread),) = calm.world.truth.collection("threads").items()
        assert (thread_id, thread["to"]) == ("shop__%5Fmallory", "%5Fmallory")
        await calm.send("answer-1", to=thread["to"])
        await calm.until(lambda: calm.status("answer-1") == "sent")
        assert [call.to for call in calm.world.truth.calls] == ["_mallory"]
        assert len(calm.world.truth.collection("threads")) == 1

    simulate(body)
