"""Google's emulator: found, started, steered and stopped; and said to be missing where it is."""

import os
import queue
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from firestore_emulator import official
from firestore_emulator.official import (
    EmulatorFailed,
    EmulatorMissing,
    Installed,
    Missing,
    OfficialEmulator,
    RulesRejected,
    Running,
    find,
    find_installed,
    process,
)
from tests.patience import PATIENCE_SECONDS

ROOT = Path(__file__).parents[2]
HERE = {name: value for name, value in os.environ.items() if name != official.HOST_VARIABLE}
IN_SDK = "platform/cloud-firestore-emulator/cloud-firestore-emulator.jar"
DOCUMENTS = "/v1/projects/demo-outbox/databases/(default)/documents"
OWNER = {"authorization": "Bearer owner"}

ALLOW = "rules_version = '2'; service cloud.firestore { match /{any=**} { allow read, write: if true; } }"
DENY = ALLOW.replace("true", "false")


# Finding it: on machines that the tests make up


def executable(path: Path, script: str = "exit 1") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def file(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


@pytest.fixture
def machine(tmp_path: Path) -> dict[str, str]:
    """The environment of a machine that has nothing at all."""
    (tmp_path / "bin").mkdir()
    return {"PATH": str(tmp_path / "bin"), "HOME": str(tmp_path / "home")}


def missing(environ: dict[str, str]) -> Missing:
    found = find(environ)
    assert isinstance(found, Missing)
    return found


def test_an_emulator_named_in_the_environment_is_found_first(machine: dict[str, str]) -> None:
    assert find({**machine, "FIRESTORE_EMULATOR_HOST": "localhost:8080"}) == Running(host="localhost:8080")


def test_a_machine_with_nothing_gets_every_place_and_what_to_install(machine: dict[str, str]) -> None:
    text = str(missing(machine))
    assert "its jar and Java not found" in text
    for place in ("OUTBOX_OFFICIAL_EMULATOR_JAR: not set", "no gcloud on PATH", ".cache/firebase/emulators"):
        assert place in text
    for place in ("JAVA_HOME: not set", "PATH: no java"):
        assert place in text
    assert "gcloud components install cloud-firestore-emulator" in text
    assert "default-jre-headless" in text


def test_a_machine_that_lacks_only_java_gets_that_reason(machine: dict[str, str], tmp_path: Path) -> None:
    jar = file(tmp_path / "emulator.jar")
    found = missing({**machine, "OUTBOX_OFFICIAL_EMULATOR_JAR": str(jar)})
    assert (found.jar, found.java) == (jar, None)
    assert "To install the jar" not in str(found)
    assert "To install Java" in str(found)


def test_a_machine_that_lacks_only_the_jar_gets_that_reason(machine: dict[str, str], tmp_path: Path) -> None:
    java = executable(tmp_path / "bin/java")
    found = missing(machine)
    assert (found.jar, found.java) == (None, java)
    assert "To install the jar" in str(found)
    assert "To install Java" not in str(found)


def test_a_named_jar_that_is_not_there_is_not_replaced_by_another(machine: dict[str, str], tmp_path: Path) -> None:
    executable(tmp_path / "bin/java")
    file(tmp_path / "home/.cache/firebase/emulators/cloud-firestore-emulator-v1.19.8.jar")
    found = missing({**machine, "OUTBOX_OFFICIAL_EMULATOR_JAR": "/nowhere/emulator.jar"})
    assert found.jar_places == ("OUTBOX_OFFICIAL_EMULATOR_JAR=/nowhere/emulator.jar: no such file",)


def test_the_jar_beside_gcloud_is_found_without_asking_gcloud(machine: dict[str, str], tmp_path: Path) -> None:
    java = executable(tmp_path / "bin/java")
    gcloud = executable(tmp_path / "sdk/bin/gcloud", f"echo asked > {tmp_path}/asked")
    (tmp_path / "bin/gcloud").symlink_to(gcloud)
    jar = file(tmp_path / "sdk" / IN_SDK)
    assert find(machine) == Installed(jar=jar, java=java)
    assert not (tmp_path / "asked").exists()


def test_gcloud_is_asked_for_its_root_when_it_is_only_a_wrapper(machine: dict[str, str], tmp_path: Path) -> None:
    java = executable(tmp_path / "bin/java")
    executable(
        tmp_path / "bin/gcloud",
        f'[ "$*" = "info --format=value(installation.sdk_root)" ] && echo {tmp_path}/elsewhere',
    )
    jar = file(tmp_path / "elsewhere" / IN_SDK)
    assert find(machine) == Installed(jar=jar, java=java)


def test_a_gcloud_that_fails_is_one_of_the_places_looked_at(machine: dict[str, str], tmp_path: Path) -> None:
    executable(tmp_path / "bin/gcloud", "exit 3")
    assert "exit status 3" in str(missing(machine))


def test_a_gcloud_without_the_component_is_one_of_the_places_looked_at(machine: dict[str, str], tmp_path: Path) -> None:
    executable(tmp_path / "bin/gcloud", f"echo {tmp_path}/elsewhere")
    assert f"{tmp_path}/elsewhere/{IN_SDK} (the root that gcloud info tells)" in str(missing(machine))


@pytest.mark.parametrize("variable", [None, "FIREBASE_EMULATORS_PATH"])
def test_the_newest_jar_of_firebase_tools_is_found(
    machine: dict[str, str], tmp_path: Path, variable: str | None
) -> None:
    java = executable(tmp_path / "bin/java")
    folder = tmp_path / ("cache" if variable else "home/.cache/firebase/emulators")
    for version in ("1.9.0", "1.19.8", "1.18.2"):
        file(folder / f"cloud-firestore-emulator-v{version}.jar")
    newest = folder / "cloud-firestore-emulator-v1.19.8.jar"
    environ = {**machine, variable: str(folder)} if variable else machine
    assert find(environ) == Installed(jar=newest, java=java)


def test_java_home_comes_before_the_path(machine: dict[str, str], tmp_path: Path) -> None:
    executable(tmp_path / "bin/java")
    java = executable(tmp_path / "jdk/bin/java")
    jar = file(tmp_path / "emulator.jar")
    environ = {**machine, "OUTBOX_OFFICIAL_EMULATOR_JAR": str(jar), "JAVA_HOME": str(tmp_path / "jdk")}
    assert find(environ) == Installed(jar=jar, java=java)


def test_starting_where_it_is_missing_raises_what_is_missing(machine: dict[str, str]) -> None:
    with pytest.raises(EmulatorMissing, match="no gcloud on PATH") as caught:
        OfficialEmulator.start(environ=machine)
    assert caught.value.missing.java is None


def test_a_named_host_where_nothing_answers_is_an_error_that_names_the_variable(machine: dict[str, str]) -> None:
    with socket.socket() as bound_but_not_listening:
        bound_but_not_listening.bind(("127.0.0.1", 0))
        host = f"127.0.0.1:{bound_but_not_listening.getsockname()[1]}"
        with pytest.raises(EmulatorFailed, match=f"FIRESTORE_EMULATOR_HOST={host}"):
            OfficialEmulator.start(environ={**machine, "FIRESTORE_EMULATOR_HOST": host})


def test_a_start_that_fails_shows_what_the_process_wrote(machine: dict[str, str], tmp_path: Path) -> None:
    executable(tmp_path / "bin/java", "echo Unsupported class file major version; exit 1")
    environ = {**machine, "OUTBOX_OFFICIAL_EMULATOR_JAR": str(file(tmp_path / "emulator.jar"))}
    with pytest.raises(EmulatorFailed, match=r"ended before it answered[\s\S]*Unsupported class file"):
        OfficialEmulator.start(environ=environ)


def test_an_emulator_that_never_answers_is_stopped_at_the_deadline(machine: dict[str, str], tmp_path: Path) -> None:
    pipe = tmp_path / "alive"
    os.mkfifo(pipe)
    executable(tmp_path / "bin/java", f"exec 9>{pipe}; echo waiting; exec /usr/bin/env tail -f /dev/null")
    environ = {
        **machine,
        "OUTBOX_OFFICIAL_EMULATOR_JAR": str(file(tmp_path / "emulator.jar")),
        "PATH": f"{machine['PATH']}:{os.environ['PATH']}",
    }
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(reader, True)
    with pytest.raises(EmulatorFailed, match=r"did not answer within 1 s[\s\S]*waiting"):
        OfficialEmulator.start(environ=environ, deadline=timedelta(seconds=1))
    assert os.read(reader, 1) == b""  # the end: no process holds the other side of the pipe
    os.close(reader)


# The real one


@pytest.fixture(scope="session")
def installed() -> Installed:
    found = find_installed(HERE)
    if isinstance(found, Missing):
        if os.environ.get("OUTBOX_REQUIRE_ALL") == "1":
            pytest.fail(str(found))
        pytest.skip(str(found))
    return found


class Functions:
    """Stands where the functions emulator would, and keeps what it is sent."""

    def __init__(self) -> None:
        received: queue.Queue[tuple[str, dict[str, str], bytes]] = queue.Queue()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                received.put((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
                self.send_response(200)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the parent's name
                pass

        self.received = received
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.host = f"127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture(scope="module")
def functions() -> Iterator[Functions]:
    functions = Functions()
    yield functions
    functions.server.shutdown()
    functions.server.server_close()


@pytest.fixture(scope="module")
def emulator(installed: Installed, functions: Functions) -> Iterator[OfficialEmulator]:
    with OfficialEmulator.start(functions_emulator=functions.host, environ=HERE) as emulator:
        yield emulator


@pytest.fixture
def http(emulator: OfficialEmulator) -> Iterator[httpx.Client]:
    emulator.load_rules(ALLOW)
    emulator.clear()
    with httpx.Client(base_url=f"http://{emulator.host}", trust_env=False, timeout=PATIENCE_SECONDS) as client:
        yield client


def create(http: httpx.Client, name: str) -> None:
    url = f"{DOCUMENTS}/outbox?documentId={name}"
    http.post(url, json={"fields": {}}, headers=OWNER).raise_for_status()


def answers(host: str) -> bool:
    try:
        return httpx.get(f"http://{host}/", trust_env=False, timeout=PATIENCE_SECONDS).text.strip() == "Ok"
    except httpx.ConnectError:
        return False


def test_a_started_emulator_answers_and_tells_clients_where(emulator: OfficialEmulator) -> None:
    assert answers(emulator.host)
    assert emulator.environment == {"FIRESTORE_EMULATOR_HOST": emulator.host}


def test_clearing_removes_every_document(emulator: OfficialEmulator, http: httpx.Client) -> None:
    create(http, "one")
    assert http.get(f"{DOCUMENTS}/outbox/one", headers=OWNER).status_code == 200
    emulator.clear()
    assert http.get(f"{DOCUMENTS}/outbox/one", headers=OWNER).status_code == 404


def test_loaded_rules_are_enforced(emulator: OfficialEmulator, http: httpx.Client) -> None:
    create(http, "one")
    json = {"content-type": "application/json"}
    assert http.get(f"{DOCUMENTS}/outbox/one", headers=json).status_code == 200
    emulator.load_rules(DENY)
    assert http.get(f"{DOCUMENTS}/outbox/one", headers=json).status_code == 403


def test_rules_that_do_not_compile_are_rejected_with_the_place(emulator: OfficialEmulator) -> None:
    with pytest.raises(RulesRejected, match="L1:1"):
        emulator.load_rules("these are no rules")


def test_a_registered_trigger_sends_an_event_for_a_new_document(
    emulator: OfficialEmulator, functions: Functions, http: httpx.Client
) -> None:
    emulator.register_trigger("on-created", document="outbox/{id}")
    create(http, "one")
    path, headers, body = functions.received.get(timeout=PATIENCE_SECONDS)
    assert path == "/functions/projects/demo-outbox/triggers/on-created"
    assert headers["ce-type"] == "google.cloud.firestore.document.v1.created"
    assert headers["ce-document"] == "outbox/one"
    assert body


def test_a_trigger_of_no_known_kind_is_an_error(emulator: OfficialEmulator) -> None:
    with pytest.raises(EmulatorFailed, match="eventarcTrigger"):
        emulator.register_trigger("bad", document="outbox/{id}", event_type="nonsense")


def test_a_running_emulator_is_used_and_left_running(emulator: OfficialEmulator) -> None:
    with OfficialEmulator.start(environ={**HERE, **emulator.environment}) as attached:
        assert attached.host == emulator.host
    assert answers(emulator.host)


def test_a_functions_emulator_needs_one_of_its_own_even_beside_a_running_one(
    emulator: OfficialEmulator, functions: Functions
) -> None:
    environ = {**HERE, **emulator.environment}
    with OfficialEmulator.start(functions_emulator=functions.host, environ=environ) as another:
        assert another.host != emulator.host
        assert answers(another.host)


def test_rules_given_at_the_start_are_enforced_and_stopping_ends_the_process(
    installed: Installed, tmp_path: Path
) -> None:
    rules = tmp_path / "firestore.rules"
    rules.write_text(DENY)
    with OfficialEmulator.start(rules=rules, environ=HERE) as emulator:
        url = f"http://{emulator.host}{DOCUMENTS}/outbox/one"
        response = httpx.get(
            url, headers={"content-type": "application/json"}, trust_env=False, timeout=PATIENCE_SECONDS
        )
        assert response.status_code == 403
        connection = connect(emulator.host)
    wait_for_the_end(connection)
    assert not answers(emulator.host)


def test_rules_that_do_not_compile_fail_the_start_and_leave_nothing_running(
    installed: Installed, tmp_path: Path
) -> None:
    rules = tmp_path / "firestore.rules"
    rules.write_text("these are no rules")
    port = process.free_port()
    with pytest.raises(RulesRejected):
        OfficialEmulator.start(rules=rules, port=port, environ=HERE)
    assert not answers(f"127.0.0.1:{port}")


def test_a_free_port_that_another_process_takes_in_between_is_replaced(
    emulator: OfficialEmulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other process answers as an emulator does; it must not be taken for ours."""
    ports = [int(emulator.host.split(":")[1]), process.free_port()]
    monkeypatch.setattr(process, "free_port", lambda: ports.pop(0))
    wanted = ports[1]
    with OfficialEmulator.start(environ=HERE) as another:
        assert another.host == f"127.0.0.1:{wanted}"
        assert answers(another.host)


def test_a_chosen_port_that_is_taken_is_an_error_that_names_it(emulator: OfficialEmulator) -> None:
    port = int(emulator.host.split(":")[1])
    with pytest.raises(EmulatorFailed, match=f"port {port} is taken"):
        OfficialEmulator.start(port=port, environ=HERE)


def test_the_log_goes_where_it_is_asked_to_and_stays(installed: Installed, tmp_path: Path) -> None:
    log = tmp_path / "emulator.log"
    with OfficialEmulator.start(log=log, environ=HERE) as emulator:
        pass
    assert emulator.host in log.read_text()


def test_waiting_ends_when_the_emulator_does(installed: Installed) -> None:
    with OfficialEmulator.start(environ=HERE) as emulator:
        assert emulator._process
        os.kill(emulator._process._supervisor.pid, signal.SIGKILL)
        emulator.wait()


def connect(host: str) -> socket.socket:
    name, port = host.split(":")
    return socket.create_connection((name, int(port)), timeout=PATIENCE_SECONDS)


def wait_for_the_end(connection: socket.socket) -> None:
    with connection, suppress(ConnectionResetError):
        assert connection.recv(1) == b""


@pytest.mark.parametrize("who", ["parent", "supervisor"])
def test_the_emulator_dies_when_the_process_above_it_is_killed(installed: Installed, who: str) -> None:
    """kill -9 leaves no process to clean up; the end of an open connection tells when Java is gone."""
    if who == "supervisor" and sys.platform != "linux":
        pytest.skip("only Linux ties a child to the death of its parent")
    code = (
        "from firestore_emulator.official import OfficialEmulator\n"
        "e = OfficialEmulator.start()\n"
        "print(e.host, e._process._supervisor.pid, flush=True)\n"
        "input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**HERE, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout
        host, supervisor = parent.stdout.readline().split()
        connection = connect(host)
        os.kill(parent.pid if who == "parent" else int(supervisor), signal.SIGKILL)
        wait_for_the_end(connection)
        assert not answers(host)
        parent.kill()
