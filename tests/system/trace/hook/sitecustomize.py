"""Loaded by every process of a traced stack: SIGUSR1 begins to record files, SIGUSR2 writes them down."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any

_directory = os.environ.get("OUTBOX_TRACE_DIR")
_files: set[str] = set()


def _record(frame: FrameType, event: str, argument: Any) -> None:
    if event == "call" and frame.f_code.co_name != "<module>":
        _files.add(frame.f_code.co_filename)


def _begin(*_: object) -> None:
    _files.clear()
    sys.setprofile(_record)


def _end(*_: object) -> None:
    sys.setprofile(None)
    assert _directory is not None
    path = Path(_directory) / str(os.getpid())
    path.with_suffix(".part").write_text("\n".join(sorted(_files)))
    path.with_suffix(".part").rename(path)


if _directory is not None:
    with contextlib.suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGUSR1, _begin)
        signal.signal(signal.SIGUSR2, _end)
