"""Opting out while runs go on, in virtual time, by webhook as in production."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from firestore_outbox.consent.suppressions import Source
from firestore_outbox.firestore.writes import update
from firestore_outbox.messages.model import TextPart
from firestore_outbox.providers.protocol import InboundMessage
from firestore_outbox.reminders.run import Command
from tests.calm import Calm, simulate
from tests.reminders.support import only_run, remind, targets_called, until_ended

PEOPLE: list[Any] = [{"id": f"t{number}", "to": f"+49151000{number:04}"} for number in range(40)]


async def writes(calm: Calm, sender: str, text: str, name: str = "in-1") -> None:
    """A message of a person, as the webhook takes it."""
    part = TextPart(type="text", text=text)
    inbound = InboundMessage(provider_message_id=name, sender=sender, at=calm.world.clock(), parts=(part,), number=None)
    await calm.world.client.system.webhook._store("simulated", "shop", [inbound])


def skipped(calm: Calm) -> dict[str, str]:
    found = calm.world.truth.collection("outbox").values()
    return {one["to"]: one["lastError"]["code"] for one in found if one["status"] == "skipped"}


def test_a_person_who_writes_stop_gets_nothing_of_the_run_that_goes_on() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(pace={"perMinute": 10})
        await remind(calm, listed=PEOPLE)
        await calm.until(lambda: calm.statuses()["sent"] >= 3)
        last = PEOPLE[-1]["to"]
        await writes(calm, last.removeprefix("+"), "Stop!")
        assert skipped(calm) == {last: "opted_out"}, "at once, not when its turn comes"
        await until_ended(calm)
        counts = only_run(calm)["counts"]
        assert (counts["sent"], counts["skipped"], counts["total"]) == (39, 1, 40)
        assert targets_called(calm)[last] == 0
        assert calm.document("accounts/shop/suppressed/" + last.removeprefix("+"))["because"] == "asked"

    simulate(body)


def test_the_next_run_skips_the_address_and_an_answer_in_person_still_goes() -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        await writes(calm, PEOPLE[0]["to"], "unsubscribe")
        await remind(calm, listed=PEOPLE[:5])
        await until_ended(calm)
        assert skipped(calm) == {PEOPLE[0]["to"]: "opted_out"}
        assert only_run(calm)["status"] == "partial"
        await calm.send("answer-1", to=PEOPLE[0]["to"])
        await calm.until(lambda: calm.status("answer-1") == "sent")

    simulate(body)


def test_an_opt_out_between_two_pages_of_a_run_is_seen_by_the_run() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(pace={"perMinute": 1})
        system = calm.world.client.system
        many = [{"id": f"t{number}", "to": f"+49151{number:07}"} for number in range(900)]
        await remind(calm, listed=many)
        await calm.until(lambda: 0 < len(calm.world.truth.collection("outbox")) < 900)
        opted = [many[0]["to"], many[-1]["to"]]
        await asyncio.gather(*(system.suppressions.add("shop", address, Source.OPERATOR) for address in opted))
        await calm.until(lambda: only_run(calm)["expanded"])
        assert set(opted) - set(targets_called(calm)) <= set(skipped(calm))
        assert skipped(calm)[many[-1]["to"]] == "opted_out"

    simulate(body)


def test_targets_of_a_paused_run_are_skipped_too() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(pace={"perMinute": 10})
        await remind(calm, listed=PEOPLE)
        await calm.until(lambda: calm.statuses()["sent"] >= 2)
        system = calm.world.client.system
        run_id = only_run(calm)["runId"]
        await system.control.ask(run_id, Command.PAUSE)
        await calm.until(lambda: only_run(calm)["status"] == "paused")
        assert await system.suppressions.add("shop", PEOPLE[-1]["to"], Source.API, by="ann") == 1
        await system.control.ask(run_id, Command.RESUME)
        await until_ended(calm)
        assert targets_called(calm)[PEOPLE[-1]["to"]] == 0

    simulate(body)


def test_start_brings_a_person_back_and_the_word_that_comes_again_does_not() -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        await writes(calm, "+491510000001", "stop", "in-1")
        assert "accounts/shop/suppressed/+491510000001" in calm.world.truth.latest()
        await writes(calm, "+491510000001", "start", "in-2")
        assert "accounts/shop/suppressed/+491510000001" not in calm.world.truth.latest()
        await writes(calm, "+491510000001", "stop", "in-3")
        await writes(calm, "+491510000001", "start", "in-2")
        assert "accounts/shop/suppressed/+491510000001" in calm.world.truth.latest(), "in-2 had come before"

    simulate(body)


def test_an_account_that_wants_no_words_hears_none() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(optOut={"off": True})
        await writes(calm, "+491510000001", "stop")
        assert "accounts/shop/suppressed/+491510000001" not in calm.world.truth.latest()

    simulate(body)


@pytest.mark.parametrize("suppressing", [False, True])
def test_an_account_without_opt_outs_pays_no_read_for_them(suppressing: bool) -> None:
    asked: list[str] = []

    async def body(calm: Calm) -> None:
        await calm.account()
        if suppressing:
            await calm.write(update("accounts/shop", {"suppressing": True}, version=None))
        for machine in calm.world.workers:
            among = machine.system.suppressions.among

            async def counted(account_id: str, addresses: Any, among: Any = among) -> Any:
                asked.append(account_id)
                return await among(account_id, addresses)

            object.__setattr__(machine.system.suppressions, "among", counted)
        await remind(calm, targets=3)
        await until_ended(calm, within=timedelta(hours=1))

    simulate(body)
    assert bool(asked) is suppressing
