"""The worker, with a clock that can be set wrong: `python -m tests.system.chaos.clocked_worker worker --port N`.

Nothing of the worker knows of it. Its own clock is replaced before anything that reads it is loaded; how far ahead the
new one is stands in a file, which is read at the start and on SIGUSR1.
"""

from __future__ import annotations

import os
import signal
from datetime import datetime, timedelta
from pathlib import Path

import firestore_outbox.clock

VARIABLE = "CHAOS_CLOCK_FILE"


class WrongClock:
    def __init__(self, file: Path) -> None:
        self._file = file
        self._right = firestore_outbox.clock.system_clock
        self._ahead = timedelta(0)

    def __call__(self) -> datetime:
        return self._right() + self._ahead

    def set(self) -> None:
        self._ahead = timedelta(seconds=float(self._file.read_text(encoding="ascii")))


def main() -> None:
    clock = WrongClock(Path(os.environ[VARIABLE]))
    clock.set()
    signal.signal(signal.SIGUSR1, lambda *_: clock.set())
    firestore_outbox.clock.system_clock = clock
    from firestore_outbox.cli import main as command  # only now: modules keep the clock that they found

    command()


if __name__ == "__main__":
    main()
