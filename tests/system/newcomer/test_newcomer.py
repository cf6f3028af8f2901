"""A newcomer follows README.md and docs/tutorial.md to the letter, on a machine with nothing on it.

The commands and files are taken from the documents. Only ports are replaced: the stack takes free ones by the option
that the documents name, `--port-base`. Run with `-s` to see how long each part takes.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from firestore_outbox.cli.local import OFFSETS, PORTS
from tests.client.node import require_node
from tests.docs.commands import steps
from tests.docs.snippets import ROOT
from tests.system.browser.chromium import require_chromium
from tests.system.newcomer.machine import LONG, Machine, Terminal, new_machine
from tests.system.newcomer.registry import registry

pytestmark = pytest.mark.timeout(3000)

TICKS = Path(__file__).parent / "ticks.mjs"
TUTORIAL = "docs/tutorial.md"
PAGE_PORT = 8000
STATES = ["queued", "sent", "delivered", "read"]
_FILE = re.compile(r"Save this as `([\w.]+)`:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    require_node()
    with registry(ROOT / "node_modules") as address:
        with took("a checkout and .venv"):
            machine = new_machine(tmp_path_factory.mktemp("newcomer"), npm_registry=address)
        yield machine


@contextmanager
def took(what: str) -> Iterator[None]:
    started = time.monotonic()
    yield
    print(f"{time.monotonic() - started:7.1f} s  {what}")


@pytest.fixture
def base() -> int:
    """The first of nine free ports in a row, and one more for the page."""
    for first in range(23000, 60000, 20):
        if all(_is_free(first + offset) for offset in range(10)):
            return first
    raise AssertionError("no ports are free")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def moved(text: str, base: int) -> str:
    """The same with the ports of this test."""
    for name, offset in OFFSETS.items():
        text = text.replace(f"127.0.0.1:{PORTS[name]}", f"127.0.0.1:{base + offset}")
    text = text.replace(f"'127.0.0.1', {PORTS['firestore']}", f"'127.0.0.1', {base}")
    text = text.replace(f"http.server {PAGE_PORT}", f"http.server {base + 9}")
    return re.sub(r"^outbox dev$", f"outbox dev --port-base {base}", text, flags=re.MULTILINE)


def written(document: str, base: int) -> list[str]:
    """The blocks of commands, each without its comments."""
    blocks = (re.sub(r" +# .*$", "", step.commands, flags=re.MULTILINE) for step in steps(document))
    return [moved(block, base) for block in blocks]


def last_line(block: str) -> tuple[str, str]:
    """What comes before the last command, and that command, which goes on."""
    *others, last = block.strip().splitlines()
    return "\n".join(others), last


def exported(output: str) -> str:
    (line,) = re.findall(r"^export .+$", output, re.MULTILINE)
    return str(line)


async def test_the_readme_leads_from_a_checkout_to_a_message_that_was_read(machine: Machine, base: int) -> None:
    first, second = written("README.md", base)
    demo, dev = last_line(first)
    async with Terminal(machine, machine.checkout) as stack, Terminal(machine, machine.checkout) as commands:
        with took("README: make demo, with 1,000 messages"):
            said = await stack.type(demo)
        assert "nothing was lost, and nothing was sent twice" in said
        with took("README: outbox dev, until it is ready"):
            ready = await stack.start(dev, "export ")
        with took("README: an account, a message, its status"):
            activate, *rest = second.splitlines()
            await commands.type(activate)
            await commands.type(exported(ready))
            said = await commands.type("\n".join(rest))
    assert "sent / read" in said


async def test_the_tutorial_leads_from_an_empty_app_to_ticks(machine: Machine, base: int) -> None:
    browser = require_chromium()
    first, account, app, page, reply = written(TUTORIAL, base)
    install, dev = last_line(first)
    faults, server = last_line(page)
    checkout = machine.checkout
    async with (
        Terminal(machine, checkout) as stack,
        Terminal(machine, checkout) as commands,
        Terminal(machine, machine.home) as third,
    ):
        with took("tutorial 1: the stack"):
            await stack.type(install)
            ready = await stack.start(dev, "export ")
        with took("tutorial 2: an account"):
            activate, *rest = account.splitlines()
            await commands.type(activate)
            await commands.type(exported(ready))
            await commands.type("\n".join(rest))
        with took("tutorial 3: the app and its packages"):
            await commands.type(app)
            for name, content in _FILE.findall((ROOT / TUTORIAL).read_text(encoding="utf-8")):
                (machine.home / "chat" / name).write_text(moved(content, base), encoding="utf-8")
        with took("tutorial 4 and 5: ticks in Chromium, and a reply"):
            await commands.type(faults)
            await commands.start(server, "Serving HTTP")
            result = await watched(browser, base, third, reply)
    assert result["error"] is None, result["error"]
    assert result["asked"] == [], "the page asked for something outside"
    states = result["states"]
    assert states == [state for state in STATES if state in states], "forward, each once"
    assert states[0] == "queued"
    assert states[-1] == "read"
    assert "sent" in states


async def watched(browser: str, base: int, third: Terminal, reply: str) -> dict[str, list[str]]:
    """The page in the browser; after the ticks, the reply is typed in the third terminal."""
    world = {"browser": browser, "page": f"http://127.0.0.1:{base + 9}", "reply": "Two rolls, please."}
    process = await asyncio.create_subprocess_exec(
        require_node(),
        str(TICKS),
        cwd=ROOT,
        env={**os.environ, "WORLD": json.dumps(world)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    assert process.stdout is not None
    output = ""
    async with asyncio.timeout(LONG):
        async for raw in process.stdout:
            line = raw.decode()
            output += line
            if line.startswith('{"name":"sent"'):
                await third.type(reply)
            elif line.startswith('{"name":"ticks"'):
                await process.wait()
                result: dict[str, list[str]] = json.loads(line)
                return result
    raise AssertionError(output)


def test_the_tutorial_maps_the_version_of_firebase_that_it_installs() -> None:
    text = (ROOT / TUTORIAL).read_text(encoding="utf-8")
    pinned = json.loads((ROOT / "package.json").read_text(encoding="utf-8"))["devDependencies"]["firebase"]
    assert re.findall(r"npm install firebase@([\d.]+)", text) == [pinned]
    assert re.findall(r"gstatic\.com/firebasejs/([\d.]+)/", text) == [pinned]
