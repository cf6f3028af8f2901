"""`python -m emulator.child MODULE ARGUMENTS…`: run a module, and exit at once when the parent process is gone.

Two watches, since neither is enough alone. On Linux the system sends SIGKILL at the parent's death, which also ends a
process that hangs or is stopped. Everywhere, standard input is a pipe whose other end the parent alone has: its end
means that the parent is gone, however it went.

Not SIGTERM: a worker would then finish what it has in flight, without the Firestore that went with the same parent,
and keep its port for a minute. What a killed process leaves behind is repaired as after any crash.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading

PARENT_GONE = 70
"""Exit status after the end of standard input."""
_PR_SET_PDEATHSIG = 1


def main() -> None:
    _kill_at_parents_death()
    threading.Thread(target=_exit_at_end_of_input, name="parent-watch", daemon=True).start()
    module = sys.argv[1]
    del sys.argv[0]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _kill_at_parents_death() -> None:
    """If the parent died before this, standard input has ended, and the other watch sees it."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))


def _exit_at_end_of_input() -> None:
    while os.read(0, 1024):
        pass  # the parent writes nothing
    os._exit(PARENT_GONE)


if __name__ == "__main__":
    main()
