"""Which Firestore a test runs on, and the closing lines that say what ran where and what was left out.

A test that takes the `backend` fixture runs once on each of our server, our in-process engine and Google's emulator.
A machine without Google's emulator runs the other two thirds and says so; with OUTBOX_REQUIRE_ALL=1 leaving anything
out fails the run. A machine that has it fails the run when its third did not run.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import AsyncIterator, Generator
from dataclasses import dataclass, field
from typing import Any

import pytest
import pytest_asyncio

from emulator import official
from tests.conformance import backends
from tests.conformance.backends import PLACES, Backend, Place

REQUIRE_ALL = "OUTBOX_REQUIRE_ALL"


@dataclass
class Tally:
    """What this run has done so far."""

    ran: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    """By reason."""
    differential_cases: int = 0
    differential_answers: int = 0
    explained: Counter[str] = field(default_factory=Counter)
    """Differences that the table of known ones explains, by reason."""
    verdict: str = ""
    """Why the run fails although its tests passed."""


TALLY = pytest.StashKey[Tally]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[TALLY] = Tally()


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


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    tally = session.config.stash[TALLY]
    if tally.left_out and os.environ.get(REQUIRE_ALL) == "1":
        tally.verdict = f"{REQUIRE_ALL}=1, and {sum(tally.left_out.values())} tests were left out"
    elif _official_is_owed(session, tally):
        tally.verdict = "Google's emulator is on this machine, and nothing ran on it"
    if tally.verdict and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    tally = config.stash[TALLY]
    write = terminalreporter.write_line
    if tally.differential_cases:
        write(f"differential: {tally.differential_cases} cases, {tally.differential_answers} answers compared")
        for reason, count in tally.explained.most_common():
            write(f"  {count} differ, as the table says: {reason}")
    if tally.ran:
        ran = ", ".join(f"{kind} {tally.ran[kind]}" for kind in PLACES)
        left_out = "; ".join(f"{count} tests ({reason})" for reason, count in tally.left_out.items())
        write(f"backends: {ran}; left out: {left_out or 'nothing'}")
    if tally.verdict:
        write(f"FAILED: {tally.verdict}", red=True, bold=True)


def _backend_of(item: pytest.Item) -> str | None:
    callspec = getattr(item, "callspec", None)
    if callspec is None:
        return None
    kind: str | None = callspec.params.get("backend") or callspec.params.get("socket_backend")
    return kind


def _official_is_owed(session: pytest.Session, tally: Tally) -> bool:
    """Whether tests ran on our two thirds that should have run on Google's emulator too, but did not."""
    narrowed = session.config.option.keyword or session.config.option.markexpr or session.shouldstop
    if narrowed or any("::" in argument for argument in session.config.args):
        return False
    ours_ran = tally.ran["grpc"] or tally.ran["inprocess"]
    return bool(ours_ran and not tally.ran["official"]) and isinstance(official.find_installed(), official.Installed)
