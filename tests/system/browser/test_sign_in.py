"""`outbox page` in headless Chromium: the chat page for a Firebase project, with sign-in by the web SDK.

Firebase Auth is the dev stack's stand-in, which answers as Google's Auth emulator does; Firestore enforces the rules.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from firestore_outbox.local.dev import PROJECT, DevStack
from firestore_outbox.local.page_site import BadConfig, firebase_config
from tests.cli.support import outbox
from tests.client import node
from tests.client.node import Results, names_in
from tests.system.browser.conftest import SETTINGS, told

pytestmark = node.FILE_TIMEOUT

SIGN_IN = Path(__file__).parent / "sign_in.mjs"
WEB_APP = {"apiKey": "local", "authDomain": "chat.firebaseapp.com", "projectId": PROJECT, "appId": "1:2:web:3"}
CONSOLE_SHOWS = """
// Your web app's Firebase configuration
const firebaseConfig = {
  apiKey: "AIza-1",
  authDomain: "chat.firebaseapp.com",
  projectId: "chat",
  appId: "1:2:web:3"
};
"""
COMMAND_PRINTS = """{"status": "success", "result": {"fileName": "google-config.js", "sdkConfig": {"projectId": "chat",
"appId": "1:2:web:3", "apiKey": "AIza-1", "authDomain": "chat.firebaseapp.com"}}}"""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def world(browser: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[dict[str, Any]]:
    """Two pages on one stack: as the export line of `outbox dev` makes it, and with a configuration and Google."""
    file = tmp_path_factory.mktemp("app") / "firebase.json"
    file.write_text(json.dumps(WEB_APP), encoding="utf-8")
    async with DevStack(replace(SETTINGS, console_port=0)) as stack:
        plain = await stack.start("signed-page", ["firestore_outbox.cli", "page", "--port", "0"])
        words = ["firestore_outbox.cli", "page", "--port", "0", "--config", str(file), "--google"]
        google = await stack.start("google-page", words)
        addresses = [line.split()[1].rstrip("/").replace("localhost", "127.0.0.1") for line in (plain, google)]
        yield {**told(stack, browser), "page": addresses[0], "googlePage": addresses[1]}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def results(world: dict[str, Any]) -> Results:
    return await node.run(SIGN_IN, world)


@pytest.mark.parametrize("name", names_in(SIGN_IN))
def test_sign_in(results: Results, name: str) -> None:
    results.check(name)


@pytest.mark.parametrize("text", [CONSOLE_SHOWS, COMMAND_PRINTS], ids=["console", "command"])
def test_the_configuration_is_read_as_firebase_gives_it(text: str) -> None:
    assert firebase_config(text) == {
        "apiKey": "AIza-1",
        "projectId": "chat",
        "authDomain": "chat.firebaseapp.com",
        "appId": "1:2:web:3",
    }


def test_a_file_that_is_no_configuration_is_refused_with_what_it_lacks() -> None:
    with pytest.raises(BadConfig, match="it has no apiKey and no projectId; copy the whole object"):
        firebase_config('{"hosting": {"public": "public"}}')


def test_the_files_for_a_web_server_are_the_page_and_its_configuration(tmp_path: Path) -> None:
    node.require_node()
    file, out = tmp_path / "app.js", tmp_path / "public"
    file.write_text(CONSOLE_SHOWS, encoding="utf-8")
    alone: dict[str, str | None] = {"FIRESTORE_EMULATOR_HOST": None, "FIREBASE_AUTH_EMULATOR_HOST": None}
    said = outbox("page", "--config", str(file), "--database", "chats", "--out", str(out), env=alone)
    assert said.code == 0, said
    assert "firebase deploy --only hosting" in said.out
    config = json.loads((out / "config.json").read_text(encoding="utf-8"))
    assert config["firebase"]["projectId"] == "chat"
    assert config["databaseId"] == "chats"
    assert [name for name in ("firestore", "authEmulator", "uid", "accounts") if name in config] == []
    for name in ("index.html", "demo/index.html", "demo/page.js", "outbox.js", "watch.js", "sdk/firebase-auth.js"):
        assert (out / name).is_file(), name
