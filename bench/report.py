"""What every measurement's result begins with, and where it goes.

A result is JSON in `bench/results`, named after its module: what was measured, by which method, when and on which
machine. `--small` is for a look at whether the measurement still works: it takes seconds, its figures mean nothing,
and it leaves `bench/results` alone.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sqlite3
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def method_of(docstring: str | None) -> str:
    """The part of a module's docstring that tells how it measures."""
    return " ".join((docstring or "").partition("Method. ")[2].split())


def heading(what: str, docstring: str | None) -> dict[str, Any]:
    return {
        "what": what,
        "method": method_of(docstring),
        "date": datetime.now(UTC).date().isoformat(),
        "machine": {
            "cores": os.cpu_count(),
            "loadAtTheEnd": [round(load, 1) for load in os.getloadavg()],
            "system": platform.system(),
            "architecture": platform.machine(),
            "python": platform.python_version(),
            "sqlite": sqlite3.sqlite_version,
            "grpcio": version("grpcio"),
        },
    }


def arguments(description: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--small", action="store_true", help="seconds instead of minutes; its figures mean nothing")
    parser.add_argument("--output", type=Path, help="where the JSON goes; by default bench/results, and none if small")
    return parser


def keep(result: Mapping[str, Any], name: str, options: argparse.Namespace) -> None:
    path = options.output or (None if options.small else RESULTS / f"{name}.json")
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def say(text: str) -> None:
    """How it goes, apart from what it finds."""
    print(text, file=sys.stderr, flush=True)
