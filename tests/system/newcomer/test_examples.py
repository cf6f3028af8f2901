"""A newcomer follows the README of each example to the letter: examples/nextup/README.md, examples/bot/README.md and
examples/adapter/README.md. Run with `-s` to see how long each takes."""

from __future__ import annotations

import asyncio

import pytest

from tests.docs.commands import steps
from tests.patience import PATIENCE_SECONDS
from tests.system.newcomer.machine import Machine, Terminal
from tests.system.newcomer.reading import exported, last_line, took, written

pytestmark = pytest.mark.timeout(3000)


async def test_nextup_ranks_the_tasks_as_its_readme_shows(machine: Machine, base: int) -> None:
    (command,) = written("examples/nextup/README.md", base)
    async with Terminal(machine, machine.checkout) as terminal:
        with took("examples/nextup"):
            said = await terminal.type(command)
    assert "anna: events 5, runs 1, open tasks 3, changed 3" in said


async def test_the_bot_answers_a_burst_once(machine: Machine, base: int) -> None:
    first, second, look = written("examples/bot/README.md", base)
    install, dev = last_line(first)
    async with Terminal(machine, machine.checkout) as stack, Terminal(machine, machine.checkout) as customer:
        with took("examples/bot"):
            await stack.type(install)
            ready = await stack.start(dev, "export ")
            await customer.type(exported(ready))
            await customer.type(second)
            said = ""
            async with asyncio.timeout(2 * PATIENCE_SECONDS):
                while "+491511234567" not in said:  # a command takes a second: the newcomer just tries again
                    said = await customer.type(look)
    assert said.count("+491511234567") == 1


async def test_the_adapter_keeps_its_contract_and_is_found(machine: Machine, base: int) -> None:
    (commands,) = written("examples/adapter/README.md", base)
    (step,) = steps("examples/adapter/README.md")
    assert step.prints is not None
    async with Terminal(machine, machine.checkout) as terminal:
        with took("examples/adapter"):
            said = await terminal.type(commands)
    assert step.prints.strip() in said
    assert "acme" in said.rpartition(step.prints.strip())[2]
