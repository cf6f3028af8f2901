"""Results as readers get them: which there are, and how tables, numbers and dollars are written."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.report import RESULTS

Results = Mapping[str, Any]
"""A measurement's name -> its JSON."""

KNOWN = (
    "throughput",
    "cost",
    "short",
    "growth",
    "lanes",
    "scale",
    "idle",
    "latency",
    "queries",
    "fanout",
    "webhooks",
    "emulator",
    "rules",
    "footprint",
    "sealing",
    "sessions",
    "overload",
    "soak",
    "chaos",
    "before",
)
SHOWN_PLACES = {"Google's emulator": "Google's emulator", "ours, in memory": "the embedded stack"}
PATTERNS = {
    "our worker": "our worker",
    "polling": "poll and claim one by one",
    "locked batch": "poll and lock a batch",
    "function a write": "a function for each write",
    "commits alone": "our commits alone (the ceiling)",
}


def load(directory: Path = RESULTS) -> dict[str, Any]:
    """Those that were measured."""
    paths = [directory / f"{name}.json" for name in KNOWN]
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in paths if path.is_file()}


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def number(value: float, decimals: int = 0) -> str:
    return f"{value:,.{decimals}f}"


def dollars(value: float) -> str:
    """Two digits that say something."""
    return f"${value:,.2f}" if value >= 0.1 or value == 0 else f"${value:.2g}"


def ratios(throughput: Any) -> dict[str, float | None]:
    return {bar["what"]: bar["ratio"] for bar in throughput["bars"]}
