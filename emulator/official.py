"""Google's own Firestore emulator, the judge of ours: find it, start it, steer it, stop it.

    with OfficialEmulator.start(rules=Path("firestore.rules")) as emulator:
        client = AsyncClient(...)  # with FIRESTORE_EMULATOR_HOST=emulator.host

`find` says what this machine has: one that runs already (FIRESTORE_EMULATOR_HOST), one that can be started (a jar
and a Java), or `Missing`, which lists every place that was looked at and what to install. A running one is used as
it is, and never stopped: it is not ours.

Who ends the process
--------------------
Java runs under a small supervisor that reads from a pipe whose other end we hold. `stop` closes the pipe. If we are
killed, kill -9 included, the system closes it. Either way the supervisor sees the end of the pipe and ends Java,
first politely. (PR_SET_PDEATHSIG alone would not do: it fires when the *thread* that started the process ends, and
setting it between fork and exec is unsafe in a process with threads. The supervisor has one thread at that moment, and
sets it for its own child, so that Java does not outlive a killed supervisor either.)
The supervisor is Java's parent and reaps it, so no signal can hit a process that took over the number.
It has its own session: Ctrl-C in a terminal reaches us, and we decide.
"""

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

__all__ = [
    "EmulatorFailed",
    "EmulatorMissing",
    "Installed",
    "Missing",
    "OfficialEmulator",
    "RulesRejected",
    "Running",
    "find",
    "find_installed",
]

HOST_VARIABLE = "FIRESTORE_EMULATOR_HOST"
JAR_VARIABLE = "OUTBOX_OFFICIAL_EMULATOR_JAR"
PROJECT = "demo-outbox"

_MAIN_CLASS = "com.google.cloud.datastore.emulator.firestore.CloudFirestore"  # the jar's manifest names none
_IN_SDK = Path("platform/cloud-firestore-emulator/cloud-firestore-emulator.jar")
_PORT_ATTEMPTS = 5
_POLL_SECONDS = 0.05
_STOP_SECONDS = 15.0
_LOG_LINES_SHOWN = 30

_INSTALL_JAR = (
    "the jar: gcloud components install cloud-firestore-emulator"
    " (Debian: apt-get install google-cloud-cli-firestore-emulator),"
    f" or firebase setup:emulators:firestore, or set {JAR_VARIABLE} to its path"
)
_INSTALL_JAVA = "Java: a JRE, 11 or newer (Debian: apt-get install default-jre-headless), on PATH or in JAVA_HOME"

_SUPERVISOR = """
import os, signal, subprocess, sys, threading, time

def die_with_parent():
    if sys.platform == "linux":
        import ctypes
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)

java = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, preexec_fn=die_with_parent)

def end_when_the_pipe_ends():
    os.read(0, 1)
    java.terminate()
    time.sleep(3)
    java.kill()

threading.Thread(target=end_when_the_pipe_ends, daemon=True).start()
sys.exit(java.wait() and 1)
"""


@dataclass(frozen=True, kw_only=True)
class Running:
    """An emulator that somebody else started and will stop."""

    host: str


@dataclass(frozen=True, kw_only=True)
class Installed:
    """All that is needed to start one."""

    jar: Path
    java: Path


@dataclass(frozen=True, kw_only=True)
class Missing:
    """Why Google's emulator cannot be started here. As text: the places, and what to install."""

    jar: Path | None
    java: Path | None
    jar_places: tuple[str, ...]
    java_places: tuple[str, ...]

    def __str__(self) -> str:
        lacks = [name for name, found in (("its jar", self.jar), ("Java", self.java)) if found is None]
        lines = [f"Google's Firestore emulator cannot be started: {' and '.join(lacks)} not found."]
        for name, found, places in (
            ("its jar", self.jar, self.jar_places),
            ("Java", self.java, self.java_places),
        ):
            lines += [f"{name}: {found}"] if found else [f"{name}, looked for at:", *(f"  - {p}" for p in places)]
        lines += [f"To install {_INSTALL_JAR}"] if self.jar is None else []
        lines += [f"To install {_INSTALL_JAVA}"] if self.java is None else []
        return "\n".join(lines)


