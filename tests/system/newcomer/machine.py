"""The machine of a newcomer: a checkout, a home directory with nothing in it, a short PATH, and terminals.

What a registry would give comes from this machine instead: `.venv` is made as `make install` makes it, with the
dependencies of the environment that runs the test, and npm asks the registry of tests/npm_registry.py.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from tests.docs.snippets import ROOT
from tests.patience import PATIENCE_SECONDS

LONG = 5 * PATIENCE_SECONDS
"""For commands that install or send a thousand messages."""
MARK = "=== done ==="


@dataclass(frozen=True, slots=True)
class Machine:
    home: Path
    variables: dict[str, str]

    @property
    def checkout(self) -> Path:
        return self.home / "outbox"


def new_machine(home: Path, *, npm_registry: str) -> Machine:
    programs = home / "bin"
    programs.mkdir()
    (programs / "python3").symlink_to(Path(sys.executable).resolve())
    node = shutil.which("node")
    assert node is not None
    path = [str(programs), str(Path(node).parent), "/usr/local/bin", "/usr/bin", "/bin"]
    variables = {
        "HOME": str(home),
        "PATH": ":".join(dict.fromkeys(path)),
        "npm_config_registry": npm_registry,
        "npm_config_update_notifier": "false",
        "npm_config_audit": "false",
        "PYTHONUNBUFFERED": "1",
        "PIP_NO_INDEX": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # pip reads this as: no isolation
    }
    machine = Machine(home, variables)
    _check_out(machine.checkout)
    _install(machine.checkout)
    return machine


def _check_out(target: Path) -> None:
    """The files that git has, as they are now."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True
    )
    for name in listed.stdout.decode().split("\0"):
        source = ROOT / name
        if name and (source.is_file() or source.is_symlink()):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target / name, follow_symlinks=False)


def _install(checkout: Path) -> None:
    """What `make install` leaves behind."""
    environment = checkout / ".venv"
    _run(sys.executable, "-m", "venv", "--without-pip", str(environment))
    python = str(environment / "bin/python")
    site = Path(_run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    offline = ("--no-deps", "--no-index", "--no-build-isolation")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", "--python", python)
    _run(*pip, "install", *offline, "--editable", str(checkout / "worker"), "--editable", str(checkout / "emulator"))
    (environment / ".ready").touch()


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=LONG, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


class Terminal:
    """bash in a folder of the machine. `async with` closes it, and ends what still runs in it."""

    def __init__(self, machine: Machine, folder: Path) -> None:
        self._machine = machine
        self._folder = folder
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> Terminal:
        pipe = asyncio.subprocess.PIPE
        self._process = await asyncio.create_subprocess_exec(
            "bash", "-eo", "pipefail",
            stdin=pipe, stdout=pipe, stderr=asyncio.subprocess.STDOUT,
            env=self._machine.variables, cwd=self._folder, start_new_session=True, limit=2**20,
        )  # fmt: skip
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        process = self._process
        assert process is not None
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGINT)  # as Ctrl-C does: to what runs in the terminal
            if process.stdin is not None:
                process.stdin.close()
            try:
                async with asyncio.timeout(PATIENCE_SECONDS):
                    await process.communicate()
            except TimeoutError:
                os.killpg(process.pid, signal.SIGKILL)
                await process.wait()

    async def type(self, commands: str) -> str:
        """What they print. A command that fails closes the terminal, and is an error."""
        await self._write(f"{commands}\necho\necho '{MARK}'\n")
        return await self._read_until(MARK, commands)

    async def start(self, command: str, ready: str) -> str:
        """A command that goes on. What it prints, up to a line that begins like this, and that line."""
        await self._write(f"{command}\n")
        return await self._read_until(ready, command)

    async def _write(self, text: str) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(text.encode())
        await self._process.stdin.drain()

    async def _read_until(self, start: str, commands: str) -> str:
        assert self._process is not None
        assert self._process.stdout is not None
        output = ""
        async with asyncio.timeout(LONG):
            while line := (await self._process.stdout.readline()).decode(errors="replace"):
                if line.startswith(start):
                    return output + ("" if start == MARK else line)
                output += line
        raise AssertionError(f"{commands}\nfailed, and printed\n{output}")
