"""`outbox audit`: quiet where all is well, and a sentence for each invariant that is broken."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from firestore_outbox.firestore import paths
from firestore_outbox.firestore.writes import DELETE, SERVER_TIME, WriteOp, create, update
from firestore_outbox.operations.audit.auditor import audit
from firestore_outbox.operations.audit.finding import Finding
from tests.calm import Calm, simulate

HOUR = timedelta(hours=1)


async def findings(calm: Calm) -> list[Finding]:
    system = calm.world.client.system
    return await audit(system.gateway, system.accounts, now=calm.world.clock(), overlap=calm.world.settings.overlap)


def test_nothing_is_found_where_all_is_well() -> None:
    async def body(calm: Calm) -> list[Finding]:
        await calm.account()
        await calm.account("asleep", status="paused")
        await calm.send_many(20)
        await calm.send("far-away", send_at=calm.world.clock() + timedelta(days=10))
        await calm.send("it-waits", account_id="asleep")
        early = await findings(calm)
        await calm.until(lambda: calm.statuses()["sent"] == 20)
        await asyncio.sleep(3600)
        return early + await findings(calm)

    assert simulate(body) == []


def of_message(**fields: Any) -> WriteOp:
    return update(paths.outbox("request-1"), fields, version=None)


BROKEN: dict[str, tuple[str, str]] = {
    "a lane that no worker took over": ("lease", "no worker took over"),
    "a lane that no worker came for": ("lost", "no worker came"),
    "a claim that no worker settled": ("lease", "no worker settled it"),
    "a message that people see otherwise": ("agreement", "sent, but people see 'queued'"),
    "a message without its document": ("agreement", "no message document"),
    "a message that no lane knows of": ("lost", "no lane knows of it"),
    "a claim on what is not being sent": ("shape", "sent, claimed by"),
    "an end without an end of life": ("shape", "never be cleared away"),
    "a malformed one that was not refused": ("lost", "malformed and not refused"),
}


def writes(calm: Calm, case: str) -> list[WriteOp]:
    past = calm.world.clock() - HOUR
    lane = paths.lane("outbox", "shop")
    message = paths.message("shop__+491", "request-1")
    claim = {"claimedBy": "gone#1", "leaseUntil": past}
    match case:
        case "a lane that no worker took over":
            return [update(lane, {"state": "running", "owner": "gone", "leaseUntil": past}, version=None)]
        case "a lane that no worker came for":
            return [update(lane, {"state": "ready", "readyAt": past, "dueAt": past}, version=None)]
        case "a claim that no worker settled":
            queued = update(message, {"status": "queued"}, version=None)
            return [of_message(status="sending", **claim), queued]
        case "a message that people see otherwise":
            return [update(message, {"status": "queued"}, version=None)]
        case "a message without its document":
            return [update(paths.outbox("request-1"), {"threadId": "shop__+492", "to": "+492"}, version=None)]
        case "a message that no lane knows of":
            queued = update(message, {"status": "queued"}, version=None)
            return [of_message(status="queued", nextAttemptAt=past, expireAt=DELETE), queued]
        case "a claim on what is not being sent":
            return [of_message(**claim)]
        case "an end without an end of life":
            return [of_message(expireAt=DELETE)]
        case _:
            return [create(paths.outbox("malformed"), {"status": "queued", "createdAt": SERVER_TIME})]


@pytest.mark.parametrize("case", BROKEN)
def test_what_is_broken_is_reported(case: str) -> None:
    async def body(calm: Calm) -> list[Finding]:
        await calm.account()
        await calm.send("request-1")
        await calm.until(lambda: calm.status("request-1") == "sent")
        await asyncio.sleep(60)
        for machine in (calm.world.functions[0], *calm.world.workers):
            machine.process.die()  # no worker is left to repair it
        await calm.write(*writes(calm, case))
        await asyncio.sleep(600)
        return await findings(calm)

    (finding,) = simulate(body, sweeps=False)

    invariant, words = BROKEN[case]
    assert finding.invariant == invariant
    assert words in str(finding)


def test_everything_is_looked_at_however_much_there_is() -> None:
    async def body(calm: Calm) -> list[Finding]:
        await calm.account(status="parked")
        await calm.send_many(700)
        await calm.write(update(paths.message("shop__+49699", "shop-00699"), {"status": "sent"}, version=None))
        return await findings(calm)

    (finding,) = simulate(body, sweeps=False)

    assert finding.path == "outbox/shop-00699"


# --- what was sent, told by its times


async def sent(calm: Calm, *times: timedelta, to: str = "+491", **account: Any) -> None:
    """Messages written a minute apart, whose documents say that they were sent at these times after the last."""
    await calm.account(**account)
    await asyncio.sleep(120)
    for number in range(len(times)):
        await calm.send(f"request-{number}", to=to)
        await calm.until(lambda number=number: calm.status(f"request-{number}") == "sent")  # type: ignore[misc]
        await asyncio.sleep(60)
    for machine in (calm.world.functions[0], *calm.world.workers):
        machine.process.die()
    last = calm.world.clock()
    for at, number in sorted((at, number) for number, at in enumerate(times)):
        await asyncio.sleep(max(0.0, (last + at - calm.world.clock()).total_seconds()))
        await calm.write(update(paths.outbox(f"request-{number}"), {"sentAt": calm.world.clock()}, version=None))


def seconds(*values: float) -> list[timedelta]:
    return [timedelta(seconds=value) for value in values]


def test_a_message_that_was_sent_before_one_that_was_due_before_it_is_reported() -> None:
    async def body(calm: Calm) -> list[Finding]:
        await sent(calm, *seconds(0, 60, 50, 70))
        return await findings(calm)

    (finding,) = simulate(body, sweeps=False, receipts=False)

    assert (finding.invariant, finding.path) == ("order", "outbox/request-2")
    assert "request-1 of the same thread" in finding.sentence


@pytest.mark.parametrize("apart", [3.0, 60.0])
def test_messages_that_were_sent_in_order_or_nearly_so_by_clocks_that_differ_are_not_told(apart: float) -> None:
    async def body(calm: Calm) -> list[Finding]:
        await sent(calm, *seconds(0, 60 + 3 - apart, 60, 120))
        return await findings(calm)

    assert simulate(body, sweeps=False, receipts=False) == []


PACED = {"perMinute": 1}


@pytest.mark.parametrize(
    ("times", "is_reported"),
    [
        (seconds(0, 60, 120, 180), False),
        (seconds(0, 40, 120, 160), False),  # by clocks that differ, and calls that took long
        (seconds(0, 30, 60, 90), True),
    ],
)
def test_a_pace_that_was_exceeded_is_reported(times: list[timedelta], is_reported: bool) -> None:
    async def body(calm: Calm) -> list[Finding]:
        await sent(calm, *times, pace=PACED)
        return await findings(calm)

    told = simulate(body, sweeps=False, receipts=False)

    assert [(finding.invariant, finding.path) for finding in told] == [("pace", "accounts/shop")] * is_reported
    assert all("4 sent in 90.000 s" in finding.sentence for finding in told)


def test_a_recipients_pace_that_was_exceeded_is_reported() -> None:
    async def body(calm: Calm) -> list[Finding]:
        await sent(calm, *seconds(0, 20), pace={"perMinute": 0, "perRecipientSeconds": 50})
        return await findings(calm)

    (finding,) = simulate(body, sweeps=False, receipts=False)

    assert (finding.invariant, finding.path) == ("pace", "threads/shop__+491")


def test_what_was_sent_at_an_earlier_pace_is_not_judged_by_the_present_one() -> None:
    async def body(calm: Calm) -> list[Finding]:
        await sent(calm, *seconds(0, 30, 60, 90))
        await calm.change_account(pace=PACED)
        return await findings(calm)

    assert simulate(body, sweeps=False, receipts=False) == []


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ({"total": 3, "sent": 2, "failed": 1}, None),
        ({"total": 3, "sent": 2, "failed": 0}, "of 3 targets it tells"),
        ({"total": 2, "sent": 2}, "of 3 targets it tells"),
        (None, "has no counts"),
        ({"total": 3, "dreamt of": 3}, "has no counts"),
    ],
)
def test_a_run_that_ended_has_counts_that_add_up(counts: dict[str, int] | None, words: str | None) -> None:
    async def body(calm: Calm) -> list[Finding]:
        await calm.write(create(paths.run("run-1"), {"status": "partial", "total": 3, "counts": counts}))
        await calm.write(create(paths.run("run-2"), {"status": "running", "total": 3}))
        return await findings(calm)

    told = simulate(body, sweeps=False)

    assert [finding.invariant for finding in told] == (["counts"] if words else [])
    assert all(words in finding.sentence for finding in told if words)