class EmulatorMissing(Exception):
    """There is nothing to start. `missing` says what, and where it was looked for."""

    def __init__(self, missing: Missing) -> None:
        super().__init__(str(missing))
        self.missing = missing


class EmulatorFailed(Exception):
    """It did not start, or did not do what it was asked. The text ends with what the process wrote."""


class RulesRejected(EmulatorFailed):
    """The security rules do not compile. The text is the compiler's."""


def find(environ: Mapping[str, str] = os.environ) -> Running | Installed | Missing:
    """What this machine has, the emulator that runs already first."""
    if host := environ.get(HOST_VARIABLE):
        return Running(host=host)
    return find_installed(environ)


def find_installed(environ: Mapping[str, str] = os.environ) -> Installed | Missing:
    """The jar and the Java to start it with."""
    jar, jar_places = _first_file(_jar_places(environ))
    java, java_places = _first_file(_java_places(environ))
    if jar is None or java is None:
        return Missing(jar=jar, java=java, jar_places=jar_places, java_places=java_places)
    return Installed(jar=jar, java=java)


def _first_file(places: Iterator[tuple[str, Path | None]]) -> tuple[Path | None, tuple[str, ...]]:
    """The first place that holds a file, and all that were looked at. Later places are not even worked out."""
    looked_at = []
    for description, path in places:
        looked_at.append(description)
        if path is not None and path.is_file():
            return path, tuple(looked_at)
    return None, tuple(looked_at)


def _jar_places(environ: Mapping[str, str]) -> Iterator[tuple[str, Path | None]]:
    if named := environ.get(JAR_VARIABLE):
        yield f"{JAR_VARIABLE}={named}: no such file", Path(named)
        return  # whoever names a jar does not want another one
    yield f"{JAR_VARIABLE}: not set", None
    yield from _gcloud_places(environ)
    cache = environ.get("FIREBASE_EMULATORS_PATH")
    folder = Path(cache) if cache else _home(environ) / ".cache/firebase/emulators"
    jars = sorted(folder.glob("cloud-firestore-emulator-*.jar"), key=_version)
    yield f"{folder}/cloud-firestore-emulator-*.jar (firebase-tools): none", jars[-1] if jars else None


