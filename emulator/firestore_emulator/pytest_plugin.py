"""Fixtures for anybody's pytest suite: a Firestore that is there while the tests run.

    firestore_emulator       the emulator, started when a test first asks for it, for the whole run
    firestore_project        a project of this test's own, empty, that clients made in the test use by themselves
    firestore_client         Google's client on that project
    firestore_async_client   the same, asynchronous
    firestore_client_as      makes clients of users: `firestore_client_as("alice", role="clerk")`
    firestore_budget         limits the billed operations of a test: `firestore_budget(reads=5, writes=1)`

With `firestore_emulator_rules` in the ini file, security rules are enforced. Clients of users are held to them; the
others pass them by, as server-side clients do. The report of a test that fails says what the rules refused, and why.

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
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

if TYPE_CHECKING:
    from firestore_emulator.pytest_budget import Budgets

HOST_VARIABLE = "FIRESTORE_EMULATOR_HOST"
PROJECT_VARIABLE = "GOOGLE_CLOUD_PROJECT"
PATIENCE_SECONDS = 30.0


@dataclass(frozen=True, kw_only=True)
class RunningEmulator:
    """Where the emulator is, and which project clients use that name none."""

    host: str
    """HOST:PORT, as in FIRESTORE_EMULATOR_HOST."""
    project: str
    databases: tuple[str, ...] = ("(default)",)
    """The ids of the databases that every project has."""

    def clear(self, project: str | None = None, database: str = "(default)") -> None:
        """Deletes every document of a project, by default its own."""
        self._call("DELETE", f"{quote(project or self.project)}/databases/{quote(database)}/documents")

    def save(self, name: str, project: str | None = None) -> None:
        """Keeps all documents of a project under a name, for `restore`."""
        self._call("PUT", f"{quote(project or self.project)}/snapshots/{quote(name, safe='')}")

    def restore(self, name: str, project: str | None = None, *, triggers: bool = True) -> None:
        """Brings a project back to a saved state. `triggers`: what changes thereby causes events."""
        path = f"{quote(project or self.project)}/snapshots/{quote(name, safe='')}:restore"
        self._call("POST", f"{path}?triggers={str(triggers).lower()}")

    def seed(
        self,
        documents: dict[str, dict[str, Any]],
        project: str | None = None,
        database: str = "(default)",
        *,
        triggers: bool = True,
    ) -> None:
        """Writes documents, given as plain JSON by their paths."""
        import json

        path = f"{quote(project or self.project)}/databases/{quote(database)}:seed?triggers={str(triggers).lower()}"
        self._call("POST", path, json.dumps(documents).encode())

    def _call(self, method: str, path: str, body: bytes | None = None) -> None:
        """`path` is below that of all projects."""
        import json
        import urllib.error
        import urllib.request  # here, since it loads much that a run without the emulator has no use for

        request = urllib.request.Request(f"http://{self.host}/emulator/v1/projects/{path}", body, method=method)
        # No proxy from the environment: the emulator is on this machine.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=PATIENCE_SECONDS):
                pass
        except urllib.error.HTTPError as error:
            error.add_note(json.loads(error.read())["error"]["message"])  # which snapshot or document is wrong
            raise


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(
        "firestore_emulator_indexes",
        "a firestore.indexes.json: queries that production would refuse are refused",
        type="string",
        default="",
    )
    parser.addini(
        "firestore_emulator_rules",
        "a firestore.rules: clients of firestore_client_as are held to it",
        type="string",
        default="",
    )
    parser.addini(
        "firestore_emulator_databases",
        "ids of databases that every project has besides (default)",
        type="args",
        default=[],
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
    indexes, rules = _file(pytestconfig, "indexes"), _file(pytestconfig, "rules")
    databases = list(pytestconfig.getini("firestore_emulator_databases"))
    with serving(indexes, rules, databases) as host, _environment({HOST_VARIABLE: host, PROJECT_VARIABLE: project}):
        yield RunningEmulator(host=host, project=project, databases=("(default)", *databases))


@pytest.fixture
def firestore_project(firestore_emulator: RunningEmulator) -> Iterator[str]:
    """Projects share nothing, so a test with one of its own starts empty and disturbs no other."""
    project = f"test-{secrets.token_hex(6)}"
    with _environment({PROJECT_VARIABLE: project}):
        yield project
    for database in firestore_emulator.databases:
        firestore_emulator.clear(project, database)


@pytest.fixture
def firestore_client(firestore_project: str) -> Iterator[Any]:
    from google.cloud.firestore import Client

    client = Client(project=firestore_project)
    yield client
    client.close()


@pytest.fixture
def firestore_async_client(firestore_project: str) -> Any:
    """It connects when it is first used, in the loop of the test. Only that loop could close it, so it stays open."""
    from google.cloud.firestore import AsyncClient

    return AsyncClient(project=firestore_project)


@pytest.fixture
def firestore_client_as(firestore_project: str) -> Iterator[Callable[..., Any]]:
    """Clients of users: call it with a uid and further claims of the token, or with None for no token."""
    from google.auth.credentials import AnonymousCredentials
    from google.cloud.firestore import Client

    clients = []

    def client_as(uid: str | None, **claims: Any) -> Any:
        client = Client(project=firestore_project, credentials=AnonymousCredentials())
        metadata = [("google-cloud-resource-prefix", client._database_string)]
        if uid is not None:
            metadata.append(("authorization", f"Bearer {unsigned_token({'sub': uid, 'user_id': uid, **claims})}"))
        client._rpc_metadata_internal = metadata  # in place of what makes every emulator's client an administrator
        clients.append(client)
        return client

    yield client_as
    for client in clients:
        client.close()


@pytest.fixture
def firestore_budget(firestore_emulator: RunningEmulator, firestore_project: str) -> Budgets:
    """Limits what the test may spend: `firestore_budget(reads=5, writes=1)`, or `with firestore_budget(reads=1):`."""
    from firestore_emulator.pytest_budget import Budgets  # here, since a run without a budget has no use for it

    return Budgets(firestore_emulator.host, firestore_project)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Budgets are checked as part of the test, so that it fails and not its teardown."""
    result = yield
    budgets = getattr(item, "funcargs", {}).get("firestore_budget")
    if budgets is not None:
        budgets.check()
    return result


