"""Google's emulator as a process of this machine, and who ends it.

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
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import httpx

from firestore_emulator.official.find import Installed

_MAIN_CLASS = "com.google.cloud.datastore.emulator.firestore.CloudFirestore"  # the jar's manifest names none
_PORT_ATTEMPTS = 5
_POLL_SECONDS = 0.05
_STOP_SECONDS = 15.0
_LOG_LINES_SHOWN = 30

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


class EmulatorFailed(Exception):
    """It did not start, or did not do what it was asked. The text ends with what the process wrote."""


class Process:
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
        return re.search(rf"{re.escape(self.host)}\b", self.output) is not None and answers(self.host)

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


def start_process(
    installed: Installed,
    *,
    port: int | None,
    options: list[str],
    log: Path | None,
    deadline: timedelta,
    environ: Mapping[str, str],
) -> Process:
    """Between the choice of a free port and its use another process may take it; then another one is chosen."""
    for attempt in range(1, _PORT_ATTEMPTS + 1):
        process = Process(installed, port or free_port(), options, log, environ)
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


def _wait_until_ready(process: Process, deadline: timedelta) -> str | None:
    """None when it answers, else what went wrong."""
    end = time.monotonic() + deadline.total_seconds()
    while time.monotonic() < end:
        if process.has_ended():
            return "ended before it answered"
        if process.is_ready():
            return None
        time.sleep(_POLL_SECONDS)
    return f"did not answer within {deadline.total_seconds():g} s"


def answers(host: str) -> bool:
    try:
        response = httpx.get(f"http://{host}/", timeout=5, trust_env=False)
    except (httpx.HTTPError, httpx.InvalidURL):
        return False
    return response.is_success and response.text.strip() == "Ok"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
