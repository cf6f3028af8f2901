"""docs/operations.md tells of every metric, every log line and every setting that there is, and of no other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from firestore_outbox import metrics
from firestore_outbox.inbound.webhook import Answer
from firestore_outbox.messages.states import ENDED, OutboxStatus
from firestore_outbox.providers.outcome import Scope
from firestore_outbox.receipts.apply import Applied
from firestore_outbox.sessions.states import State
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


def test_every_metric_is_documented_with_its_label() -> None:
    metrics.watch_lanes(lambda: 0, lambda: 0)
    told = {name for row in rows("metric") for name in named(row[0])}
    source = (PACKAGE / "metrics.py").read_text()
    counters = re.findall(r'_Counter\(\s*"(\w+)",\s*"[^"]*"(?:,\s*"([\w,]+)")?', source)
    made = {f"{name}_total" + (f"{{{label}}}" if label else "") for name, label in counters}
    assert made
    gauges = {
        "outbox_limit_rate{limit}",
        "outbox_lanes{state}",
        "outbox_sessions{set,state}",
        "outbox_visibility_gap_seconds",
    }
    histograms = {"outbox_queue_age_seconds"} | {
        f"outbox_handler_{name}{{kind}}" for name in ("ready_seconds", "wait_seconds", "seconds")
    }
    assert told == made | gauges | histograms


LABELLED = {
    "attempt": "outbox_attempts_total{became}",
    "handler_run": "outbox_handler_runs_total{kind,became}",
    "event_refused": "outbox_events_refused_total{why}",
    "sweep_find": "outbox_sweep_finds_total{kind}",
    "firestore": "outbox_firestore_operations_total{kind}",
    "receipt": "outbox_receipts_total{changed}",
    "webhook_event": "outbox_webhook_events_total{kind}",
}
"""Functions of metrics.py that are called with a label's value, and their metrics."""
OF_ENUMS = {
    "outbox_attempts_total{became}": {status.value for status in (*ENDED, OutboxStatus.QUEUED, OutboxStatus.UNCERTAIN)}
    - {OutboxStatus.CANCELLED.value},
    "outbox_throttles_total{scope}": {scope.value for scope in Scope},
    "outbox_receipts_total{changed}": {applied.value for applied in Applied},
    "outbox_webhooks_total{answer}": {answer.name.lower() for answer in Answer if answer is not Answer.NO_HANDSHAKE},
    "outbox_lanes{state}": {"held", "waiting"},
    "outbox_sessions{set,state}": {*(state.value for state in State if state is not State.COLD), "waiting"},
}
"""Values that the code takes from an enumeration. An attempt is not cancelled, and a handshake is not counted."""


def values_in_code() -> dict[str, set[str]]:
    """Metric -> the values of its label."""
    found = {metric: set(values) for metric, values in OF_ENUMS.items()}
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("metrics."):
                metric = LABELLED.get(ast.unparse(node.func).removeprefix("metrics."))
                constants = {one.value for one in ast.walk(node) if isinstance(one, ast.Constant)}
                if metric is not None:
                    found.setdefault(metric, set()).update(one for one in constants if isinstance(one, str))
    return found


def test_every_value_of_a_label_is_documented_and_exists() -> None:
    told = {next(iter(named(row[0]))): named(row[1]) for row in rows("metric")}
    in_code = values_in_code()
    assert set(LABELLED.values()) <= set(in_code)
    assert {metric: told[metric] for metric in in_code} == in_code


def test_every_log_line_is_documented_with_its_level() -> None:
    told = {(name, row[1]) for row in rows("action") for name in named(row[0])}
    assert {name for name, _ in told} == {name for name, _ in logged()}
    assert [name for name, levels in logged() if not any((name, level) in told for level in levels.split("/"))] == []


def test_every_setting_is_documented_with_its_default() -> None:
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
