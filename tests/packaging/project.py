"""A stranger's project, in a new environment with our wheels."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.packaging.wheels import install
from tests.patience import PATIENCE_SECONDS

PORTS = ("firestore", "tasks", "functions", "worker", "provider", "page", "console", "identity")


@dataclass(frozen=True)
class Project:
    directory: Path
    environment: Path
    wheels: Mapping[str, Path]

    @classmethod
    def new(cls, base: Path, wheels: Mapping[str, Path]) -> Project:
        """An empty folder, and an environment with these wheels."""
        directory = base / "project"
        directory.mkdir()
        return cls(directory, install(wheels.values(), base / "venv"), wheels)

    def program(self, name: str) -> str:
        return str(self.environment / "bin" / name)

    def run(
        self, *command: str, check: bool = True, variables: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            command,
            cwd=self.directory,
            env={**self.variables, **(variables or {})},
            capture_output=True,
            text=True,
            timeout=5 * PATIENCE_SECONDS,
            check=False,
        )
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done

    @contextmanager
    def stack(self, **variables: str) -> Iterator[dict[str, str]]:
        """`outbox dev` while the block runs. Its value: the addresses by name. It must end without an error."""
        stack = subprocess.Popen(
            [self.program("outbox"), "dev", "--json", *(f"--{port}-port=0" for port in PORTS)],
            cwd=self.directory,
            env={**self.variables, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert stack.stdout is not None
            ready = stack.stdout.readline()
            yield json.loads(ready) if ready else {}
        finally:
            stack.send_signal(signal.SIGINT)
            _, errors = stack.communicate(timeout=PATIENCE_SECONDS)
        assert stack.returncode == 0, errors

    @property
    def variables(self) -> dict[str, str]:
        """A stranger's shell: of this test's own environment it has the path alone."""
        return {"PATH": f"{self.environment / 'bin'}:{os.environ['PATH']}", "HOME": str(self.directory.parent)}
