"""A command at a terminal of its own: what a person types reaches it, and Ctrl-C reaches its whole process group."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from tests.cli.support import COMMAND
from tests.patience import PATIENCE_SECONDS

CTRL_C = "\x03"


class Terminal:
    def __init__(self, process: subprocess.Popen[bytes], descriptor: int) -> None:
        self.process = process
        self._descriptor = descriptor
        self.shown = ""

    def type(self, text: str) -> None:
        os.write(self._descriptor, text.encode())

    def until(self, text: str) -> None:
        """Read until the terminal shows this text."""
        ends = time.monotonic() + PATIENCE_SECONDS
        while text not in self.shown:
            assert time.monotonic() < ends, self.shown
            assert self._read(), self.shown

    def rest(self) -> str:
        """Everything, after the command has closed its terminal."""
        while self._read():
            pass
        return self.shown

    def _read(self) -> bool:
        ready, _, _ = select.select([self._descriptor], [], [], PATIENCE_SECONDS)
        assert ready, f"the terminal is silent; it shows {self.shown!r}"
        with suppress(OSError):  # the command has closed its side
            content = os.read(self._descriptor, 65_536)
            self.shown += content.decode(errors="replace")
            return bool(content)
        return False


_TAKE_THE_TERMINAL = (
    "import fcntl, os, signal, sys, termios; signal.signal(signal.SIGINT, signal.SIG_DFL);"
    " fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
)
"""In a process of its own: after a fork of this one, with gRPC's threads in it, no Python may run. A shell that runs
the tests in the background has them ignore Ctrl-C, and processes inherit that; at a terminal it counts."""


@contextmanager
def at_a_terminal(*arguments: str, env: Mapping[str, str | None] | None = None) -> Iterator[Terminal]:
    """The command in a session of its own; it ends with the block at the latest."""
    ours, its = pty.openpty()
    environment = {**os.environ, **{name: value for name, value in (env or {}).items() if value is not None}}
    process = subprocess.Popen(
        [sys.executable, "-c", _TAKE_THE_TERMINAL, str(COMMAND), *arguments],
        stdin=its,
        stdout=its,
        stderr=its,
        env={**environment, "TERM": "xterm", "COLUMNS": "60"},
        start_new_session=True,
    )
    os.close(its)
    try:
        yield Terminal(process, ours)
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait(PATIENCE_SECONDS)
        os.close(ours)
