"""A newcomer follows README.md and docs/tutorial.md to the letter, on a machine with nothing on it.

The commands and files are taken from the documents. Only ports are replaced: the stack takes free ones by the option
that the documents name, `--port-base`. Run with `-s` to see how long each part takes.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from pathlib import Path

import pytest

from tests.client.node import require_node
from tests.docs.snippets import ROOT
from tests.system.browser.chromium import require_chromium
from tests.system.newcomer.machine import LONG, Machine, Terminal
from tests.system.newcomer.reading import exported, last_line, moved, took, written

pytestmark = pytest.mark.timeout(3000)

TICKS = Path(__file__).parent / "ticks.mjs"
TUTORIAL = "docs/tutorial.md"
STATES = ["queued", "sent", "delivered", "read"]
_FILE = re.compile(r"Save this as `([\w.]+)`:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)


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
