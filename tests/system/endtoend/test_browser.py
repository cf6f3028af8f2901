"""Production's path on Google's emulator, with nothing of it bypassed: from the web SDK's write to `read`."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from firestore_outbox.local.dev import PROJECT
from tests.patience import PATIENCE_SECONDS
from tests.system.endtoend.conftest import World
from tests.system.endtoend.evidence import check, claims_counted, collect
from tests.system.endtoend.senders import by_web_sdk
from tests.system.endtoend.stack import TappedStack

TO = "+491511234567"


async def test_a_message_written_with_the_web_sdk_takes_the_whole_way_until_its_writer_sees_it_read(
    googles: World, chromium: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    stack = googles.stack
    letter = await googles.letter("simulated", TO)
    asked_before, claims_before = await _rules_asked(stack), await claims_counted(stack)
    story = await by_web_sdk(stack, letter, chromium=chromium)
    asked = await _rules_asked(stack) - asked_before
    times = check(story, await collect(stack, googles.db, story, claims_before=claims_before))
    assert story.states[0] == "pending", "shown before the server had it"
    assert asked > 0, "the rules judged the write: a client that bypasses them does not count"
    with capsys.disabled():
        print(f"\n{'chat page' if chromium else 'web SDK in Node'}, Google's emulator: {times}")


async def _rules_asked(stack: TappedStack) -> int:
    """How often any expression of the rules was evaluated. The server side passes them by, so only for clients."""
    url = f"http://{stack.firestore}/emulator/v1/projects/{PROJECT}:ruleCoverage"
    async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE_SECONDS) as http:
        answer = await http.get(url, headers={"content-type": "application/json"})
    return sum(map(_evaluations, answer.raise_for_status().json()["report"]))


def _evaluations(node: dict[str, Any]) -> int:
    own = sum(int(value.get("count", 1)) for value in node.get("values", []))
    return own + sum(map(_evaluations, node.get("children", [])))
