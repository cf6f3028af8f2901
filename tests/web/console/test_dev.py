"""The page of the development stack exists nowhere else."""

from __future__ import annotations

import pytest

from firestore_outbox.clock import system_clock
from firestore_outbox.settings import CLOUD_RUN_VARIABLE
from firestore_outbox.web.console.identity import Identity
from firestore_outbox.web.console.pages import dev
from firestore_outbox.web.console.rights import Person
from firestore_outbox.web.console.screens import Console, Viewer
from firestore_outbox.web.console.serve import dev_addresses
from firestore_outbox.web.console.views import Views
from firestore_outbox.wiring import System

HERE = {"FIRESTORE_EMULATOR_HOST": "127.0.0.1:8080"}
OPERATOR = Person(uid="operator", is_operator=True)


def test_its_addresses_are_none_on_cloud_run_and_without_an_emulator() -> None:
    assert dev_addresses("http://simulator", HERE) == ("http://simulator", "127.0.0.1:8080")
    assert dev_addresses("http://simulator", {**HERE, CLOUD_RUN_VARIABLE: "console"}) == (None, None)
    assert dev_addresses("http://simulator", {}) == (None, None)


@pytest.mark.asyncio
async def test_without_a_simulator_an_operator_finds_neither_the_page_nor_its_actions() -> None:
    identity = Identity("project", "", system_clock, {})
    console = Console(object.__new__(System), identity, Views(system_clock), *dev_addresses("http://simulator", {}))
    assert await dev.load(console, Viewer(person=OPERATOR, roles={}), {}) is None
    assert [await deed.find(console, OPERATOR, "") for deed in dev.DEEDS] == [None, None]
