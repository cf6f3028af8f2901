"""The pytest plugin as another project uses it: a sample project in a directory of its own, run by pytest."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

from firestore_emulator import pytest_plugin
from tests.patience import PATIENCE_SECONDS

CODE = """
from google.cloud import firestore

def remember(word):
    firestore.Client().collection("words").document(word).set({"length": len(word)})
"""

TESTS = """
import os
import pytest
from google.cloud import firestore
from app import remember

@pytest.mark.parametrize("word", ["first", "second"])
def test_each_test_starts_empty_and_code_under_test_uses_its_project(firestore_client, word):
    remember(word)
    assert [found.id for found in firestore_client.collection("words").stream()] == [word]
    assert os.environ["GOOGLE_CLOUD_PROJECT"] == firestore_client.project

def test_the_emulator_has_a_project_that_can_be_cleared(firestore_emulator):
    assert (os.environ["FIRESTORE_EMULATOR_HOST"], os.environ["GOOGLE_CLOUD_PROJECT"]) == (
        firestore_emulator.host, firestore_emulator.project)
    remember("kept")
    words = firestore.Client().collection("words")
    assert [found.id for found in words.stream()] == ["kept"]
    firestore_emulator.clear()
    assert list(words.stream()) == []

@pytest.mark.asyncio
async def test_an_asynchronous_client_sees_the_same_project(firestore_async_client, firestore_client):
    await firestore_async_client.document("words/async").set({})
    assert [found.id for found in firestore_client.collection("words").stream()] == ["async"]
"""

RULES = """
rules_version = '2';
service cloud.firestore {
  match /databases/{database}/documents {
    match /words/{word} {
      allow get: if request.auth.token.role == 'clerk';
    }
  }
}
"""

TESTS_OF_RULES = """
import pytest
from google.api_core.exceptions import PermissionDenied

def test_rules_hold_users_and_not_the_server_side(firestore_client, firestore_client_as):
    firestore_client.document("words/first").set({})
    assert firestore_client_as("ann", role="clerk").document("words/first").get().exists
    for client in (firestore_client_as("bob"), firestore_client_as(None)):
        with pytest.raises(PermissionDenied, match="line 6: allow get"):
            client.document("words/first").get()

def test_that_fails(firestore_client_as):
    try:
        firestore_client_as("bob", role="guest").document("words/first").get()
    except PermissionDenied:
        pass
    assert False, "something else"
"""

LOOP_SCOPE = "asyncio_default_fixture_loop_scope = function"  # else pytest-asyncio warns

ENVIRONMENT_AFTERWARDS = """
import os

def pytest_unconfigure(config):
    print("afterwards", os.environ.get("FIRESTORE_EMULATOR_HOST"), os.environ.get("GOOGLE_CLOUD_PROJECT"))
"""


def environment() -> dict[str, str]:
    ours = ("PYTEST_", "FIRESTORE_", "GOOGLE_CLOUD_PROJECT")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}


def project(root: Path, settings: str = "", **files: str) -> Path:
    (root / "pytest.ini").write_text(f"[pytest]\npythonpath = .\n{LOOP_SCOPE}\n{settings}\n")
    for name, text in files.items():
        (root / f"{name}.py").write_text(text)
    return root


def command(*options: str) -> list[str]:
    return [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]


def run(root: Path, *options: str) -> tuple[int, str]:
    """In the sample project, with nothing of ours in the environment."""
    done = subprocess.run(
        command(*options),
        cwd=root,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    return done.returncode, done.stdout


def test_the_fixtures_work_in_anybodys_project_and_leave_the_environment_as_it_was(tmp_path: Path) -> None:
    root = project(tmp_path, app=CODE, test_words=TESTS, conftest=ENVIRONMENT_AFTERWARDS)
    code, said = run(root)
    assert (code, "4 passed" in said, "warning" in said) == (0, True, False), said
    assert "afterwards None None" in said


def test_each_worker_of_xdist_has_an_emulator_of_its_own(tmp_path: Path) -> None:
    root = project(tmp_path, app=CODE, test_words=TESTS)
    code, said = run(root, "-n", "2")
    assert (code, "4 passed" in said) == (0, True), said


def test_a_module_of_the_project_does_not_hide_one_that_the_emulator_needs(tmp_path: Path) -> None:
    clear = "def test_it(firestore_emulator):\n    firestore_emulator.clear()\n"
    root = project(tmp_path, test_clear=clear, grpc="raise ImportError('not this one')")
    code, said = run(root)
    assert code == 0, said


UNINDEXED = """
import pytest
from google.api_core.exceptions import FailedPrecondition
from google.cloud.firestore_v1 import FieldFilter

