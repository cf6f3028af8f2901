"""Which tests run (`--tier`), on which Firestore, and the closing lines: what ran where, and what was left out and why.

A test that takes the `backend` fixture runs once on each of our server, our in-process engine and Google's emulator.
A machine without Google's emulator runs the other two thirds and says so; with OUTBOX_REQUIRE_ALL=1 leaving anything
out fails the run. A machine that has it fails the run if tests on it were chosen and none ran. In a run of several
processes each keeps its own tally, and the controlling process adds them up.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Generator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, settings

from firestore_emulator import official
from tests.conformance import backends
from tests.conformance.backends import PLACES, Backend, Place
from tests.conformance.tally import Tally
from tests.tiers import Tier, is_wholly_outside, place_of, tier_of

pytest.register_assert_rewrite("firestore_outbox.adapter_testing")

TALLY = pytest.StashKey[Tally]()
TALLY_OUTPUT = "tally"


HERE = Path(__file__).parent
STACKS = ("system/acceptance", "system/browser", "system/endtoend", "sdks")
"""One stack serves a directory's tests, so they stay together."""
OWN_STACKS = ("system/acceptance", "system/browser", "system/endtoend")
"""These start Google's emulator themselves. All other tests on it share one, so they stay together too: Java takes its
time to start, and more to become fast."""
GOOGLES = ("client/", "backend/", "rules/", "conformance/test_differential", "emulator/firestore/test_rest")
"""On Google's emulator too, although their names do not say so."""
LONGEST_FIRST = (
    "system/upgrade",
    "simulation",
    "sdks",
    "system/endtoend",
    "system/browser",
    "system/chaos",
    "system/acceptance",
    "packaging",
    "emulator",
    "reminders",
    "bench",
    "cli",
    "providers",
)
"""So that no process is left with one of them when the others are done."""

settings.register_profile("outbox", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("outbox")
"""Hypothesis judges by no clock either: a loaded machine takes longer for an example."""


SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For Google's emulator, which a test uses for seconds: Java would spend a third of its time on optimizing itself."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--tier", choices=[*Tier], help="only the tests of this tier (tests/tiers.py); without it, all")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[TALLY] = Tally()
    os.environ.setdefault("JAVA_TOOL_OPTIONS", SHORT_LIVED)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A file that is wholly in the other tier is not even imported."""
    tier = _tier(config)
    if tier is None or not collection_path.name.startswith("test_") or not collection_path.is_relative_to(HERE):
        return None
    return is_wholly_outside(collection_path.relative_to(HERE).as_posix(), tier) or None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items.sort(key=_rank)
    tier = _tier(config)
    if tier is not None:
        homeless = sorted({item.nodeid.partition("::")[0] for item in items if tier_of(item.nodeid) is None})
        if homeless:
            raise pytest.UsageError(f"in no tier: {', '.join(homeless)}; add a row to tests/tiers.py")
        config.hook.pytest_deselected(items=[item for item in items if tier_of(item.nodeid) is not tier])
        items[:] = [item for item in items if tier_of(item.nodeid) is tier]
    config.stash[TALLY].chose_official = any(_backend_of(item) == "official" for item in items)


def _tier(config: pytest.Config) -> Tier | None:
    name = config.getoption("--tier")
    return None if name is None else Tier(name)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Two for each core: many tests wait for a process to start, or for a moment to come."""
    return min(8, 2 * (os.cpu_count() or 1))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """What goes to one process when there are several: the tests of a file, or of a stack."""
    from xdist.scheduler import LoadScopeScheduling

    class Together(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return together(nodeid)

    return Together(config, log)


def together(nodeid: str) -> str:
    file, _, name = nodeid.partition("::")
    directory, kind = _topic(file.removeprefix("tests/")), place_of(name)
    if (kind == "official" and directory not in OWN_STACKS) or file.removeprefix("tests/").startswith(GOOGLES):
        return "official"
    return f"{directory} {kind}" if directory in STACKS else file


def _topic(file: str) -> str:
    """The directory below tests/; below system/ each has its own."""
    first, _, rest = file.partition("/")
    return f"{first}/{rest.partition('/')[0]}" if first == "system" else first


def _rank(item: pytest.Item) -> int:
    directory = _topic(item.path.relative_to(HERE).as_posix())
    return LONGEST_FIRST.index(directory) if directory in LONGEST_FIRST else len(LONGEST_FIRST)


# --- the three Firestores


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def grpc_place() -> AsyncIterator[Place]:
    async with backends.our_server() as place:
        yield place


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def inprocess_place() -> AsyncIterator[Place]:
    async with backends.our_engine() as place:
        yield place


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def official_place() -> AsyncIterator[Place]:
    try:
        async with backends.googles_emulator() as place:
            yield place
    except official.EmulatorMissing as error:
        pytest.skip(str(error).splitlines()[0])


@pytest.fixture(params=list(PLACES))
def backend(request: pytest.FixtureRequest) -> Backend:
    """A fresh database on each of the three Firestores in turn."""
    return Backend(request.getfixturevalue(f"{request.param}_place"))


@pytest.fixture(params=["grpc", "official"])
def socket_backend(request: pytest.FixtureRequest) -> Backend:
    """The same, where there is a socket to connect to."""
    return Backend(request.getfixturevalue(f"{request.param}_place"))


@pytest.fixture(scope="session")
def tally(pytestconfig: pytest.Config) -> Tally:
    return pytestconfig.stash[TALLY]


# --- the closing report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[Any]) -> Generator[None, Any, Any]:
    report = yield
    tally = item.config.stash[TALLY]
    if report.skipped and isinstance(report.longrepr, tuple):
        tally.left_out[report.longrepr[2].removeprefix("Skipped: ")] += 1
    elif report.when == "call" and (kind := _backend_of(item)) is not None:
        tally.ran[kind] += 1
    return report


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """One process of several is done; one that crashed has left no tally, and has failed the run by that."""
    if handed_over := getattr(node, "workeroutput", {}).get(TALLY_OUTPUT):
        node.config.stash[TALLY].add(Tally.from_plain(handed_over))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, Any, Any]:
    """The verdict before pytest says its own, and our lines after it: they are the last thing to read."""
    tally = session.config.stash[TALLY]
    output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
    if output is not None:
        output[TALLY_OUTPUT] = tally.plain()
        return (yield)
    verdict = tally.verdict(
        narrowed=_is_narrowed(session), official_is_installed=_official_is_installed, environ=os.environ
    )
    tier = _tier(session.config)
    if verdict is not None and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    result = yield
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")
    if terminal is not None:
        for line in tally.closing_lines(tier):
            terminal.write_line(line)
        if verdict is not None:
            terminal.write_line(verdict, red=True, bold=True)
    return result


def _backend_of(item: pytest.Item) -> str | None:
    callspec = getattr(item, "callspec", None)
    if callspec is None:
        return None
    kind: str | None = callspec.params.get("backend") or callspec.params.get("socket_backend")
    return kind


def _is_narrowed(session: pytest.Session) -> bool:
    option = session.config.option
    return bool(
        option.keyword
        or option.markexpr
        or option.collectonly
        or session.shouldstop
        or any("::" in path for path in session.config.args)
    )


def _official_is_installed() -> bool:
    return isinstance(official.find_installed(), official.Installed)
