"""docs/security.md names a test for each attack: every one of them exists."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
ATTACKS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in TEXT.partition("## Attacks")[2].splitlines()
    if line.startswith("| ") and not line.startswith("| attack")
]


@cache
def names_in(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def test_at_least_forty_attacks_are_considered() -> None:
    assert len({attack for attack, *_ in ATTACKS}) >= 40


@pytest.mark.parametrize("row", ATTACKS, ids=lambda row: row[0][:60])
def test_every_attack_names_attacker_outcome_and_a_test_that_exists(row: list[str]) -> None:
    attack, attacker, outcome, named = row
    path, _, name = named.partition("::")
    assert attack
    assert attacker
    assert outcome
    assert name in names_in(path)
