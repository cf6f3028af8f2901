"""`outbox init`: the project it writes passes its own test, and gcloud accepts what it deploys."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from firestore_outbox import __version__
from tests.cli.support import outbox
from tests.deploy.support import ROOT, Command, ask_gcloud, everything, one
from tests.patience import PATIENCE_SECONDS

FILES = (
    ".dockerignore",
    ".gcloudignore",
    ".gitignore",
    "Dockerfile",
    "README.md",
    "cloudbuild.yaml",
    "firebase.json",
    "firestore.indexes.json",
    "firestore.rules",
    "functions/main.py",
    "handlers.py",
    "pytest.ini",
    "requirements-dev.txt",
    "requirements.txt",
    "tests/test_project.py",
)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("new") / "chat"
    said = outbox("init", str(directory))
    assert said.code == 0, said
    assert f"Next: cd {directory}" in said.out
    return directory


@pytest.fixture(scope="module")
def commands(project: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Command]:
    return everything(tmp_path_factory.mktemp("first"), exists=False, root=project)


def test_the_project_has_what_a_user_deploys(project: Path) -> None:
    assert [file for file in FILES if not (project / file).is_file()] == []
    assert (project / "requirements.txt").read_text() == f"firestore-outbox=={__version__}\n"
    assert (project / "README.md").read_text().startswith("# chat\n")
    for name in ("firestore.rules", "firestore.indexes.json"):
        assert (project / name).read_text() == (ROOT / name).read_text()
    left = [
        file for file in project.rglob("*") if file.is_file() and re.search(r"\{(name|version)\}", file.read_text())
    ]
    assert left == [], "nothing is left to fill in"


def test_the_projects_own_test_passes(project: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_"))}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout


def test_existing_files_are_never_changed(project: Path, tmp_path: Path) -> None:
    (tmp_path / "handlers.py").write_text("mine")
    said = outbox("init", str(tmp_path))
    assert (said.code, said.out) == (1, "")
    assert "has handlers.py already, and nothing was written" in said.err
    assert [file.name for file in tmp_path.iterdir()] == ["handlers.py"]
    assert (tmp_path / "handlers.py").read_text() == "mine"


def test_a_directory_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said = outbox("init", str(tmp_path / "file" / "below"))
    assert said.code == 1
    assert "cannot be written" in said.err


def test_gcloud_understands_every_command_of_the_project(commands: list[Command]) -> None:
    asked = sorted({command.arguments for command in commands if command.program == "gcloud"})
    answers, complaints = ask_gcloud({"commands": [list(command) for command in asked]})
    assert all(answers["understood"]), complaints


def test_functions_and_worker_find_the_handlers(commands: list[Command]) -> None:
    function = one(commands, "functions", "deploy", "outbox-enqueue").pairs("--set-env-vars")
    assert (function["PYTHONPATH"], function["OUTBOX_HANDLERS"]) == ("/workspace", "handlers")
    assert one(commands, "run", "deploy", "outbox-worker").pairs("--set-env-vars")["OUTBOX_HANDLERS"] == "handlers"


def test_gcloud_reads_the_build_and_uploads_what_it_needs(project: Path) -> None:
    uploads = [[str(project), "deploy/functions.gcloudignore"], [str(project), None]]
    answers, _ = ask_gcloud({"build": str(project / "cloudbuild.yaml"), "uploads": uploads})
    steps: dict[str, Any] = {step["id"]: step for step in answers["build"]["steps"]}
    assert list(steps) == ["test", "build", "push", "firestore", "queue", "worker", "functions", "console", "schedule"]
    for step in steps.values():
        if step.get("entrypoint") == "bash" and step["args"][0] != "-c":
            assert (project / step["args"][0]).is_file()
    of_a_function, of_a_build = (set(paths) for paths in answers["uploads"])
    caches = {path for path in of_a_function if "__pycache__" in path}
    assert of_a_function - caches == {"functions/main.py", "handlers.py", "requirements.txt"}
    assert set(FILES) - {".gcloudignore"} <= of_a_build
