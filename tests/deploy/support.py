"""The scripts of deploy/, run for real with a `gcloud` that only writes down what it was called with."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE_SECONDS

ROOT = Path(__file__).parents[2]
PROJECT = "chat-project"
NUMBER = "123456789012"
API_KEY = "web-api-key"
REPOSITORY = f"projects/{PROJECT}/locations/us-central1/connections/github/repositories/app"

_RECORDER = r"""#!/bin/sh
{ printf '%s\0' "${0##*/}" "$@"; printf '\036'; } >>"$RECORD"
case " $* " in
" projects describe "*) echo "$NUMBER" ;;
" run services describe outbox-worker "*) [ "$EXISTS" = yes ] && echo the-image-of-the-worker ;;
*" describe "*) [ "$EXISTS" = yes ] ;;
esac
"""
"""Each argument ends with a zero, each call with a record separator."""


@dataclass(frozen=True)
class Command:
    """One call of a program: `gcloud run deploy outbox-worker --region=...`."""

    program: str
    arguments: tuple[str, ...]

    @property
    def words(self) -> tuple[str, ...]:
        """Up to the first flag: the command itself and what it is about."""
        flags = [number for number, argument in enumerate(self.arguments) if argument.startswith("-")]
        return self.arguments[: flags[0]] if flags else self.arguments

    def values(self, flag: str) -> list[str]:
        return [one.partition("=")[2] for one in self.arguments if one == flag or one.startswith(f"{flag}=")]

    def value(self, flag: str) -> str:
        (value,) = self.values(flag)
        return value

    def has(self, flag: str) -> bool:
        return bool(self.values(flag))

    def pairs(self, flag: str) -> dict[str, str]:
        """KEY=VALUE,KEY=VALUE"""
        return dict(pair.split("=", 1) for pair in self.value(flag).split(","))

    def __str__(self) -> str:
        return " ".join((self.program, *self.arguments))


def run(
    script: str, *arguments: str, where: Path, exists: bool, root: Path = ROOT, **environment: str
) -> list[Command]:
    """What a script of the project at `root` calls; `exists`: what it looks for is there already."""
    done, commands = tried(script, *arguments, where=where, exists=exists, root=root, **environment)
    assert done.returncode == 0, done.stderr
    return commands


def tried(
    script: str, *arguments: str, where: Path, exists: bool, root: Path = ROOT, **environment: str
) -> tuple[subprocess.CompletedProcess[str], list[Command]]:
    """How a script ends and what it prints, and what it calls until then."""
    where.mkdir(parents=True, exist_ok=True)
    record = where / "record"
    record.unlink(missing_ok=True)
    for name in ("gcloud", "npx"):
        program = where / name
        program.write_text(_RECORDER)
        program.chmod(0o755)
    kept = {name: os.environ[name] for name in ("HOME", "LANG") if name in os.environ}
    done = subprocess.run(
        ["bash", str(root / "deploy" / script), *arguments],
        cwd=where,  # from anywhere
        env={
            **kept,
            "PATH": f"{where}:/usr/bin:/bin",
            "RECORD": str(record),
            "EXISTS": "yes" if exists else "no",
            "NUMBER": NUMBER,
            "PROJECT_ID": PROJECT,
            **environment,
        },
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    recorded = record.read_text() if record.exists() else ""
    calls = [call.split("\0")[:-1] for call in recorded.split("\036")[:-1]]
    return done, [Command(program, tuple(rest)) for program, *rest in calls]


def everything(where: Path, *, exists: bool, root: Path = ROOT) -> list[Command]:
    """Every command of every script."""
    scripts = [
        ("project.sh",),
        ("firestore.sh",),
        ("worker.sh", "an-image"),
        ("console.sh", "an-image"),
        ("functions.sh",),
    ]
    scripts += [
        ("functions.sh", "sweep"),
        ("functions.sh", "on_event_created", "events", "open_messages", "billing_webhook"),
        ("schedule.sh",),
    ]
    scripts += [("trigger.sh", REPOSITORY)] if (root / "deploy" / "trigger.sh").exists() else []
    key = {"FIREBASE_API_KEY": API_KEY}
    return [command for call in scripts for command in run(*call, where=where, exists=exists, root=root, **key)]


def one(commands: Sequence[Command], *words: str) -> Command:
    found = [command for command in commands if command.words[: len(words)] == words]
    assert len(found) == 1, f"{len(found)} commands begin with gcloud {' '.join(words)}"
    return found[0]


# --- gcloud's own judgement


@cache
def installed_gcloud() -> tuple[str, str]:
    """(its Python, its root)"""
    if shutil.which("gcloud") is None:
        pytest.skip("gcloud is not installed: its own parser did not judge the deployment's commands and files")
    form = "value(basic.python_location,installation.sdk_root)"
    done = subprocess.run(
        ["gcloud", "info", f"--format={form}"], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=True
    )
    python, root = done.stdout.split()
    return python, root


def ask_gcloud(questions: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Its answers, and what it complained of (inside_gcloud.py)."""
    python, root = installed_gcloud()
    done = subprocess.run(
        [python, "-S", str(Path(__file__).with_name("inside_gcloud.py")), root],
        input=json.dumps(questions),
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers: dict[str, Any] = json.loads(done.stdout)
    return answers, done.stderr
