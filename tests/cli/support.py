"""The `outbox` command as a person or a script uses it, and `outbox dev` as the stack that it is used on."""

from __future__ import annotations

import json
import os
import secrets
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest
from google.auth.credentials import AnonymousCredentials
from google.cloud import firestore
from typer.main import get_command
from typer.testing import CliRunner

from firestore_outbox.cli import app, whole_app
from tests.patience import PATIENCE_SECONDS

T = TypeVar("T")

COMMAND = Path(sys.executable).parent / "outbox"
LOOK_SECONDS = 0.1
PORTS = ("firestore", "tasks", "functions", "worker", "provider")
FREE_PORTS = tuple(f"--{name}-port=0" for name in (*PORTS, "page", "console", "identity"))


def every_command() -> list[list[str]]:
    """The words of each command, those of groups included."""
    words = []
    for name, command in get_command(whole_app()).commands.items():  # type: ignore[attr-defined]  # it is a group
        words += [[name, below] for below in getattr(command, "commands", ())] or [[name]]
    return words


def until(look: Callable[[], T], good: Callable[[T], bool], what: str) -> T:
    ends = time.monotonic() + PATIENCE_SECONDS
    while not good(seen := look()):
        assert time.monotonic() < ends, f"{what} did not come; seen last: {seen!r}"
        time.sleep(LOOK_SECONDS)
    return seen


@dataclass(frozen=True)
class Said:
    """What a command answered."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def outbox(*arguments: str, env: dict[str, str | None] | None = None) -> Said:
    """The command in this process, which is faster than one of its own."""
    result = CliRunner().invoke(app(arguments), arguments, env=env)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Said(result.exit_code, result.stdout, result.stderr)


@contextmanager
def process(
    *arguments: str, env: dict[str, str | None] | None = None, typed: str | None = None
) -> Iterator[subprocess.Popen[str]]:
    """The command as a process of its own; whatever is left of it ends with the block. `typed` is its input."""
    environment = {**os.environ, **{name: value for name, value in (env or {}).items() if value is not None}}
    stdin = None if typed is None else subprocess.PIPE
    running = subprocess.Popen(
        [str(COMMAND), *arguments], stdin=stdin, stdout=subprocess.PIPE, text=True, env=environment
    )
    assert running.stdout is not None
    if running.stdin is not None:
        running.stdin.write(typed or "")
        running.stdin.close()
    try:
        yield running
    finally:
        if running.poll() is None:
            running.terminate()
        running.wait(PATIENCE_SECONDS)
        running.stdout.close()


# --- a stack


@dataclass
class Stack:
    """A running `outbox dev`."""

    process: subprocess.Popen[str]
    line: str
    exports: str

    @property
    def addresses(self) -> dict[str, str]:
        return dict(word.split("=", 1) for word in self.line.split()[1:])

    @property
    def ports(self) -> dict[str, str]:
        return {name: self._address(name).rpartition(":")[2] for name in PORTS}

    def _address(self, name: str) -> str:
        shown = {"firestore": "FIRESTORE_EMULATOR_HOST", "tasks": "CLOUD_TASKS_EMULATOR_HOST"}
        return self.addresses[shown.get(name, name)]

    @property
    def environment(self) -> dict[str, str | None]:
        """What the stack prints for another terminal."""
        words = shlex.split(self.exports, comments=True)[1:]
        return {name: value for name, _, value in (word.partition("=") for word in words)}

    def __call__(self, *arguments: str) -> Said:
        return outbox(*arguments, env=self.environment)

    def account(self, **changes: Any) -> str:
        """A new one, written as the console of a project would write it."""
        account_id = f"acc-{secrets.token_hex(4)}"
        fields = {"provider": "simulated", "status": "active", "pace": {"perMinute": 0}, **changes}
        self.write(f"accounts/{account_id}", fields)
        return account_id

    def write(self, path: str, fields: dict[str, Any], project: str = "demo-outbox") -> None:
        with self._client(project) as client:
            client.document(path).set(fields)

    def read(self, path: str) -> dict[str, Any]:
        with self._client("demo-outbox") as client:
            return dict(client.document(path).get().to_dict() or {})

    @contextmanager
    def _client(self, project: str) -> Iterator[firestore.Client]:
        with pytest.MonkeyPatch.context() as patch:  # read once, when a client is made
            patch.setenv("FIRESTORE_EMULATOR_HOST", self._address("firestore"))
            client = firestore.Client(project=project, credentials=AnonymousCredentials())
        yield client
        client.close()

    def send(self, account_id: str, *options: str, to: str = "+491701") -> str:
        said = self("send", "--account", account_id, "--to", to, "--text", "hello", "--json", *options)
        assert said.code == 0, said
        return str(said.json["requestId"])

    def status(self, request_id: str) -> dict[str, Any]:
        fields: dict[str, Any] = self("status", request_id, "--json").json
        return fields

    def becomes(self, request_id: str, status: str) -> dict[str, Any]:
        return until(lambda: self.status(request_id), lambda fields: fields["status"] == status, status)

    def faults(self, **faults: Any) -> None:
        httpx.put(
            f"{self.addresses['provider']}/_sim/faults", json=faults, trust_env=False, timeout=PATIENCE_SECONDS
        ).raise_for_status()

    def calls(self, account_id: str) -> list[str]:
        answer = httpx.get(
            f"{self.addresses['provider']}/_sim/calls",
            params={"accountId": account_id},
            trust_env=False,
            timeout=PATIENCE_SECONDS,
        )
        return [call["requestId"] for call in answer.json()]

    # --- its end

    def children(self) -> list[int]:
        """Every process below it."""
        found, look = [], [self.process.pid]
        while look:
            parent = look.pop()
            for task in Path(f"/proc/{parent}/task").glob("*/children"):
                below = [int(pid) for pid in task.read_text().split()]
                found += below
                look += below
        return found

    def ended_by(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_SECONDS)


@contextmanager
def dev(*options: str) -> Iterator[Stack]:
    """Runs until the block ends, or until the test ends it before."""
    with process("dev", *options, env={"OUTBOX_LOG_LEVEL": "WARNING"}) as running:
        assert running.stdout is not None
        line = running.stdout.readline()
        assert line.startswith("ready "), f"{line!r}, status {running.poll()}"
        yield Stack(running, line, running.stdout.readline())


def are_gone(pids: Sequence[int]) -> bool:
    return not any(Path(f"/proc/{pid}").exists() for pid in pids)
