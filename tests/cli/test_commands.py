"""Each command on a running stack: what it does, what it says to people and to machines, and its exit status."""

from __future__ import annotations

import json
import re
import secrets
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from firestore_outbox.messages import faults
from tests.cli.support import Stack, process, until
from tests.patience import PATIENCE_SECONDS

HOUR = "--delay-seconds=3600"


# --- keys


def test_keys_seal_an_account_and_send_seals_for_it(stack: Stack) -> None:
    account_id = stack.account()
    assert "is not sealed" in stack("keys", "list", account_id).out
    assert stack("keys", "create", account_id).out == f"{account_id}  sealed with key 1\n"
    assert "is sealed already" in stack("keys", "create", account_id).err
    request_id = stack("send", "--account", account_id, "--to", "+491701", "--text", "hello", "--json").json[
        "requestId"
    ]
    stack.becomes(request_id, "sent")
    assert [part["type"] for part in stack.read(f"outbox/{request_id}")["parts"]] == ["sealed"]
    assert stack("keys", "rotate", account_id, "--json").json["keyVersion"] == 2
    assert "clients seal with" in stack("keys", "delete", account_id, "--version", "2", "--yes").err
    assert stack("keys", "delete", account_id, "--version", "1", "--yes", "--json").json["deleted"] == [1]
    states = {row["version"]: row["state"] for row in stack("keys", "list", account_id, "--json").json}
    assert states == {1: "deleted", 2: "current"}
    said = stack("keys", "delete", account_id, "--all", "--yes")
    assert said.out.startswith(f"{account_id}  deleted: 2\n")
    assert "sealing" not in stack.read(f"accounts/{account_id}")


# --- send


def test_send_writes_a_message_that_is_sent(stack: Stack) -> None:
    account_id = stack.account()
    said = stack("send", "--account", account_id, "--to", "+491701", "--text", "hello", "--json")
    assert said.code == 0
    assert said.json == {"requestId": said.json["requestId"], "status": "queued", "isNew": True}
    stack.becomes(said.json["requestId"], "sent")
    assert stack.calls(account_id) == [said.json["requestId"]]


def test_send_writes_the_priority_of_a_message(stack: Stack) -> None:
    account_id = stack.account()
    said = stack("send", "--account", account_id, "--to", "+491701", "--text", "1234", "--priority", "urgent", "--json")
    assert stack.read(f"outbox/{said.json['requestId']}")["priority"] == "urgent"


def test_send_with_the_same_id_is_one_message(stack: Stack) -> None:
    account_id = stack.account()
    sending = (
        "send",
        "--account",
        account_id,
        "--to",
        "+491701",
        "--text",
        "hello",
        "--request-id",
        f"id-{account_id}",
    )
    assert stack(*sending).out == f"id-{account_id}  queued\n"
    stack.becomes(f"id-{account_id}", "sent")
    assert stack(*sending).out == f"id-{account_id}  sent  (it existed already)\n"
    assert stack(*sending, "--json").json == {"requestId": f"id-{account_id}", "status": "sent", "isNew": False}
    assert stack.calls(account_id) == [f"id-{account_id}"]


def test_send_with_the_id_of_another_message_fails(stack: Stack) -> None:
    account_id = stack.account()
    stack.send(account_id, HOUR, "--request-id", f"id-{account_id}")
    said = stack("send", "--account", account_id, "--to", "+491702", "--text", "x", "--request-id", f"id-{account_id}")
    assert (said.code, said.out) == (1, "")
    assert f"another message has the id id-{account_id}" in said.err


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--account", "a__b", "--to", "+491701", "--text", "x"], f"accountId {faults.ACCOUNT_ID}."),
        (["--account", "a/b", "--to", "+491701", "--text", "x"], f"accountId {faults.ACCOUNT_ID}."),
        (["--account", "shop", "--to", "+491701", "--text", ""], "text"),
        (["--account", "shop", "--to", "+491701", "--text", "x" * 4097], "text"),
        (["--account", "shop", "--to", "", "--text", "x"], "to"),
        (
            ["--account", "shop", "--to", "+491701", "--text", "x", "--request-id", "a b"],
            f"requestId {faults.REQUEST_ID}.",
        ),
    ],
    ids=[
        "an account with two underscores",
        "an account with a slash",
        "no text",
        "a long text",
        "no recipient",
        "a bad id",
    ],
)
def test_send_refuses_what_the_worker_would_refuse(stack: Stack, options: list[str], reason: str) -> None:
    said = stack("send", *options)
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith("outbox: the message was refused: ")
    assert reason in said.err


