"""What the development stack alone has: its page, and the sign-in with one click."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from firestore_outbox.clock import system_clock
from firestore_outbox.settings import CLOUD_RUN_VARIABLE
from firestore_outbox.web.auth import EMULATOR_VARIABLE, UnsafeSettings
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


@pytest.mark.asyncio
async def test_sign_in_with_one_click_is_offered_with_the_stand_in_alone() -> None:
    assert await Identity("project", "", system_clock, {}).people() == []


def test_on_cloud_run_a_console_with_the_stand_in_does_not_start() -> None:
    variables = {EMULATOR_VARIABLE: "127.0.0.1:9099", CLOUD_RUN_VARIABLE: "console"}
    with pytest.raises(UnsafeSettings, match="any person could sign in"):
        Identity("project", "", system_clock, variables)


def test_the_command_says_so_and_ends() -> None:
    variables = {EMULATOR_VARIABLE: "127.0.0.1:9099", CLOUD_RUN_VARIABLE: "console", "OUTBOX_PROJECT": "demo-outbox"}
    ended = subprocess.run(
        [Path(sys.executable).with_name("outbox"), "console", "--port", "0"],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode != 0
    assert EMULATOR_VARIABLE in ended.stderr
    assert "Traceback" not in ended.stderr
