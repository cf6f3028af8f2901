"""The locked packages held against what is known of them: `make audit`. The slow tier runs the same.

Exit status: 0 nothing is known, 1 something is, 3 not all of the data could be had. The last is a message and no
failure in the slow tier, where a machine may have no way to the registries.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.supply_chain.advisories import (
    Audit,
    Finding,
    Unreachable,
    Verdict,
    accepted_in,
    judge,
    of_npm_audit,
    of_pip_audit,
    unused,
)

ROOT = Path(__file__).parents[2]
ACCEPTED = Path(__file__).with_name("accepted.toml")
TOOL_SECONDS = 120

Run = Callable[[Sequence[str]], str]


def run_tool(command: Sequence[str]) -> str:
    """What it printed; its exit status says only whether it found something."""
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=TOOL_SECONDS, check=False)
    except FileNotFoundError:
        raise Unreachable(f"{command[0]} is not installed here") from None
    except subprocess.TimeoutExpired:
        raise Unreachable(f"{command[0]} did not end within {TOOL_SECONDS} seconds") from None
    return done.stdout


def _read(text: str, tool: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise Unreachable(f"{tool} printed no report; the registry does not answer") from None


def python_packages(run: Run = run_tool) -> Audit:
    """All that is locked, for the product and for its development."""
    tool = [sys.executable, "-m", "pip_audit", "--disable-pip", "--require-hashes", "--progress-spinner", "off"]
    return of_pip_audit(_read(run([*tool, "--format", "json", "--requirement", "constraints.txt"]), "pip-audit"))


def node_packages(run: Run = run_tool) -> Audit:
    return of_npm_audit(_read(run(["npm", "audit", "--package-lock-only", "--json"]), "npm audit"))


def audited(run: Run = run_tool) -> tuple[Verdict, list[str]]:
    """The verdict on what could be checked, and sentences about what could not."""
    findings: list[Finding] = []
    missing: list[str] = []
    for what, check in (("Python", python_packages), ("Node", node_packages)):
        try:
            audit = check(run)
        except Unreachable as error:
            missing.append(f"the {what} packages were not checked: {error}")
            continue
        findings += audit.findings
        missing += [f"{name} was not checked: the data does not have it" for name in audit.unchecked]
    accepted = accepted_in(ACCEPTED.read_text(encoding="utf-8"))
    verdict = judge(findings, accepted, datetime.now(UTC).date())
    if not missing and (old := unused(findings, accepted)):
        problems = [*verdict.problems, *(f"{name} is accepted and not known any more; remove it" for name in old)]
        verdict = Verdict(problems=problems, accepted=verdict.accepted)
    return verdict, missing


def main() -> int:
    verdict, missing = audited()
    for line in (*verdict.accepted, *missing, *verdict.problems):
        print(line)
    if verdict.problems:
        return 1
    print("nothing is known against what was checked")
    return 3 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