def test_a_message_is_sent_at_a_time_of_the_accounts_zone(stack: Stack) -> None:
    account_id = stack.account(timezone="Asia/Tokyo")
    tomorrow = datetime.now(ZoneInfo("Asia/Tokyo")).replace(tzinfo=None, second=0, microsecond=0) + timedelta(days=1)
    request_id = stack.send(account_id, "--at", tomorrow.isoformat())
    at = datetime.fromisoformat(stack.status(request_id)["nextAttemptAt"])
    assert at.astimezone(ZoneInfo("Asia/Tokyo")).replace(tzinfo=None) == tomorrow
    said = stack("send", "--account", account_id, "--to", "+1", "--text", "x", "--at", "2020-01-31T09:00")
    assert (said.code, said.out) == (2, "")
    assert "2020-01-31 09:00:00 Asia/Tokyo has passed" in said.err


def test_a_template_is_sent_with_its_values(stack: Stack) -> None:
    account_id = stack.account(status="paused")
    template = ("--template", "welcome", "--language", "de", "--param", "Ann", "--param", "7")
    said = stack("send", "--account", account_id, "--to", "+491701", *template, "--json")
    assert said.code == 0, said
    (part,) = stack.read(f"outbox/{said.json['requestId']}")["parts"]
    assert part == {"type": "template", "name": "welcome", "language": "de", "params": ["Ann", "7"]}


def test_a_template_is_sent_with_values_for_header_and_buttons(stack: Stack) -> None:
    account_id = stack.account(status="paused")
    header = ("--header", "image=https://example.com/a.png")
    template = ("--template", "offer", *header, "--param", "Ann", "--button", "t1")
    said = stack("send", "--account", account_id, "--to", "+491701", *template, "--json")
    assert said.code == 0, said
    (part,) = stack.read(f"outbox/{said.json['requestId']}")["parts"]
    params = {"header": {"image": "https://example.com/a.png"}, "body": ["Ann"], "buttons": ["t1"]}
    assert part == {"type": "template", "name": "offer", "language": "en", "params": params}


# --- status


def test_status_shows_what_is_known(stack: Stack) -> None:
    account_id = stack.account()
    request_id = stack.send(account_id)
    stack.becomes(request_id, "sent")
    fields = until(lambda: stack.status(request_id), lambda fields: fields["message"] == "read", "read")
    assert (fields["accountId"], fields["to"], fields["attempts"]) == (account_id, "+491701", 1)
    assert fields["providerMessageId"].startswith("sim-")
    assert datetime.fromisoformat(fields["deliveredAt"]) <= datetime.fromisoformat(fields["readAt"])
    shown = stack("status", request_id)
    assert shown.code == 0
    assert dict(line.split(maxsplit=1) for line in shown.out.splitlines())["status"] == "sent"


def test_status_shows_an_error_whole_also_in_a_pipe(stack: Stack) -> None:
    account_id = stack.account()
    stack.faults(invalidRecipients=["[bold]+1"])
    request_id = stack.send(account_id, to="[bold]+1")
    error = stack.becomes(request_id, "failed")["lastError"]
    lines = dict(line.split(maxsplit=1) for line in stack("status", request_id).out.splitlines())
    assert error["code"] == "recipient_invalid"
    assert error["message"] in lines["lastError"]
    assert lines["to"] == "[bold]+1"


def test_status_follows_a_message_to_its_end(stack: Stack) -> None:
    """As a process of its own: it must end by itself, and say each step as it comes."""
    account_id = stack.account()
    stack("pause", account_id)
    stack.faults(receiptDelayMs=700)
    request_id = stack.send(account_id)
    with process("status", request_id, "--follow", env=stack.environment) as following:
        assert following.stdout is not None
        assert following.stdout.readline() == "queued / queued\n"
        stack("resume", account_id)
        lines = following.stdout.read().splitlines()
        assert following.wait(PATIENCE_SECONDS) == 0
    assert lines[-1] == "sent / read"
    assert stack("status", request_id, "--follow", "--json").json["message"] == "read"


