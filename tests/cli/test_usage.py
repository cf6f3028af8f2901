"""What each command says of itself, and of a command line that makes no sense."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.cli.support import every_command, outbox

NOWHERE: dict[str, str | None] = {"FIRESTORE_EMULATOR_HOST": "127.0.0.1:1", "CLOUD_TASKS_EMULATOR_HOST": "127.0.0.1:1"}


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    """`outbox worker` sets logging up for its process, and this is not its process."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@contextmanager
def taken_port() -> Iterator[int]:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield listening.getsockname()[1]


@pytest.mark.parametrize("words", every_command(), ids=" ".join)
def test_a_command_explains_itself_and_speaks_json(words: list[str]) -> None:
    said = outbox(*words, "--help")
    assert said.code == 0
    assert f"outbox {' '.join(words)}" in said.out
    assert "--json" in said.out


def test_help_lists_every_command() -> None:
    said = outbox("--help")
    assert said.code == 0
    assert [words[0] for words in every_command() if f"  {words[0]} " not in said.out] == []


@pytest.mark.parametrize("group", sorted({words[0] for words in every_command() if len(words) > 1}))
def test_a_group_shows_a_whole_line_for_each_of_its_commands(group: str) -> None:
    listed = outbox(group, "--help", env={"COLUMNS": "80"}).out.partition("Commands:")[2]
    assert listed.strip()
    assert [line for line in listed.splitlines() if line.endswith("...")] == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["gossip"],
        ["send"],
        ["send", "--account", "a", "--to", "b"],
        ["send", "--account", "a", "--to", "b", "--text", "c", "--delay-seconds", "-1"],
        ["send", "--account", "a", "--to", "b", "--text", "c", "--delay-seconds", "soon"],
        ["status"],
        ["status", "request-1", "request-2"],
        ["why"],
        ["cancel"],
        ["list", "--status", "lost"],
        ["settle", "request-1"],
        ["settle", "request-1", "--as", "maybe"],
        ["redrive"],
        ["redrive", "request-1", "--account", "a"],
        ["pause"],
        ["resume"],
        ["lanes", "extra"],
        ["audit", "--loud"],
        ["migrate", "no-such-migration"],
        ["migrate", "--back"],
        ["demo", "--messages", "0"],
        ["sim", "--seeds", "none"],
        ["dev", "--worker-port", "70000"],
        ["worker", "--port", "-1"],
    ],
    ids=" ".join,
)
def test_a_wrong_command_line_is_status_2_and_says_why(arguments: list[str]) -> None:
    said = outbox(*arguments)
    assert said.code == 2
    assert said.out == ""
    assert len(said.err) > 10


@pytest.mark.parametrize("variable", ["OUTBOX_LEASE_SECONDS", "OUTBOX_PER_MINUTE"])
@pytest.mark.parametrize("command", [["lanes"], ["worker"]], ids=" ".join)
def test_a_setting_that_makes_no_sense_is_named(command: list[str], variable: str) -> None:
    said = outbox(*command, env={**NOWHERE, variable: "plenty"})
    assert said.code == 1
    assert variable in said.err


def test_a_misspelt_setting_is_named_with_the_closest_one() -> None:
    said = outbox("lanes", env={**NOWHERE, "OUTBOX_LEASE_SECOND": "60"})
    assert said.code == 1
    assert "there is no setting OUTBOX_LEASE_SECOND; did you mean OUTBOX_LEASE_SECONDS?" in said.err


def test_without_a_stack_the_command_says_how_to_start_one() -> None:
    said = outbox("lanes", env=NOWHERE)
    assert said.code == 1
    assert "Nothing answers at FIRESTORE_EMULATOR_HOST=127.0.0.1:1: start `outbox dev`" in said.err


@pytest.mark.parametrize(
    "variable",
    [
        "OUTBOX_TASKS_EMULATOR_HOST",
        "FIRESTORE_EMULATOR_HOST",
        "CLOUD_TASKS_EMULATOR_HOST",
        "FIREBASE_AUTH_EMULATOR_HOST",
        "OUTBOX_SECRETS_EMULATOR_HOST",
        "STORAGE_EMULATOR_HOST",
    ],
)
def test_an_emulator_on_cloud_run_is_refused_by_name(variable: str) -> None:
    none: dict[str, str | None] = dict.fromkeys((*NOWHERE, "FIRESTORE_EMULATOR_HOST"))
    said = outbox("worker", env={**none, variable: "127.0.0.1:1", "K_SERVICE": "outbox-worker"})
    assert said.code == 1
    assert f"{variable}: an emulator cannot be used on Cloud Run (K_SERVICE is set)." in said.err


def test_a_port_variable_that_makes_no_sense_is_status_2() -> None:
    said = outbox("worker", env={**NOWHERE, "PORT": "http"})
    assert said.code == 2
    assert "PORT" in said.err


@pytest.mark.parametrize("command", [["lanes"], ["status", "request-1"], ["pause", "shop"]], ids=" ".join)
def test_a_firestore_that_does_not_answer_is_a_sentence_and_status_1(command: list[str]) -> None:
    said = outbox(*command, env=NOWHERE)
    assert said.code == 1
    assert said.out == ""
    assert said.err.startswith("outbox: Firestore did not")
    assert said.err.count("\n") == 2, "what failed, and what to do"


def test_a_worker_whose_port_is_taken_names_the_port_and_the_option() -> None:
    with taken_port() as port:
        said = outbox("worker", "--port", str(port), env=NOWHERE)
    assert said.code == 1
    assert f"port {port}" in said.err
    assert "--port" in said.err


@pytest.mark.parametrize("name", ["firestore", "tasks", "functions", "worker", "provider"])
def test_a_stack_whose_port_is_taken_names_the_port_and_the_option(name: str) -> None:
    free = [f"--{one}-port=0" for one in ("firestore", "tasks", "functions", "worker", "provider") if one != name]
    with taken_port() as port:
        said = outbox("dev", f"--{name}-port={port}", *free)
    assert said.code == 1
    assert said.out == ""
    assert f"port {port}" in said.err
    assert f"--{name}-port" in said.err
