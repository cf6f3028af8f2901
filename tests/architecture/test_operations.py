"""docs/operations.md tells of every metric, every log line and every setting that there is, and of no other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from firestore_outbox import metrics
from firestore_outbox.settings import PREFIX, Settings

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "worker" / "firestore_outbox"
TEXT = (ROOT / "docs" / "operations.md").read_text()


def rows(heading: str) -> list[list[str]]:
    """The cells of the table that begins with this one."""
    lines = TEXT[TEXT.index(f"\n| {heading} |") :].strip().splitlines()[2:]
    table = lines[: next((number for number, line in enumerate(lines) if not line.startswith("|")), len(lines))]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]


def named(cells: str) -> set[str]:
    return set(re.findall(r"`([^`]+)`", cells))


def logged() -> Iterator[tuple[str, str]]:
    """Every action in worker/firestore_outbox/log.py, with the level it is called with."""
    for node in ast.parse((PACKAGE / "log.py").read_text()).body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith(("_", "configure")):
            levels = set(re.findall(r"logging\.(DEBUG|INFO|WARNING|ERROR)|_log\.(error)", ast.unparse(node)))
            yield node.name, "/".join(sorted(level or other.upper() for level, other in levels))


def test_every_metric_is_told_of_with_its_label() -> None:
    metrics.watch_lanes(lambda: 0, lambda: 0)
    told = {name for row in rows("metric") for name in named(row[0])}
    source = (PACKAGE / "metrics.py").read_text()
    counters = re.findall(r'_Counter\(\s*"(\w+)",\s*"[^"]*"(?:,\s*"([\w,]+)")?', source)
    made = {f"{name}_total" + (f"{{{label}}}" if label else "") for name, label in counters}
    assert made
    gauges = {"outbox_limit_rate{limit}", "outbox_lanes{state}", "outbox_visibility_gap_seconds"}
    histograms = {"outbox_queue_age_seconds"} | {
        f"outbox_handler_{name}{{kind}}" for name in ("ready_seconds", "wait_seconds", "seconds")
    }
    assert told == made | gauges | histograms


def test_every_log_line_is_told_of_with_its_level() -> None:
    told = {(name, row[1]) for row in rows("action") for name in named(row[0])}
    assert {name for name, _ in told} == {name for name, _ in logged()}
    assert [name for name, levels in logged() if not any((name, level) in told for level in levels.split("/"))] == []


def test_every_setting_is_told_of_with_its_default() -> None:
    told = {next(iter(named(row[0]))): row[1].strip("`") for row in rows("variable")}
    are = {f"{PREFIX}{name.upper()}": field.default for name, field in Settings.model_fields.items()}
    assert told == {
        name: f"{default:g}" if isinstance(default, float) else str(default) for name, default in are.items()
    }


def test_every_command_that_is_shown_exists() -> None:
    shown = set(re.findall(r"^    outbox (\w[\w-]*)", TEXT, re.MULTILINE)) | set(
        re.findall(r"`outbox (\w[\w-]*)", TEXT)
    )
    source = "".join(file.read_text() for file in (PACKAGE / "cli").glob("*.py"))
    made = set(re.findall(r'\.command\(\)\((\w+?)_?\)|\.command\("([\w-]+)"\)|name="([\w-]+)"', source))
    assert shown
    assert shown <= {name for names in made for name in names if name}
