"""Ends this process at once when the process that started it is gone, however that ended.

Nothing is put in order: ports must be free for the next process, and what a killed emulator acknowledged is in its
file already. The system watches the parent where it can (pidfd); elsewhere the parent's number is looked at, which
changes when it ends.
"""

from __future__ import annotations

import os
import select
import threading
import time

PARENT_GONE = 70
"""Exit status."""
LOOK_SECONDS = 0.2


def exit_with_parent() -> None:
    """Call it early: a parent that ended before is not noticed."""
    parent = os.getppid()
    if parent > 1:  # else this is the first process of a container, or its child
        threading.Thread(target=_watch, args=(parent,), name="parent-watch", daemon=True).start()


def _watch(parent: int) -> None:
    try:
        descriptor = os.pidfd_open(parent)
    except (AttributeError, OSError):  # not this system, or the parent is gone by now
        while os.getppid() == parent:
            time.sleep(LOOK_SECONDS)
    else:
        select.select([descriptor], [], [])
    os._exit(PARENT_GONE)
