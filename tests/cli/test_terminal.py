"""Commands at a terminal: Ctrl-C, questions before large changes, and tables on a narrow screen."""

from __future__ import annotations

from pathlib import Path

from tests.cli.support import Stack, until
from tests.cli.terminal import CTRL_C, Terminal, at_a_terminal
from tests.patience import PATIENCE_SECONDS

INTERRUPTED = 130


def stops_quietly(terminal: Terminal) -> None:
    terminal.type(CTRL_C)
    shown = terminal.rest()
    assert terminal.process.wait(PATIENCE_SECONDS) == INTERRUPTED
    assert "Traceback" not in shown
    assert "Error" not in shown


def has_children(pid: int) -> bool:
    return any(task.read_text().split() for task in Path(f"/proc/{pid}/task").glob("*/children"))


def test_ctrl_c_ends_a_simulation_and_its_processes_quietly() -> None:
    with at_a_terminal("sim", "--seeds", "100000", "--jobs", "2") as terminal:
        until(lambda: has_children(terminal.process.pid), bool, "a process of the pool")
        stops_quietly(terminal)


def test_ctrl_c_ends_the_demo_quietly() -> None:
    with at_a_terminal("demo", "--messages", "100000") as terminal:
        until(lambda: has_children(terminal.process.pid), bool, "a part of the stack")
        stops_quietly(terminal)


def test_ctrl_c_ends_status_follow_quietly(stack: Stack) -> None:
    account_id = stack.account(status="paused")
    request_id = stack.send(account_id)
    with at_a_terminal("status", request_id, "--follow", env=stack.environment) as terminal:
        terminal.until("queued / queued")
        stops_quietly(terminal)


def test_a_redrive_of_many_messages_asks_first(stack: Stack) -> None:
    account_id = stack.account()
    stack.faults(invalidRecipients=["+1", "+2"])
    sent = [stack.send(account_id, to=to) for to in ("+1", "+2")]
    for request_id in sent:
        stack.becomes(request_id, "failed")
    with at_a_terminal("redrive", "--account", account_id, env=stack.environment) as terminal:
        terminal.until("2 failed messages of")
        terminal.until("[y/N]")
        terminal.type("n\n")
        assert "nothing was changed" in terminal.rest()
        assert terminal.process.wait(PATIENCE_SECONDS) == 1
    assert {stack.status(request_id)["status"] for request_id in sent} == {"failed"}
    with at_a_terminal("redrive", "--account", account_id, env=stack.environment) as terminal:
        terminal.until("[y/N]")
        terminal.type("y\n")
        assert "2 back in the queue" in terminal.rest()
        assert terminal.process.wait(PATIENCE_SECONDS) == 0


def test_without_a_terminal_a_redrive_of_many_messages_needs_yes(stack: Stack) -> None:
    account_id = stack.account()
    stack.faults(invalidRecipients=["+1", "+2"])
    for request_id in [stack.send(account_id, to=to) for to in ("+1", "+2")]:
        stack.becomes(request_id, "failed")
    said = stack("redrive", "--account", account_id)
    assert (said.code, said.out) == (1, "")
    assert "Nothing was changed: add --yes" in said.err
    assert stack("redrive", "--account", account_id, "--yes").out == "2 back in the queue\n"


def test_targets_of_a_file_are_shown_and_confirmed_before_the_reminder_is_added(stack: Stack, tmp_path: Path) -> None:
    account_id = stack.account(status="paused")
    file = tmp_path / "people.csv"
    file.write_text("name;to\nAnn;+491511234567\nAnn;+491511234567\nBob;+491511234568\n")
    words = (
        "reminders",
        "add",
        "--account",
        account_id,
        "--targets",
        str(file),
        "--text",
        "Hello {name}",
        "--at",
        "now",
    )
    with at_a_terminal(*words, env=stack.environment) as terminal:
        terminal.until("[y/N]")
        assert "2 targets  (1 repeated rows count once)" in terminal.shown
        assert "Bob" in terminal.shown
        terminal.type("n\n")
        assert "nothing was changed" in terminal.rest()
    assert not [one for one in stack("reminders", "list", "--json").json if one["accountId"] == account_id]


def test_an_id_is_never_cut_on_a_narrow_terminal(stack: Stack) -> None:
    account_id = stack.account(status="paused")
    request_id = stack.send(account_id, "--request-id", "r" * 120)
    with at_a_terminal("list", "--status", "queued", "--account", account_id, env=stack.environment) as terminal:
        assert request_id in terminal.rest()
