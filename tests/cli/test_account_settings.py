"""`outbox accounts set|show|members|rotate|remove` on a running stack."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

from firestore_outbox.local.simulators.webhooks import SIGNATURE_HEADER, signed
from tests.cli.support import Stack, outbox
from tests.cli.test_accounts import new_id
from tests.patience import PATIENCE_SECONDS
from tests.web.service.support import now


def test_settings_are_changed_shown_and_logged(stack: Stack) -> None:
    account = stack.account()
    said = stack(
        "accounts", "set", account, "pace.perMinute=20", "onUncertain=resend", "timezone=Europe/Berlin", "--json"
    )
    assert said.code == 0, said
    assert said.json["changed"]["pace.perMinute"] == {"before": 0, "after": 20}
    stored = stack.read(f"accounts/{account}")
    assert (stored["pace"]["perMinute"], stored["onUncertain"], stored["timezone"]) == (20, "resend", "Europe/Berlin")
    shown = stack("accounts", "show", account, "--json").json
    assert shown["settings"]["onUncertain"] == "resend"
    assert (shown["actions"][0]["action"], shown["actions"][0]["by"]) == ("set", "command line")
    assert "pace.perMinute" in stack("accounts", "show", account).out


def test_a_wrong_setting_changes_nothing_and_says_what_is_known(stack: Stack) -> None:
    account = stack.account()
    before = stack.read(f"accounts/{account}")
    for words, hint in (
        (("concurrency=0",), "concurrency"),
        (("colour=red",), "there are: "),
        (("status=paused",), "outbox pause"),
    ):
        said = stack("accounts", "set", account, *words)
        assert said.code == 2
        assert hint in " ".join(said.err.split())
    assert stack.read(f"accounts/{account}") == before


def test_retention_is_set_shown_and_switched_off(stack: Stack) -> None:
    account = stack.account()
    said = stack("accounts", "set", account, "--retention-days", "90", "concurrency=2", "--json")
    assert said.code == 0, said
    assert said.json["changed"]["retentionDays"] == {"before": None, "after": 90}
    assert stack.read(f"accounts/{account}")["retentionDays"] == 90
    assert stack("accounts", "show", account, "--json").json["settings"]["retentionDays"] == 90
    for wrong in ("0", "3651", "7.5", "soon"):
        said = stack("accounts", "set", account, "--retention-days", wrong)
        assert (said.code, "retentionDays" in said.err) == (2, True), said
    assert stack("accounts", "set", account).code == 2
    assert stack.read(f"accounts/{account}")["retentionDays"] == 90
    assert stack("accounts", "set", account, "--retention-days", "none").code == 0
    assert "retentionDays" not in stack.read(f"accounts/{account}")


def test_members_are_added_listed_and_removed_except_the_last_owner(stack: Stack) -> None:
    account = stack.account()
    assert stack("accounts", "members", account, "olga", "--role", "owner").code == 0
    said = stack("accounts", "members", account, "bob", "--role", "agent", "--json")
    assert said.json["members"] == {"olga": "owner", "bob": "agent"}
    last = stack("accounts", "members", account, "olga", "--remove")
    assert (last.code, "only owner" in last.err) == (1, True)
    assert stack("accounts", "members", account, "bob", "--remove", "--json").json["members"] == {"olga": "owner"}


def test_an_account_is_removed_with_members_and_credentials_but_not_while_messages_wait(
    stack: Stack, tmp_path: Path
) -> None:
    account = stack.account(status="paused")
    stack.write(f"accounts/{account}/members/olga", {"role": "owner"})
    file = tmp_path / "credentials.json"
    file.write_text(json.dumps({account: {"token": "t"}, "*": {"token": "t"}}))
    env = {**stack.environment, "OUTBOX_CREDENTIALS_FILE": str(file)}
    request_id = stack.send(account)
    refused = outbox("accounts", "remove", account, "--yes", env=env)
    assert (refused.code, "wait to be sent" in refused.err) == (1, True)
    assert stack("cancel", request_id).code == 0
    assert outbox("accounts", "remove", account, "--yes", env=env).code == 0
    assert (stack.read(f"accounts/{account}"), stack.read(f"accounts/{account}/members/olga")) == ({}, {})
    assert set(json.loads(file.read_text())) == {"*"}


@pytest.mark.parametrize(
    "command", [("set", "concurrency=2"), ("show",), ("members",), ("remove", "--yes"), ("rotate",)]
)
def test_an_account_that_does_not_exist_is_named(stack: Stack, command: tuple[str, ...]) -> None:
    said = stack("accounts", command[0], "no-such", *command[1:])
    assert (said.code, "there is no account no-such" in said.err) == (1, True)


def test_during_a_rotation_webhooks_of_both_secrets_are_accepted_and_after_it_one(stack: Stack) -> None:
    account = new_id()
    stack.write(f"accounts/{account}", {"provider": "simulated", "status": "active"})
    body = json.dumps({"events": []}).encode()

    def status(secret: str) -> int:
        headers = {SIGNATURE_HEADER: signed(secret, body, now())}
        url = f"{stack.addresses['functions']}/simulated/{account}"
        return httpx.post(url, content=body, headers=headers, trust_env=False, timeout=PATIENCE_SECONDS).status_code

    old = "simulated-webhook-secret"
    assert (status(old), status("another")) == (200, 401)
    new = stack("accounts", "rotate", account, "--json").json["webhookSecret"]
    assert (status(old), status(new), status("another")) == (200, 200, 401)
    finished = stack("accounts", "rotate", account, "--finish")
    assert (finished.code, "The secret before it is forgotten." in finished.out) == (0, True)
    made = stack("accounts", "rotate", account, "--notify", "--json").json
    assert len(made["notifySecret"]) == 64
    assert "webhookSecret" not in made
    assert stack("accounts", "rotate", account, "--notify", "--finish").code == 2
    assert stack("accounts", "set", account, "notify.webhook=https://example.com/outbox").code == 0
    assert stack("accounts", "set", account, "notify.webhook=ftp://example.com").code != 0
    assert (status(old), status(new)) == (401, 200)
    shown = " ".join(stack("accounts", "rotate", account).out.split())
    assert f"The secret before it is valid until: outbox accounts rotate {account} --finish" in shown
