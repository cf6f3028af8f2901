"""The commands of the documents about a laptop are run as they are printed, against a real stack.

Only the ports differ: a stack of the test's own takes free ones. The commands of a document share one shell, as they do
in a reader's terminal.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import get_args

import pytest
import pytest_asyncio

from firestore_outbox.local.dev import DevSettings, DevStack
from firestore_outbox.local.simulators.app import SimulatorApp
from firestore_outbox.local.simulators.faults import ErrorName, Faults
from firestore_outbox.local.simulators.simulator import ProviderSimulator
from firestore_outbox.web.runs_api import ACTIONS
from tests.docs.commands import Step, steps
from tests.docs.snippets import ROOT
from tests.patience import PATIENCE_SECONDS

FREE = DevSettings(firestore_port=0, tasks_port=0, functions_port=0, worker_port=0, provider_port=0)
PRINTED = {8080: "firestore", 8123: "tasks", 8081: "functions", 8082: "worker", 8083: "provider"}
"""The ports in the documents."""
LOCAL = "docs/local.md"
HTTP_API = "docs/http-api.md"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack() -> AsyncIterator[DevStack]:
    async with DevStack(FREE) as stack:
        yield stack


class Shell:
    """A terminal: bash with the variables that `outbox dev` names."""

    def __init__(self, stack: DevStack, home: Path) -> None:
        self._ports = {f"127.0.0.1:{port}": f"127.0.0.1:{stack.ports[name]}" for port, name in PRINTED.items()}
        self._environment = {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(home),
            **stack.exports,
        }
        self._home = home
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> Shell:
        pipe = asyncio.subprocess.PIPE
        self._process = await asyncio.create_subprocess_exec(
            "bash",
            "-eo",
            "pipefail",
            stdin=pipe,
            stdout=pipe,
            stderr=asyncio.subprocess.STDOUT,
            env=self._environment,
            cwd=self._home,
        )
        return self

    async def __aexit__(self, *exc: object) -> None:
        assert self._process is not None
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()

    async def type(self, commands: str) -> str:
        """What they print, errors included. A command that fails ends the shell, and is an error here."""
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        mark = "=== done ==="
        self._process.stdin.write(f"{self._with_ports(commands)}\necho\necho '{mark}'\n".encode())
        await self._process.stdin.drain()
        output = ""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while line := (await self._process.stdout.readline()).decode():
                if line.strip() == mark:
                    return output
                output += line
        raise AssertionError(f"the command failed:\n{commands}\nIt printed:\n{output}")

    def _with_ports(self, text: str) -> str:
        for printed, real in self._ports.items():
            text = text.replace(printed, real)
        return text


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("document", [LOCAL, HTTP_API])
async def test_the_commands_of_the_page_print_what_it_says(document: str, stack: DevStack, tmp_path: Path) -> None:
    todo = steps(document)
    assert len(todo) > 5
    async with Shell(stack, tmp_path) as shell:
        for step in todo:
            output = await shell.type(step.commands)
            assert step.is_fulfilled_by(output), f"{step.commands}\nprinted\n{output}\nand not\n{step.prints}"


def test_a_page_that_says_something_else_is_noticed() -> None:
    step = Step("echo a", "a…c\n")
    assert step.is_fulfilled_by("a b\nc\n")
    assert not step.is_fulfilled_by("a b\n")


def rows(document: str, heading: str) -> list[list[str]]:
    text = (ROOT / document).read_text(encoding="utf-8")
    table = text.partition(f"\n| {heading} |")[2].partition("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table]


def shown(value: object) -> str:
    """As the page has it: JSON, and a text without its quotes."""
    return value if isinstance(value, str) else json.dumps(value)


def test_the_page_has_every_fault_with_its_default() -> None:
    told = {row[0].strip("`| "): row[1] for row in rows(LOCAL, "fault")}
    defaults = Faults().model_dump(mode="json")
    assert told == {
        name: f"{value:g}" if isinstance(value, float) else shown(value) for name, value in defaults.items()
    }


def test_the_page_says_what_each_error_makes_the_worker_do() -> None:
    told = {name for row in rows(LOCAL, "code") for name in re.findall(r"`(\w+)`", row[0])}
    assert told == set(get_args(ErrorName))


def _calls(app: SimulatorApp) -> Iterator[str]:
    for route in app.starlette.routes:
        path = getattr(route, "path", "").replace("{account_id}", "{accountId}").replace("{media_id}", "{mediaId}")
        if path.startswith("/_sim/"):
            yield from (f"{method} {path}" for method in getattr(route, "methods", ()) if method != "HEAD")


def test_the_page_has_every_address_of_the_simulator() -> None:
    told = {call for row in rows(LOCAL, "call") for call in re.findall(r"`([A-Z]+ /_sim/[^`?]+)`", f"|{row[0]}")}
    simulator = ProviderSimulator()
    assert told == set(_calls(simulator._app))


def test_the_page_of_the_http_api_has_every_command_of_a_run() -> None:
    text = (ROOT / HTTP_API).read_text(encoding="utf-8")
    assert [action for action in ACTIONS if f":{action}`" not in text] == []
