"""Pairing: a person links the account's phone, from the wish to connect until messages go; in virtual time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from firestore_outbox.firestore.gateway import Gateway
from firestore_outbox.sessions.hotset import PAIRING
from firestore_outbox.sessions.memory import Shown
from firestore_outbox.sessions.states import Rules
from firestore_outbox.sessions.store import code_path, current_path
from tests.sessions.world import World, simulate

ONE_SLOT = Rules(slots=1)
CRASHES = [0.0, 0.05, 0.2, 0.4, 0.6, 1.0, 2.5, 4.0, 7.0]
"""Seconds after the wish to connect: before the session is made, while it starts, and while it shows its code."""


class Phone:
    """A person with a page that listens, and the phone in hand."""

    def __init__(self, world: World, account_id: str = "acme") -> None:
        self.world = world
        self.account_id = account_id

    @property
    def gateway(self) -> Gateway:
        return self.world.client.store._gateway

    async def unlinked(self, **order: Any) -> None:
        """Nothing of the account is at the gateway."""
        await self.world.order(self.account_id, exists=False, paired=False, status="STOPPED", **order)

    async def connects(self) -> None:
        assert await self.world.client.hot.connect(self.account_id, "waha") is not None

    async def state(self) -> str | None:
        found = await self.gateway.get(current_path(self.account_id))
        return None if found is None else str(found.data["state"])

    async def code(self) -> str | None:
        found = await self.gateway.get(code_path(self.account_id))
        return None if found is None else str(found.data["code"])

    async def sees(self, state: Shown, *, within: float = 600) -> None:
        async def is_so() -> bool:
            return await self.state() == state.value

        await self.world.until(is_so, within=within)

    async def sees_a_code(self, *, within: float = 300) -> str:
        async def is_there() -> bool:
            return await self.code() is not None

        await self.world.until(is_there, within=within)
        found = await self.code()
        assert found is not None
        return found

    async def scans(self) -> None:
        await self.world.order(self.account_id, scan=True)


async def linked(phone: Phone) -> None:
    await phone.unlinked()
    await phone.connects()
    await phone.sees_a_code()
    await phone.scans()
    await phone.sees(Shown.CONNECTED)


def test_a_code_is_shown_until_it_is_scanned_and_then_messages_go() -> None:
    async def story(world: World) -> None:
        phone = Phone(world)
        await phone.unlinked()
        await world.due("acme")
        await phone.connects()
        assert await phone.state() == "starting"
        await phone.sees_a_code()
        assert await phone.state() == "scan"
        await phone.scans()
        await phone.sees(Shown.CONNECTED)
        assert await phone.code() is None, "a code that has been used is still shown"
        await world.until_sent(1, within=120)

    simulate(story)


def test_the_session_is_made_with_the_webhook_of_the_account_and_its_secret() -> None:
    async def story(world: World) -> None:
        phone = Phone(world)
        await linked(phone)
        aimed = world.simulator.webhooks._aimed["waha", "acme"]
        assert aimed == ("http://functions/waha/acme", world.simulator.webhooks.secret)

    simulate(story)


def test_a_code_that_the_gateway_replaces_is_replaced_for_the_page() -> None:
    async def story(world: World) -> None:
        phone = Phone(world)
        await phone.unlinked(codeMs=20_000)
        await phone.connects()
        codes = set()
        for _ in range(30):
            await asyncio.sleep(3)
            codes.add(await phone.code())
        assert len(codes - {None}) >= 4
        starts = (await world.sessions())["sessions"]["acme"]["starts"]
        assert starts == 1, "the session was restarted under the person's eyes"

    simulate(story)


def test_a_session_that_shows_its_code_keeps_its_slot_until_the_time_is_up_and_then_gives_it_back() -> None:
    async def story(world: World) -> None:
        phone = Phone(world)
        await phone.unlinked()
        await world.cold("other")
        await phone.connects()
        await phone.sees_a_code()
        await world.due("other")
        await asyncio.sleep(PAIRING.total_seconds() - 60)
        assert await world.running() == ["acme"]
        assert await phone.state() == "scan"
        await phone.sees(Shown.DISCONNECTED, within=120)
        assert await phone.code() is None
        await world.until_sent(1, within=300)
        assert (await world.sessions())["mostRunning"] == 1

    simulate(story, rules=ONE_SLOT)


def test_an_account_whose_phone_logged_out_is_shown_so_and_can_be_paired_again() -> None:
    async def story(world: World) -> None:
        phone = Phone(world)
        await linked(phone)
        await world.order("acme", paired=False, status="SCAN_QR_CODE")
        await phone.sees(Shown.DISCONNECTED, within=900)
        await phone.connects()
        await phone.sees_a_code()
        await phone.scans()
        await phone.sees(Shown.CONNECTED)

    simulate(story)


def test_a_person_disconnects_and_the_gateway_forgets_the_phone() -> None:
    async def story(world: World) -> None:
        phone = Phone(world)
        await linked(phone)
        assert await world.client.hot.disconnect("acme", "waha") is Shown.DISCONNECTED

        async def is_unlinked() -> bool:
            shown = (await world.sessions())["sessions"]["acme"]
            return (shown["paired"], shown["status"]) == (False, "STOPPED")

        await world.until(is_unlinked, within=60)
        await world.until_cold(within=300)
        assert await phone.state() == "disconnected"

    simulate(story)


def test_a_sleeping_session_stays_connected_for_members_and_costs_no_write_of_theirs() -> None:
    async def story(world: World) -> None:
        phone = Phone(world)
        await linked(phone)
        before = await phone.gateway.get(current_path("acme"))
        for _ in range(3):
            await world.due("acme")
            await asyncio.sleep(600)
        after = await phone.gateway.get(current_path("acme"))
        assert before is not None
        assert after is not None
        assert before.version == after.version

    simulate(story)


def test_a_gateway_that_fails_to_give_a_code_is_asked_again() -> None:
    async def story(world: World) -> None:
        phone = Phone(world)
        await phone.unlinked(loseCodes=3)
        await phone.connects()
        await phone.sees_a_code(within=60)

    simulate(story)


@pytest.mark.parametrize("seconds", CRASHES)
def test_workers_killed_at_any_step_of_pairing_leave_nothing_stuck(seconds: float) -> None:
    async def story(world: World) -> None:
        phone = Phone(world)
        await phone.unlinked()
        await phone.connects()
        await asyncio.sleep(seconds)
        world.crash(0)
        world.crash(1)
        await phone.sees_a_code(within=PAIRING.total_seconds() - 30)
        await phone.scans()
        await asyncio.sleep(seconds / 4)
        world.crash(0)
        world.crash(1)
        await phone.sees(Shown.CONNECTED)
        await world.due("acme")
        await world.until_sent(1, within=600)
        assert (await world.sessions())["sessions"]["acme"]["scans"] == 1

    simulate(story)
