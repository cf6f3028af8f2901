"""`outbox accounts connect`: from the command to a linked phone, on a running stack with the WAHA simulator."""

from __future__ import annotations

import json
from typing import Any

import httpx

from firestore_outbox.cli.account_connection import terminal_code
from tests.cli.support import Stack, process, until
from tests.cli.test_accounts import new_id
from tests.patience import PATIENCE_SECONDS


def waha_account(stack: Stack) -> str:
    """One whose gateway is the simulator, which has no session of it."""
    account = new_id()
    order(stack, account, exists=False, paired=False, status="STOPPED")
    gateway = {"baseUrl": f"{stack.addresses['provider']}/waha", "apiKey": "local", "session": account}
    secrets = json.dumps({**gateway, "webhookSecret": "of this account alone"})
    words = ("accounts", "add", account, "--provider=waha", "--secrets=-", "--no-check")
    with process(*words, env=stack.environment, typed=secrets) as add:
        assert add.wait(PATIENCE_SECONDS) == 0
    return account


def order(stack: Stack, account: str, **order: Any) -> None:
    url = f"{stack.addresses['provider']}/_sim/waha/sessions/{account}"
    httpx.put(url, json=order, trust_env=False, timeout=PATIENCE_SECONDS).raise_for_status()


def test_a_phone_is_linked_from_the_terminal_and_a_message_goes(stack: Stack) -> None:
    account = waha_account(stack)
    with process("accounts", "connect", account, env=stack.environment) as connecting:
        code = until(lambda: stack.read(f"accounts/{account}/session/qr").get("code"), bool, "a code")
        order(stack, account, scan=True)
        out, _ = connecting.communicate(timeout=PATIENCE_SECONDS)
        assert connecting.returncode == 0, out
    assert terminal_code(str(code)).splitlines()[3] in out
    assert out.rstrip().endswith("connected")
    assert stack.read(f"accounts/{account}/session/current")["state"] == "connected"
    stack.becomes(stack.send(account, to="491511234567"), "sent")
    shown = stack("sessions", "--json").json
    assert (account, "hot") in [(row["accountId"], row["state"]) for row in shown["sessions"]]
    assert shown["sets"] == [{"set": "default", "slots": shown["slots"], "free": shown["free"]}]
    assert f"default: {shown['free']} of {shown['slots']} slots are free" in stack("sessions").out
    assert [one["action"] for one in stack("accounts", "show", account, "--json").json["actions"]] == ["connect"]


def test_an_account_is_disconnected_at_the_gateway(stack: Stack) -> None:
    account = waha_account(stack)
    assert stack("accounts", "connect", account, "--no-wait", "--json").json["state"] == "starting"
    until(lambda: stack.read(f"accounts/{account}/session/qr").get("code"), bool, "a code")
    order(stack, account, scan=True)
    until(lambda: stack.read(f"accounts/{account}/session/current")["state"], lambda it: it == "connected", "connected")
    assert stack("accounts", "disconnect", account, "--json").json["state"] == "disconnected"

    def paired() -> bool:
        url = f"{stack.addresses['provider']}/_sim/waha/sessions"
        return bool(httpx.get(url, trust_env=False, timeout=PATIENCE_SECONDS).json()["sessions"][account]["paired"])

    until(paired, lambda it: it is False, "the logout")
