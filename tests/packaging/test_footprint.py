"""The emulator stays small for projects that use Firestore already."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from importlib.metadata import distribution
from importlib.util import find_spec
from pathlib import Path

from bench.footprint import EMULATOR, MOST_PACKAGES, footprint, packages_of

OPTIONAL = {"httpx": "the extra `official`", "pytest": "there wherever the plugin is loaded"}
"""Imported, and not among the dependencies: why that is right."""


def test_the_emulator_brings_at_most_ten_packages_beyond_those_of_firestores_client() -> None:
    beyond = footprint().beyond
    assert 0 < len(beyond) <= MOST_PACKAGES, beyond
    assert {"starlette", "uvicorn", "hpack"} <= set(beyond)


def test_packages_of_packages_are_counted() -> None:
    assert {"grpcio", "protobuf", "proto-plus", "google-api-core"} <= packages_of(["google-cloud-firestore"])
    assert "click" in packages_of(["uvicorn"])


def imported() -> Iterator[str]:
    """Modules of other packages that the emulator's source names."""
    for file in (EMULATOR / "firestore_emulator").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module is not None:
                yield node.module
                yield from (f"{node.module}.{alias.name}" for alias in node.names)


def origin(module: str) -> Path | None:
    """The file of a module; None for a namespace, and for a name that is not a module."""
    try:
        spec = find_spec(module)
    except (ModuleNotFoundError, ValueError):
        return None
    return None if spec is None or spec.origin is None else Path(spec.origin)


def test_all_that_the_emulator_imports_is_among_its_dependencies() -> None:
    found = footprint()
    installed = {
        Path(str(file.locate())).resolve()
        for name in (*found.beyond, *found.shared)
        for file in distribution(name).files or ()
    }
    own = sys.stdlib_module_names | OPTIONAL.keys() | {"firestore_emulator"}
    foreign = {module for module in imported() if module.partition(".")[0] not in own}
    unknown = {module for module in foreign if (file := origin(module)) is not None and file.resolve() not in installed}
    assert unknown == set()
