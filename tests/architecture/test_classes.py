"""No class has more than twenty methods: a larger one is two ideas."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MOST_METHODS = 20
FILES = sorted(file for folder in ("worker", "emulator") for file in (ROOT / folder).rglob("*.py"))


def large_classes(source: str, most: int = MOST_METHODS) -> list[str]:
    counts = {
        node.name: sum(isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef) for part in node.body)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ClassDef)
    }
    return [f"{name} has {count} methods" for name, count in counts.items() if count > most]


def test_no_class_has_more_than_twenty_methods() -> None:
    found = {str(file.relative_to(ROOT)): large_classes(file.read_text(encoding="utf-8")) for file in FILES}
    assert {file: classes for file, classes in found.items() if classes} == {}


@pytest.mark.parametrize("function", ["def", "async def"])
def test_a_class_that_is_too_large_is_found(function: str) -> None:
    source = "class Large:\n" + "".join(f"    {function} m{number}(self): ...\n" for number in range(3))
    assert large_classes(source, most=2) == ["Large has 3 methods"]
    assert large_classes(source, most=3) == []
