"""docs/guarantees.md names a test for each promise: each of them is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "guarantees.md").read_text()
NAMED = sorted(set(re.findall(r"\[(tests/[\w/]+\.py)::(\w+)\]", TEXT)))
ASSUMPTIONS = "## What production is assumed to do"
PROMISES = [
    line
    for line in TEXT.partition(ASSUMPTIONS)[0].splitlines()
    if line.startswith("| ") and not line.startswith("| promise")
]


@pytest.mark.parametrize(("path", "name"), NAMED)
def test_the_test_that_is_named_is_there(path: str, name: str) -> None:
    tree = ast.parse((ROOT / path).read_text())
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


@pytest.mark.parametrize("line", PROMISES, ids=lambda line: line.split("|")[1].strip()[:60])
def test_every_promise_names_a_test(line: str) -> None:
    assert "::test_" in line.split("|")[3]


def test_every_assumption_names_its_source() -> None:
    table = TEXT.partition(ASSUMPTIONS)[2].partition("\n## ")[0]
    rows = [line.split("|") for line in table.splitlines() if line.startswith("| ")][1:]
    assert len(rows) >= 8
    assert [row[1] for row in rows if not row[2].strip()] == []
