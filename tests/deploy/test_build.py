"""What is built: cloudbuild.yaml as gcloud reads it, the image, what is sent to Google, and which packages.

No image is built here: that takes a Docker daemon. Its command is run with its environment over what it copies.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from typing import Any

import httpx
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.deploy.support import ROOT, ask_gcloud, run
from tests.patience import PATIENCE_SECONDS

BUILT_IN = {"PROJECT_ID", "PROJECT_NUMBER", "BUILD_ID"}
"""Substitutions that Cloud Build has for every build, also for one that a person submits."""


# --- cloudbuild.yaml


@pytest.fixture(scope="module")
def build() -> dict[str, Any]:
    """As gcloud's own loader reads it: unknown fields are refused."""
    return dict(ask_gcloud({"build": str(ROOT / "cloudbuild.yaml")})[0]["build"])


def test_the_build_tests_then_builds_then_deploys_everything(build: dict[str, Any]) -> None:
    steps = {step["id"]: step for step in build["steps"]}
    tools = ["node", "emulator"]
    deploys = ["firestore", "queue", "worker", "functions", "console", "schedule"]
    assert list(steps) == [*tools, "test", "build", "push", *deploys]

    def before(name: str) -> set[str]:
        """Everything that a step waits for."""
        waits = [other for other in steps[name].get("waitFor", []) if other != "-"]
        return set(waits).union(*(before(other) for other in waits))

    for name in ("push", *deploys):
        assert "test" in before(name), f"{name} would go on although a test failed"
    assert {"node", "emulator"} == before("test"), "the gate would find no Node, or no Google emulator"
    assert {"push", "firestore", "queue"} <= before("worker"), "code would meet a project that is not ready for it"


def test_every_file_that_the_build_names_is_there(build: dict[str, Any]) -> None:
    for step in build["steps"]:
        if step.get("entrypoint") == "bash":
            assert step["args"][0] == "-c" or (ROOT / step["args"][0]).is_file(), step["args"][0]
        else:
            assert (step["name"].endswith("/docker"), step["args"][0]) == (True, "push")
    assert (ROOT / "Dockerfile").is_file()


# --- the gate