def unsigned_token(claims: dict[str, Any]) -> str:
    """A token as the emulators take it from anybody."""
    import base64
    import json

    def encoded(part: dict[str, Any]) -> str:
        return base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode()

    return f"{encoded({'alg': 'none', 'typ': 'JWT'})}.{encoded(claims)}."


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[Any]) -> Generator[None, Any, Any]:
    """Why the security rules refused, beside the failure that it may have caused."""
    report = yield
    arguments = getattr(item, "funcargs", {})
    emulator, project = arguments.get("firestore_emulator"), arguments.get("firestore_project")
    if report.failed and report.when == "call" and project is not None:
        host = emulator.host if emulator is not None else os.environ.get(HOST_VARIABLE, "")
        if refusals := _refusals(host, project):
            report.sections.append(("refused by the security rules", "\n\n".join(refusals)))
    return report


def _refusals(host: str, project: str) -> list[str]:
    import json
    import urllib.request

    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    path = f"/emulator/v1/projects/{quote(project)}:ruleRefusals"
    try:
        with opener.open(f"http://{host}{path}", timeout=PATIENCE_SECONDS) as answer:
            found = json.loads(answer.read())["refusals"]
    except (OSError, ValueError, KeyError):
        return []  # another emulator, or none any more
    return [
        "\n".join([f"{one['method']} {one['path']} by {one['uid'] or 'a caller without a token'}", *one["reasons"]])
        for one in found
    ]


def _file(config: pytest.Config, what: str) -> Path | None:
    """Relative to the file that names it."""
    named = str(config.getini(f"firestore_emulator_{what}"))
    if not named:
        return None
    return (config.inipath.parent if config.inipath else config.rootpath) / named


@contextmanager
def serving(indexes: Path | None = None, rules: Path | None = None, databases: Sequence[str] = ()) -> Iterator[str]:
    """The HOST:PORT of an emulator that runs for as long as the block does; the environment stays as it is."""
    # -P: what is in the directory that pytest runs in must not hide the emulator's own modules.
    command = [sys.executable, "-P", "-m", "firestore_emulator.pytest_server"]
    if indexes is not None:
        command += ["--indexes", str(indexes)]
    if rules is not None:
        command += ["--rules", str(rules)]
    for database in databases:
        command += ["--database", database]
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
