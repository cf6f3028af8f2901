"""`outbox emulator`: the line it prints, what it says when it cannot start, and how it ends."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import grpc
import httpx
import pytest
from grpc import aio
from typer.testing import CliRunner

from firestore_emulator import emulator as firestore_emulator
from firestore_emulator.tasks import emulator as tasks_emulator
from firestore_outbox.cli import app
from tests.conformance.backends import Backend, Place, outcome, refused
from tests.conformance.wire import query, set_, where
from tests.emulator.process import COMMAND, emulator_process
from tests.patience import PATIENCE_SECONDS

FREE_PORTS = ("--firestore-port=0", "--tasks-port=0")


def said(*options: str) -> tuple[int, str, str]:
    """Exit code, output and errors of a command that ends by itself. It runs in this process, which is faster."""
    result = CliRunner().invoke(app(options), options)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


@asynccontextmanager
async def started(*options: str) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    process = await asyncio.create_subprocess_exec(
        str(COMMAND), "emulator", *options, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(PATIENCE_SECONDS):
            line = await process.stdout.readline()
        yield process, line.decode()
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


@contextmanager
def taken_port() -> Iterator[int]:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield listening.getsockname()[1]


async def answers(address: str) -> bool:
    async with aio.insecure_channel(address) as channel:
        backend = Backend(Place("grpc", channel, address))
        await backend.seed({"c/1": {"n": 1}})
        found = await backend.paths(query("c", where("n", "==", 1)))
    async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE_SECONDS) as client:
        health = await client.get(f"http://{address}/")
    return found == ["c/1"] and health.text == "Ok\n"


# --- starting


async def test_its_ready_line_names_both_addresses_and_both_answer() -> None:
    async with started(*FREE_PORTS) as (_, line):
        match = re.fullmatch(
            r"ready  FIRESTORE_EMULATOR_HOST=(127\.0\.0\.1:\d+)  CLOUD_TASKS_EMULATOR_HOST=(127\.0\.0\.1:\d+)\n", line
        )
        assert match, line
        assert await answers(match[1])
        assert await tasks_answers(match[2])


async def tasks_answers(address: str) -> bool:
    async with aio.insecure_channel(address) as channel:
        try:
            await channel.unary_unary("/google.cloud.tasks.v2.CloudTasks/GetQueue")(b"")
        except aio.AioRpcError as refusal:
            return bool(refusal.code() is grpc.StatusCode.INVALID_ARGUMENT)
    return False


@pytest.mark.parametrize(("options", "held_back"), [((), True), (("--optimistic",), False)])
async def test_optimistic_transactions_hold_no_other_back(options: tuple[str, ...], held_back: bool) -> None:
    async with emulator_process(*options) as emulator, aio.insecure_channel(emulator.firestore) as channel:
        backend = Backend(Place("grpc", channel, emulator.firestore))
        await backend.seed({"c/1": {"n": 0}})
        transaction = await backend.begin()
        await backend.get("c/1", transaction=transaction)
        plain = await outcome(backend.seed({"c/1": {"n": 1}}))
        late = await outcome(backend.commit(set_(backend.name("c/1"), {"n": 2}), transaction=transaction))
        assert (plain == "ABORTED", late == "ABORTED") == (held_back, not held_back)


async def test_the_databases_named_exist_and_others_do_not_and_those_created_outlive_a_restart(tmp_path: Path) -> None:
    options = ("--database", "first-one", "--database", "second-one", "--data", str(tmp_path / "data"))
    for expected in ("NOT_FOUND", None):
        async with emulator_process(*options) as emulator, aio.insecure_channel(emulator.firestore) as channel:
            place = Place("grpc", channel, emulator.firestore)
            for known in ("(default)", "first-one", "second-one"):
                await Backend(place, "p", known).seed({"c/1": {}})
            assert await outcome(Backend(place, "p", "third-one").seed({"c/1": {}})) == "NOT_FOUND"
            assert await outcome(Backend(place, "p", "made-later").seed({"c/1": {}})) == expected
            async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE_SECONDS) as client:
                await client.post(f"http://{emulator.firestore}/emulator/v1/projects/p/databases?databaseId=made-later")
            await Backend(place, "p", "made-later").seed({"c/1": {}})
            await emulator.terminate()


def test_a_database_id_that_production_refuses_is_an_error_in_words() -> None:
    code, _, errors = said("emulator", "--database", "No", *FREE_PORTS)
    assert (code, "--database: 'No' is no database id" in errors) == (1, True)


@pytest.mark.parametrize(("durable", "synchronous"), [("process", 1), ("full", 2)])
async def test_commits_are_synced_to_the_disk_if_asked(tmp_path: Path, durable: str, synchronous: int) -> None:
    """A test cannot cut the power: it looks at what SQLite promises (2: each commit is synced)."""
    is_full = durable == "full"
    firestore = firestore_emulator.FirestoreEmulator(tmp_path, survives_power_cuts=is_full)
    tasks = tasks_emulator.TasksEmulator(tmp_path, survives_power_cuts=is_full)
    for database in (firestore.engine.storage.database, tasks.engine._database):
        assert database.rows("PRAGMA synchronous") == [(synchronous,)]
    firestore.engine.close()
    tasks.engine.close()
    async with emulator_process("--data", str(tmp_path), "--durable", durable) as emulator:
        assert await answers(emulator.firestore)


async def test_it_listens_where_it_is_asked_to() -> None:
    async with started(*FREE_PORTS, "--host", "0.0.0.0", "--json") as (_, line):
        addresses = json.loads(line)
        port = addresses["FIRESTORE_EMULATOR_HOST"].removeprefix("0.0.0.0:")
        assert await answers(f"127.0.0.1:{port}")


async def test_queries_are_held_to_the_indexes_given(tmp_path: Path) -> None:
    file = tmp_path / "firestore.indexes.json"
    file.write_text('{"indexes": [], "fieldOverrides": []}')
    async with (
        emulator_process("--indexes", str(file)) as emulator,
        aio.insecure_channel(emulator.firestore) as channel,
    ):
        backend = Backend(Place("grpc", channel, emulator.firestore))
        with refused("FAILED_PRECONDITION"):
            await backend.paths(query("c", where("a", "==", 1), order=["b"]))


# --- ending

PARENT = """
import subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE)
print(process.stdout.readline().decode(), end="", flush=True)
process.wait()
"""


async def test_an_emulator_whose_parent_is_killed_frees_its_ports_at_once() -> None:
    """Google's emulator cannot judge this: it has no such option."""
    command = [str(COMMAND), "emulator", *FREE_PORTS, "--json", "--with-parent"]
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PARENT, *command, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert parent.stdout is not None
        async with asyncio.timeout(PATIENCE_SECONDS):
            addresses = json.loads(await parent.stdout.readline())
            host, _, port = addresses["FIRESTORE_EMULATOR_HOST"].partition(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            parent.kill()
            with suppress(ConnectionResetError):  # or so: the connection ends when the emulator does
                assert await reader.read() == b""
            writer.close()
    finally:
        if parent.returncode is None:
            parent.kill()
        await parent.wait()
    async with asyncio.timeout(PATIENCE_SECONDS):
        for address in addresses.values():
            # The system closes the sockets of a process one after the other, and tells of none.
            while not can_listen(host, int(address.rpartition(":")[2])):  # noqa: ASYNC110
                await asyncio.sleep(0)


def can_listen(host: str, port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
        probe.listen()
        return True


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_it_cleanly_even_with_clients_connected(number: signal.Signals) -> None:
    async with started(*FREE_PORTS, "--json") as (process, line):
        address = json.loads(line)["FIRESTORE_EMULATOR_HOST"]
        assert await answers(address)
        async with aio.insecure_channel(address) as channel:
            listening = Backend(Place("grpc", channel, address)).converse("Listen")
            _, idle = await asyncio.open_connection(*address.split(":"))
            process.send_signal(number)
            async with asyncio.timeout(PATIENCE_SECONDS):
                out, err = await process.communicate()
            listening.cancel()
            idle.close()
        assert (process.returncode, out, err) == (0, b"", b"")


async def test_killed_it_leaves_no_file_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    async with emulator_process() as emulator, httpx.AsyncClient(trust_env=False, timeout=PATIENCE_SECONDS) as http:
        for address in (emulator.firestore, emulator.tasks):
            await http.get(f"http://{address}/")
        await emulator.kill()
    assert await asyncio.to_thread(lambda: list(tmp_path.iterdir())) == []


# --- not starting


@pytest.mark.parametrize("option", ["--firestore-port", "--tasks-port"])
def test_a_taken_port_is_an_error_that_names_the_port_and_the_option(option: str) -> None:
    other = next(one for one in ("--firestore-port", "--tasks-port") if one != option)
    with taken_port() as port:
        code, out, err = said("emulator", f"{option}={port}", f"{other}=0")
    assert code == 1
    assert out == ""
    assert str(port) in err
    assert option in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "options",
    [
        ["--firestore-port=x"],
        ["--firestore-port=-1"],
        ["--tasks-port=65536"],
        ["--nonsense"],
        ["extra"],
        ["--functions=nonsense"],
        ["--functions=http://127.0.0.1:80"],
    ],
    ids=" ".join,
)
def test_a_wrong_option_is_a_usage_error(options: list[str]) -> None:
    code, out, err = said("emulator", *FREE_PORTS, *options)
    assert code == 2
    assert out == ""
    assert "Traceback" not in err
    assert options[0].partition("=")[0].lstrip("-") in err


async def test_a_directory_in_use_by_another_process_is_named(tmp_path: Path) -> None:
    async with (
        emulator_process("--data", str(tmp_path)),
        started(*FREE_PORTS, "--data", str(tmp_path)) as (second, line),
    ):
        _, err = await second.communicate()
    assert (second.returncode, line) == (1, "")
    assert str(tmp_path) in err.decode()
    assert "in use by another process" in err.decode()
    assert "Traceback" not in err.decode()


def cannot_use(path: Path, option: str) -> None:
    code, out, err = said("emulator", *FREE_PORTS, option, str(path))
    assert code in (1, 2)
    assert out == ""
    assert path.name in err
    assert "Traceback" not in err


def test_a_directory_that_cannot_be_made_is_an_error_in_words(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cannot_use(tmp_path / "file" / "below", "--data")
    cannot_use(tmp_path / "file", "--data")


def test_a_damaged_database_is_an_error_in_words(tmp_path: Path) -> None:
    for file in (firestore_emulator.DATABASE_FILE, tasks_emulator.DATABASE_FILE):
        data = tmp_path / file.partition(".")[0]
        data.mkdir()
        (data / file).write_bytes(b"no database" * 1000)
        code, _, err = said("emulator", *FREE_PORTS, "--data", str(data))
        assert code == 1
        assert file in err
        assert "Traceback" not in err


def test_an_index_file_that_cannot_be_understood_is_an_error_in_words(tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text('{"indexes": 5}')
    cannot_use(bad, "--indexes")
    cannot_use(tmp_path / "missing.json", "--indexes")


def test_rules_that_do_not_compile_are_an_error_with_their_line(tmp_path: Path) -> None:
    file = tmp_path / "firestore.rules"
    file.write_text("rules_version = '2';\nservice {")
    code, _, errors = said("emulator", *FREE_PORTS, f"--rules={file}")
    assert code == 1
    assert f"{file}: Error compiling rules:\nL2:9 Unexpected '{{'" in errors


async def test_callers_are_held_to_the_rules_given(tmp_path: Path) -> None:
    file = tmp_path / "firestore.rules"
    file.write_text("service cloud.firestore { match /databases/{d}/documents/c/{id} { allow get; } }")
    async with emulator_process("--rules", str(file)) as emulator:
        documents = f"http://{emulator.firestore}/v1/projects/p/databases/(default)/documents"
        async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE_SECONDS) as http:
            statuses = [(await http.get(f"{documents}/{path}")).status_code for path in ("c/1", "d/1")]
    assert statuses == [404, 403]


def test_a_queue_name_that_is_none_is_an_error_in_words() -> None:
    code, _, err = said("emulator", *FREE_PORTS, "--queue", "nonsense")
    assert code in (1, 2)
    assert "--queue" in err
    assert "Traceback" not in err


def test_help_says_what_each_option_does() -> None:
    code, out, err = said("emulator", "--help")
    assert (code, err) == (0, "")
    for option in ("--firestore-port", "--tasks-port", "--data", "--indexes", "--functions", "--queue", "--json"):
        assert option in out
