"""Which slice may import which: the table. And which modules are pure: the list.

A *pure* module decides. It imports the standard library, pydantic and other pure modules, reads no clock and draws no
random number; any slice may import it. Everything else is *shell*: it does the I/O of its slice, and follows the table.
No two slices' shells import each other, and no two modules do.

firestore_emulator serves any project: it knows nothing of the outbox. Of the outbox, only what runs on a laptop
(`local`, the commands that start it, and the contract suite for adapters) knows of the emulator.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OUTBOX, EMULATOR = "firestore_outbox", "firestore_emulator"
WHERE = {OUTBOX: "worker", EMULATOR: "emulator", "functions": "."}

PURE: Mapping[str, tuple[str, ...]] = {
    "accounts": ("account", "changes", "retention", "roles", "window"),
    "billing": ("events", "prices", "standing"),
    "consent": ("frequency", "words"),
    "inbound": ("arriving",),
    "handlers": ("pressure", "progress", "sources"),
    "health": ("caps", "day_use", "days", "refusals"),
    "lane": (
        *("app_throttle", "hold_room", "lease", "marks", "pacing"),
        *("recent", "ref", "schedule", "state", "transitions"),
    ),
    "limits": ("line",),
    "media": ("new_file", "owner", "upload", "upload_states"),
    "messages": (
        "address",
        "checked_fields",
        "correlation",
        "faults",
        "ids",
        "limits",
        "model",
        "new_documents",
        "priority",
        "states",
        "template_values",
        "validation",
    ),
    "notifications": ("notification", "progress"),
    "operations.audit": ("evidence",),
    "operations": ("doctor", "doctor_calls", "doctor_facts", "run_why", "why"),
    "plans": ("plan",),
    "providers": ("outcome",),
    "receipts": ("rules",),
    "reminders": (
        "choices",
        "due_times",
        "forecast",
        "looks",
        "progress",
        "reminder",
        "reminder_states",
        "requests",
        "run",
        "target_file",
        "targets",
        "variables",
    ),
    "sending": (
        "backoff",
        "completion",
        "deadline",
        "decide",
        "express",
        "order",
        "page_cursor",
        "plan",
        "precedence",
        "reservation",
        "visibility",
    ),
    "sessions": ("layout", "listing", "memory", "moves", "requests", "shares", "slots", "states", "why"),
    "web.console": ("drafts", "forms", "reminder_changes", "rights", "security", "words"),
    ".": ("shown_time", "transitions"),
}
"""Slice -> its pure modules."""

BASE = frozenset({"clock", "errors", "log", "log_safety", "metrics", "settings"})
"""What every slice may import: small modules at the top of the package."""

MAY_IMPORT: Mapping[str, frozenset[str]] = {
    "firestore": frozenset(),
    "providers": frozenset(),
    "backend": frozenset(),
    "lane": frozenset({"firestore"}),
    "messages": frozenset({"firestore"}),
    "accounts": frozenset({"firestore", "messages"}),
    "media": frozenset({"firestore", "messages", "providers"}),
    "sessions": frozenset({"firestore", "lane", "providers"}),
    "receipts": frozenset({"accounts", "firestore", "lane", "messages", "providers"}),
    "sending": frozenset({"accounts", "firestore", "lane", "messages", "plans", "providers", "sessions"}),
    "limits": frozenset({"firestore"}),
    "sealing": frozenset({"firestore", "providers"}),
    "plans": frozenset({"firestore"}),
    "billing": frozenset({"accounts", "firestore"}),
    "handlers": frozenset({"firestore", "lane", "limits", "messages"}),
    "consent": frozenset({"firestore", "messages"}),
    "health": frozenset(),
    "notifications": frozenset({"accounts", "firestore", "lane", "providers"}),
    "reminders": frozenset({"accounts", "consent", "firestore", "lane", "messages", "sending"}),
    "inbound": frozenset(
        {"accounts", "consent", "firestore", "lane", "media", "providers", "receipts", "sealing", "sessions"}
    ),
    "operations": frozenset(
        {
            "accounts",
            "consent",
            "firestore",
            "lane",
            "media",
            "messages",
            "providers",
            "receipts",
            "reminders",
            "sending",
            "sessions",
        }
    ),
}
"""Slice -> the slices whose shells it may import. `wiring` builds the system from all of these; `web` serves what
`wiring` built; `adapter_testing`, `local` and `cli` stand above and may import everything below them."""

ABOVE = ("wiring", "web", "adapter_testing", "local", "cli", "")
"""From the bottom up: each may import every slice and what stands before it. The last is the public API."""

KNOWS_THE_EMULATOR = frozenset({"adapter_testing", "local", "cli"})
PYDANTIC = frozenset({"pydantic", "pydantic_core"})
IMPURE = frozenset({"asyncio", "io", "logging", "os", "random", "secrets", "socket", "subprocess", "threading", "time"})
CLOCKS = frozenset({"now", "today", "utcnow"})
ONLY_FOR_DEVELOPMENT = frozenset({"bench", "tests"})


@dataclass(frozen=True)
class Import:
    module: str
    """Who imports, for instance `firestore_outbox.lane.engine`."""
    target: str
    """What, for instance `firestore_outbox.lane.store`."""
    where: str

    def __str__(self) -> str:
        return f"{self.where}: {self.module} imports {self.target}"


def modules_below(root: Path) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for package, folder in WHERE.items():
        for file in sorted((root / folder / package).rglob("*.py")):
            parts = file.relative_to(root / folder).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def imports_below(root: Path) -> Iterator[Import]:
    modules = modules_below(root)
    for module, file in modules.items():
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            where = f"{file.relative_to(root)}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.Import):
                yield from (Import(module, alias.name, where) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                # `from firestore_outbox.lane import state` imports a module, `... .state import Lane` a name of one.
                base = "." * node.level + (node.module or "")
                for alias in node.names:
                    full = f"{base}.{alias.name}"
                    yield Import(module, full if full in modules or is_pure(full) else base, where)


def slice_of(module: str) -> str:
    """`lane` for firestore_outbox.lane.engine; empty for the package itself."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


