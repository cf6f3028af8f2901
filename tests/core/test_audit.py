"""`outbox audit`: quiet where all is well, and a sentence for each invariant that is broken."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from tests.core.support import Calm, simulate
from worker.audit import Finding, audit
from worker.store import paths
from worker.store.gateway import DELETE, SERVER_TIME, WriteOp, create, update

HOUR = timedelta(hours=1)


async def findings(calm: Calm) -> list[Finding]:
    return await audit(calm.gateway, now=calm.world.clock())


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
    "a lane that nobody took over": ("lease", "nobody took over"),
    "a lane that nobody came for": ("lost", "nobody came"),
    "a claim that nobody settled": ("lease", "nobody settled it"),
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
        case "a lane that nobody took over":
            return [update(lane, {"state": "running", "owner": "gone", "leaseUntil": past}, version=None)]
        case "a lane that nobody came for":
            return [update(lane, {"state": "ready", "readyAt": past, "dueAt": past}, version=None)]
        case "a claim that nobody settled":
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
def test_what_is_broken_is_told(case: str) -> None:
    async def body(calm: Calm) -> list[Finding]:
        await calm.account()
        await calm.send("request-1")
        await calm.until(lambda: calm.status("request-1") == "sent")
        await asyncio.sleep(60)
        for machine in (calm.world.functions[0], *calm.world.workers):
            machine.process.die()  # nobody is there to mend it
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