@pytest.mark.parametrize("command", ["status", "why", "cancel"])
def test_a_message_that_does_not_exist_is_status_1(stack: Stack, command: str) -> None:
    for options in ((), ("--json",)):
        said = stack(command, "no-such-message", *options)
        assert (said.code, said.out) == (1, "")
        assert said.err.startswith("outbox: there is no message no-such-message; `outbox list")


# --- why


def test_why_tells_the_time_that_a_message_waits_for(stack: Stack) -> None:
    request_id = stack.send(stack.account(), HOUR)
    answer = stack("why", request_id, "--json")
    assert answer.code == 0
    earliest = datetime.fromisoformat(answer.json["earliest"])
    assert abs(earliest - datetime.now(UTC) - timedelta(hours=1)) < timedelta(minutes=1)
    assert stack("why", request_id).out == answer.json["sentence"] + "\n"


def test_why_tells_of_a_paused_account(stack: Stack) -> None:
    account_id = stack.account()
    stack("pause", account_id)
    answer = stack("why", stack.send(account_id), "--json")
    assert "paused" in answer.json["sentence"]
    assert answer.json["earliest"] is None


def test_why_tells_that_a_message_waits_for_nothing(stack: Stack) -> None:
    request_id = stack.send(stack.account())
    stack.becomes(request_id, "sent")
    answer = stack("why", request_id)
    assert answer.code == 0
    assert "sent" in answer.out


# --- cancel


def test_cancel_takes_a_queued_message_back(stack: Stack) -> None:
    account_id = stack.account()
    request_id = stack.send(account_id, HOUR)
    said = stack("cancel", request_id)
    assert (said.code, said.out) == (0, f"{request_id}  cancelled\n")
    fields = stack.status(request_id)
    assert (fields["status"], fields["message"]) == ("cancelled", "cancelled")
    assert stack("cancel", request_id, "--json").json == {"requestId": request_id, "status": "cancelled"}


def test_cancel_says_that_it_is_too_late_in_words_and_in_json(stack: Stack) -> None:
    request_id = stack.send(stack.account())
    stack.becomes(request_id, "sent")
    said = stack("cancel", request_id)
    assert (said.code, said.out) == (1, "")
    assert "it is sent" in said.err
    said = stack("cancel", request_id, "--json")
    assert (said.code, said.json["status"]) == (1, "sent")


# --- redrive


def failed(stack: Stack, account_id: str, *recipients: str) -> list[str]:
    stack.faults(invalidRecipients=recipients)
    sent = [stack.send(account_id, to=to) for to in recipients]
    for request_id in sent:
        assert stack.becomes(request_id, "failed")["message"] == "failed"
    stack.faults()
    return sent


def test_redrive_puts_one_failed_message_back_and_it_is_sent(stack: Stack) -> None:
    account_id = stack.account()
    first, second = failed(stack, account_id, "+1", "+2")
    said = stack("redrive", first)
    assert (said.code, said.out) == (0, "1 back in the queue\n")
    stack.becomes(first, "sent")
    until(lambda: stack.status(first), lambda fields: fields["message"] == "read", "read")
    assert stack.status(second)["status"] == "failed"


def test_redrive_puts_all_failed_messages_of_an_account_back(stack: Stack) -> None:
    account_id, other = stack.account(), stack.account()
    ours = failed(stack, account_id, "+1", "+2")
    (theirs,) = failed(stack, other, "+1")
    said = stack("redrive", "--account", account_id, "--yes", "--json")
    assert (said.code, sorted(said.json["redriven"])) == (0, sorted(ours))
    for request_id in ours:
        stack.becomes(request_id, "sent")
    assert stack.status(theirs)["status"] == "failed"


def test_redrive_of_nothing_is_status_1_in_words_and_in_json(stack: Stack) -> None:
    request_id = stack.send(stack.account())
    stack.becomes(request_id, "sent")
    for named, reason in ((request_id, "it is sent"), ("no-such-message", "there is no such message")):
        said = stack("redrive", named)
        assert (said.code, said.out) == (1, "")
        assert said.err.startswith(f"outbox: nothing to redrive: {named}: {reason}")
    said = stack("redrive", "--account", stack.account(), "--json")
    assert (said.code, said.json) == (1, {"redriven": [], "left": []})
    assert "has failed" in said.err