def is_pure(module: str) -> bool:
    package, _, rest = module.partition(".")
    home, _, name = rest.rpartition(".")
    return package == OUTBOX and name in PURE.get(home or ".", ())


def problems(found: Iterable[Import]) -> Iterator[str]:
    for one in found:
        if (problem := problem_of(one)) is not None:
            yield f"{one}: {problem}"


def problem_of(one: Import) -> str | None:
    package, target = one.module.partition(".")[0], one.target.partition(".")[0]
    if one.target.startswith("."):
        return "imports are absolute here"
    if target in ONLY_FOR_DEVELOPMENT:
        return f"what is shipped does not import {target}"
    if is_pure(one.module):
        return None if _is_fit_for_a_decision(one.target) else "a pure module imports pure modules and pydantic alone"
    if target == EMULATOR and package != EMULATOR:
        return (
            None
            if slice_of(one.module) in KNOWS_THE_EMULATOR
            else "only what runs on a laptop may know of the emulator"
        )
    if package == EMULATOR and target in (OUTBOX, "functions"):
        return "the emulator is for anybody's project, and knows nothing of the outbox"
    if package == OUTBOX and target == OUTBOX:
        return _between_slices(slice_of(one.module), one.target)
    return None


def _is_fit_for_a_decision(target: str) -> bool:
    first = target.partition(".")[0]
    if first == OUTBOX:
        return is_pure(target)
    return first in PYDANTIC or (first in sys.stdlib_module_names and first not in IMPURE)


def _between_slices(importer: str, target: str) -> str | None:
    imported = slice_of(target)
    if importer == imported or is_pure(target) or imported in BASE or (importer and not imported):
        return None
    if importer in ABOVE:
        is_below = imported not in ABOVE or ABOVE.index(imported) < ABOVE.index(importer)
        return None if is_below else f"{importer} stands below {imported}"
    if importer in MAY_IMPORT:
        return None if imported in MAY_IMPORT[importer] else f"the table does not let {importer} import {imported}"
    return f"{importer} may import modules of BASE alone" if importer in BASE else f"{importer} is in no table"


def cycles(graph: Mapping[str, Iterable[str]]) -> Iterator[str]:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        yield "a circle of imports: " + " -> ".join(error.args[1])


def import_graph(root: Path) -> dict[str, set[str]]:
    """Imports that run when a module is loaded; one inside a function is not among them."""
    modules, graph = modules_below(root), dict[str, set[str]]()
    for module, file in modules.items():
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ImportFrom) and node.module:
                full = (f"{node.module}.{alias.name}" for alias in node.names)
                graph.setdefault(module, set()).update(name if name in modules else node.module for name in full)
    return graph


@cache
def shipped_imports() -> tuple[Import, ...]:
    return tuple(imports_below(ROOT))


def test_imports_follow_the_table() -> None:
    assert list(problems(shipped_imports())) == []


def test_the_table_has_no_circle() -> None:
    assert list(cycles(MAY_IMPORT)) == []


def test_no_modules_import_each_other() -> None:
    assert list(cycles(import_graph(ROOT))) == []


