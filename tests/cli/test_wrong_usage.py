"""Sixty-odd wrong usages, and what each prints: what is wrong, and what to do next. Never a traceback."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

import pytest

from firestore_outbox.cli import main
from tests.cli.support import Stack

NOWHERE = {"FIRESTORE_EMULATOR_HOST": "127.0.0.1:1", "CLOUD_TASKS_EMULATOR_HOST": "127.0.0.1:1"}
HELP = "for help"
"""The end of each error of the command line: Try 'outbox send -h' for help."""
TO = "--account shop --to +1"
REMINDER = "reminders add --account shop --to +1 --text x"

COMMAND_LINE: dict[str, tuple[str, ...]] = {
    "gossip": ("No such command 'gossip'", HELP),
    "sned": ("No such command 'sned'", HELP),
    "--colour": ("No such option", HELP),
    "send": ("Missing option '--account'", HELP),
    "send --account shop --text x": ("Missing option '--to'", HELP),
    f"send {TO}": ("either with --text or with --template NAME", HELP),
    f"send {TO} --text x --template t": ("either with --text or with --template NAME", HELP),
    f"send {TO} --text x --param y": ("--param", "belong to --template"),
    f"send {TO} --text x --at soon": ("'soon' is not a time", "write 2030-01-31T09:00, or now"),
    f"send {TO} --text x --at 2030-13-01T09:00": ("is not a time", "write 2030-01-31T09:00"),
    f"send {TO} --text x --at now --delay-seconds 5": ("either with --at or with --delay-seconds",),
    f"send {TO} --text x --delay-seconds -1": ("--delay-seconds", HELP),
    f"send {TO} --text x --delay-seconds soon": ("--delay-seconds", HELP),
    f"send {TO} --text x --media photo.png": ("'photo.png' does not exist", HELP),
    "status": ("Missing argument 'ID'", HELP),
    "status outbox/request-1": ("cannot be an id", "give the id alone, without the path of its document"),
    "status one two": ("unexpected extra argument", HELP),
    "why ''": ("it is empty; is a shell variable not set?",),
    "why ..": ("cannot be an id",),
    "cancel": ("Missing argument 'ID'", HELP),
    "list --status lost": ("'lost' is not one of", "'queued'", HELP),
    "list --limit 0": ("--limit", HELP),
    "list --run run-1 --account shop": ("give either --run or --account",),
    "list --account a/b": ("--account", "cannot be an id"),
    "settle request-1": ("Missing option '--as'", HELP),
    "settle request-1 --as maybe": ("'maybe' is not one of 'sent', 'failed'", HELP),
    "redrive": ("give the ID of one message, or --account",),
    "redrive request-1 --account shop": ("give the ID of one message, or --account",),
    "pause": ("Missing argument 'ACCOUNT'", HELP),
    "pause shop --until tomorrow": ("--until", "'tomorrow' is not a time", "write 2030-01-31T09:00"),
    "resume a/b": ("cannot be an id", "without the path of its document"),
    "lanes all": ("unexpected extra argument", HELP),
    "audit --loud": ("No such option", HELP),
    "keys": ("create", "rotate", "delete"),
    "keys create": ("Missing argument 'ACCOUNT'", HELP),
    "keys delete shop": ("give either --version N or --all",),
    "keys delete shop --version 0": ("--version", HELP),
    "migrate no-such": ("there is no migration no-such; there are: provider-number",),
    "migrate --back": ("--back needs the name of one migration",),
    "accounts": ("add", "list", "check"),
    "accounts add shop --provider simulated --secrets - --no-secrets": ("give either --secrets or --no-secrets",),
    "accounts erase shop": ("No such command 'erase'", HELP),
    "accounts set shop": ("name a setting and its value, such as pace.perMinute=20", HELP),
    "accounts set shop pace": ("'pace' is not NAME=VALUE", HELP),
    "accounts members shop bob": ("give UID with --role ROLE or with --remove", HELP),
    "accounts members shop bob --role king": ("'king' is not one of 'owner', 'agent', 'viewer'", HELP),
    "accounts rotate shop --secret hunter2": ("a secret is never a word of the command", HELP),
    "accounts check": ("Missing argument 'ACCOUNT'", HELP),
    "runs show": ("Missing argument 'ID'", HELP),
    "runs show a/b": ("cannot be an id",),
    "runs stop run-1": ("No such command 'stop'", HELP),
    "runs list --limit none": ("--limit", HELP),
    "jobs show": ("Missing argument 'JOB'", HELP),
    "reminders add --account shop --text x --at now": ("either with --to, which may be repeated, or with --targets",),
    f"{REMINDER} --at now --cron '* * * * *'": ("exactly one of --at, --cron and --rrule",),
    f"{REMINDER}": ("exactly one of --at, --cron and --rrule",),
    f"{REMINDER} --rrule FREQ=DAILY": ("--rrule and --start belong together",),
    f"{REMINDER} --at now --window late": ("'late' must be two hours, such as 6-18",),
    f"{REMINDER} --at now --timezone Mars/North": ("--timezone", "it must be"),
    "reminders add --account shop --targets /no/such.csv --text x --at now": ("cannot be read (FileNotFoundError)",),
    "reminders add --account shop --to +1 --parts x --at now": ("--parts", "the content is not JSON"),
    "media add /no/such/file --account shop": ("does not exist", HELP),
    "doctor": ("which project? Give --project ID, or set OUTBOX_PROJECT",),
    "page": ("which Firebase project? Give --config FILE", "paste the export line"),
    "page --config /no/such.js": ("does not exist", HELP),
    "page --config /dev/null": (
        "it has no apiKey and no projectId; copy the whole object",
        "firebase apps:sdkconfig WEB",
    ),
    "page --port 70000": ("--port", HELP),
    "init": ("Missing argument 'DIR'", HELP),
    "dev --project Chat": ("'Chat' is not a project id; it has 6 to 30 lowercase letters",),
    "dev --worker-port 70000": ("--worker-port", HELP),
    "dev --port-base 80": ("--port-base", HELP),
    "emulator --functions nowhere": ("--functions", "HOST:PORT"),
    "demo --messages 0": ("--messages", HELP),
    "sim --seeds none": ("--seeds", HELP),
    "worker --port -1": ("--port", HELP),
}
"""Command line -> what standard error has, besides the usage. Exit status 2."""

NO_STACK: dict[str, tuple[str, ...]] = {
    "lanes": ("Nothing answers at FIRESTORE_EMULATOR_HOST=127.0.0.1:1", "start `outbox dev`"),
    f"send {TO} --text x": ("Nothing answers at", "run the export line that it prints"),
    "OUTBOX_LEASE_SECONDS=plenty lanes": ("OUTBOX_LEASE_SECONDS: Input should be a valid number",),
    "OUTBOX_LEASE_SECOND=60 lanes": ("did you mean OUTBOX_LEASE_SECONDS?",),
    "OUTBOX_HANDLERS=no_such_module lanes": ("no_such_module",),
    "K_SERVICE=worker lanes": ("an emulator cannot be used on Cloud Run", "Remove the variable"),
    "FIRESTORE_EMULATOR_HOST= GOOGLE_APPLICATION_CREDENTIALS=/no/such lanes": (
        "gcloud auth application-default login",
    ),
}
"""The same with exit status 1, while nothing answers at the address of the emulator. Variables stand in front."""

ON_A_STACK: dict[str, tuple[str, ...]] = {
    "send --account nowhere --to +1 --text x": ("there is no account nowhere", "`outbox accounts add` adds one"),
    "send --account ACCOUNT --to +1 --text ''": ("the message was refused: parts[0].text",),
    "send --account ACCOUNT --to +1 --text x --request-id short": ("the message was refused: requestId must be",),
    "status nothing": ("there is no message nothing", "`outbox list --status queued`"),
    "why nothing": ("there is no message nothing", "`outbox list --status queued`"),
    "cancel nothing": ("there is no message nothing", "`outbox list"),
    "settle nothing --as sent": ("there is no message nothing", "`outbox list --status uncertain`"),
    "redrive nothing": ("nothing to redrive: nothing: there is no such message", "`outbox list --status failed`"),
    "redrive --account ACCOUNT": ("nothing to redrive: no message of", "has failed"),
    "list --account nowhere": ("there is no account nowhere", "outbox accounts list"),
    "list --run nowhere": ("there is no run nowhere; see: outbox runs list",),
    "list --after nothing": ("there is no message nothing",),
    "pause nowhere": ("there is no account nowhere", "outbox accounts list"),
    "accounts check nowhere": ("there is no account nowhere", "`outbox accounts add` adds one"),
    "accounts add ACCOUNT --provider simulated --no-secrets": ("exists already; --replace changes it",),
    "runs why nowhere": ("there is no run nowhere; see: outbox runs list",),
    "runs list --account nowhere": ("there is no account nowhere",),
    "reminders pause nowhere": ("there is no reminder nowhere; see: outbox reminders list",),
    "reminders add --account ACCOUNT --to +1 --text x --cron '61 * * * *'": ("is no cron schedule",),
    "jobs show nothing": ("there is no job nothing", "outbox jobs list"),
    "jobs drop nothing": ("there is no job nothing", "outbox jobs list"),
}
"""The same on a running stack; ACCOUNT is an account of it. Exit status 1."""


def words_of(line: str) -> tuple[list[str], dict[str, str]]:
    words, variables = shlex.split(line), {}
    while words and "=" in words[0] and not words[0].startswith("-"):
        name, _, value = words.pop(0).partition("=")
        variables[name] = value
    return words, variables


def said(line: str, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> int | str | None:
    """The exit status of the `outbox` command with this command line, through its real entry."""
    words, variables = words_of(line)
    for name in [name for name in os.environ if name.startswith("OUTBOX_")]:
        monkeypatch.delenv(name)
    for name, value in {**environment, **variables}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "argv", ["outbox", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code


def is_clear(capsys: pytest.CaptureFixture[str], expected: tuple[str, ...]) -> None:
    shown = capsys.readouterr()
    flat = " ".join((shown.out + shown.err).split())
    assert [words for words in expected if words not in flat] == [], flat
    assert "Traceback" not in flat


@pytest.mark.parametrize("line", COMMAND_LINE)
def test_a_wrong_command_line_is_status_2_and_names_the_way_out(
    line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert said(line, NOWHERE, monkeypatch) == 2
    is_clear(capsys, COMMAND_LINE[line])


@pytest.mark.parametrize("line", NO_STACK)
def test_a_wrong_environment_is_status_1_and_names_the_way_out(
    line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said(line, NOWHERE, monkeypatch) == 1
    is_clear(capsys, NO_STACK[line])


@pytest.fixture(scope="module")
def account_id(running: Stack) -> str:
    return running.account(status="paused")


@pytest.mark.parametrize("line", ON_A_STACK)
def test_what_does_not_exist_is_status_1_and_names_the_way_out(
    line: str, running: Stack, account_id: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    environment = {name: value for name, value in running.environment.items() if value is not None}
    assert said(line.replace("ACCOUNT", account_id), environment, monkeypatch) == 1
    is_clear(capsys, ON_A_STACK[line])


def test_the_tables_have_more_than_sixty_usages() -> None:
    assert len(COMMAND_LINE) + len(NO_STACK) + len(ON_A_STACK) >= 60