def test_it(firestore_client):
    words = firestore_client.collection("words")
    query = words.where(filter=FieldFilter("length", "==", 1)).order_by("word")
    with pytest.raises(FailedPrecondition, match="index"):
        list(query.stream())
"""


def test_an_index_file_named_in_pytest_ini_is_enforced(tmp_path: Path) -> None:
    root = project(tmp_path, "firestore_emulator_indexes = config/indexes.json", test_words=UNINDEXED)
    (root / "config").mkdir()
    (root / "config/indexes.json").write_text('{"indexes": [], "fieldOverrides": []}')
    below = root / "below"
    below.mkdir()
    code, said = run(below, "..")  # the file is found from wherever pytest is started
    assert code == 0, said


NAMED_DATABASES = """
import pytest
from google.api_core.exceptions import NotFound
from google.cloud import firestore

@pytest.mark.parametrize("word", ["first", "second"])
def test_each_test_starts_with_empty_databases(firestore_project, word):
    client = firestore.Client(database="archive")
    client.document(f"words/{word}").set({})
    assert [found.id for found in client.collection("words").stream()] == [word]
    with pytest.raises(NotFound):
        firestore.Client(database="misspelt").document("words/a").get(retry=None)
"""


def test_databases_named_in_pytest_ini_exist(tmp_path: Path) -> None:
    root = project(tmp_path, "firestore_emulator_databases = archive drafts", test_words=NAMED_DATABASES)
    code, said = run(root)
    assert (code, "2 passed" in said) == (0, True), said


def test_an_index_file_that_cannot_be_read_is_an_error_in_words(tmp_path: Path) -> None:
    root = project(tmp_path, "firestore_emulator_indexes = none.json", test_words=UNINDEXED)
    code, said = run(root)
    assert code == 1
    assert "the Firestore emulator did not start: " in said
    assert "none.json" in said
    assert "Traceback" not in said


def test_a_run_that_does_not_use_it_loads_nothing(tmp_path: Path) -> None:
    loaded = """
import sys

def test_it(pytestconfig):
    assert pytestconfig.pluginmanager.has_plugin("firestore_emulator")
    ours = {name for name in sys.modules if name.partition(".")[0] == "firestore_emulator"}
    assert ours == {"firestore_emulator", "firestore_emulator.pytest_plugin"}
    assert not [name for name in sys.modules if name.startswith(("google.cloud.firestore", "grpc", "starlette"))]
"""
    code, said = run(project(tmp_path, test_loaded=loaded))
    assert code == 0, said


async def test_no_emulator_is_left_behind_when_pytest_is_killed(tmp_path: Path) -> None:
    waiting = """
import sys

def test_it(firestore_emulator):
    print("host", firestore_emulator.host, flush=True)
    sys.stdin.read()