def calls(script: str, where: Path) -> list[str]:
    """What a script runs, with stand-ins for make and for everything that would change this machine."""
    where.mkdir()
    record = where / "record"
    for name in ("make", "apt-get", "git", "chromium"):
        program = where / name
        program.write_text(f'#!/bin/sh\necho "{name} $* REQUIRE_ALL=$OUTBOX_REQUIRE_ALL" >> "{record}"\n')
        program.chmod(0o755)
    environment = {"PATH": f"{where}:/usr/bin:/bin", "HOME": str(where), "TMPDIR": str(where), "TOOLS": str(where)}
    done = subprocess.run([str(ROOT / script)], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return record.read_text().splitlines()


def test_the_gate_runs_what_ci_runs_and_leaves_nothing_out(build: dict[str, Any], tmp_path: Path) -> None:
    in_ci = calls(".ci/run", tmp_path / "ci")
    assert in_ci == [f"make {target} REQUIRE_ALL=1" for target in ("check", "test", "test-slow")]
    (gate,) = (step for step in build["steps"] if step["id"] == "test")
    assert (gate["entrypoint"], gate["args"]) == ("bash", ["deploy/gate.sh"])
    in_the_gate = calls("deploy/gate.sh", tmp_path / "gate")
    assert [call for call in in_the_gate if call.startswith("make ")] == in_ci
    installed = " ".join(call for call in in_the_gate if call.startswith("apt-get install"))
    assert {"chromium", "default-jre-headless"} <= set(installed.split())


def test_the_gate_installs_nothing_on_a_machine_that_is_not_cloud_build(tmp_path: Path) -> None:
    apt = tmp_path / "apt-get"
    apt.write_text(f"#!/bin/sh\ntouch {tmp_path}/installed\n")
    apt.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "TOOLS": str(tmp_path / "none")}
    done = subprocess.run([str(ROOT / "deploy/gate.sh")], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.rstrip().endswith("here, run: .ci/run")
    assert not (tmp_path / "installed").exists()


def test_every_target_that_ci_runs_is_there_and_a_failure_of_one_is_a_failure_of_all(tmp_path: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert {"check", "test", "test-slow"} <= targets
    for name, body in {"make": '[ "$1" != test ] || { echo "3 failed"; exit 2; }', "chromium": ""}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\necho making $1\n{body}\n")
        (tmp_path / name).chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "TMPDIR": str(tmp_path)}
    done = subprocess.run([str(ROOT / ".ci/run")], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "making test-slow" not in done.stdout
    assert done.stdout.endswith("== make test\nmaking test\n3 failed\n"), "the closing lines are the last thing to read"


def test_the_build_uses_no_variable_that_it_does_not_have(build: dict[str, Any]) -> None:
    text = json.dumps({name: part for name, part in build.items() if name != "substitutions"})
    used = set(re.findall(r"\$\{?([A-Za-z_]+)", text))
    assert used <= BUILT_IN | build["substitutions"].keys()


def test_the_scripts_get_from_the_build_what_they_need(build: dict[str, Any], tmp_path: Path) -> None:
    """Without gcloud where Node's image has none."""
    given = {entry.partition("=")[0] for entry in build["options"]["env"]}
    assert {"PROJECT_ID", "PROJECT_NUMBER", "REGION", "FIRESTORE_LOCATION"} <= given
    commands = run("firestore.sh", where=tmp_path, exists=True, PROJECT_NUMBER="1")
    assert {command.program for command in commands} == {"npx"}


def test_one_image_is_built_pushed_and_deployed(build: dict[str, Any]) -> None:
    steps = {step["id"]: step for step in build["steps"]}
    (image,) = build["images"]
    assert steps["build"]["args"] == ["deploy/image.sh", image]
    assert steps["push"]["args"][-1] == image
    assert steps["worker"]["args"][-1] == image
    assert steps["console"]["args"] == ["deploy/console.sh", "--if-deployed", image]


# --- what is sent


def test_a_function_is_built_from_what_it_needs_and_nothing_else() -> None:
    answers, _ = ask_gcloud({"uploads": [[str(ROOT), "deploy/functions.gcloudignore"], [str(ROOT), None]]})
    of_a_function, of_a_build = (set(paths) for paths in answers["uploads"])
    assert {
        "requirements.txt",
        "functions/main.py",
        "worker/firestore_outbox/settings.py",
        "worker/firestore_outbox/web/messages_api.py",
    } <= of_a_function
    assert {path.partition("/")[0] for path in of_a_function} == {"requirements.txt", "functions", "worker"}
    assert not any("__pycache__" in path for path in of_a_function)
    assert {"Dockerfile", "Makefile", "tests/deploy/test_build.py", "deploy/worker.sh"} <= of_a_build
    assert not any(path.startswith((".venv/", "node_modules/")) for path in of_a_build)
    ignored = (ROOT / ".gcloudignore").read_text().splitlines()
    assert ".git/" not in ignored, "the gate runs the previous version, which is in the history"


def test_the_image_is_made_of_two_things() -> None:
    lines = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    assert lines == [
        "*",
        "!requirements.txt",
        "!worker/firestore_outbox/",
        "worker/firestore_outbox/local/",
        "**/__pycache__/",
    ]


# --- the image


def instructions() -> list[tuple[str, str]]:
    text = re.sub(r"\\\n", " ", (ROOT / "Dockerfile").read_text())
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(line.split(maxsplit=1)[0], " ".join(line.split(maxsplit=1)[1].split())) for line in lines]


def last(name: str) -> str:
    return [value for instruction, value in instructions() if instruction == name][-1]


def test_the_image_is_slim_and_its_program_has_no_special_rights() -> None:
    assert "TAG=python:3.11-slim\n" in (ROOT / "deploy/base.sh").read_text()
    after_from = [name for name, _ in instructions()][-5:]
    assert "USER" in after_from
    assert last("USER") == "10001", "a number: Kubernetes and others can tell that it is not root"
    names = [name for name, _ in instructions()]
    assert names.index("USER") > max(number for number, name in enumerate(names) if name in ("RUN", "COPY"))


def test_the_image_has_no_base_but_the_digest_that_it_is_given() -> None:
    for file in ("Dockerfile", "worker/firestore_outbox/local/templates/Dockerfile.txt"):
        text = (ROOT / file).read_text()
        assert re.findall(r"^FROM (\S+)", text, re.MULTILINE) == ["${BASE}", "${BASE}"]
        assert re.findall(r"^ARG (.*)$", text, re.MULTILINE) == ["BASE"], "a default would be a tag"


DIGEST = "sha256:" + "0123456789abcdef" * 4


def built(where: Path, docker: str, pinned: str | None = None) -> subprocess.CompletedProcess[str]:
    """What image.sh asks of Docker; `docker` is a shell's answer to each call but the build."""
    (where / "deploy").mkdir(parents=True)
    for name in ("base.sh", "image.sh"):
        shutil.copy(ROOT / "deploy" / name, where / "deploy" / name)
    if pinned is not None:
        (where / "deploy" / "base-image").write_text(f"{pinned}\n")
    program = where / "bin" / "docker"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\n[ "$1" != build ] || {{ echo "BUILT $*"; exit 0; }}\n{docker}\n')
    program.chmod(0o755)
    environment = {"PATH": f"{program.parent}:/usr/bin:/bin"}
    command = [str(where / "deploy" / "image.sh"), "worker:1"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_the_image_is_built_from_the_digest_that_the_tag_has_now_or_from_the_pinned_one(tmp_path: Path) -> None:
    now = built(tmp_path / "now", f'[ "$1" = pull ] || echo "python@{DIGEST}"')
    assert f"--build-arg=BASE=python@{DIGEST} " in now.stdout
    assert f"org.opencontainers.image.base.digest={DIGEST} " in now.stdout
    pinned = built(tmp_path / "pinned", "exit 1", pinned=f"registry.example/python@{DIGEST}")
    assert f"--build-arg=BASE=registry.example/python@{DIGEST} " in pinned.stdout, "the registry is not asked"


@pytest.mark.parametrize("docker", ["exit 1", "echo python:3.11-slim", "echo", "echo python@sha256:abc"])
def test_without_a_digest_no_image_is_built(tmp_path: Path, docker: str) -> None:
    refused = built(tmp_path, docker)
    assert refused.returncode != 0
    assert "BUILT" not in refused.stdout


def test_the_build_signs_where_the_image_came_from(build: dict[str, Any]) -> None:
    assert build["options"]["requestedVerifyOption"] == "VERIFIED"


def test_what_the_image_installs_is_verified_by_hash_and_has_nothing_for_developers() -> None:
    (install,) = (value for name, value in instructions() if name == "RUN" and "pip install" in value)
    assert "--require-hashes --no-deps --requirement /requirements.txt" in install


def copied(where: Path) -> Path:
    """What the image has in /app."""
    app = where / "app"
    shutil.copytree(
        ROOT / "worker" / "firestore_outbox",
        app / "firestore_outbox",
        ignore=shutil.ignore_patterns("__pycache__", "local"),
    )
    return app


def test_the_images_command_serves_on_the_port_it_is_given_and_stops_when_asked(tmp_path: Path) -> None:
    """The command and the environment of the Dockerfile, over a copy of what it copies."""
    app = copied(tmp_path)
    environment = dict(pair.split("=", 1) for pair in last("ENV").split())
    assert environment["PYTHONPATH"] == "/app"
    assert last("WORKDIR") == "/app"
    program, *arguments = json.loads(last("CMD"))
    assert program == "python"
    log = tmp_path / "log"
    with log.open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, "-X", "importtime", *arguments],
            cwd=app,
            env={
                **environment,
                "PATH": os.environ["PATH"],
                "PYTHONPATH": str(app),
                "OUTBOX_HOST": "127.0.0.1",  # the only difference: tests listen to this machine alone
                "PORT": "0",
                "FIRESTORE_EMULATOR_HOST": "127.0.0.1:1",
                "OUTBOX_TASKS_EMULATOR_HOST": "127.0.0.1:1",
            },
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    try:
        assert process.stdout is not None
        ready = process.stdout.readline()
        assert ready.startswith("ready  http://127.0.0.1:"), log.read_text()[-2000:]
        address = ready.split()[1]
        assert httpx.get(f"{address}/healthz", trust_env=False, timeout=PATIENCE_SECONDS).text == "ok"
        assert httpx.post(f"{address}/tasks/sweep", trust_env=False, timeout=PATIENCE_SECONDS).status_code == 401
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 0, log.read_text()[-2000:]
    lines = log.read_text().splitlines()
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in lines if "|" in line}
    assert "firestore_outbox" in imported
    assert imported.isdisjoint({"firestore_emulator", "tests", "bench", "pytest", "hypothesis", "mypy"})


