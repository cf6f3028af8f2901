"""Twenty open consoles on a busy stack, on virtual time: what messages pay, and what pages read."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from firestore_outbox.local.simulators.faults import Faults
from firestore_outbox.web.console.identity import Identity
from firestore_outbox.web.console.pages import SCREENS
from firestore_outbox.web.console.rights import Person
from firestore_outbox.web.console.screens import Console, Screen, Viewer
from firestore_outbox.web.console.views import Views
from tests.calm import Calm, Meter, simulate

ACCOUNTS = ("bakery", "clinic", "shop")
MINUTES, A_MINUTE = 6, 10
MESSAGES = len(ACCOUNTS) * MINUTES * A_MINUTE
OPERATOR = Viewer(person=Person(uid="operator", is_operator=True), roles={})
OPEN: Mapping[str, Mapping[str, str]] = {
    "/": {},
    "/needs": {},
    "/messages": {},
    "/runs": {},
    "/accounts/{id}": {"id": "shop"},
    "/lanes": {},
}
"""The pages that each person has open, and their parameters."""


async def watch(console: Console, screen: Screen, params: Mapping[str, str]) -> None:
    load = screen.load
    async for _ in console.views.follow(
        screen.key(OPERATOR, params), lambda: load(console, OPERATOR, params), screen.every
    ):
        pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Paid:
    messages: tuple[int, int, int]
    """Reads, writes and tasks of workers and functions."""
    pages: int
    """Reads of the console, as Firestore bills them."""


def paid(persons: int) -> Paid:
    """By a busy stack, while this number of persons look at every page."""

    async def body(calm: Calm) -> Paid:
        calm.world.provider.faults = Faults(latencyMs=100, receiptLossRate=1.0)
        for name in ACCOUNTS:
            await calm.account(name, pace={"perMinute": 60})
        clock, bill = calm.world.clock, calm.world.firestore.engine.billing
        console = Console(calm.world.client.system, Identity("project", "", clock, {}), Views(clock))
        screens = [screen for screen in SCREENS if screen.path in OPEN]
        meter, billed = Meter(calm), bill.bill(calm.world.settings.project).reads
        looking = [
            asyncio.create_task(watch(console, screen, OPEN[screen.path])) for _ in range(persons) for screen in screens
        ]
        for minute in range(MINUTES):
            for number in range(A_MINUTE):
                for name in ACCOUNTS:
                    await calm.send(f"{name}-{minute:03d}-{number:03d}", to=f"+49{number}", account_id=name)
            await asyncio.sleep(60)
        assert calm.statuses() == {"sent": MESSAGES}
        assert not [task for task in looking if task.done()], "every page is open"
        for task in looking:
            task.cancel()
        await asyncio.gather(*looking, return_exceptions=True)
        all_reads = bill.bill(calm.world.settings.project).reads - billed
        return Paid(messages=(meter.reads, meter.writes, meter.tasks), pages=all_reads - meter.reads)

    return simulate(body, sweeps=False)


def test_twenty_consoles_cost_messages_nothing_and_read_no_more_than_one() -> None:
    """The meter of the simulation counts what workers and functions do, and leaves out the process of the console."""
    none, one, twenty = paid(0), paid(1), paid(20)
    for looked in (one, twenty):
        for before, now in zip(none.messages, looked.messages, strict=True):
            assert now <= before * 1.05, "the order of events differs a little"
    assert one.pages > none.pages, "the pages were read"
    assert twenty.pages == pytest.approx(one.pages, rel=0.05)
