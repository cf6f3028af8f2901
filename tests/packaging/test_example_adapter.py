"""examples/adapter, installed beside our wheels by a stranger: its own tests pass, and a message goes through it."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.packaging.project import Project
from tests.packaging.wheels import ROOT, build_wheel
from tests.patience import PATIENCE_SECONDS

EXAMPLE = ROOT / "examples" / "adapter"


@pytest.fixture(scope="module")
def project(wheels: Mapping[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Project:
    base = tmp_path_factory.mktemp("author")
    made = Project.new(base, {**wheels, "acme_outbox": build_wheel("examples/adapter", base)})
    for file in ("conftest.py", "test_acme.py"):
        shutil.copy(EXAMPLE / file, made.directory / file)
    return made


class Acme(ThreadingHTTPServer):
    """The service, on a port of this machine."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.messages: list[dict[str, Any]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Answer(BaseHTTPRequestHandler):
    server: Acme

    def do_GET(self) -> None:
        self._answer({"name": "a shop"})

    def do_POST(self) -> None:
        self.server.messages.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self._answer({"id": f"acme-{len(self.server.messages)}"})

    def _answer(self, fields: dict[str, str]) -> None:
        body = json.dumps(fields).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is the base class's
        """Standard error belongs to the test."""


@pytest.fixture
def acme() -> Iterator[Acme]:
    server = Acme()
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    yield server
    server.shutdown()
    serving.join()
    server.server_close()


def test_the_authors_own_tests_pass_with_the_contract(project: Project) -> None:
    done = project.run(project.program("python"), "-m", "pytest", "-v", "-p", "no:cacheprovider", "-p", "no:xdist")
    shown = (EXAMPLE / "README.md").read_text(encoding="utf-8").partition("```text\n")[2].partition("\n```")[0]
    assert shown in done.stdout
    assert "TestSending::test_a_lost_answer_is_unknown_although_the_message_was_accepted PASSED" in done.stdout
    assert "TestWebhooks::test_the_receipts_of_a_sent_message_are_genuine_and_find_it PASSED" in done.stdout


def test_a_message_goes_through_the_installed_adapter(project: Project, acme: Acme) -> None:
    with project.stack(ACME_URL=acme.url) as addresses:
        secrets = project.directory / "secrets.json"
        secrets.write_text(json.dumps({"apiKey": "local", "webhookSecret": "local-secret"}))
        variables = {
            "ACME_URL": acme.url,
            "FIRESTORE_EMULATOR_HOST": addresses["FIRESTORE_EMULATOR_HOST"],
            "CLOUD_TASKS_EMULATOR_HOST": addresses["CLOUD_TASKS_EMULATOR_HOST"],
            "OUTBOX_WORKER_URL": addresses["worker"],
        }

        def outbox(*words: str) -> Any:
            return json.loads(project.run(project.program("outbox"), *words, "--json", variables=variables).stdout)

        account = ("--timezone", "UTC", "--per-minute", "0", "--owner", "me", "--secrets", str(secrets))
        added = outbox("accounts", "add", "shop", "--provider", "acme", *account)
        assert (added["provider"], added["check"]) == ("acme", "Acme knows the key")
        sent = outbox("send", "--account", "shop", "--to", "+491511234567", "--text", "Hello")
        ends = time.monotonic() + PATIENCE_SECONDS
        while (status := outbox("status", sent["requestId"])["status"]) != "sent":
            assert time.monotonic() < ends, status
        (message,) = acme.messages
        assert (message["to"], message["text"]) == ("+491511234567", "Hello")
        assert message["reference"] == f"{sent['requestId']}:0:1"
