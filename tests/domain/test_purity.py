from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

MODULES = sorted((Path(__file__).parents[2] / "worker" / "domain").glob("*.py"))
ALLOWED = {*sys.stdlib_module_names, "pydantic", "pydantic_core"}
IMPURE = {"os", "io", "socket", "asyncio", "random", "secrets", "time", "uuid", "logging", "threading", "subprocess"}
CLOCKS = {"now", "utcnow", "today"}


def imported(tree: ast.AST) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return names


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
def test_the_domain_imports_nothing_but_itself_the_standard_library_and_pydantic(module: Path) -> None:
    for name in imported(ast.parse(module.read_text(encoding="utf-8"))):
        if name.startswith("worker."):
            assert name.startswith("worker.domain.")
        else:
            assert name.split(".")[0] in ALLOWED - IMPURE


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
def test_the_domain_reads_no_clock(module: Path) -> None:
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            assert node.func.attr not in CLOCKS
