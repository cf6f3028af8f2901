"""Each measurement still runs, in a small way: its figures mean nothing then, and that it works means a lot."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench import report
from tests.patience import PATIENCE_SECONDS

ROOT = Path(__file__).parents[2]
MEASUREMENTS = (
    *("throughput", "cost", "growth", "lanes", "idle", "queries", "fanout", "latency", "webhooks", "rules"),
    *("footprint", "limits", "scale", "sealing", "short", "sessions", "versions", "console"),
)


@pytest.mark.parametrize("name", MEASUREMENTS)
def test_a_small_run_gives_a_result(name: str, tmp_path: Path) -> None:
    output = tmp_path / f"{name}.json"
    command = [sys.executable, "-m", f"bench.{name}", "--small", "--output", str(output)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads(output.read_text(encoding="utf-8"))
    assert result["what"]
    assert result["method"].endswith(".")
    assert {"date", "machine"} <= result.keys()


def test_a_small_run_leaves_the_real_results_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    parser = report.arguments("any")
    report.keep({"figure": 1}, "any", parser.parse_args(["--small"]))
    assert not list(tmp_path.iterdir())
    report.keep({"figure": 2}, "any", parser.parse_args([]))
    assert json.loads((tmp_path / "any.json").read_text(encoding="utf-8")) == {"figure": 2}