# --- list and settle


def test_an_uncertain_message_is_found_settled_by_a_person_and_found_no_more(stack: Stack) -> None:
    account_id = stack.account(provider="simulated-mute")
    stack.faults(lostResponseRate=1)
    request_id = stack.send(account_id)
    stack.becomes(request_id, "uncertain")
    listing = ("list", "--account", account_id, "--status", "uncertain")
    (row,) = stack(*listing, "--json").json
    assert (row["requestId"], row["code"]) == (request_id, "outcome_unknown")
    assert request_id in stack(*listing).out
    said = stack("settle", request_id, "--as", "sent")
    assert (said.code, said.out) == (0, f"{request_id}  sent\n")
    fields = stack.status(request_id)
    assert (fields["status"], fields["message"]) == ("sent", "sent")
    nothing = f"no message of {account_id} is uncertain; --status looks for queued, sending, sent,"
    assert stack(*listing).out.startswith(nothing)
    (row,) = stack("list", "--account", account_id, "--json").json
    assert (row["requestId"], row["status"]) == (request_id, "sent"), "without a status it lists every message"
    said = stack("settle", request_id, "--as", "failed", "--json")
    assert (said.code, said.out) == (1, "")
    assert "is not uncertain: it is sent" in said.err


def test_a_list_has_the_newest_first_and_goes_on_behind_a_message(stack: Stack) -> None:
    account_id = stack.account()
    newest_first = [stack.send(account_id, HOUR) for _ in range(3)][::-1]
    queued = ("list", "--status", "queued", "--account", account_id)
    first = stack(*queued, "--limit", "2")
    assert first.out.splitlines()[-1] == f"there may be more: --after {newest_first[1]}"
    assert [row["requestId"] for row in stack(*queued, "--json").json] == newest_first
    behind = stack(*queued, "--after", newest_first[1], "--json").json
    assert [row["requestId"] for row in behind] == newest_first[2:]
    assert "there is no message nowhere" in stack(*queued, "--after", "nowhere").err


def test_a_list_over_all_accounts_has_the_newest_first(stack: Stack) -> None:
    accounts = [stack.account(status="paused") for _ in range(2)]
    ours = [stack.send(account_id) for account_id in accounts * 2][::-1]
    listed = [row["requestId"] for row in stack("list", "--status", "queued", "--limit", "4", "--json").json]
    assert listed == ours
    behind = stack("list", "--status", "queued", "--limit", "2", "--after", ours[1], "--json").json
    assert [row["requestId"] for row in behind] == ours[2:]


def test_a_malformed_document_without_a_time_is_listed_last(stack: Stack) -> None:
    account_id = stack.account()
    (failed_one,) = failed(stack, account_id, "+1")
    bare = f"bare-{account_id}"
    stack.write(f"outbox/{bare}", {"requestId": bare, "accountId": account_id, "status": "failed"})
    rows = stack("list", "--status", "failed", "--account", account_id, "--json").json
    assert [(row["requestId"], row["code"]) for row in rows] == [
        (failed_one, "recipient_invalid"),
        (bare, "invalid_message"),
    ]