def _gcloud_places(environ: Mapping[str, str]) -> Iterator[tuple[str, Path | None]]:
    gcloud = shutil.which("gcloud", path=environ.get("PATH", ""))
    if gcloud is None:
        yield "the Google Cloud SDK: no gcloud on PATH", None
        return
    beside = Path(gcloud).resolve().parent.parent / _IN_SDK
    yield f"{beside} (beside {gcloud}): no such file", beside
    # Asking takes gcloud a second; some packages put a wrapper on PATH, and then only gcloud knows.
    try:
        answer = subprocess.run(
            [gcloud, "info", "--format=value(installation.sdk_root)"],
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        yield f"gcloud info: {error}", None
        return
    told = Path(answer.stdout.strip()) / _IN_SDK
    yield f"{told} (the root that gcloud info tells): no such file", told


def _java_places(environ: Mapping[str, str]) -> Iterator[tuple[str, Path | None]]:
    if java_home := environ.get("JAVA_HOME"):
        path = Path(java_home) / "bin/java"
        yield f"{path} (JAVA_HOME): no such file", path
    else:
        yield "JAVA_HOME: not set", None
    on_path = shutil.which("java", path=environ.get("PATH", ""))
    yield "PATH: no java", Path(on_path) if on_path else None


def _home(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("HOME") or Path.home())


def _version(jar: Path) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", jar.name))


class OfficialEmulator:
    """A running emulator. Made by `start`; a context manager that stops what it started."""

    def __init__(self, host: str, process: "_Process | None") -> None:
        self.host = host
        self._process = process
        # No proxy from the environment: the emulator is on this machine.
        self._http = httpx.Client(base_url=f"http://{host}", trust_env=False, timeout=30)

    @classmethod
    def start(
        cls,
        *,
        port: int | None = None,
        rules: Path | None = None,
        functions_emulator: str | None = None,
        log: Path | None = None,
        deadline: timedelta = timedelta(seconds=60),
        environ: Mapping[str, str] = os.environ,
    ) -> Self:
        """Return an emulator that answers; raise EmulatorMissing or EmulatorFailed.

        port: a free one if not given. rules: a file; none means that everything is allowed.
        functions_emulator: HOST:PORT that gets the events of the triggers. log: where the process writes; a temporary
        file if not given. A running emulator (FIRESTORE_EMULATOR_HOST) is used unless a port or a functions
        emulator is asked for, which only a new one can have.
        """
        found = find(environ)
        if isinstance(found, Running):
            if port is None and functions_emulator is None:
                return cls._attach(found, rules)
            found = find_installed(environ)
        if isinstance(found, Missing):
            raise EmulatorMissing(found)
        options = [f"--rules={rules}"] if rules else []
        options += [f"--functions_emulator={functions_emulator}"] if functions_emulator else []
        process = _start_process(found, port=port, options=options, log=log, deadline=deadline, environ=environ)
        emulator = cls(process.host, process)
        emulator._load_rules_of(rules)
        return emulator

    @classmethod
    def _attach(cls, running: Running, rules: Path | None) -> Self:
        emulator = cls(running.host, None)
        if not _answers(running.host):
            emulator.stop()
            raise EmulatorFailed(
                f"{HOST_VARIABLE}={running.host}, but no Firestore emulator answers there: start it or unset it"
            )
        emulator._load_rules_of(rules)
        return emulator

    def _load_rules_of(self, rules: Path | None) -> None:
        """The process takes rules that do not compile without a word, so they are loaded over HTTP too."""
        if rules is None:
            return
        try:
            self.load_rules(rules.read_text(encoding="utf-8"))
        except BaseException:
            self.stop()
            raise

    @property
    def environment(self) -> dict[str, str]:
        """What a client's process needs in its environment to find this emulator."""
        return {HOST_VARIABLE: self.host}

    def load_rules(self, source: str, *, project: str = PROJECT) -> None:
        """Replace the project's security rules; RulesRejected if they do not compile."""
        body = {"rules": {"files": [{"name": "security.rules", "content": source}]}}
        response = self._send("PUT", f"/emulator/v1/projects/{project}:securityRules", body)
        if response.status_code == httpx.codes.BAD_REQUEST:
            raise RulesRejected(_message(response))
        self._check(response)

    def clear(self, *, project: str = PROJECT, database: str = "(default)") -> None:
        """Delete every document. Triggers for deletion fire."""
        path = f"/emulator/v1/projects/{project}/databases/{database}/documents"
        self._check(self._send("DELETE", path, None))

    def register_trigger(
        self,
        name: str,
        *,
        document: str,
        event_type: str = "google.cloud.firestore.document.v1.created",
        project: str = PROJECT,
        database: str = "(default)",
    ) -> None:
        """Send events about documents that match the pattern (`outbox/{id}`) to the functions emulator.

        They arrive as POST /functions/projects/{project}/triggers/{name}: binary CloudEvents with a base64 body.
        """
        body = {
            "eventType": event_type,
            "database": database,
            "namespace": "(default)",
            "document": {"value": document, "matchType": "PATH_PATTERN"},
        }
        path = f"/emulator/v1/projects/{project}/eventarcTrigger?eventarcTriggerId={name}"
        self._check(self._send("POST", path, body))

    def wait(self) -> None:
        """Block until the process that we started ends by itself, as a command line does."""
        if self._process:
            self._process.wait()

    def stop(self) -> None:
        """End the process, if we started it. A second call does nothing."""
        self._http.close()
        if self._process:
            self._process.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _send(self, method: str, path: str, body: dict[str, Any] | None) -> httpx.Response:
        try:  # without this content type the emulator answers 404
            return self._http.request(method, path, json=body, headers={"content-type": "application/json"})
        except httpx.HTTPError as error:
            log = self._process.log_tail() if self._process else ""
            raise EmulatorFailed(f"{method} {path} on {self.host}: {error!r}{log}") from error

    def _check(self, response: httpx.Response) -> None:
        if not response.is_success:
            request = response.request
            raise EmulatorFailed(
                f"{request.method} {request.url} answered {response.status_code}: {_message(response)}"
            )


class _Process:
    """The supervisor, the pipe that keeps it alive, and what Java wrote."""

    def __init__(
        self, installed: Installed, port: int, options: list[str], log: Path | None, environ: Mapping[str, str]
    ) -> None:
        self.host = f"127.0.0.1:{port}"
        # A temporary file has no name, so that nothing is left of it even after kill -9.
        self._log = log.open("a+b") if log else tempfile.TemporaryFile()  # noqa: SIM115  # open till stop()
        self._log_start = os.fstat(self._log.fileno()).st_size
        java = [
            str(installed.java),
            "-Duser.language=en",  # the emulator's messages exist in English only
            "-cp",
            str(installed.jar),
            _MAIN_CLASS,
            "start",
            "--host=127.0.0.1",
            f"--port={port}",
            "--database-mode=firestore-native",
            *options,
        ]
        self._supervisor = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _SUPERVISOR, *java],
            stdin=subprocess.PIPE,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            env=dict(environ),
            start_new_session=True,
        )

    @property
    def output(self) -> str:
        size = os.fstat(self._log.fileno()).st_size - self._log_start
        # Not read(): the position in the file is shared with the process that writes it.
        return os.pread(self._log.fileno(), size, self._log_start).decode(errors="replace")

    def log_tail(self) -> str:
        lines = self.output.splitlines()[-_LOG_LINES_SHOWN:]
        return "\n".join(["", "--- the emulator wrote:", *(lines or ["(nothing)"])])

    def has_ended(self) -> bool:
        return self._supervisor.poll() is not None

    def is_ready(self) -> bool:
        """Its log names its address once it is bound: so it is this process that answers there, not another."""
        return re.search(rf"{re.escape(self.host)}\b", self.output) is not None and _answers(self.host)

    def wait(self) -> None:
        self._supervisor.wait()

    def stop(self) -> None:
        if self._supervisor.stdin and not self._supervisor.stdin.closed:
            self._supervisor.stdin.close()
        try:
            self._supervisor.wait(timeout=_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._supervisor.kill()  # Java follows it where the system can tie them
            self._supervisor.wait()
        self._log.close()


def _start_process(
    installed: Installed,
    *,
    port: int | None,
    options: list[str],
    log: Path | None,
    deadline: timedelta,
    environ: Mapping[str, str],
) -> _Process:
    """Between the choice of a free port and its use another process may take it; then another one is chosen."""
    for attempt in range(1, _PORT_ATTEMPTS + 1):
        process = _Process(installed, port or _free_port(), options, log, environ)
        try:
            failure = _wait_until_ready(process, deadline)
            if failure is None:
                return process
            port_taken = "BindException" in process.output
            if port_taken and port:
                raise EmulatorFailed(f"port {port} is taken: choose another port, or none for a free one")
            if not port_taken or attempt == _PORT_ATTEMPTS:
                raise EmulatorFailed(f"Google's Firestore emulator {failure}{process.log_tail()}")
        except BaseException:
            process.stop()
            raise
        process.stop()
    raise AssertionError("the last attempt returns or raises")


def _wait_until_ready(process: _Process, deadline: timedelta) -> str | None:
    """None when it answers, else what went wrong."""
    end = time.monotonic() + deadline.total_seconds()
    while time.monotonic() < end:
        if process.has_ended():
            return "ended before it answered"
        if process.is_ready():
            return None
        time.sleep(_POLL_SECONDS)
    return f"did not answer within {deadline.total_seconds():g} s"


def _answers(host: str) -> bool:
    try:
        response = httpx.get(f"http://{host}/", timeout=5, trust_env=False)
    except (httpx.HTTPError, httpx.InvalidURL):
        return False
    return response.is_success and response.text.strip() == "Ok"


def _message(response: httpx.Response) -> str:
    try:
        return str(response.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return response.text


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
