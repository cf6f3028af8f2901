"""The chat page says what is down: a part of the stack, or all of it."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

from firestore_outbox.local.dev import DevStack
from tests.client import node
from tests.patience import PATIENCE_SECONDS
from tests.system.browser.conftest import SETTINGS, told

SCRIPT = Path(__file__).parent / "down.mjs"


async def test_the_page_says_which_part_of_the_stack_is_down_and_keeps_what_is_sent(browser: str) -> None:
    async with DevStack(SETTINGS) as stack:
        process = await asyncio.create_subprocess_exec(
            node.require_node(),
            str(SCRIPT),
            cwd=node.ROOT,
            env={**os.environ, "WORLD": json.dumps(told(stack, browser))},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        stops = {"all is well": ("worker",), "the worker is down": ("page", "google"), "the stack is down": ()}
        said = []
        assert process.stdout is not None
        try:
            async with asyncio.timeout(2 * PATIENCE_SECONDS):
                async for line in process.stdout:
                    if not line.startswith(b'{"name":'):
                        continue
                    told_now = json.loads(line)
                    assert told_now["error"] is None, told_now["error"]
                    said.append(told_now["name"])
                    for part in stops[told_now["name"]]:
                        await stack.processes[part].stop()
                await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    assert said == list(stops)


def test_the_page_has_words_for_every_error_code() -> None:
    from firestore_outbox.providers.outcome import ErrorCode

    words = (node.ROOT / "client/demo/words.js").read_text(encoding="utf-8").partition("};")[0]
    assert {line.partition(":")[0].strip() for line in words.splitlines() if line.startswith("  ")} == set(ErrorCode)
