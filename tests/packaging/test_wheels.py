"""Both wheels, built and installed into a stranger's project that has folders with the names of ours."""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.packaging.project import Project
from tests.packaging.wheels import ROOT

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


@pytest.fixture(scope="module")
def project(wheels: Mapping[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Project:
    made = Project.new(tmp_path_factory.mktemp("stranger"), wheels)
    for folder in FOLDERS:
        (made.directory / folder).mkdir(parents=True)
        (made.directory / folder / "__init__.py").write_text('OWN = "the project\'s"\n')
    (made.directory / "test_sending.py").write_text(SENDING)
    (made.directory / "typed.py").write_text(TYPED)
    return made


def test_the_wheel_has_every_page_and_file_of_the_console(project: Project) -> None:
    here = ROOT / "worker" / "firestore_outbox" / "web" / "console"
    files = [*here.glob("templates/*"), *here.glob("static/*")]
    assert files
    with zipfile.ZipFile(project.wheels["firestore_outbox"]) as archive:
        packed = set(archive.namelist())
    assert {file.relative_to(ROOT / "worker").as_posix() for file in files} <= packed


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


def test_the_installed_command_writes_a_project(project: Project) -> None:
    directory = project.directory.parent / "own"
    written = json.loads(project.run(project.program("outbox"), "init", str(directory), "--json").stdout)["files"]
    assert {"handlers.py", "functions/main.py", "cloudbuild.yaml", "deploy/project.sh", ".dockerignore"} <= set(written)
    assert (directory / "deploy/names.sh").read_text() == (ROOT / "deploy/names.sh").read_text()


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
    with project.stack() as addresses:
        assert {"worker", "provider"} <= {name.lower() for name in addresses}
