"""`outbox reminders` and `outbox runs` on a running stack: processes, sockets, and a provider that keeps a record."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from google.auth.credentials import AnonymousCredentials
from google.cloud import firestore
from typer.testing import CliRunner

from firestore_outbox.cli import app
from tests.cli.support import COMMAND, Said, Stack, outbox, process, until
from tests.patience import PATIENCE_SECONDS
from tests.web.functions.firebase import unsigned_token

ALL_DAY = ("--window", "0-24", "--timezone", "UTC")
LATER = ("--at", "2040-01-31T09:00")


def add(stack: Stack, account_id: str, *options: str, to: tuple[str, ...] = ("1@g.us",)) -> Said:
    recipients = [word for one in to for word in ("--to", one)]
    return stack("reminders", "add", "--account", account_id, "--text", "hello", *recipients, *ALL_DAY, *options)


def added(stack: Stack, account_id: str, *options: str, to: tuple[str, ...] = ("1@g.us",)) -> dict[str, Any]:
    said = add(stack, account_id, *options, "--json", to=to)
    assert said.code == 0, said
    fields: dict[str, Any] = said.json
    return fields


def run_of(stack: Stack, account_id: str) -> str:
    rows = until(
        lambda: stack("runs", "list", "--account", account_id, "--json").json, lambda rows: len(rows) == 1, "a run"
    )
    return str(rows[0]["runId"])


def becomes(stack: Stack, run_id: str, status: str) -> dict[str, Any]:
    def look() -> dict[str, Any]:
        fields: dict[str, Any] = stack("runs", "show", run_id, "--json").json
        return fields

    return until(look, lambda fields: fields["status"] == status, status)


def reached(stack: Stack, account_id: str) -> Counter[str]:
    """How often the provider accepted each recipient."""
    url = f"{stack.addresses['provider']}/_sim/calls"
    calls = httpx.get(url, params={"accountId": account_id}, trust_env=False, timeout=PATIENCE_SECONDS).json()
    return Counter(call["to"] for call in calls if call["accepted"])


def write(stack: Stack, path: str, **fields: Any) -> None:
    """As the console of a project would."""
    with pytest.MonkeyPatch.context() as patch:  # read once, when a client is made
        patch.setenv("FIRESTORE_EMULATOR_HOST", stack.addresses["FIRESTORE_EMULATOR_HOST"])
        client = firestore.Client(project="demo-outbox", credentials=AnonymousCredentials())
    client.document(path).set(fields)
    client.close()


def waiting_run(stack: Stack, *, targets: int = 5, per_minute: float = 2) -> tuple[str, str]:
    """A run that has hardly begun, and its account."""
    account_id = stack.account(pace={"perMinute": per_minute})
    added(stack, account_id, "--at", "now", to=tuple(f"{n}@g.us" for n in range(targets)))
    run_id = run_of(stack, account_id)
    becomes(stack, run_id, "running")
    return account_id, run_id


def test_a_reminder_is_shown_edited_and_removed(stack: Stack, tmp_path: Path) -> None:
    account_id = stack.account()
    reminder_id = added(stack, account_id, *LATER)["reminderId"]
    file = tmp_path / "people.csv"
    file.write_text("\ufeffname;phone\nAnn;+49 151 1234567\nBob;+49 151 1234568\n", encoding="utf-8")
    words = ("--targets", str(file), "--text", "Hello {name}", "--window", "8-20", "--at", "2041-01-31T09:00")
    edited = stack("reminders", "edit", reminder_id, *words, "--category", "marketing", "--json")
    assert (edited.code, edited.json["nextFireAt"][:4]) == (0, "2041"), edited
    shown = stack("reminders", "show", reminder_id, "--json").json
    assert (shown["targets"], shown["window"]) == (2, {"startHour": 8, "endHour": 20})
    assert shown["category"] == "marketing"
    refused = stack("reminders", "edit", reminder_id, "--text", "Hello {nickname}")
    assert (refused.code, "the variable nickname is missing" in refused.err) == (1, True), refused
    assert stack("reminders", "remove", reminder_id).code == 1, "a script must say --yes"
    assert stack("reminders", "remove", reminder_id, "--yes").code == 0
    assert stack("reminders", "show", reminder_id).code == 1


# --- the whole way


def test_sixty_targets_are_sent_once_each_and_the_run_is_followed_to_its_end(stack: Stack, tmp_path: Path) -> None:
    account_id = stack.account()
    file = tmp_path / "targets.txt"
    file.write_text("".join(f"{n:02}@g.us\n" for n in range(60)))
    said = stack(
        *("reminders", "add", "--account", account_id, "--targets", str(file), "--text", "hello", *ALL_DAY),
        *("--at", "now", "--json"),
    )
    assert (said.code, said.json["targets"], said.json["status"]) == (0, 60, "active")
    assert said.json["forecast"]["warning"] is None
    with process("runs", "show", run_of(stack, account_id), "--follow", "--json", env=stack.environment) as following:
        out, _ = following.communicate(timeout=PATIENCE_SECONDS)
    assert following.returncode == 0, out
    run = json.loads(out)
    assert run["status"] == "success"
    counts = run["counts"]
    assert (counts["total"], counts["sent"]) == (60, 60)
    assert sum(counts[name] for name in ("pending", "sending", "failed", "skipped", "cancelled", "uncertain")) == 0
    assert reached(stack, account_id) == Counter(f"{n:02}@g.us" for n in range(60))
    until(
        lambda: stack("runs", "show", run["runId"], "--json").json["counts"]["read"],
        lambda read: read == 60,
        "the receipts of all, which come after the end",
    )
    listed = stack("runs", "targets", run["runId"], "--status", "sent", "--limit", "10", "--json").json
    assert len(listed) == 10
    assert stack("runs", "targets", run["runId"], "--csv", str(tmp_path / "run.csv")).code == 0
    lines = (tmp_path / "run.csv").read_text().splitlines()
    assert lines[0].startswith("targetId,to,status,queuedAt,sentAt,deliveredAt")
    assert len(lines) == 61
    assert len(stack("runs", "targets", run["runId"], "--csv", "-").out.splitlines()) == 61
    assert stack("runs", "targets", run["runId"], "--status", "lost").code == 2
    (row,) = [one for one in stack("reminders", "list", "--json").json if one["accountId"] == account_id]
    assert (row["status"], row["targets"], row["lastRunId"], row["nextFireAt"]) == ("ended", 60, run["runId"], None)


def test_thousands_of_targets_go_into_documents_of_a_thousand(stack: Stack) -> None:
    account_id = stack.account(status="paused")
    words = ("reminders", "add", "--account", account_id, "--targets", "-", "--text", "x", *ALL_DAY, "--at", "now")
    rows = "id,to\n" + "".join(f"group {n},{n:05}@g.us\n" for n in range(2_400))
    result = CliRunner().invoke(app(words), [*words, "--json"], input=rows, env=stack.environment)
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["targets"] == 2_400
    run_id = run_of(stack, account_id)
    assert becomes(stack, run_id, "running")["counts"]["pending"] == 2_400


def test_an_app_adds_a_reminder_over_http_and_looks_at_its_run(stack: Stack) -> None:
    account_id = stack.account()
    write(stack, f"accounts/{account_id}/members/ann", role="agent")
    body = {
        "reminderId": f"app-{account_id}",
        "accountId": account_id,
        "targets": ["1@g.us", "2@g.us"],
        "parts": [{"type": "text", "text": "hello"}],
        "timezone": "UTC",
        "window": {"startHour": 0, "endHour": 24},
        "schedule": {"type": "once", "at": datetime.now(UTC).isoformat()},
    }
    headers = {"authorization": f"Bearer {unsigned_token('ann')}"}
    with httpx.Client(
        base_url=stack.addresses["functions"], headers=headers, trust_env=False, timeout=PATIENCE_SECONDS
    ) as app:
        first, second = app.post("/v1/reminders", json=body), app.post("/v1/reminders", json=body)
        assert (first.status_code, second.status_code) == (201, 200), (first.text, second.text)
        run_id = run_of(stack, account_id)
        becomes(stack, run_id, "success")
        run = app.get(f"/v1/runs/{run_id}").json()
        assert (run["status"], run["counts"]["sent"]) == ("success", 2)
        again = app.post(f"/v1/runs/{run_id}:retry-failed")
        assert (again.status_code, again.json()) == (409, {"error": "no target of this run has failed"})
    assert reached(stack, account_id) == Counter(["1@g.us", "2@g.us"])


# --- reminders add


def test_add_tells_people_the_next_times_and_when_the_run_will_be_done(stack: Stack) -> None:
    account_id = stack.account(pace={"perMinute": 40}, timezone="Asia/Kuala_Lumpur")
    to = [word for n in range(80) for word in ("--to", f"{n}@g.us")]
    said = stack(
        *("reminders", "add", "--account", account_id, "--text", "x", *to, "--cron", "59 17 * * *", "--id"),
        f"rem-{account_id}",
    )
    assert said.code == 0, said.err
    first, *fires, ends, warning = said.out.splitlines()
    assert first == f"rem-{account_id}  active  80 targets"
    assert [line.split()[2:] for line in fires] == [["17:59:00", "Asia/Kuala_Lumpur"]] * 3
    assert "18:01:00 Asia/Kuala_Lumpur, as things are now" in ends
    assert warning.strip() == "warning: 80 targets at 40/min ends 18:01; the window closes 18:00"


def test_the_same_id_twice_is_one_reminder_and_another_under_it_fails(stack: Stack) -> None:
    account_id = stack.account()
    named = (*LATER, "--id", f"rem-{account_id}")
    assert added(stack, account_id, *named)["isNew"] is True
    assert added(stack, account_id, *named)["isNew"] is False
    assert "(it existed already)" in add(stack, account_id, *named).out
    other = add(stack, account_id, *named, to=("2@g.us",))
    assert (other.code, other.out) == (1, "")
    assert f"another reminder has the id rem-{account_id}" in other.err


def test_a_time_without_an_offset_is_the_time_on_the_wall_of_the_zone(stack: Stack) -> None:
    account_id = stack.account(timezone="Asia/Kuala_Lumpur")
    words = ("reminders", "add", "--account", account_id, "--text", "x", "--to", "1@g.us", "--json")
    for time, expected in (("2040-01-31T09:00", 1), ("2040-01-31T09:00Z", 9), ("2040-01-31 09:00+02:00", 7)):
        (fire,) = stack(*words, "--at", time).json["nextFires"]
        assert datetime.fromisoformat(fire) == datetime(2040, 1, 31, expected, tzinfo=UTC)
    berlin = stack(*words, "--at", "2040-07-31T09:00", "--timezone", "Europe/Berlin").json["nextFires"]
    assert [datetime.fromisoformat(fire) for fire in berlin] == [datetime(2040, 7, 31, 7, tzinfo=UTC)]


def test_parts_and_a_rule_are_taken_as_they_are(stack: Stack) -> None:
    account_id = stack.account()
    parts = [{"type": "template", "name": "hello", "language": "en", "params": ["Ann"]}, {"type": "text", "text": "x"}]
    said = stack(
        *("reminders", "add", "--account", account_id, "--to", "1@g.us", "--parts", json.dumps(parts), *ALL_DAY),
        *("--rrule", "FREQ=WEEKLY;COUNT=2", "--start", "2040-01-31T09:00", "--json"),
    )
    assert said.code == 0, said.err
    start = datetime(2040, 1, 31, 9, tzinfo=UTC)
    assert [datetime.fromisoformat(fire) for fire in said.json["nextFires"]] == [start, start + timedelta(weeks=1)]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--cron", "61 * * * *"], "schedule: '61 * * * *' is no cron schedule"),
        (["--at", "2020-01-31T09:00"], "no time is left"),
        ([*LATER, "--window", "6-6"], "window: startHour and endHour are the same"),
        ([*LATER, "--id", "a/b"], "reminderId must be 1 to 100"),
        ([*LATER, "--to", "a b"], "targets[1].to must be 1 to 256"),
        ([*LATER, "--to", "1@g.us"], "targets: '1@g.us' is there twice"),
    ],
    ids=["cron", "past", "window", "id", "address", "twice"],
)
def test_add_refuses_what_the_worker_would_refuse(stack: Stack, options: list[str], reason: str) -> None:
    said = add(stack, stack.account(), *options)
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith("outbox: the reminder was refused: ")
    assert reason in said.err


def test_a_bad_line_of_a_file_is_named(stack: Stack, tmp_path: Path) -> None:
    file = tmp_path / "targets.csv"
    file.write_text("\ufeffid,to\n\nfirst,1@g.us\nsecond,2 @g.us\n", encoding="utf-8")
    words = ("reminders", "add", "--account", stack.account(), "--targets", str(file), "--text", "x", *ALL_DAY)
    said = stack(*words, "--at", "now")
    assert (said.code, said.out) == (1, "")
    assert f"{file}, line 4.to must be 1 to 256" in said.err


def test_an_account_that_is_not_there_is_named_before_anything_else_is_asked(stack: Stack) -> None:
    said = stack("reminders", "add", "--account", "unknown", "--to", "1@g.us", "--text", "x", "--at", "now")
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith("outbox: there is no account unknown: `outbox accounts list` shows them")


BASE = ["reminders", "add", "--account", "a", "--text", "x"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([*BASE, "--at", "now"], "give the recipients either with --to"),
        ([*BASE, "--at", "now", "--to", "1", "--targets", "-"], "give the recipients either with --to"),
        ([*BASE, "--at", "now", "--targets", "/no/such/file"], "cannot be read"),
        ([*BASE, "--to", "1"], "give the schedule with exactly one of"),
        ([*BASE, "--to", "1", "--at", "now", "--cron", "* * * * *"], "give the schedule with exactly one of"),
        ([*BASE, "--to", "1", "--rrule", "FREQ=DAILY"], "belong together"),
        ([*BASE, "--to", "1", "--at", "now", "--start", "now"], "belong together"),
        ([*BASE, "--to", "1", "--at", "now", "--parts", "[]"], "give the content either with --text"),
        ([*BASE[:-2], "--to", "1", "--at", "now"], "give the content either with --text"),
        ([*BASE[:-2], "--to", "1", "--at", "now", "--parts", "{"], "not JSON"),
        ([*BASE[:-2], "--to", "1", "--at", "now", "--parts", "{}"], "must be a list"),
        ([*BASE, "--to", "1", "--at", "now", "--window", "early"], "two hours"),
        ([*BASE, "--to", "1", "--at", "now", "--timezone", "Mars/Olympus"], "a time zone such as Europe/Berlin"),
        ([*BASE, "--to", "1", "--at", "soon", "--timezone", "UTC"], "not a time; write"),
        ([*BASE, "--to", "1", "--at", "now", "--on-window-end", "explode"], "resumeNextDay"),
        ([*BASE, "--to", "1", "--at", "now", "--missed", "cry"], "runOnce"),
        (["reminders", "pause"], "ID"),
        (["runs", "show"], "ID"),
        (["runs", "list", "--limit", "0"], "--limit"),
        (["runs", "stop", "x"], "stop"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_wrong_command_line_is_status_2_and_says_why(arguments: list[str], words: str) -> None:
    nowhere: dict[str, str | None] = {
        "FIRESTORE_EMULATOR_HOST": "127.0.0.1:1",
        "CLOUD_TASKS_EMULATOR_HOST": "127.0.0.1:1",
    }
    said = outbox(*arguments, env=nowhere)
    assert (said.code, said.out) == (2, "")
    assert words in re.sub(r"[│\s]+", " ", said.err)


@pytest.mark.parametrize(
    "command",
    [
        *(f"reminders {verb}" for verb in ("add", "list", "pause", "resume")),
        *(
            f"runs {verb}"
            for verb in ("list", "show", "targets", "why", "forecast", "pause", "resume", "cancel", "retry-failed")
        ),
    ],
)
def test_a_command_explains_itself_and_speaks_json(command: str) -> None:
    said = outbox(*command.split(), "--help")
    assert said.code == 0
    assert f"outbox {command}" in said.out
    assert "--json" in said.out


# --- reminders list, pause, resume


def test_a_paused_reminder_is_shown_as_such_until_it_is_resumed(stack: Stack) -> None:
    account_id = stack.account()
    reminder_id = added(stack, account_id, "--cron", "0 9 * * *")["reminderId"]

    def row() -> dict[str, Any]:
        return next(one for one in stack("reminders", "list", "--json").json if one["reminderId"] == reminder_id)

    assert (row()["status"], row()["schedule"]) == ("active", "0 9 * * *")
    assert row()["nextFireAt"] is not None
    assert stack("reminders", "pause", reminder_id).out == f"{reminder_id}  paused\n"
    assert (row()["status"], row()["nextFireAt"]) == ("paused", None)
    resumed = stack("reminders", "resume", reminder_id, "--json").json
    assert (resumed["status"], resumed["nextFireAt"]) == ("active", row()["nextFireAt"])
    header, *lines = stack("reminders", "list").out.splitlines()
    assert header.split()[:3] == ["reminderId", "accountId", "status"]
    assert [line.split()[:3] for line in lines if reminder_id in line] == [[reminder_id, account_id, "active"]]


@pytest.mark.parametrize("verb", ["pause", "resume"])
def test_a_reminder_that_is_not_there_or_has_ended_is_status_1(stack: Stack, verb: str) -> None:
    said = stack("reminders", verb, "none")
    assert (said.code, said.out) == (1, "")
    assert said.err == "outbox: there is no reminder none; see: outbox reminders list\n"
    reminder_id = added(stack, stack.account(), "--at", "now")["reminderId"]

    def status() -> str:
        rows = stack("reminders", "list", "--json").json
        return str(next(row["status"] for row in rows if row["reminderId"] == reminder_id))

    until(status, lambda seen: seen == "ended", "its end")
    said = stack("reminders", verb, reminder_id)
    assert (said.code, said.out, said.err) == (1, "", "outbox: the reminder has ended; see: outbox reminders list\n")


# --- runs


def test_runs_are_listed_with_the_newest_first(stack: Stack) -> None:
    account_id, run_id = waiting_run(stack)
    rows = stack("runs", "list", "--json").json
    assert rows[0]["runId"] == run_id
    assert (rows[0]["accountId"], rows[0]["status"], rows[0]["total"]) == (account_id, "running", 5)
    assert [row["runId"] for row in stack("runs", "list", "--account", account_id, "--json").json] == [run_id]
    header, line, *_ = stack("runs", "list").out.splitlines()
    assert header.split()[:3] == ["runId", "accountId", "status"]
    assert line.split()[:3] == [run_id, account_id, "running"]
    idle = stack.account()
    assert stack("runs", "list", "--account", idle).out.startswith(
        f"there are no runs of {idle}; a reminder starts one"
    )


def test_show_and_forecast_tell_when_a_run_will_be_done(stack: Stack) -> None:
    _, run_id = waiting_run(stack, targets=30)
    told = stack("runs", "forecast", run_id, "--json").json
    ends = datetime.fromisoformat(told["endsAt"]) - datetime.now(UTC)
    assert timedelta(minutes=13) < ends < timedelta(minutes=16)
    shown = stack("runs", "show", run_id)
    assert shown.code == 0
    lines = dict(line.split(maxsplit=1) for line in shown.out.splitlines())
    assert (lines["runId"], lines["status"]) == (run_id, "running")
    assert json.loads(lines["counts"])["total"] == 30
    assert "endsAt" in stack("runs", "forecast", run_id).out


def test_a_run_is_paused_resumed_and_cancelled_while_it_is_followed(stack: Stack) -> None:
    """Followed by a process of its own: a line for each change, and status 1 since it was no success."""
    account_id, run_id = waiting_run(stack, targets=5)
    until(lambda: reached(stack, account_id).total(), lambda total: total == 1, "the first")
    with process("runs", "show", run_id, "--follow", env=stack.environment) as following:
        assert following.stdout is not None
        assert following.stdout.readline().startswith("running  1 of 5 done: 1 sent  ends ")
        assert stack("runs", "pause", run_id).out == f"{run_id}  pause requested\n"
        while not following.stdout.readline().startswith("paused  "):
            pass
        assert stack("runs", "resume", run_id, "--json").json == {"runId": run_id, "requested": "resume"}
        becomes(stack, run_id, "running")
        refused = stack("runs", "cancel", run_id)
        assert refused.code == 1
        assert f"4 messages of {run_id} that have not been sent are cancelled for good" in refused.err
        assert stack("runs", "cancel", run_id, "--yes").code == 0
        rest = following.stdout.read()
        assert following.wait(PATIENCE_SECONDS) == 1
    assert "cancelled  5 of 5 done: 1 sent, 4 cancelled\n" in rest
    assert "Cancelled. 1 of 5 groups delivered." in rest
    again = stack("runs", "cancel", run_id)
    assert (again.code, again.err) == (
        1,
        f"outbox: {run_id}: the run has ended (cancelled); see: outbox runs show {run_id}\n",
    )
    ended = stack("runs", "forecast", run_id)
    assert (ended.code, ended.out) == (1, "")
    assert "the run has ended (cancelled)" in ended.err
    assert reached(stack, account_id).total() == 1


def test_a_person_at_a_terminal_sees_a_bar(stack: Stack) -> None:
    account_id = stack.account()
    added(stack, account_id, "--at", "now", to=tuple(f"{n}@g.us" for n in range(20)))
    run_id = run_of(stack, account_id)
    ours, theirs = pty.openpty()
    environment = {**os.environ, **{k: v for k, v in stack.environment.items() if v}, "TERM": "xterm", "COLUMNS": "150"}
    with subprocess.Popen(
        [str(COMMAND), "runs", "show", run_id, "--follow"], stdout=theirs, stderr=theirs, env=environment
    ) as running:
        os.close(theirs)
        shown = b""
        while True:
            try:
                shown += os.read(ours, 4096)
            except OSError:  # the terminal is gone when its last process is
                break
        assert running.wait(PATIENCE_SECONDS) == 0
    os.close(ours)
    text = shown.decode(errors="replace")
    assert "━" in text, "no bar"
    assert "20/20" in text
    assert "success" in text


def test_retry_failed_makes_a_run_of_what_failed(stack: Stack) -> None:
    account_id = stack.account()
    stack.faults(invalidRecipients=["2@g.us"])
    added(stack, account_id, "--at", "now", to=("1@g.us", "2@g.us", "3@g.us"))
    run_id = run_of(stack, account_id)
    partial = becomes(stack, run_id, "partial")
    assert partial["errorSummary"] == "2 of 3 groups delivered. 1 failed. Most often: recipient_invalid."
    assert stack("runs", "show", run_id, "--follow").code == 1
    stack.faults()
    said = stack("runs", "retry-failed", run_id)
    assert (said.code, said.out) == (0, f"{run_id}-again\n")
    assert becomes(stack, f"{run_id}-again", "success")["counts"]["sent"] == 1
    assert reached(stack, account_id)["2@g.us"] == 1
    again = stack("runs", "retry-failed", run_id, "--json")
    assert (again.code, again.out) == (1, "")
    assert f"{run_id}-again" in again.err
    nothing = stack("runs", "retry-failed", f"{run_id}-again")
    assert nothing.err.startswith(f"outbox: {run_id}-again: no target of this run has failed; see: outbox runs show")


@pytest.mark.parametrize("verb", ["show", "why", "forecast", "pause", "resume", "cancel", "retry-failed"])
def test_a_run_that_is_not_there_is_status_1(stack: Stack, verb: str) -> None:
    for options in ((), ("--json",)):
        said = stack("runs", verb, "none", *options)
        assert (said.code, said.out) == (1, "")
        assert said.err == "outbox: there is no run none; see: outbox runs list\n"


def test_a_run_of_a_paused_account_says_so_and_names_no_end(stack: Stack) -> None:
    account_id, run_id = waiting_run(stack, targets=5)
    assert "messages wait for their turn" in stack("runs", "why", run_id).out
    stack("pause", account_id)
    why = stack("runs", "why", run_id, "--json").json
    assert why["sentences"] == ["The account is paused until an operator resumes it."]
    assert why["endsAt"] is None
    told = stack("runs", "forecast", run_id, "--json").json
    assert (told["endsAt"], told["warning"]) == (
        None,
        "the account is paused, and sends nothing before it is resumed",
    )
    assert "endsAt" not in stack("runs", "forecast", run_id).out
    stack("pause", account_id, "--until", "2040-01-31T09:00")
    assert "paused until 2040-01-31 09:00:00 UTC" in stack("runs", "why", run_id).out


def test_the_messages_of_a_run_are_listed(stack: Stack) -> None:
    account_id = stack.account()
    stack.faults(invalidRecipients=["2@g.us"])
    added(stack, account_id, "--at", "now", to=("1@g.us", "2@g.us", "3@g.us"))
    run_id = run_of(stack, account_id)
    becomes(stack, run_id, "partial")
    rows = stack("list", "--run", run_id, "--json").json
    assert sorted((row["to"], row["status"]) for row in rows) == [
        ("1@g.us", "sent"),
        ("2@g.us", "failed"),
        ("3@g.us", "sent"),
    ]
    (failed,) = stack("list", "--run", run_id, "--status", "failed", "--json").json
    assert (failed["to"], failed["code"], failed["runId"]) == ("2@g.us", "recipient_invalid", run_id)
    empty = stack("list", "--run", run_id, "--status", "uncertain")
    assert empty.out.startswith(f"no message of run {run_id} is uncertain; --status looks for ")
    assert "there is no run none" in stack("list", "--run", "none").err


def test_a_reminder_that_names_a_missing_file_is_refused(stack: Stack, tmp_path: Path) -> None:
    account_id, file = stack.account(), tmp_path / "menu.pdf"
    file.write_bytes(b"%PDF-1.4 menu")
    missing = json.dumps([{"type": "media", "mediaId": "0" * 64, "mimeType": "application/pdf"}])
    words = ("reminders", "add", "--account", account_id, "--to", "1@g.us", *ALL_DAY, *LATER)
    said = stack(*words, "--parts", missing)
    assert (said.code, said.out) == (1, "")
    assert f"there is no file {'0' * 64}" in said.err
    assert f"outbox media add FILE --account {account_id}" in said.err
    media_id = stack("media", "add", str(file), "--account", account_id).out.strip()
    there = json.dumps([{"type": "media", "mediaId": media_id, "mimeType": "application/pdf"}])
    assert stack(*words, "--parts", there).code == 0
