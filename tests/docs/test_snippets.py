"""Every example is run as it is printed, and does what its document says. ELSEWHERE names the other tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from firestore_emulator.pytest_plugin import serving
from tests.client.node import require_node
from tests.docs.snippets import LANGUAGES, NOT_RUN, ROOT, Snippet, languages, snippet, snippets
from tests.patience import PATIENCE_SECONDS

ELSEWHERE = {
    ("examples/adapter/README.md", "sh"): "tests/system/newcomer/test_examples.py",
    ("examples/bot/README.md", "sh"): "tests/system/newcomer/test_examples.py",
    ("examples/nextup/README.md", "sh"): "tests/system/newcomer/test_examples.py",
    ("client/README.md", "sh"): "tests/client/test_package.py",
    ("README.md", "sh"): "tests/system/newcomer/test_newcomer.py",
    ("docs/emulator.md", "js"): "tests/emulator/test_emulator_document.py",
    ("docs/emulator.md", "python"): "tests/emulator/test_emulator_document.py",
    ("docs/emulator.md", "sh"): "tests/emulator/test_emulator_document.py",
    ("docs/http-api.md", "sh"): "tests/docs/test_on_the_stack.py",
    ("docs/local.md", "sh"): "tests/docs/test_on_the_stack.py",
    ("docs/providers.md", "python"): "tests/providers/signed_webhook/test_documents.py",
    ("docs/tutorial.md", "html"): "tests/system/newcomer/test_newcomer.py",
    ("docs/tutorial.md", "js"): "tests/system/newcomer/test_newcomer.py",
    ("docs/tutorial.md", "sh"): "tests/system/newcomer/test_newcomer.py",
}
"""Document and language -> the test that runs those examples."""

ROOT_JS = snippet("README.md", "js", "onclick")
ROOT_PYTHON = snippet("README.md", "python", "send_message")
CLIENT_JS = snippet("client/README.md", "js", "sendMessage")
WORKER_SEND = snippet("worker/README.md", "python", "send_message")
WORKER_WATCH = snippet("worker/README.md", "python", "watch_message")
WORKER_APP = snippet("worker/README.md", "python", "create_app")
EMULATOR_USE = snippet("emulator/README.md", "python", "db.collection")
EMULATOR_PYTEST = snippet("emulator/README.md", "python", "firestore_client")
HANDLER = snippet("docs/handlers.md", "python", "@conversation")
POKE = snippet("docs/handlers.md", "python", "poke")
HANDLER_TEST = snippet("docs/handlers.md", "python", "run_handlers")
LIMIT = snippet("docs/limits.md", "python", "per_second=3")


def test_every_example_is_run() -> None:
    run_here = {one for one in globals().values() if isinstance(one, Snippet)}
    others = [one for one in snippets() if one not in run_here]
    assert [str(one) for one in others if (one.document, one.language) not in ELSEWHERE] == []
    assert set(ELSEWHERE) == {(one.document, one.language) for one in others}
    assert languages() <= {*LANGUAGES, *NOT_RUN}
    for (document, _), test in ELSEWHERE.items():
        assert document in (ROOT / test).read_text(encoding="utf-8"), f"{test} does not name {document}"


@pytest.fixture(scope="module")
def host() -> Iterator[str]:
    with serving() as host:
        yield host


def said_by(command: list[str], cwd: Path, **environment: str) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "OUTBOX_"))}
    done = subprocess.run(
        command,
        cwd=cwd,
        env=kept | environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def python(example: Snippet, then: str, folder: Path, **environment: str) -> str:
    """The output of a program that imports the example and goes on from there."""
    (folder / "example.py").write_text(example.code, encoding="utf-8")
    (folder / "program.py").write_text(f"from example import *\n{then}", encoding="utf-8")
    return said_by([sys.executable, "program.py"], folder, **environment)


# --- sending from Python

ORDER = """
from google.cloud import firestore
from firestore_outbox import new_request_id

db = firestore.Client(project="PROJECT")
order, request_id = db.document("orders/7"), new_request_id()
order.set({"confirmed": False, "confirmationId": request_id, "phone": "+491511234567"})
"""
STORED = """
print(order.get().get("confirmed"), db.document(f"outbox/{request_id}").get().get("status"))
print(len(db.collection("outbox").get()))
"""


def test_the_readmes_backend_confirms_an_order_and_queues_its_message(host: str, tmp_path: Path) -> None:
    then = ORDER.replace("PROJECT", "readme-backend") + "confirm(db, order, request_id)" + STORED
    assert python(ROOT_PYTHON, then, tmp_path, FIRESTORE_EMULATOR_HOST=host) == "True queued\n1\n"


def test_the_workers_example_can_be_repeated_and_queues_one_message(host: str, tmp_path: Path) -> None:
    then = ORDER.replace("PROJECT", "worker-backend") + "confirm(db, order.get())\nconfirm(db, order.get())" + STORED
    assert python(WORKER_SEND, then, tmp_path, FIRESTORE_EMULATOR_HOST=host) == "True queued\n1\n"


POKED = """
from google.cloud import firestore

