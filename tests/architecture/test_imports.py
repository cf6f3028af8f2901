"""Imports point one way, as the architecture has it:

    functions, app, cli -> wiring -> outbox, inbound, runs, sessions -> lane -> store, wake, providers -> domain

Whoever stands further left may import what stands further right, never the other way round, and no two packages import
each other. `worker/domain` imports the standard library and pydantic alone. The emulator serves anybody's project: it
knows nothing of ours, and only `cli` and `wiring` know of it. One part of it is no emulator: `emulator/simulation` runs
the whole program in a faulty world, so it stands beside `cli`, and the emulators know nothing of it.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

LAYERS: tuple[frozenset[str], ...] = (
    frozenset({"worker.domain"}),
    frozenset(
        {
            "worker.settings",
            "worker.errors",
            "worker.log",
            "worker.log_safety",
            "worker.metrics",
            "worker.clock",
            "worker.auth",
            "worker.bodies",
        }
    ),
    frozenset({"worker.store", "worker.wake", "worker.providers"}),
    frozenset({"worker.lane"}),
    frozenset({"worker.outbox", "worker.inbound", "worker.runs", "worker.sessions", "worker.media", "worker.audit"}),
    frozenset({"worker.migrations"}),
    frozenset({"worker.wiring"}),
    frozenset({"functions", "worker.app", "worker.serve", "worker.cli", "emulator.simulation"}),
)
"""From the bottom up. A package may import those of its own layer and of the layers before it."""

MAY_IMPORT_THE_EMULATOR = frozenset({"worker.cli", "worker.wiring", "emulator.simulation"})
PYDANTIC = frozenset({"pydantic", "pydantic_core"})
OURS = frozenset({"client", "emulator", "functions", "worker", "tests", "bench"})
ONLY_FOR_DEVELOPMENT = frozenset({"tests", "bench"})


@dataclass(frozen=True)
class Import:
    module: str
    """Who imports, for instance `worker.lane.engine`."""
    target: str
    """What, for instance `worker.store.lanes`."""
    where: str

    def __str__(self) -> str:
        return f"{self.where}: {self.module} imports {self.target}"


def imports_below(root: Path, packages: Iterable[str]) -> Iterator[Import]:
    for package in packages:
        for file in sorted((root / package).rglob("*.py")):
            parts = file.relative_to(root).with_suffix("").parts
            module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                where = f"{file.relative_to(root)}:{getattr(node, 'lineno', 0)}"
                if isinstance(node, ast.Import):
                    yield from (Import(module, alias.name, where) for alias in node.names)
                elif isinstance(node, ast.ImportFrom):
                    # `from worker import lane` imports a module, `from worker.lane import run` a name: both are caught.
                    base = "." * node.level + (node.module or "")
                    named = [f"{base}.{alias.name}" for alias in node.names] if base in OURS else [base]
                    yield from (Import(module, target, where) for target in named)


def package_of(module: str) -> str:
    """`worker.lane` for everything in it; other packages are not looked into, but for the simulation."""
    parts = module.split(".")
    is_of_interest = parts[0] == "worker" or parts[:2] == ["emulator", "simulation"]
    return ".".join(parts[:2]) if is_of_interest else parts[0]


def layer_of(package: str) -> int | None:
    return next((number for number, layer in enumerate(LAYERS) if package in layer), None)


def problems(found: Iterable[Import]) -> Iterator[str]:
    for one in found:
        importer, target = package_of(one.module), package_of(one.target)
        if one.target.startswith("."):
            yield f"{one}: imports are absolute here"
        elif importer == target:
            continue
        elif target in ONLY_FOR_DEVELOPMENT:
            yield f"{one}: what is shipped does not import {target}"
        elif importer == "worker.domain":
            if target not in PYDANTIC and target not in sys.stdlib_module_names:
                yield f"{one}: the domain imports the standard library and pydantic alone"
        elif importer == "emulator" and one.target.split(".")[0] in OURS:
            yield f"{one}: the emulator is for anybody's project, and knows nothing of ours"
        elif target in ("emulator", "emulator.simulation"):
            if importer not in MAY_IMPORT_THE_EMULATOR:
                yield f"{one}: only {', '.join(sorted(MAY_IMPORT_THE_EMULATOR))} know of the emulator"
        elif (target_layer := layer_of(target)) is not None:
            own = layer_of(importer)
            if own is not None and own < target_layer:
                yield f"{one}: {importer} stands below {target}"
            elif importer == "client":
                yield f"{one}: a frontend imports the client, and nothing of the worker with it"


def cycles(found: Iterable[Import]) -> Iterator[str]:
    graph: dict[str, set[str]] = {}
    for one in found:
        importer, target = package_of(one.module), package_of(one.target)
        if importer != target and layer_of(importer) is not None and layer_of(target) is not None:
            graph.setdefault(importer, set()).add(target)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        yield "packages import each other in a circle: " + " -> ".join(error.args[1])


def unknown_packages(root: Path) -> Iterator[str]:
    known = {package for layer in LAYERS for package in layer}
    for entry in sorted((root / "worker").iterdir()):
        is_code = entry.suffix == ".py" or (entry.is_dir() and any(entry.rglob("*.py")))
        package = f"worker.{entry.stem}"
        if is_code and entry.name != "__init__.py" and package not in known:
            yield (
                f"{entry.relative_to(root)} has no place in the layers: decide what it may import and who may import "
                f"it, add {package!r} to LAYERS in {Path(__file__).relative_to(ROOT)} and to the architecture's text"
            )


SHIPPED = ("client", "emulator", "functions", "worker")


@cache
def shipped_imports() -> tuple[Import, ...]:
    return tuple(imports_below(ROOT, SHIPPED))


def test_imports_point_one_way() -> None:
    assert list(problems(shipped_imports())) == []


def test_no_two_packages_import_each_other() -> None:
    assert list(cycles(shipped_imports())) == []


def test_every_package_of_the_worker_has_its_place() -> None:
    assert list(unknown_packages(ROOT)) == []


def test_there_is_something_to_check() -> None:
    modules = {one.module.split(".")[0] for one in shipped_imports()}
    assert {"emulator", "worker"} <= modules


# --- the checks themselves

WRONG: dict[str, tuple[str, str, str]] = {
    "a lane that imports the outbox": ("worker/lane/engine.py", "from worker.outbox import claim", "stands below"),
    "the same by its package": ("worker/lane/engine.py", "from worker import outbox", "stands below"),
    "the same inside a function": ("worker/lane/engine.py", "def f():\n    import worker.outbox", "stands below"),
    "a store that imports the lane": ("worker/store/lanes.py", "import worker.lane.engine as e", "stands below"),
    "wiring that imports the app": ("worker/wiring.py", "from worker.app import app", "stands below"),
    "a domain that imports the store": ("worker/domain/lane.py", "from worker.store import paths", "pydantic alone"),
    "a domain that imports settings": ("worker/domain/lane.py", "from worker import settings", "pydantic alone"),
    "a domain that imports a library": ("worker/domain/lane.py", "import httpx", "pydantic alone"),
    "a domain that imports Google's": ("worker/domain/lane.py", "from google.cloud import firestore", "pydantic alone"),
    "a store that imports the emulator": (
        "worker/store/lanes.py",
        "from emulator.stack import x",
        "know of the emulator",
    ),
    "functions that import the emulator": ("functions/main.py", "import emulator", "know of the emulator"),
    "an emulator that imports the worker": ("emulator/stack.py", "from worker.domain import lane", "nothing of ours"),
    "an emulator that imports functions": ("emulator/stack.py", "import functions.main", "nothing of ours"),
    "an emulator that imports the simulation": (
        "emulator/stack.py",
        "from emulator.simulation import world",
        "nothing of ours",
    ),
    "an emulator that imports the client": ("emulator/stack.py", "from client import outbox", "nothing of ours"),
    "a client that imports the worker": (
        "client/outbox.py",
        "from worker.domain import message",
        "nothing of the worker",
    ),
    "a worker that imports tests": ("worker/cli.py", "from tests import support", "does not import tests"),
    "a relative import": ("worker/lane/engine.py", "from . import run", "absolute"),
}

RIGHT: dict[str, tuple[str, str]] = {
    "downwards": ("worker/outbox/claim.py", "from worker.lane import engine\nfrom worker.domain.lane import Lane"),
    "over several layers": ("worker/cli.py", "import worker.domain.lane"),
    "within a package": ("worker/lane/engine.py", "from worker.lane.run import run"),
    "the domain and what it may use": ("worker/domain/lane.py", "import datetime\nimport pydantic, pydantic_core"),
    "the domain and itself": (
        "worker/domain/lane.py",
        "from worker.domain.lease import Lease\nfrom worker.domain import x",
    ),
    "cli and the emulator": ("worker/cli.py", "def f():\n    from emulator.stack import EmulatorStack"),
    "wiring and the emulator": ("worker/wiring.py", "from emulator.rpc.inprocess import InProcessChannel"),
    "functions and the wiring": (
        "functions/main.py",
        "from worker.wiring import app\nfrom worker.outbox import trigger",
    ),
    "the simulation and everything": (
        "emulator/simulation/world.py",
        "import worker.wiring, emulator.stack, functions.main",
    ),
    "the emulator and itself": ("emulator/stack.py", "from emulator.firestore import engine\nimport grpc"),
}


def tree(root: Path, file: str, source: str) -> Path:
    (root / file).parent.mkdir(parents=True, exist_ok=True)
    (root / file).write_text(source)
    return root


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_import_is_found(tmp_path: Path, case: str) -> None:
    file, source, words = WRONG[case]
    (problem,) = problems(imports_below(tree(tmp_path, file, source), SHIPPED))
    assert words in problem
    assert problem.startswith(f"{file}:")


@pytest.mark.parametrize("case", RIGHT)
def test_a_right_import_is_let_through(tmp_path: Path, case: str) -> None:
    assert list(problems(imports_below(tree(tmp_path, *RIGHT[case]), SHIPPED))) == []


def test_two_packages_of_one_layer_that_import_each_other_are_found(tmp_path: Path) -> None:
    tree(tmp_path, "worker/outbox/claim.py", "from worker.runs import expand")
    assert list(cycles(imports_below(tmp_path, SHIPPED))) == []
    tree(tmp_path, "worker/runs/expand.py", "from worker import outbox")
    (problem,) = cycles(imports_below(tmp_path, SHIPPED))
    assert "worker.outbox" in problem
    assert "worker.runs" in problem


def test_a_new_package_is_found_and_the_message_says_what_to_do(tmp_path: Path) -> None:
    tree(tmp_path, "worker/helpers/text.py", "")
    (tmp_path / "worker/__init__.py").write_text("")
    (problem,) = unknown_packages(tmp_path)
    assert "add 'worker.helpers' to LAYERS in tests/architecture/test_imports.py" in problem
