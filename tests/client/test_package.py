"""The npm package in client/, installed as client/README.md says: from a tarball, and from a checkout.

The project that installs it has firebase already, linked from this repository's node_modules. What npm asks a registry
all the same, a registry on this machine answers.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from firestore_emulator.pytest_plugin import serving
from tests.client.node import HERE, ROOT, require_node
from tests.npm_registry import registry
from tests.patience import PATIENCE_SECONDS
from tests.system.browser.chromium import require_chromium

CLIENT = ROOT / "client"
MODULES = ("campaigns", "files", "message", "notifications", "outbox", "sealing", "watch")
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


APP = """<!doctype html><title>App</title><p id="result"></p><script type="module" src="/main.js"></script>"""
IN_A_BROWSER = SENDS.replace("console.log(", "document.getElementById('result').textContent = String(").replace(
    "process.exit(0);\n", ""
)
OPENS = """
import { chromium } from 'playwright-core';
const [executablePath, url] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] });
const page = await browser.newPage();
page.on('pageerror', (error) => console.error(error));
await page.goto(url);
await page.locator('#result:not(:empty)').waitFor({ timeout: 120_000, state: 'attached' });
console.log(await page.locator('#result').textContent());
await browser.close();
"""


OFFLINE = {"npm_config_offline": "true"}


def run(command: list[str], cwd: Path, npm_settings: Mapping[str, str] = OFFLINE) -> str:
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **npm_settings, "npm_config_update_notifier": "false"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def npm(*arguments: str, cwd: Path, settings: Mapping[str, str] = OFFLINE) -> str:
    found = shutil.which("npm")
    if found is None:
        pytest.skip("no npm: install it with nodejs")
    return run([found, *arguments, "--no-audit", "--no-fund", "--ignore-scripts"], cwd, settings)


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
    with registry(ROOT / "node_modules") as address:
        asking_it = {"npm_config_registry": address, "npm_config_cache": str(tmp_path / "npm-cache")}
        npm(*arguments, cwd=project, settings=asking_it)
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


@pytest.mark.parametrize("installed", ["tarball"], indirect=True)
def test_an_app_that_vite_builds_sends_in_a_browser(installed: Path, host: str) -> None:
    browser = require_chromium()
    shutil.rmtree(installed / "node_modules/@hpke")  # optional: only sealed messages need it
    name, _, port = host.partition(":")
    (installed / "index.html").write_text(APP, encoding="utf-8")
    main = IN_A_BROWSER.replace("HOST, PORT", f"{json.dumps(name)}, {port}")
    (installed / "main.js").write_text(main, encoding="utf-8")
    run([require_node(), "node_modules/vite/bin/vite.js", "build"], installed)
    assert [file.suffix for file in (installed / "dist/assets").iterdir()] == [".js"], "one bundle"
    (installed / "open.mjs").write_text(OPENS, encoding="utf-8")
    with served(installed / "dist") as url:
        assert run([require_node(), "open.mjs", browser, url], installed) == "true\n"


@contextmanager
def served(directory: Path) -> Iterator[str]:
    """A plain web server."""

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(directory))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/"
        finally:
            server.shutdown()
            thread.join(PATIENCE_SECONDS)


def test_the_package_holds_its_modules_and_their_types_and_depends_on_nothing() -> None:
    (about,) = json.loads(npm("pack", "--json", "--dry-run", cwd=CLIENT))
    modules = {f"{module}{ending}" for module in MODULES for ending in (".js", ".d.ts")}
    assert {file["path"] for file in about["files"]} == {*modules, "package.json", "README.md", "LICENSE"}
    manifest = json.loads((CLIENT / "package.json").read_text(encoding="utf-8"))
    assert "dependencies" not in manifest
    assert manifest["peerDependencies"]["firebase"] == ">=11"
    others = {name for name in manifest["peerDependencies"] if name != "firebase"}
    assert others == set(manifest["peerDependenciesMeta"]), "an app needs nothing but firebase"


def test_the_package_has_the_version_and_the_license_of_the_python_distributions() -> None:
    from firestore_outbox import __version__

    assert json.loads((CLIENT / "package.json").read_text(encoding="utf-8"))["version"] == __version__
    assert (CLIENT / "LICENSE").read_text(encoding="utf-8") == (ROOT / "LICENSE").read_text(encoding="utf-8")


def test_the_lock_file_names_no_registry() -> None:
    lock = json.loads((ROOT / "package-lock.json").read_text(encoding="utf-8"))
    assert [name for name, entry in lock["packages"].items() if "resolved" in entry] == []
