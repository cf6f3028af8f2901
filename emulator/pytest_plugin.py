"""Fixtures for anybody's pytest suite: a Firestore that is there while the tests run.

    firestore_emulator       the emulator, started when a test first asks for it, for the whole run
    firestore_project        a project of this test's own, empty, that clients made in the test use by themselves
    firestore_client         Google's client on that project
    firestore_async_client   the same, asynchronous

The emulator is a process of its own: a test may stop the clock, forbid sockets or block its event loop, and Firestore
goes on. Under pytest-xdist each worker has one. A run in which no test asks pays for the import of this file, which
imports nothing beyond the standard library and pytest.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

import pytest

HOST_VARIABLE = "FIRESTORE_EMULATOR_HOST"
PROJECT_VARIABLE = "GOOGLE_CLOUD_PROJECT"
PATIENCE_SECONDS = 30.0


@dataclass(frozen=True, kw_only=True)
class RunningEmulator:
    """Where the emulator is, and which project clients use that name none."""

    host: str
    """HOST:PORT, as in FIRESTORE_EMULATOR_HOST."""
    project: str

    def clear(self, project: str | None = None, database: str = "(default)") -> None:
        """Deletes every document of a project, by default its own."""
        import urllib.request  # here, since it loads much that a run without the emulator has no use for

        path = f"/emulator/v1/projects/{quote(project or self.project)}/databases/{quote(database)}/documents"
        request = urllib.request.Request(f"http://{self.host}{path}", method="DELETE")
        # No proxy from the environment: the emulator is on this machine.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=PATIENCE_SECONDS):
            pass


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(
        "firestore_emulator_indexes",
        "a firestore.indexes.json: queries that production would refuse are refused",
        type="string",
        default="",
    )
    parser.addini(
        "firestore_emulator_project",
        f"what {PROJECT_VARIABLE} is while the emulator runs",
        type="string",
        default="demo-test",
    )


@pytest.fixture(scope="session")
def firestore_emulator(pytestconfig: pytest.Config) -> Iterator[RunningEmulator]:
    """A Firestore in memory, and an environment in which Google's client libraries find it."""
    project = str(pytestconfig.getini("firestore_emulator_project"))
    with serving(_indexes(pytestconfig)) as host, _environment({HOST_VARIABLE: host, PROJECT_VARIABLE: project}):
        yield RunningEmulator(host=host, project=project)


@pytest.fixture
def firestore_project(firestore_emulator: RunningEmulator) -> Iterator[str]:
    """Projects share nothing, so a test with one of its own starts empty and disturbs nobody."""
    project = f"test-{secrets.token_hex(6)}"
    with _environment({PROJECT_VARIABLE: project}):
        yield project
    firestore_emulator.clear(project)


@pytest.fixture
def firestore_client(firestore_project: str) -> Iterator[Any]:
    from google.cloud.firestore import Client

    client = Client(project=firestore_project)
    yield client
    client.close()


@pytest.fixture
def firestore_async_client(firestore_project: str) -> Any:
    """It connects when it is first used, in the loop of the test. Only that loop could close it, so nobody does."""
    from google.cloud.firestore import AsyncClient

    return AsyncClient(project=firestore_project)


def _indexes(config: pytest.Config) -> Path | None:
    """Relative to the file that names it."""
    named = str(config.getini("firestore_emulator_indexes"))
    if not named:
        return None
    return (config.inipath.parent if config.inipath else config.rootpath) / named


@contextmanager
def serving(indexes: Path | None = None) -> Iterator[str]:
    """The HOST:PORT of an emulator that runs for as long as the block does; the environment stays as it is."""
    # -P: what is in the directory that pytest runs in must not hide the emulator's own modules.
    command = [sys.executable, "-P", "-m", "emulator.pytest_server"]
    if indexes is not None:
        command += ["--indexes", str(indexes)]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,  # Ctrl-C is for pytest; what comes after it may still need Firestore
        )
        try:
            assert process.stdout is not None
            host = process.stdout.readline().decode().strip()
            if not host:
                process.wait()
                pytest.fail(f"the Firestore emulator did not start: {_text(log)}", pytrace=False)
            yield host
        finally:
            _end(process)
        if said := _text(log):
            warnings.warn(f"the Firestore emulator wrote:\n{said}", stacklevel=1)


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        process.communicate(timeout=PATIENCE_SECONDS)  # which closes its standard input first
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()


def _text(log: IO[bytes]) -> str:
    log.seek(0)
    return log.read().decode(errors="replace").strip()


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