def console(where: Path, **further: str) -> subprocess.Popen[str]:
    """The command of deploy/console.sh on a copy of the image, as on Cloud Run; the credentials are of no one."""
    (deployed,) = (
        command
        for command in run("console.sh", "an-image", where=where / "gcloud", exists=False, FIREBASE_API_KEY="key")
        if "deploy" in command.words
    )
    assert deployed.value("--command") == "python"
    credentials = where / "credentials.json"
    secrets = {"client_id": "c", "client_secret": "s", "refresh_token": "r"}
    credentials.write_text(json.dumps({"type": "authorized_user", **secrets}))
    app = copied(where)
    environment = {
        **dict(pair.split("=", 1) for pair in last("ENV").split()),
        **deployed.pairs("--set-env-vars"),
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(app),
        "OUTBOX_HOST": "127.0.0.1",
        "PORT": "0",
        "K_SERVICE": deployed.words[-1],
        "GOOGLE_APPLICATION_CREDENTIALS": str(credentials),
        **further,
    }
    command = [sys.executable, *deployed.value("--args").split(",")]
    with (where / "errors").open("w") as errors:
        return subprocess.Popen(command, cwd=app, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True)


def test_the_console_starts_from_the_workers_image_and_offers_no_sign_in_with_one_click(tmp_path: Path) -> None:
    process = console(tmp_path)
    try:
        assert process.stdout is not None
        ready = process.stdout.readline()
        assert ready.startswith("ready  http://127.0.0.1:"), (tmp_path / "errors").read_text()[-2000:]
        address = ready.split()[1]
        with httpx.Client(base_url=address, trust_env=False, timeout=PATIENCE_SECONDS) as http:
            assert http.get("/healthz").text == "ok"
            page = http.get("/sign-in")
            assert page.status_code == 200
            assert 'type="password"' in page.text
            assert "example.com" not in page.text, "the persons of the dev stack"
            assert http.get("/").headers["location"].startswith("/sign-in")
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 0


