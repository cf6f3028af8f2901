"""The chat page in headless Chromium: browser, Firestore, functions, Cloud Tasks, worker, provider and back.

Every case runs on our emulator and on Google's, both with our rules on.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import httpx
import pytest
import pytest_asyncio

from firestore_outbox.local.dev import DevStack
from firestore_outbox.local.page_site import page_html
from tests.client import node
from tests.client.node import Results, names_in
from tests.patience import PATIENCE_SECONDS
from tests.system.browser.conftest import told

pytestmark = node.FILE_TIMEOUT

CHAT = Path(__file__).parent / "chat.mjs"


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chat(any_stack: DevStack, browser: str) -> Results:
    return await node.run(CHAT, told(any_stack, browser))


@pytest.mark.parametrize("name", names_in(CHAT))
def test_chat(chat: Results, name: str) -> None:
    chat.check(name)


def test_the_page_maps_the_version_of_the_sdk_that_is_installed(stack: DevStack, tmp_path: Path) -> None:
    """Otherwise the SDK's own imports would go to the network, and to a second copy of it."""
    pinned = json.loads((node.ROOT / "package.json").read_text())["devDependencies"]["firebase"]
    served = httpx.get(f"{stack.page_url}/demo/", trust_env=False, timeout=PATIENCE_SECONDS).text
    assert re.findall(r"gstatic\.com/firebasejs/([\d.]+)/", served) == [pinned]
    (tmp_path / "package.json").write_text('{"version": "99.1.0"}')
    assert re.findall(r"gstatic\.com/firebasejs/([\d.]+)/", page_html(tmp_path)) == ["99.1.0"]


def test_the_pages_server_gives_nothing_but_the_page(stack: DevStack) -> None:
    for path in (
        "/outbox.py",
        "/demo/../outbox.py",
        "/sdk/firebase-storage.js",
        "/sdk/../package.json",
        "/package.json",
    ):
        answer = httpx.get(f"{stack.page_url}{path}", trust_env=False, timeout=PATIENCE_SECONDS)
        assert answer.status_code == 404, path


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/phone/replies", "no JSON"),
        ("POST", "/phone/replies", "[]"),
        ("POST", "/phone/replies", '{"accountId": "shop"}'),
        ("PUT", "/phone/numbers", "{}"),
        ("PUT", "/phone/numbers", '{"to": 3, "exists": false}'),
    ],
)
def test_a_wrong_order_to_the_phone_is_refused(stack: DevStack, method: str, path: str, body: str) -> None:
    answer = httpx.request(method, f"{stack.page_url}{path}", content=body, trust_env=False, timeout=PATIENCE_SECONDS)
    assert answer.status_code == 400
