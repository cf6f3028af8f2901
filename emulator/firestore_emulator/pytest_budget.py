"""Budgets of billed operations for tests: `firestore_budget(reads=5, writes=1)`.

A budget counts what its project spends from the moment it is set, as Google would bill it. Used as a statement it
holds until the test ends; used with `with`, until the block ends.
"""

from __future__ import annotations

import json
import urllib.request
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import pytest

KINDS = ("reads", "writes", "deletes")
PATIENCE_SECONDS = 30.0

Line = tuple[str, str]
"""A call and a collection."""
Spent = dict[Line, dict[str, int]]


@dataclass(kw_only=True)
class Budget:
    host: str
    project: str
    allowed: dict[str, int]
    before: Spent
    has_ended: bool = False

    def check(self) -> None:
        """Fails the test if more was spent than allowed. Only the first call looks."""
        if self.has_ended:
            return
        self.has_ended = True
        lines = _difference(spent(self.host, self.project), self.before)
        totals = {kind: sum(line[kind] for line in lines.values()) for kind in KINDS}
        over = [kind for kind, most in self.allowed.items() if totals[kind] > most]
        if over:
            pytest.fail(_explained(over, totals, self.allowed, lines), pytrace=False)

    def __enter__(self) -> Budget:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.check()
        self.has_ended = True


class Budgets:
    """What the fixture `firestore_budget` is: call it to set a budget."""

    def __init__(self, host: str, project: str) -> None:
        self._host = host
        self._project = project
        self._set: list[Budget] = []

    def __call__(self, *, reads: int | None = None, writes: int | None = None, deletes: int | None = None) -> Budget:
        """None: as many as it takes."""
        asked = {"reads": reads, "writes": writes, "deletes": deletes}
        allowed = {kind: most for kind, most in asked.items() if most is not None}
        if not allowed:
            raise TypeError("a budget needs reads, writes or deletes")
        budget = Budget(
            host=self._host, project=self._project, allowed=allowed, before=spent(self._host, self._project)
        )
        self._set.append(budget)
        return budget

    def check(self) -> None:
        for budget in self._set:
            budget.check()


def spent(host: str, project: str) -> Spent:
    url = f"http://{host}/emulator/v1/projects/{quote(project)}:billing"
    # No proxy from the environment: the emulator is on this machine.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=PATIENCE_SECONDS) as answer:
        lines: list[dict[str, Any]] = json.loads(answer.read())["lines"]
    return {(line["call"], line["collection"]): {kind: line[kind] for kind in (*KINDS, "calls")} for line in lines}


def _difference(after: Spent, before: Spent) -> Spent:
    none = dict.fromkeys((*KINDS, "calls"), 0)
    lines = {
        line: {kind: amount - before.get(line, none)[kind] for kind, amount in amounts.items()}
        for line, amounts in after.items()
    }
    return {line: amounts for line, amounts in lines.items() if amounts["calls"]}


def _explained(over: list[str], totals: dict[str, int], allowed: dict[str, int], lines: Spent) -> str:
    text = [f"more Firestore operations than budgeted: {', '.join(_compared(kind, totals, allowed) for kind in over)}"]
    text.append(f"{'reads':>8}{'writes':>8}{'deletes':>8}{'calls':>8}")
    for (call, collection), amounts in sorted(lines.items(), key=lambda item: -sum(item[1][kind] for kind in over)):
        row = "".join(f"{amounts[kind]:>8}" for kind in (*KINDS, "calls"))
        text.append(f"{row}  {call} {collection}")
    return "\n".join(text)


def _compared(kind: str, totals: dict[str, int], allowed: dict[str, int]) -> str:
    return f"{totals[kind]} {kind}, and {allowed[kind]} are allowed"
