"""Both wheels, built and installed into a stranger's project that has folders with the names of ours."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.packaging.wheels import build_wheel, install
from tests.patience import PATIENCE_SECONDS

ROOT = Path(__file__).parents[2]
FOLDERS = ("worker", "functions", "emulator", "client")

SENDING = """
import client, emulator, functions, worker                # the project's own
from firestore_outbox import new_request_id, send_message


def test_a_message_is_written_with_the_order(firestore_client):
    assert {client.OWN, emulator.OWN, functions.OWN, worker.OWN} == {"the project's"}
    batch = firestore_client.batch()
    batch.set(firestore_client.document("orders/1"), {"confirmed": True})
    sent = send_message(batch, firestore_client, request_id=new_request_id(), account_id="shop",
                        to="+491511234567", text="Your order is confirmed.", uid="backend")
    batch.commit()
    assert firestore_client.document(f"outbox/{sent.request_id}").get().to_dict()["status"] == "queued"
"""

TYPED = """
from firestore_outbox import Settings, create_app, new_request_id

reveal_type(new_request_id())
reveal_type(create_app(Settings()))
new_request_id(1)
"""


@dataclass(frozen=True)
class Project:
    directory: Path
    environment: Path
    wheels: Mapping[str, Path]

    def program(self, name: str) -> str:
        return str(self.environment / "bin" / name)

    def run(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            command,
            cwd=self.directory,
            env=self.variables,
            capture_output=True,
            text=True,
            timeout=5 * PATIENCE_SECONDS,
            check=False,
        )
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done

    @property
    def variables(self) -> dict[str, str]:
        """A stranger's shell: nothing of this test's own environment but the path."""
        return {"PATH": f"{self.environment / 'bin'}:{os.environ['PATH']}", "HOME": str(self.directory.parent)}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    base = tmp_path_factory.mktemp("stranger")
    directory, environment = base / "project", base / "venv"
    for folder in FOLDERS:
        (directory / folder).mkdir(parents=True)
        (directory / folder / "__init__.py").write_text('OWN = "the project\'s"\n')
    (directory / "test_sending.py").write_text(SENDING)
    (directory / "typed.py").write_text(TYPED)
    wheels = {
        wheel.name.partition("-")[0]: wheel for wheel in (build_wheel(one, base) for one in ("worker", "emulator"))
    }
    return Project(directory, install(wheels.values(), environment), wheels)


def test_each_wheel_installs_one_package_of_a_unique_name(project: Project) -> None:
    for name, wheel in project.wheels.items():
        with zipfile.ZipFile(wheel) as archive:
            names = archive.namelist()
        top = {entry.partition("/")[0] for entry in names}
        assert {one for one in top if not one.endswith(".dist-info")} == {name}
        assert f"{name}/py.typed" in names
    assert set(project.wheels) == {"firestore_outbox", "firestore_emulator"}


def test_the_outbox_brings_the_files_that_it_runs_from(project: Project) -> None:
    with zipfile.ZipFile(project.wheels["firestore_outbox"]) as archive:
        assets = {name.partition("local/assets/")[2]: archive.read(name) for name in archive.namelist()}
    for file in ("firestore.rules", "firestore.indexes.json", "client/outbox.js", "client/demo/index.html"):
        assert assets[file] == (ROOT / file).read_bytes()


def test_the_package_that_is_imported_is_the_installed_one(project: Project) -> None:
    code = "import firestore_outbox as o, firestore_emulator as e; print(o.__file__, e.__file__, o.__version__)"
    outbox, emulator, version = project.run(project.program("python"), "-c", code).stdout.split()
    assert all(Path(file).is_relative_to(project.environment) for file in (outbox, emulator))
    assert project.run(project.program("outbox"), "--version").stdout == f"outbox {version}\n"
    said = project.run(project.program("firestore-emulator"), "--version").stdout
    assert said == f"firestore-emulator {version}\n"


def test_the_pytest_plugin_and_the_api_work_beside_the_projects_own_folders(project: Project) -> None:
    done = project.run(project.program("python"), "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_sending.py")
    assert "1 passed" in done.stdout


def test_the_types_reach_the_users_type_checker(project: Project) -> None:
    done = project.run(
        sys.executable, "-m", "mypy", "--strict", f"--python-executable={project.program('python')}", "typed.py",
        check=False,
    )  # fmt: skip
    assert 'Revealed type is "str"' in done.stdout.replace("builtins.", "")
    assert "starlette.applications.Starlette" in done.stdout
    assert 'Too many arguments for "new_request_id"' in done.stdout


def test_the_emulator_alone_needs_no_outbox(project: Project) -> None:
    code = "import sys, firestore_emulator.stack; print([m for m in sys.modules if m.startswith('firestore_outbox')])"
    assert project.run(project.program("python"), "-c", code).stdout == "[]\n"


def test_the_whole_stack_starts_from_the_wheels(project: Project) -> None:
    ports = ("firestore", "tasks", "functions", "worker", "provider", "page")
    stack = subprocess.Popen(
        [project.program("outbox"), "dev", "--json", *(f"--{port}-port=0" for port in ports)],
        cwd=project.directory,
        env=project.variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert stack.stdout is not None
        ready = stack.stdout.readline()
        addresses = json.loads(ready) if ready else {}
        assert {"worker", "provider"} <= {name.lower() for name in addresses}, ready
    finally:
        stack.send_signal(signal.SIGINT)
        _, errors = stack.communicate(timeout=PATIENCE_SECONDS)
    assert stack.returncode == 0, errors
