"""The user's code on a lane, in virtual time: what it is given, what it sends, and what errors and crashes do."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from firestore_outbox import Context, Permanent
from firestore_outbox.handlers.ingest import NotTaken, Skipped, Taken
from firestore_outbox.handlers.registration import Registration
from firestore_outbox.lane.ref import INBOUND
from tests.calm import Calm, simulate
from tests.inbound.test_receive import comes_in

Function = Callable[[Context], Awaitable[None]]


def conversing(function: Function) -> dict[str, Registration]:
    return {INBOUND: Registration(kind=INBOUND, function=function)}


def nextup(function: Function, **options: Any) -> dict[str, Registration]:
    return {"nextup": Registration(kind="nextup", function=function, **options)}


def jobs(calm: Calm) -> dict[str, dict[str, Any]]:
    return dict(calm.world.truth.collection("jobs"))


def test_a_run_gets_what_people_wrote_since_the_last_successful_run() -> None:
    runs: list[list[str]] = []

    async def handler(context: Context) -> None:
        runs.append([message.text for message in await context.messages()])

    async def body(calm: Calm) -> None:
        await calm.account()
        for _ in range(3):
            await comes_in(calm, "+491")
        await asyncio.sleep(60)
        await comes_in(calm, "+491")
        await asyncio.sleep(60)

    simulate(body, handlers=conversing(handler))
    assert runs == [["a question"] * 3, ["a question"]]


def test_a_reply_goes_through_the_outbox_to_the_person_who_wrote() -> None:
    async def handler(context: Context) -> None:
        await context.reply("Got it")

    async def body(calm: Calm) -> dict[str, Any]:
        await calm.account()
        await comes_in(calm, "+491")
        await calm.until(lambda: calm.statuses()["sent"] == 1)
        (sent,) = calm.world.truth.collection("outbox").values()
        return dict(sent)

    sent = simulate(body, handlers=conversing(handler))
    assert (sent["accountId"], sent["to"], sent["createdBy"]) == ("shop", "+491", "handler:inbound")
    assert sent["parts"] == [{"type": "text", "text": "Got it"}]


def test_a_run_that_dies_after_its_replies_runs_again_and_sends_nothing_twice() -> None:
    runs: list[int] = []

    async def handler(context: Context) -> None:
        runs.append(len(await context.messages()))
        await context.reply("one")
        await context.reply("two")
        await asyncio.sleep(10)

    async def body(calm: Calm) -> list[str]:
        await calm.account()
        await comes_in(calm, "+491")
        await asyncio.sleep(9)  # both replies are written, and the handler still runs
        calm.world.crash(calm.world.workers, 0)
        await asyncio.sleep(300)
        return [data["parts"][0]["text"] for data in calm.world.truth.collection("outbox").values()]

    texts = simulate(body, handlers=conversing(handler), workers=1)
    assert runs == [1, 1]
    assert sorted(texts) == ["one", "two"]


def test_an_error_that_passes_is_retried_at_once_and_the_events_stay() -> None:
    tries: list[int] = []

    async def handler(context: Context) -> None:
        tries.append(len(await context.events()))
        if len(tries) < 3:
            raise TimeoutError("the database is slow")

    async def body(calm: Calm) -> None:
        await calm.world.client.system.events.event("nextup", "event-1", {"task": 1}, key="ann")
        await asyncio.sleep(30)
        assert jobs(calm) == {}

    simulate(body, handlers=nextup(handler))
    assert tries == [1, 1, 1]


def test_an_error_for_good_becomes_a_dead_letter_and_the_next_events_are_handled() -> None:
    handled: list[list[str]] = []

    async def handler(context: Context) -> None:
        ids = [event.id for event in await context.events()]
        handled.append(ids)
        if "poison" in ids:
            raise Permanent("no such task")

    async def body(calm: Calm) -> dict[str, dict[str, Any]]:
        events = calm.world.client.system.events
        await events.event("nextup", "poison", {}, key="ann")
        await asyncio.sleep(30)
        await events.event("nextup", "good", {}, key="ann")
        await asyncio.sleep(30)
        return jobs(calm)

    ((job),) = simulate(body, handlers=nextup(handler)).values()
    assert handled == [["poison"], ["good"]]
    assert (job["kind"], job["key"], job["events"]) == ("nextup", "ann", ["poison"])
    assert job["error"] == "Permanent: no such task"


def test_a_dead_letter_that_is_retried_runs_with_its_own_events_once_more() -> None:
    handled: list[list[str]] = []
    is_repaired = False

    async def handler(context: Context) -> None:
        handled.append([event.id for event in await context.events()])
        if not is_repaired:
            raise Permanent("no such task")

    async def body(calm: Calm) -> None:
        nonlocal is_repaired
        system = calm.world.client.system
        await system.events.event("nextup", "event-1", {}, key="ann")
        await asyncio.sleep(30)
        is_repaired = True
        ((name),) = jobs(calm)
        await system.dead_letters.retry(name)
        await asyncio.sleep(30)
        assert jobs(calm) == {}
        await system.events.event("nextup", "event-2", {}, key="ann")
        await asyncio.sleep(30)

    simulate(body, handlers=nextup(handler))
    assert handled == [["event-1"], ["event-1"], ["event-2"]]


def test_an_event_that_comes_twice_is_handled_once() -> None:
    handled: list[str] = []

    async def handler(context: Context) -> None:
        handled.extend(event.id for event in await context.events())

    async def body(calm: Calm) -> list[object]:
        events = calm.world.client.system.events
        taken: list[object] = []
        for wait in (1, 60, 60):
            taken.append(await events.event("nextup", "event-1", {}, key="ann"))
            await asyncio.sleep(wait)
        return taken

    taken = simulate(body, handlers=nextup(handler))
    assert taken == [Taken("ann", is_new=True), Taken("ann", is_new=False), Taken("ann", is_new=False)]
    assert handled == ["event-1"]


def test_the_key_comes_from_the_handlers_own_function_and_an_event_without_one_is_skipped() -> None:
    keys: list[str] = []

    async def handler(context: Context) -> None:
        keys.append(context.key)

    async def body(calm: Calm) -> list[object]:
        events = calm.world.client.system.events
        found: list[object] = [
            await events.event("nextup", "1", {"assignee": {"id": "ann"}}),
            await events.event("nextup", "2", {"assignee": {"id": None}}),
            await events.event("nextup", "3", {}),
            await events.event("nextup", "4", {"assignee": {"id": "a/b"}}),
            await events.event("elsewhere", "5", {}, key="ann"),
        ]
        await asyncio.sleep(30)
        return found

    found = simulate(body, handlers=nextup(handler, key=lambda event: event["assignee"]["id"]))
    assert found[:2] == [Taken("ann", is_new=True), Skipped()]
    assert [type(one) for one in found[2:]] == [NotTaken, NotTaken, NotTaken]
    assert keys == ["ann"]


def test_a_burst_for_one_key_is_one_run_and_two_keys_run_beside_each_other() -> None:
    runs: list[tuple[str, int]] = []

    async def handler(context: Context) -> None:
        runs.append((context.key, len(await context.events())))

    async def body(calm: Calm) -> None:
        events = calm.world.client.system.events
        for number in range(10):
            await events.event("nextup", f"a-{number}", {}, key="ann")
            await events.event("nextup", f"b-{number}", {}, key="bob")
        await asyncio.sleep(60)

    simulate(body, handlers=nextup(handler, quiet=5, at_most=15))
    assert sorted(runs) == [("ann", 10), ("bob", 10)]


def test_more_events_than_a_run_takes_are_all_handled_once() -> None:
    handled: list[str] = []

    async def handler(context: Context) -> None:
        handled.extend(event.id for event in await context.events())

    async def body(calm: Calm) -> None:
        store = calm.world.client.system
        await asyncio.gather(*(store.events.event("nextup", f"{n:04}", {}, key="ann") for n in range(700)))
        await asyncio.sleep(120)

    simulate(body, handlers=nextup(handler))
    assert sorted(handled) == [f"{number:04}" for number in range(700)]


def test_without_a_handler_an_inbound_message_wakes_nothing() -> None:
    async def body(calm: Calm) -> set[str]:
        await calm.account()
        await comes_in(calm, "+491")
        await asyncio.sleep(60)
        return set(calm.world.truth.collection("lanes"))

    assert simulate(body) == set()