def test_every_time_of_an_output_names_its_zone(stack: Stack) -> None:
    account_id = stack.account(timezone="Asia/Tokyo")
    request_id = stack.send(account_id, HOUR)
    lines = [*stack("status", request_id).out.splitlines(), *stack("lanes").out.splitlines()]
    lines += stack("list", "--status", "queued", "--account", account_id).out.splitlines()
    times = [found for line in lines for found in re.findall(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d( \S+)?", line)]
    assert set(times) == {" UTC"}


# --- pause, resume, lanes, audit


def test_a_paused_account_sends_nothing_until_it_is_resumed(stack: Stack) -> None:
    account_id = stack.account()
    assert stack("pause", account_id).out == f"{account_id}  paused\n"
    request_id = stack.send(account_id)
    lane = f"outbox:{account_id}"

    def state() -> str | None:
        return next((row["state"] for row in stack("lanes", "--json").json if row["lane"] == lane), None)

    until(state, lambda seen: seen == "idle", "a lane that has looked and rests")
    assert (stack.status(request_id)["status"], stack.calls(account_id)) == ("queued", [])
    said = stack("resume", account_id, "--json")
    assert (said.code, said.json) == (0, {"accountId": account_id, "status": "active"})
    stack.becomes(request_id, "sent")


def test_a_pause_ends_by_itself_at_the_time_it_was_given(stack: Stack) -> None:
    account_id = stack.account()
    said = stack("pause", account_id, "--until", "2040-01-31T09:00")
    assert (said.code, said.out) == (0, f"{account_id}  paused  until 2040-01-31 09:00:00 UTC\n")
    request_id = stack.send(account_id)
    assert "paused until 2040-01-31 09:00:00 UTC" in stack("why", request_id).out
    (row,) = [row for row in stack("accounts", "list", "--json").json if row["accountId"] == account_id]
    assert row["status"] == "paused until 2040-01-31 09:00:00 UTC"
    soon = datetime.now(UTC) + timedelta(seconds=2)
    assert stack("pause", account_id, "--until", soon.isoformat(), "--json").json["status"] == "paused"
    stack.becomes(request_id, "sent")


@pytest.mark.parametrize("command", ["pause", "resume"])
def test_an_account_that_does_not_exist_is_status_1(stack: Stack, command: str) -> None:
    for options in ((), ("--json",)):
        said = stack(command, "no-such-account", *options)
        assert (said.code, said.out) == (1, "")
        assert said.err.startswith("outbox: there is no account no-such-account: `outbox accounts list` shows them")


def test_lanes_shows_each_lane_on_one_line_also_in_a_pipe(stack: Stack) -> None:
    account_id = stack.account()
    stack.becomes(stack.send(account_id), "sent")
    said = stack("lanes")
    assert said.code == 0
    header, *rows = said.out.splitlines()
    assert header.split()[:2] == ["lane", "state"]
    assert [row.split()[0] for row in rows if account_id in row] == [f"outbox:{account_id}"]
    (row,) = [row for row in stack("lanes", "--json").json if row["lane"] == f"outbox:{account_id}"]
    assert row.keys() >= {"lane", "state", "owner", "leaseUntil", "readyAt", "nextDueAt", "pausedUntil", "holds"}


def test_lanes_shows_which_lanes_keep_failing_and_when_each_is_tried_again(stack: Stack) -> None:
    retry_at = datetime.now(UTC) + timedelta(hours=1)
    failing = {
        "state": "running",
        "owner": "w1",
        "fence": 3,
        "leaseUntil": retry_at,
        "retryAt": retry_at,
        "failures": 3,
    }
    name = f"inbound:shop__{secrets.token_hex(4)}"
    stack.write(f"lanes/{name}", failing)
    (row,) = [row for row in stack("lanes", "--json").json if row["lane"] == name]
    assert (row["failures"], datetime.fromisoformat(row["retryAt"])) == (3, retry_at)
    header, *rows = stack("lanes").out.splitlines()
    assert header.split()[-2:] == ["failures", "retryAt"]
    assert any(row.split()[0] == name for row in rows)


def test_audit_finds_nothing_wrong_after_all_this(stack: Stack) -> None:
    account_id = stack.account()
    stack.becomes(stack.send(account_id), "sent")
    said = stack("audit", "--json")
    assert (said.code, said.json) == (0, {"broken": [], "warnings": []})
    assert stack("audit").out == "every invariant holds\n"


# --- demo


def test_demo_ends_by_itself_with_nothing_lost_and_nothing_twice() -> None:
    with process("demo", "--messages", "60", "--accounts", "3", "--json") as running:
        out, _ = running.communicate(timeout=PATIENCE_SECONDS)
    assert running.returncode == 0, out
    summary = json.loads(out)
    assert (summary["messages"], summary["sent"], summary["read"]) == (60, 60, 60)
    assert (summary["lost"], summary["duplicates"], summary["failed"]) == (0, 0, 0)
    assert summary["readsPerMessage"] > 0
    assert summary["writesPerMessage"] > 0
