"""Commands start without the libraries that only their work needs, and shells complete them."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from typer.main import get_command

from firestore_outbox.cli import MODULES, whole_app
from tests.cli.support import COMMAND, every_command
from tests.patience import PATIENCE_SECONDS

HEAVY = (
    "dateutil",
    "firebase_admin",
    "google.api_core",
    "google.auth",
    "google.cloud.firestore",
    "google.cloud.secretmanager",
    "google.cloud.storage",
    "google.cloud.tasks_v2",
    "google.protobuf",
    "grpc",
    "httpx",
    "opentelemetry",
    "rich.progress",
    "starlette",
    "stripe",
    "uvicorn",
)
"""Packages of the worker. Each of them costs more than the help of all commands together."""

_LOOK = """
import contextlib, io, json, sys
from firestore_outbox.cli import main
for words in json.loads(sys.argv[1]):
    sys.argv = ["outbox", *words]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        main()
print(json.dumps(sorted(sys.modules)))
"""


def modules_after(*command_lines: list[str]) -> set[str]:
    """The modules that one process has imported after it ran these commands."""
    done = subprocess.run(
        [sys.executable, "-c", _LOOK, json.dumps(command_lines)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=True,
    )
    return set(json.loads(done.stdout))


def test_the_help_of_every_command_and_the_version_import_nothing_heavy() -> None:
    found = modules_after(["--version"], ["--help"], *([*command, "--help"] for command in every_command()))
    assert "firestore_outbox.cli.runs" in found, "the commands were imported"
    assert [name for name in HEAVY if name in found] == []


def test_the_list_of_all_commands_imports_no_command_and_no_model() -> None:
    found = modules_after(["--help"])
    assert found & {f"firestore_outbox.cli.{name}" for name in MODULES} == set()
    assert [name for name in ("asyncio", "pydantic", "rich") if name in found] == []


def test_the_list_of_all_commands_names_each_on_a_line_of_its_own() -> None:
    registered = set(get_command(whole_app()).commands)  # type: ignore[attr-defined]
    listed = {name: line for names in MODULES.values() for name, line in names.items()}
    assert set(listed) == registered
    done = subprocess.run(
        [str(COMMAND), "--help"], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=True
    )
    shown = dict(line.split(maxsplit=1) for line in done.stdout.partition("Commands:\n")[2].splitlines() if line)
    assert shown == listed


def test_a_command_imports_no_module_of_the_other_commands() -> None:
    found = modules_after(["send", "--help"])
    others = {f"firestore_outbox.cli.{name}" for name in MODULES} - {"firestore_outbox.cli.messages"}
    assert found & others == set()


@pytest.mark.parametrize(
    ("typed", "completed"), [("outbox ru", "runs"), ("outbox runs sh", "show"), ("outbox send --acc", "--account")]
)
def test_a_shell_completes_commands_and_options(typed: str, completed: str) -> None:
    words = {"COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" ")), "_OUTBOX_COMPLETE": "complete_bash"}
    done = subprocess.run(
        [str(COMMAND)],
        env={**os.environ, **words},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert done.stdout.split() == [completed]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_documented_line_prints_a_script_for_the_shell(shell: str) -> None:
    done = subprocess.run(
        [str(COMMAND)],
        env={**os.environ, "_OUTBOX_COMPLETE": f"source_{shell}"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert "_OUTBOX_COMPLETE=complete_" in done.stdout
