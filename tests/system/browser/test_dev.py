"""The chat page as `outbox dev` serves it."""

from __future__ import annotations

import signal
import socket
from pathlib import Path

import httpx
import pytest

from firestore_outbox.local import page_site
from firestore_outbox.local.dev import PROJECT
from tests.cli.support import FREE_PORTS, dev, outbox
from tests.client.node import require_node
from tests.patience import PATIENCE_SECONDS


def test_the_page_is_there_and_its_accounts_are_made() -> None:
    require_node()
    with dev(*FREE_PORTS) as stack:
        page = stack.addresses["page"]
        answer = httpx.get(page, trust_env=False, timeout=PATIENCE_SECONDS, follow_redirects=True)
        assert (answer.status_code, answer.url.path) == (200, "/demo/")
        config = httpx.get(f"{page}/config.json", trust_env=False, timeout=PATIENCE_SECONDS).json()
        sent = stack.send(config["accounts"][0]["id"])
        stack.becomes(sent, "sent")
        children = stack.children()
        assert stack.ended_by(signal.SIGINT) == 0
        assert not any(Path(f"/proc/{pid}").exists() for pid in children)


@pytest.mark.parametrize(("options", "status"), [((), 403), (("--no-rules",), 200)])
def test_a_page_may_write_only_what_the_rules_allow_unless_they_are_turned_off(
    options: tuple[str, ...], status: int
) -> None:
    with dev(*FREE_PORTS, *options) as stack:
        firestore = stack.addresses["FIRESTORE_EMULATOR_HOST"]
        documents = f"http://{firestore}/v1/projects/{PROJECT}/databases/(default)/documents"
        answer = httpx.patch(f"{documents}/lanes/outbox:shop", json={}, trust_env=False, timeout=PATIENCE_SECONDS)
        assert answer.status_code == status, answer.text


def test_a_taken_port_is_named_with_the_option_that_changes_it() -> None:
    require_node()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        said = outbox("dev", *FREE_PORTS, f"--page-port={port}")
    assert said.code == 1
    assert f"port {port} on 127.0.0.1 is taken; choose another with --page-port" in said.err


def test_without_the_sdk_the_command_says_what_to_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(page_site, "CLIENT", tmp_path / "client")
    monkeypatch.chdir(tmp_path)
    assert page_site.missing() == (
        "the chat page needs the Firebase SDK in node_modules: run npm install firebase (in a checkout: npm ci)"
    )
