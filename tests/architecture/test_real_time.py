"""No test judges by the clock of the machine it runs on: a loaded machine must not fail a test."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
CLOCKS = {"monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns"}
IN_VIRTUAL_TIME = ("emulator/virtual_time",)
"""Directories whose every timeout counts virtual seconds."""


def judged_by_the_clock(tree: ast.AST) -> Iterator[int]:
    """Lines that assert how long something took, or that bound real work by a number of their own."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            inside = list(ast.walk(node.test))
            reads_clock = any(isinstance(one, ast.Attribute) and one.attr in CLOCKS for one in inside)
            if reads_clock and any(isinstance(one, ast.BinOp) and isinstance(one.op, ast.Sub) for one in inside):
                yield node.lineno
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("asyncio.timeout", "httpx.AsyncClient"):
            limits = [*node.args, *(keyword.value for keyword in node.keywords if keyword.arg == "timeout")]
            if any(isinstance(limit, ast.Constant) and isinstance(limit.value, int | float) for limit in limits):
                yield node.lineno


def test_no_test_asserts_how_long_real_work_took_or_sets_a_limit_of_its_own() -> None:
    """The only limit is PATIENCE_SECONDS of tests/patience.py. Virtual seconds are free: they are exact."""
    found = [
        f"{file.relative_to(TESTS)}:{line}"
        for file in sorted(TESTS.rglob("*.py"))
        if not str(file.relative_to(TESTS)).startswith(IN_VIRTUAL_TIME)
        for line in judged_by_the_clock(ast.parse(file.read_text(encoding="utf-8")))
    ]
    assert found == []


@pytest.mark.parametrize(
    "source",
    ["assert time.monotonic() - began < 3", "asyncio.timeout(10)", "httpx.AsyncClient(trust_env=False, timeout=30)"],
)
def test_the_check_finds_what_it_looks_for(source: str) -> None:
    assert list(judged_by_the_clock(ast.parse(source))) == [1]


@pytest.mark.parametrize("source", ["assert time.monotonic() < ends", "asyncio.timeout(PATIENCE_SECONDS)"])
def test_the_check_lets_waits_for_an_event_pass(source: str) -> None:
    assert list(judged_by_the_clock(ast.parse(source))) == []
