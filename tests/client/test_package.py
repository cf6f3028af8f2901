"""The npm package in client/, installed as client/README.md says: from a tarball, and from a checkout.

The project that installs it has firebase already, linked from this repository's node_modules, so npm needs no network.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from firestore_emulator.pytest_plugin import serving
from tests.client.node import HERE, ROOT, require_node
from tests.patience import PATIENCE_SECONDS

CLIENT = ROOT / "client"
TYPESCRIPT = ("--noEmit", "--strict", "--target", "es2022", "--skipLibCheck")

SENDS = """
import { initializeApp } from 'firebase/app';
import { connectFirestoreEmulator, getFirestore } from 'firebase/firestore';
import { newRequestId, sendMessage } from 'firestore-outbox';

const db = getFirestore(initializeApp({ projectId: 'demo' }));
connectFirestoreEmulator(db, HOST, PORT);
const message = { requestId: newRequestId(), accountId: 'shop', to: '+491511234567', text: 'Hello', uid: 'u1' };
console.log((await sendMessage(db, message)).isNew);
process.exit(0);
"""


def run(command: list[str], cwd: Path) -> str:
    done = subprocess.run(
        command,
        cwd=cwd,
        env=os.environ | {"npm_config_offline": "true", "npm_config_update_notifier": "false"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def npm(*arguments: str, cwd: Path) -> str:
    found = shutil.which("npm")
    if found is None:
        pytest.skip("no npm: install it with nodejs")
    return run([found, *arguments, "--no-audit", "--no-fund", "--ignore-scripts"], cwd)


def link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """An application that depends on firebase and has installed it."""
    require_node()
    app = tmp_path / "app"
    shutil.copytree(ROOT / "node_modules", app / "node_modules", copy_function=link_or_copy, symlinks=True)
    shutil.copy2(ROOT / "package-lock.json", app)
    versions = json.loads((ROOT / "package.json").read_text(encoding="utf-8"))["devDependencies"]
    manifest = {"name": "app", "private": True, "type": "module", "dependencies": versions}
    (app / "package.json").write_text(json.dumps(manifest), encoding="utf-8")
    return app


def packed(into: Path) -> Path:
    (about,) = json.loads(npm("pack", "--json", "--pack-destination", str(into), cwd=CLIENT))
    return into / str(about["filename"])


@pytest.fixture(params=["tarball", "checkout"])
def installed(request: pytest.FixtureRequest, project: Path, tmp_path: Path) -> Path:
    """By the command that client/README.md prints, in a project beside a checkout called `outbox`."""
    (block,) = re.findall(r"^```sh\n(.*?)^```$", (CLIENT / "README.md").read_text(encoding="utf-8"), re.M | re.S)
    by_tarball, by_checkout = (shlex.split(line, comments=True) for line in block.splitlines())
    (tmp_path / "outbox").symlink_to(ROOT)
    if request.param == "tarball":
        shutil.move(packed(tmp_path), project)
    # --install-links: the checkout has a node_modules of its own, so a link would find a second copy of firebase.
    program, *arguments = by_tarball if request.param == "tarball" else by_checkout
    assert program == "npm"
    npm(*arguments, cwd=project)
    return project


@pytest.fixture(scope="module")
def host() -> Iterator[str]:
    with serving() as host:
        yield host


def copies_of_firebase(project: Path) -> list[Path]:
    return [file.parent for file in project.rglob("node_modules/firebase/package.json")]


def test_an_installed_package_sends_on_the_only_copy_of_firebase_and_has_types(installed: Path, host: str) -> None:
    assert copies_of_firebase(installed) == [installed / "node_modules/firebase"]

    name, _, port = host.partition(":")
    (installed / "send.mjs").write_text(SENDS.replace("HOST, PORT", f"{json.dumps(name)}, {port}"), encoding="utf-8")
    assert run([require_node(), "send.mjs"], installed) == "true\n"

    usage = (HERE / "usage.ts").read_text(encoding="utf-8").replace("../../client/outbox.js", "firestore-outbox")
    (installed / "usage.ts").write_text(usage, encoding="utf-8")
    compiler = ["node_modules/typescript/bin/tsc", *TYPESCRIPT, "usage.ts"]
    for resolution in (["--module", "nodenext"], ["--module", "esnext", "--moduleResolution", "bundler"]):
        assert run([require_node(), *compiler, *resolution], installed) == ""


def test_the_package_holds_its_modules_and_their_types_and_depends_on_nothing() -> None:
    (about,) = json.loads(npm("pack", "--json", "--dry-run", cwd=CLIENT))
    modules = {f"{module}{ending}" for module in ("message", "outbox", "watch") for ending in (".js", ".d.ts")}
    assert {file["path"] for file in about["files"]} == {*modules, "package.json", "README.md", "LICENSE"}
    manifest = json.loads((CLIENT / "package.json").read_text(encoding="utf-8"))
    assert "dependencies" not in manifest
    assert manifest["peerDependencies"] == {"firebase": ">=11"}


def test_the_package_has_the_version_and_the_license_of_the_python_distributions() -> None:
    from firestore_outbox import __version__

    assert json.loads((CLIENT / "package.json").read_text(encoding="utf-8"))["version"] == __version__
    assert (CLIENT / "LICENSE").read_text(encoding="utf-8") == (ROOT / "LICENSE").read_text(encoding="utf-8")


def test_the_lock_file_names_no_registry() -> None:
    lock = json.loads((ROOT / "package-lock.json").read_text(encoding="utf-8"))
    assert [name for name, entry in lock["packages"].items() if "resolved" in entry] == []
