"""Which files the user's handlers are made of, and whether one of them changed. `outbox dev` then loads them anew."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path


class HandlerFiles:
    """The Python files beside the modules of OUTBOX_HANDLERS, and below them."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        modules = [name.strip() for name in environment.get("OUTBOX_HANDLERS", "").split(",") if name.strip()]
        folders = [Path(entry) for entry in environment.get("PYTHONPATH", "").split(os.pathsep) if entry]
        self._folders = sorted({found for name in modules for found in _folders_of(name, folders)})
        self._seen = self._state()

    def changed(self) -> list[Path]:
        """The files that were changed, made or removed since this was last asked."""
        now, before = self._state(), self._seen
        self._seen = now
        return sorted(path for path in now.keys() | before.keys() if now.get(path) != before.get(path))

    def _state(self) -> dict[Path, int]:
        found: dict[Path, int] = {}
        for folder in self._folders:
            for path in folder.rglob("*.py"):
                try:
                    found[path] = path.stat().st_mtime_ns
                except OSError:  # removed meanwhile
                    continue
        return found


def _folders_of(module: str, folders: list[Path]) -> Iterator[Path]:
    """Where the module's file is: its package's folder, or the folder of a module that is in no package."""
    place = Path(*module.split("."))
    for folder in folders:
        if (folder / place).with_suffix(".py").is_file():
            yield (folder / place).parent
        elif (folder / place / "__init__.py").is_file():
            yield folder / place