db = firestore.Client(project="handlers-poke")
order = db.document("orders/17")
order.set({"paid": False})
mark_paid(db, order)
(event,) = db.collection("inbox/invoices:customer-7/events").get()
print(order.get().get("paid"), event.get("data"))
"""


def test_an_event_is_written_with_the_rest_of_its_batch(host: str, tmp_path: Path) -> None:
    assert python(POKE, POKED, tmp_path, FIRESTORE_EMULATOR_HOST=host) == "True {'order': '17'}\n"


def test_the_example_of_a_handlers_test_passes(tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text(HANDLER.code, encoding="utf-8")
    (tmp_path / "test_bot.py").write_text(HANDLER_TEST.code, encoding="utf-8")
    plugin = 'pytest_plugins = ["firestore_outbox.local.pytest_plugin"]\n'
    (tmp_path / "conftest.py").write_text(plugin, encoding="utf-8")
    options = ["-p", "no:cacheprovider"]
    assert "1 passed" in said_by([sys.executable, "-m", "pytest", "-q", *options], tmp_path)


LIMITED = """
import asyncio, time

async def main():
    async def answer(request):
        return httpx.Response(200)

    calm = httpx.AsyncClient(transport=httpx.MockTransport(answer), base_url="http://127.0.0.1")
    began = time.monotonic()
    for _ in range(6):
        await one_call(calm)
    print(time.monotonic() - began >= 1)
    await notion.close()

asyncio.run(main())
"""


def test_six_calls_under_the_limit_of_the_example_take_a_second(host: str, tmp_path: Path) -> None:
    assert python(LIMIT, LIMITED, tmp_path, FIRESTORE_EMULATOR_HOST=host) == "True\n"


def test_the_worker_finds_the_handler_of_the_example(tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text(HANDLER.code, encoding="utf-8")
    code = "from firestore_outbox.handlers.registration import load; print(*load('bot'))"
    assert said_by([sys.executable, "-c", code], tmp_path, PYTHONPATH=str(tmp_path)) == "inbound\n"


WATCH = """
import threading
from google.cloud import firestore
from firestore_outbox import new_request_id, send_message

db = firestore.Client(project="worker-watch")
batch, request_id = db.batch(), new_request_id()
send_message(batch, db, request_id=request_id, account_id="shop", to="+491511234567", text="Hello", uid="backend")
batch.commit()
import example
seen, show = threading.Event(), example.show
def show_and_tell(message):
    show(message)
    seen.set()
example.show = show_and_tell
stop = follow(db, request_id)
assert seen.wait(SECONDS)
stop()
"""


def test_the_workers_example_prints_the_status_of_a_message(host: str, tmp_path: Path) -> None:
    then = WATCH.replace("SECONDS", str(PATIENCE_SECONDS))
    assert python(WORKER_WATCH, then, tmp_path, FIRESTORE_EMULATOR_HOST=host) == "queued\n"


SERVED = """
import asyncio
import httpx

async def main():
    async with app.router.lifespan_context(app):
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://worker") as client:
            print((await client.get("/healthz")).text)

asyncio.run(main())
"""


def test_the_workers_application_starts_and_answers(host: str, tmp_path: Path) -> None:
    local = {"FIRESTORE_EMULATOR_HOST": host, "OUTBOX_TASKS_EMULATOR_HOST": "127.0.0.1:1", "OUTBOX_CREDENTIALS": "{}"}
    assert python(WORKER_APP, SERVED, tmp_path, **local) == "ok\n"


# --- the emulator


def test_the_emulators_example_reads_what_it_wrote(host: str, tmp_path: Path) -> None:
    assert python(EMULATOR_USE, "", tmp_path, FIRESTORE_EMULATOR_HOST=host) == "['hello']\n"


def test_the_emulators_example_for_pytest_passes(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    (tmp_path / "test_words.py").write_text(EMULATOR_PYTEST.code, encoding="utf-8")
    assert "1 passed" in said_by([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"], tmp_path)


# --- JavaScript

BROWSER = """
import { initializeApp } from 'firebase/app';
import { connectFirestoreEmulator, getFirestore } from 'firebase/firestore';

const db = getFirestore(initializeApp({ projectId: PROJECT }));
connectFirestoreEmulator(db, HOST, PORT);
const statuses = new Map();
Object.assign(globalThis, {
  db, accountId: 'shop', to: '+491511234567', uid: 'u1', send: {}, input: { value: 'Hello' }, statuses,
  showError: (error) => { console.log(error); process.exit(1); },
  showStatus: (id, status) => statuses.set(id, status),
});
"""
SHOWN = """
import './browser.mjs';
await import('./example.mjs');
if (send.onclick) { send.onclick(); send.onclick(); }        // a double click
while (statuses.size === 0) await new Promise((resolve) => setTimeout(resolve, 10));
console.log([...statuses.values()].join());
process.exit(0);
"""


@pytest.mark.parametrize("example", [ROOT_JS, CLIENT_JS], ids=lambda example: example.document)
def test_a_web_apps_example_sends_once_and_shows_the_status(example: Snippet, host: str, tmp_path: Path) -> None:
    node = require_node()
    modules = tmp_path / "node_modules"
    modules.mkdir()
    (modules / "firestore-outbox").symlink_to(ROOT / "client")
    (modules / "firebase").symlink_to(ROOT / "node_modules/firebase")
    name, _, port = host.partition(":")
    browser = BROWSER.replace("PROJECT", json.dumps(f"web-{example.document.replace('/', '-').lower()}"))
    (tmp_path / "browser.mjs").write_text(browser.replace("HOST, PORT", f"{json.dumps(name)}, {port}"))
    (tmp_path / "example.mjs").write_text(example.code, encoding="utf-8")
    (tmp_path / "program.mjs").write_text(SHOWN)
    assert said_by([node, "program.mjs"], tmp_path) == "queued\n"
