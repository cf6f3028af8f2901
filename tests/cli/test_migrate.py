"""`outbox migrate` on a running stack: what it lists, what it changes, and the way back."""

from __future__ import annotations

import json
from typing import Any

from tests.cli.support import Said, Stack, outbox

SECRETS = {"phoneNumberId": "1055", "token": "t", "session": "till-1", "apiKey": "k", "webhookSecret": "w"}


def migrate(stack: Stack, *words: str, secrets: dict[str, str] | None = None) -> Said:
    credentials = json.dumps({"*": SECRETS if secrets is None else secrets})
    return outbox(
        "migrate", *words, env={**stack.environment, "OUTBOX_CREDENTIALS": credentials, "OUTBOX_CREDENTIALS_FILE": None}
    )


def changes(said: Said) -> dict[str, dict[str, Any]]:
    """Of all migrations, by document."""
    return {change["path"]: change["fields"] for report in said.json for change in report["changes"]}


def test_a_dry_run_lists_the_changes_the_run_makes_them_and_the_way_back_undoes_them(stack: Stack) -> None:
    number = stack.account(provider="whatsapp_cloud")
    session = stack.account(provider="waha")
    other = stack.account()
    wanted = {f"accounts/{number}": {"providerNumber": "1055"}, f"accounts/{session}": {"providerNumber": "till-1"}}
    for _ in range(2):
        planned = migrate(stack, "--dry-run", "--json")
        assert planned.code == 0
        assert wanted.items() <= changes(planned).items()
        assert f"accounts/{other}" not in changes(planned)
    done = migrate(stack, "provider-number", "--json")
    assert wanted.items() <= changes(done).items()
    assert changes(migrate(stack, "--dry-run", "--json")) == {}, "nothing is left to change"
    undone = migrate(stack, "provider-number", "--back", "--json")
    assert {path: {"providerNumber": None} for path in wanted}.items() <= changes(undone).items()
    assert wanted.items() <= changes(migrate(stack, "--dry-run", "--json")).items()


def test_without_json_each_change_is_a_line(stack: Stack) -> None:
    account_id = stack.account(provider="whatsapp_cloud")
    said = migrate(stack, "--dry-run")
    assert f"  accounts/{account_id}  providerNumber = 1055" in said.out.splitlines()
    assert "would change" in said.out


def test_an_account_that_a_person_has_to_look_at_is_named_and_status_1(stack: Stack) -> None:
    account_id = stack.account(provider="whatsapp_cloud")
    said = migrate(stack, "--dry-run", secrets={"token": "t"})
    assert said.code == 1
    assert f"accounts/{account_id}  not changed: its credentials have no phoneNumberId" in said.out