def test_the_table_allows_nothing_that_is_not_used() -> None:
    used = {
        (slice_of(one.module), slice_of(one.target))
        for one in shipped_imports()
        if one.target.startswith(f"{OUTBOX}.") and not is_pure(one.target)
    }
    assert {(importer, target) for importer, targets in MAY_IMPORT.items() for target in targets} <= used


def test_every_slice_is_in_the_table() -> None:
    known = {*MAY_IMPORT, *ABOVE, *BASE, *PURE["."]}
    assert {slice_of(module) for module in modules_below(ROOT) if module.startswith(OUTBOX)} <= known


def pure_modules() -> list[str]:
    return [f"{home.replace('.', '/')}/{name}".lstrip("/") for home, names in PURE.items() for name in names]


@pytest.mark.parametrize("module", pure_modules())
def test_a_pure_module_reads_no_clock(module: str) -> None:
    for node in ast.walk(ast.parse((ROOT / "worker" / OUTBOX / f"{module}.py").read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            assert node.func.attr not in CLOCKS


# --- the checks themselves

LANE, STATE = "worker/firestore_outbox/lane/engine.py", "worker/firestore_outbox/lane/state.py"

WRONG: dict[str, tuple[str, str, str]] = {
    "a lane that imports sending": (LANE, "from firestore_outbox.sending.turn import x", "does not let lane import"),
    "the same inside a function": (LANE, "def f():\n    import firestore_outbox.sending.turn", "does not let lane"),
    "a lane that imports wiring": (LANE, "from firestore_outbox.wiring import x", "does not let lane import wiring"),
    "wiring that imports the web": (
        "worker/firestore_outbox/wiring.py",
        "from firestore_outbox.web.app import app",
        "wiring stands below web",
    ),
    "settings that import a store": (
        "worker/firestore_outbox/settings.py",
        "from firestore_outbox.lane.store import LaneStore",
        "BASE alone",
    ),
    "a decision that imports a store": (STATE, "from firestore_outbox.lane.store import x", "pure modules"),
    "a decision that imports settings": (STATE, "from firestore_outbox.settings import Settings", "pure modules"),
    "a decision that imports a library": (STATE, "import httpx", "pure modules"),
    "a decision that draws": (STATE, "import random", "pure modules"),
    "a store that imports the emulator": (LANE, "from firestore_emulator.stack import x", "know of the emulator"),
    "functions that import the emulator": ("functions/main.py", "import firestore_emulator", "know of the emulator"),
    "an emulator that imports the outbox": (
        "emulator/firestore_emulator/stack.py",
        "from firestore_outbox.lane import state",
        "nothing of the outbox",
    ),
    "a slice that imports tests": (LANE, "from tests import support", "does not import tests"),
    "a relative import": (LANE, "from . import run", "absolute"),
    "a new slice": ("worker/firestore_outbox/helpers/text.py", "import firestore_outbox.lane.store", "in no table"),
}

RIGHT: dict[str, tuple[str, str]] = {
    "what the table allows": (
        "worker/firestore_outbox/sending/turn.py",
        "from firestore_outbox.lane.store import LaneStore",
    ),
    "a decision of another slice": (LANE, "from firestore_outbox.sending.backoff import Backoff"),
    "a decision and what it may use": (STATE, "import datetime\nimport pydantic, pydantic_core"),
    "the simulation and everything": (
        "worker/firestore_outbox/local/simulation/world.py",
        "import firestore_outbox.wiring, firestore_emulator.stack",
    ),
    "the emulator and itself": (
        "emulator/firestore_emulator/stack.py",
        "from firestore_emulator.storage import engine\nimport grpc",
    ),
}


def tree(root: Path, file: str, source: str) -> Path:
    (root / file).parent.mkdir(parents=True, exist_ok=True)
    (root / file).write_text(source)
    return root


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_import_is_found(tmp_path: Path, case: str) -> None:
    file, source, words = WRONG[case]
    (problem,) = problems(imports_below(tree(tmp_path, file, source)))
    assert words in problem
    assert problem.startswith(f"{file}:")


@pytest.mark.parametrize("case", RIGHT)
def test_a_right_import_is_let_through(tmp_path: Path, case: str) -> None:
    assert list(problems(imports_below(tree(tmp_path, *RIGHT[case])))) == []


def test_two_modules_that_import_each_other_are_found(tmp_path: Path) -> None:
    tree(tmp_path, LANE, "from firestore_outbox.lane import store")
    tree(tmp_path, "worker/firestore_outbox/lane/store.py", "from firestore_outbox.lane.engine import run")
    (problem,) = cycles(import_graph(tmp_path))
    assert "firestore_outbox.lane.store" in problem
