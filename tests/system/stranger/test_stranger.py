"""A stranger's project, in a clean directory, that uses the emulator as its documentation says.

The emulator is installed from its wheel, in an environment of its own, without the outbox. The files of the project are
in `project`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.client.node import require_node
from tests.packaging.wheels import build_wheel, install
from tests.patience import PATIENCE_SECONDS
from tests.system.browser.chromium import require_chromium

HERE = Path(__file__).parent
ROOT = HERE.parents[2]


@dataclass(frozen=True)
class Project:
    directory: Path
    environment: Path

    def run(self, *command: str, status: int = 0, **variables: str) -> str:
        """What a command prints in the project's directory; it must end with `status`."""
        path = f"{self.environment / 'bin'}:{os.environ['PATH']}"
        done = subprocess.run(
            command,
            cwd=self.directory,
            # Google's libraries look for Google's own machines unless this variable says that there are none.
            env={"PATH": path, "HOME": str(self.directory.parent), "METADATA_SERVER_DETECTION": "none", **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=5 * PATIENCE_SECONDS,
            check=False,
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout

    def pytest(self, *options: str, status: int = 0) -> str:
        return self.run("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, status=status)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    base = tmp_path_factory.mktemp("stranger")
    directory = shutil.copytree(HERE / "project", base / "project")
    (directory / "node_modules").symlink_to(ROOT / "node_modules")
    wheel = build_wheel("emulator", base)
    return Project(directory, install([wheel], base / "venv"))


def test_the_emulator_is_installed_and_the_outbox_is_not(project: Project) -> None:
    code = (
        "import importlib.util as u; print(u.find_spec('firestore_emulator').origin, u.find_spec('firestore_outbox'))"
    )
    emulator, outbox = project.run("python", "-c", code).split()
    assert Path(emulator).is_relative_to(project.environment)
    assert outbox == "None"
    assert project.run("firestore-emulator", "--version").startswith("firestore-emulator ")


def test_tests_with_budgets_and_snapshots_pass(project: Project) -> None:
    assert "3 passed" in project.pytest()


def test_a_test_that_spends_more_than_its_budget_fails_and_says_with_which_calls(project: Project) -> None:
    said = project.pytest("overspent.py", status=1)
    assert "more Firestore operations than budgeted: 3 reads, and 1 are allowed" in said
    [line] = [line.split() for line in said.splitlines() if line.endswith("BatchGetDocuments books")]
    assert line == ["3", "0", "0", "3", "BatchGetDocuments", "books"]


def test_a_task_of_firebase_admin_is_dispatched(project: Project) -> None:
    called = json.loads(project.run(require_node(), "tasks.mjs"))
    assert called == {"path": "/bookshop/us-central1/restock", "body": {"data": {"book": "emma", "copies": 3}}}


def test_a_browsers_transactions_read_what_they_do_not_write(project: Project) -> None:
    bought = json.loads(project.run(require_node(), "browser.mjs", CHROMIUM=require_chromium()))
    assert bought == {
        "price": 7,
        "seen": {"total": 7},
        "missing": False,
        "stored": {"total": 7, "shared": False},
    }