def test_the_console_refuses_to_start_with_local_sign_in_on_cloud_run(tmp_path: Path) -> None:
    process = console(tmp_path, FIREBASE_AUTH_EMULATOR_HOST="127.0.0.1:1")
    said, _ = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode != 0
    assert "FIREBASE_AUTH_EMULATOR_HOST" in (tmp_path / "errors").read_text()
    assert said == "", "it never listened"


# --- requirements.txt


def entries(file: str) -> dict[str, list[str]]:
    """Each package's lines: its version, and the hashes of its files."""
    found: dict[str, list[str]] = {}
    name = ""
    for line in (ROOT / file).read_text().splitlines():
        if line.startswith("#") or not line.strip():
            continue
        if not line[0].isspace():
            name = canonicalize_name(line.partition("==")[0].strip())
        found.setdefault(name, []).append(line)
    return found


def project() -> dict[str, Any]:
    """The distribution that is deployed."""
    return dict(tomllib.loads((ROOT / "worker" / "pyproject.toml").read_text())["project"])


AGAIN = "; run `make lock`"


def test_what_is_deployed_is_what_was_tested() -> None:
    tested = entries("constraints.txt")
    for name, lines in entries("requirements.txt").items():
        assert lines == tested.get(name), f"{name} differs between requirements.txt and constraints.txt{AGAIN}"


def test_everything_the_product_depends_on_is_deployed_and_nothing_of_the_developers() -> None:
    deployed = entries("requirements.txt").keys()
    wanted = [*project()["dependencies"], *project()["optional-dependencies"]["billing"]]
    needed = {canonicalize_name(Requirement(text).name) for text in wanted}
    assert needed <= deployed, f"{needed - deployed} is not in requirements.txt{AGAIN}"
    lines = (line.partition("#")[0].strip() for line in (ROOT / "requirements-dev.in").read_text().splitlines())
    tools = {canonicalize_name(Requirement(line).name) for line in lines if line} - needed
    assert deployed.isdisjoint(tools)


def test_what_is_deployed_has_all_that_it_requires_itself() -> None:
    deployed = entries("requirements.txt")
    missing = set()
    for name in deployed:
        try:
            texts = requires(name) or []
        except PackageNotFoundError:
            pytest.skip(f"{name} is locked but not installed here (make install): what it requires is not known")
        for further in map(Requirement, texts):
            if further.marker is None or further.marker.evaluate({"extra": ""}):
                missing |= {canonicalize_name(further.name)} - deployed.keys()
    assert missing == set(), f"not in requirements.txt{AGAIN}"