"""
    root = project(tmp_path, test_waiting=waiting)
    process = await asyncio.create_subprocess_exec(
        *command("-s"),
        cwd=root,
        env=environment(),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert process.stdout is not None
            line = b""
            while b"host " not in line:
                line = await process.stdout.readline()
                assert line, "pytest ended before its test had an emulator"
            host, _, port = line.decode().split()[-1].partition(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            process.send_signal(signal.SIGKILL)
            assert await reader.read() == b"", "the connection ends when the emulator does"
            writer.close()
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def test_the_plugin_is_the_one_that_is_installed() -> None:
    """Else these tests would try another copy than this one."""
    from importlib.metadata import entry_points

    (entry,) = entry_points(group="pytest11", name="firestore_emulator")
    assert entry.load() is pytest_plugin


def test_rules_hold_users_and_a_failing_test_shows_why_they_refused(tmp_path: Path) -> None:
    root = project(tmp_path, "firestore_emulator_rules = my.rules", test_rules=TESTS_OF_RULES)
    (root / "my.rules").write_text(RULES)
    code, said = run(root)
    assert code == 1, said
    assert "1 failed, 1 passed" in said
    assert "refused by the security rules" in said
    assert "get words/first by bob" in said
    assert "request.auth.token.role == 'clerk' is false, with request.auth.token.role = 'guest'" in said


TESTS_OF_BUDGETS = """
def test_within_its_budget(firestore_client, firestore_budget):
    firestore_client.document("words/before").set({})
    firestore_budget(reads=2, writes=1, deletes=0)
    firestore_client.document("words/a").set({})
    assert len(list(firestore_client.collection("words").stream())) == 2

def test_beyond_its_budget(firestore_client, firestore_budget):
    firestore_budget(reads=1)
    for name in "abc":
        firestore_client.document(f"words/{name}").get()
    list(firestore_client.collection("others").stream())

def test_a_block_beyond_its_budget(firestore_client, firestore_budget):
    with firestore_budget(writes=0, reads=5):
        firestore_client.document("words/a").set({})
    print("behind the block")

def test_another_error_comes_first(firestore_client, firestore_budget):
    firestore_budget(writes=0)
    firestore_client.document("words/a").set({})
    raise AssertionError("a reason of its own")
"""


TESTS_OF_SNAPSHOTS = """
def test_a_project_is_seeded_saved_and_restored(firestore_emulator, firestore_project, firestore_client):
    firestore_emulator.seed({"words/a": {"length": 1}}, firestore_project, triggers=False)
    firestore_emulator.save("one word", firestore_project)
    firestore_client.document("words/b").set({})
    firestore_client.document("words/a").delete()
    firestore_emulator.restore("one word", firestore_project)
    assert [word.to_dict() for word in firestore_client.collection("words").stream()] == [{"length": 1}]
"""


TESTS_OF_A_MISSING_SNAPSHOT = """
def test_a_snapshot_that_was_never_saved(firestore_emulator, firestore_project):
    firestore_emulator.restore("two words", firestore_project)
"""


def test_a_snapshot_that_does_not_exist_is_named_in_the_failure(tmp_path: Path) -> None:
    code, said = run(project(tmp_path, test_snapshots=TESTS_OF_A_MISSING_SNAPSHOT))
    assert (code, 'There is no snapshot "two words"' in said) == (1, True), said


def test_a_project_can_be_seeded_saved_and_restored(tmp_path: Path) -> None:
    code, said = run(project(tmp_path, test_snapshots=TESTS_OF_SNAPSHOTS))
    assert (code, "1 passed" in said) == (0, True), said


def test_a_test_that_spends_more_than_its_budget_fails_with_a_breakdown(tmp_path: Path) -> None:
    root = project(tmp_path, test_budgets=TESTS_OF_BUDGETS)
    code, said = run(root, "--tb=short")
    assert (code, "3 failed, 1 passed" in said, "errors" in said) == (1, True, False), said
    assert "more Firestore operations than budgeted: 4 reads, and 1 are allowed" in said
    assert "       3       0       0       3  BatchGetDocuments words" in said
    assert "       1       0       0       1  RunQuery others" in said
    assert "1 writes, and 0 are allowed" in said
    assert "a reason of its own" in said
    assert "behind the block" not in said


def test_rules_that_do_not_compile_fail_the_tests_with_their_line(tmp_path: Path) -> None:
    root = project(tmp_path, "firestore_emulator_rules = my.rules", test_rules=TESTS_OF_RULES)
    (root / "my.rules").write_text(RULES.replace("allow get:", "allow get"))
    code, said = run(root)
    assert code == 1, said
    assert "L6:17 Unexpected 'if'" in said
