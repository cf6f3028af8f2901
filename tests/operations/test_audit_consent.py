"""`outbox audit` on what runs sent to whom: quiet where consent was kept, and a sentence where it was not."""

from __future__ import annotations

from datetime import timedelta

import pytest

from firestore_outbox.consent.suppressions import Source
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.writes import WriteOp, update, upsert
from firestore_outbox.operations.audit.auditor import audit
from firestore_outbox.operations.audit.finding import Finding
from tests.calm import Calm, simulate
from tests.reminders.support import only_run, remind, runs, until_ended

TO = "+491511234567"
OTHERS = ("+491511234568", "+491511234569")


async def findings(calm: Calm) -> list[Finding]:
    system = calm.world.client.system
    return await audit(system.gateway, system.accounts, now=calm.world.clock(), overlap=calm.world.settings.overlap)


async def has_run(calm: Calm, *, skipped: bool = False) -> None:
    """To three recipients, of whom one opted out before, if wanted."""
    await calm.account(timezone="UTC", recipientHours={"startHour": 0, "endHour": 24})
    if skipped:
        await calm.world.client.system.suppressions.add("shop", OTHERS[0], Source.OPERATOR)
    await remind(calm, listed=[{"id": to.strip("+"), "to": to} for to in (TO, *OTHERS)])
    await until_ended(calm)


def target(calm: Calm) -> str:
    return next(name for name, data in calm.world.truth.collection("outbox").items() if data["to"] == TO)


def on_the_list(calm: Calm, *, before: timedelta) -> list[WriteOp]:
    fields = {"address": TO, "key": TO[1:], "because": "asked", "at": calm.world.clock() - before}
    return [
        update(paths.account("shop"), {"suppressing": True}, version=None),
        upsert(f"{paths.account('shop')}/suppressed/{TO}", fields),
    ]


def test_nothing_is_found_after_a_run_that_kept_to_it_and_none_of_who_opted_out_later() -> None:
    async def body(calm: Calm) -> list[Finding]:
        await has_run(calm, skipped=True)
        await calm.world.client.system.suppressions.add("shop", TO, Source.OPERATOR)
        return await findings(calm)

    assert simulate(body) == []


def test_a_target_that_was_sent_long_after_its_recipient_opted_out_is_found() -> None:
    async def body(calm: Calm) -> list[Finding]:
        await has_run(calm)
        await calm.write(*on_the_list(calm, before=timedelta(hours=1)))
        return await findings(calm)

    [found] = simulate(body)
    assert found.invariant == "opted out"
    assert "sent after" in found.sentence


def test_a_target_that_waits_for_a_recipient_who_opted_out_is_found() -> None:
    async def body(calm: Calm) -> list[Finding]:
        await calm.account(status="paused")
        await remind(calm, listed=[{"id": "a", "to": TO}])
        await calm.until(lambda: any(run["expanded"] for run in runs(calm).values()))
        await calm.write(*on_the_list(calm, before=timedelta(hours=1)))
        return await findings(calm)

    [found] = simulate(body)
    assert found.invariant == "opted out"
    assert "waits" in found.sentence


@pytest.mark.parametrize("zones", [["UTC"], ["UTC", "Europe/London"]])
def test_a_target_that_was_sent_outside_its_recipients_hours_is_found(zones: list[str]) -> None:
    async def body(calm: Calm) -> list[Finding]:
        await has_run(calm)
        hour = calm.world.clock().hour
        closed = {"startHour": (hour + 4) % 24, "endHour": (hour + 6) % 24, "timezones": zones}
        await calm.write(update(paths.outbox(target(calm)), {"recipientHours": closed}, version=None))
        return await findings(calm)

    [found] = simulate(body)
    assert found.invariant == "hours"
    assert ", ".join(zones) in found.sentence


def test_a_run_whose_reasons_do_not_add_up_is_found() -> None:
    async def body(calm: Calm) -> list[Finding]:
        await has_run(calm, skipped=True)
        assert only_run(calm)["reasons"] == {"skipped": {"opted_out": 1}}
        run = update(paths.run(next(iter(runs(calm)))), {"reasons": {"skipped": {"opted_out": 3}}}, version=None)
        await calm.write(run)
        return await findings(calm)

    [found] = simulate(body)
    assert (found.invariant, found.sentence) == ("reasons", "1 targets were skipped, and it says why of 3")
