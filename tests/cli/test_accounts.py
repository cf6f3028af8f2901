"""`outbox accounts`: added with questions or without, tried, stored where secrets belong, and no secret ever shown."""

from __future__ import annotations

import asyncio
import json
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from google.auth.credentials import AnonymousCredentials
from google.cloud import firestore
from typer.testing import CliRunner

from firestore_outbox.cli import app
from tests.cli.support import Said, Stack, outbox, until
from tests.patience import PATIENCE_SECONDS
from tests.providers.secret_manager import PROJECT, SecretManager, secret_manager

HIDDEN = ("t0ken-of-mine", "s1gning-secret")
SECRETS = json.dumps({"token": HIDDEN[0], "webhookSecret": HIDDEN[1]})
META = json.dumps({"phoneNumberId": "{accountId}", "token": HIDDEN[0], "webhookSecret": HIDDEN[1]})


class Accounts:
    """The command on a stack; what it prints never has a secret in it."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self.env: dict[str, str | None] = {
            **stack.environment,
            "OUTBOX_SIMULATED_URL": stack.addresses["provider"],
            "OUTBOX_WHATSAPP_CLOUD_URL": f"{stack.addresses['provider']}/whatsapp_cloud/v23.0",
            "OUTBOX_CREDENTIALS": None,
            "OUTBOX_CREDENTIALS_FILE": None,
            "OUTBOX_CREDENTIALS_SECRETS": None,
        }

    def __call__(self, *arguments: str, typed: str | None = None) -> Said:
        words = ("accounts", *arguments)
        result = CliRunner().invoke(app(words), words, input=typed, env=self.env)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        for secret in HIDDEN:
            assert secret not in result.stdout + result.stderr
        return Said(result.exit_code, result.stdout, result.stderr)

    def add(self, account_id: str, *options: str, typed: str = SECRETS, provider: str = "simulated") -> Said:
        return self("add", account_id, "--provider", provider, "--secrets", "-", *options, typed=typed)

    def stored(self, path: str) -> dict[str, Any] | None:
        with pytest.MonkeyPatch.context() as patch:  # read once, when a client is made
            patch.setenv("FIRESTORE_EMULATOR_HOST", str(self.env["FIRESTORE_EMULATOR_HOST"]))
            client = firestore.Client(project="demo-outbox", credentials=AnonymousCredentials())
        found: dict[str, Any] | None = client.document(path).get().to_dict()
        client.close()
        return found


@pytest.fixture
def accounts(stack: Stack) -> Accounts:
    return Accounts(stack)


@pytest.fixture
def file(accounts: Accounts, tmp_path: Path) -> Path:
    path = tmp_path / "credentials.json"
    accounts.env["OUTBOX_CREDENTIALS_FILE"] = str(path)
    return path


def new_id() -> str:
    return f"acc-{secrets.token_hex(4)}"


@contextmanager
def google() -> Iterator[SecretManager]:
    """Secret Manager in a thread of its own: the command has this one."""
    found: list[SecretManager] = []
    ready, loop = threading.Event(), asyncio.new_event_loop()
    stop = asyncio.Event()

    async def serve() -> None:
        async with secret_manager() as served:
            found.append(served)
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    assert ready.wait(30)
    try:
        yield found[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(30)
        loop.close()


@contextmanager
def receiver() -> Iterator[tuple[str, list[str]]]:
    """An address, and the bodies that were posted to it."""
    bodies: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["content-length"])).decode())
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/send", bodies
        finally:
            server.shutdown()
            thread.join(PATIENCE_SECONDS)


# --- add


def test_a_person_is_asked_for_what_is_needed_and_the_account_sends(accounts: Accounts, file: Path) -> None:
    account_id = new_id()
    answers = ["a__b", account_id, "carrier-pigeon", "simulated", "Europe/Berlin", "0", *HIDDEN, "user-1"]
    said = accounts("add", typed="\n".join(answers) + "\n")
    assert said.code == 0, said
    assert "accountId must be 1 to 128 characters" in said.err
    assert "There is no provider 'carrier-pigeon'" in said.err
    assert "token: the simulator's token" in said.err
    lines = [line for line in said.out.splitlines() if line[:1].strip()]  # the others are what was typed
    fields = dict(line.split(maxsplit=1) for line in lines)
    assert fields["webhook"] == f"/simulated/{account_id}"
    assert accounts.stored(f"accounts/{account_id}") == {
        "provider": "simulated",
        "timezone": "Europe/Berlin",
        "pace": {"perMinute": 0, "burst": 1},
        "status": "active",
    }
    assert accounts.stored(f"accounts/{account_id}/members/user-1") == {"role": "owner", "uid": "user-1"}
    assert json.loads(file.read_text()) == {account_id: dict(zip(("token", "webhookSecret"), HIDDEN, strict=True))}
    accounts.stack.becomes(accounts.stack.send(account_id), "sent")


def test_a_program_adds_one_without_questions(accounts: Accounts, file: Path) -> None:
    account_id = new_id()
    said = accounts.add(account_id, "--per-minute", "7", "--burst", "2", "--owner", "user-2", "--json")
    assert said.code == 0, said
    assert said.json == {
        "accountId": account_id,
        "provider": "simulated",
        "providerNumber": None,
        "status": "active",
        "check": "the simulator takes every token",
        "credentials": str(file),
        "toDo": None,
        "owner": "user-2",
        "webhook": f"/simulated/{account_id}",
    }
    document = accounts.stored(f"accounts/{account_id}")
    assert document is not None
    assert document["pace"] == {"perMinute": 7, "burst": 2}


def test_an_account_gets_the_number_by_which_webhooks_find_it(accounts: Accounts, file: Path) -> None:
    one, other = new_id(), new_id()
    said = accounts.add(one, "--json", "--no-check", provider="whatsapp_cloud", typed=META)
    assert (said.json["providerNumber"], said.json["toDo"]) == (one, None)
    assert (accounts.stored(f"accounts/{one}") or {})["providerNumber"] == one
    shared = META.replace("{accountId}", one)
    said = accounts.add(other, "--json", "--no-check", provider="whatsapp_cloud", typed=shared)
    assert f"{one} has the providerNumber {one}, too" in said.json["toDo"]
    accounts.add(other, "--replace")
    assert "providerNumber" not in (accounts.stored(f"accounts/{other}") or {}), "the simulated provider names none"
    listed = {row["accountId"]: row["providerNumber"] for row in accounts("list", "--json").json}
    assert (listed[one], listed[other]) == (one, None)


def test_the_credentials_go_to_secret_manager_where_that_is_set(accounts: Accounts) -> None:
    account_id = new_id()
    with google() as served:
        accounts.env |= {"OUTBOX_CREDENTIALS_SECRETS": PROJECT, "OUTBOX_SECRETS_EMULATOR_HOST": served.address}
        said = accounts.add(account_id, "--json")
        assert said.code == 0, said
        name = f"outbox-account-{account_id}"
        assert said.json["credentials"] == f"{PROJECT}/secrets/{name}/versions/1"
        assert json.loads(served.secrets[name][-1]) == json.loads(SECRETS)
        assert accounts("check", account_id).code == 0


def test_what_belongs_in_the_environment_is_named_and_not_shown(accounts: Accounts) -> None:
    said = accounts.add(new_id(), "--json")
    assert said.code == 0, said
    assert said.json["credentials"] is None
    assert "OUTBOX_CREDENTIALS_FILE" in said.json["toDo"]


def test_credentials_that_do_not_work_store_nothing(accounts: Accounts, file: Path) -> None:
    account_id = new_id()
    order = {"credentials": "revoked"}
    url = f"{accounts.stack.addresses['provider']}/_sim/accounts/{account_id}"
    httpx.put(url, json=order, trust_env=False, timeout=PATIENCE_SECONDS).raise_for_status()
    said = accounts.add(account_id, provider="whatsapp_cloud", typed=META)
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith("outbox: the credentials do not work, and nothing was stored: ")
    assert accounts.stored(f"accounts/{account_id}") is None
    assert not file.exists()
    assert accounts.add(account_id, "--no-check", provider="whatsapp_cloud", typed=META).code == 0
    checked = accounts("check", account_id)
    assert checked.code == 1
    assert f"{account_id}  does not work: " in checked.out


def test_credentials_that_work_are_tried_at_the_provider(accounts: Accounts, file: Path) -> None:
    account_id = new_id()
    said = accounts.add(account_id, "--json", provider="whatsapp_cloud", typed=META)
    assert said.code == 0, said
    assert said.json["check"].startswith("sends as ")


def test_an_account_that_exists_is_changed_only_when_that_is_meant(accounts: Accounts, file: Path) -> None:
    account_id = new_id()
    accounts.add(account_id)
    said = accounts.add(account_id, "--per-minute", "3")
    assert (said.code, said.out) == (1, "")
    assert f"the account {account_id} exists already; --replace changes it" in said.err
    accounts.stack("pause", account_id)
    said = accounts.add(account_id, "--per-minute", "3", "--replace", "--json")
    assert (said.code, said.json["status"]) == (0, "paused")
    assert said.json["toDo"] == f"it is paused: outbox resume {account_id}"
    document = accounts.stored(f"accounts/{account_id}")
    assert document is not None
    assert (document["pace"]["perMinute"], document["status"]) == (3, "paused")


@pytest.mark.parametrize(
    ("options", "typed", "words"),
    [
        (("x__y", "--provider", "simulated"), SECRETS, "without two underscores in"),
        (("acc-1", "--provider", "pigeon"), SECRETS, "it must be one of interakt, signed_webhook, simulated"),
        (("acc-1",), SECRETS, "required, because --secrets turns questions off"),
        (("acc-1", "--provider", "simulated", "--timezone", "Mars/North"), SECRETS, "timezone must be"),
        (("acc-1", "--provider", "simulated", "--owner", "a/b"), SECRETS, "a uid has"),
        (("acc-1", "--provider", "simulated"), "t0ken-of-mine", "the content is not JSON"),
        (("acc-1", "--provider", "simulated"), '["t0ken-of-mine"]', "a JSON object of printable ASCII strings"),
        (("acc-1", "--provider", "simulated"), '{"token": "t0ken-of-mine\\n"}', "printable ASCII strings"),
        (("acc-1", "--provider", "simulated"), '{"token": "t0ken-of-mine"}', "it lacks webhookSecret"),
        (("acc-1", "--provider", "simulated"), '{"tocken": "x"}', "it has tocken; this provider knows token"),
    ],
)
def test_a_mistake_is_reported_before_anything_is_stored(
    accounts: Accounts, file: Path, options: tuple[str, ...], typed: str, words: str
) -> None:
    said = accounts("add", *options, "--secrets", "-", typed=typed)
    assert (said.code, said.out) == (2, "")
    assert words in " ".join(said.err.replace("│", " ").split())
    assert not file.exists()


def test_a_file_of_secrets_that_is_not_there_is_a_mistake_too(accounts: Accounts) -> None:
    said = accounts("add", "acc-1", "--provider", "simulated", "--secrets", "/no/such/file")
    assert said.code == 2
    assert "the file cannot be read (FileNotFoundError)" in said.err


def test_a_user_who_walks_away_has_stored_nothing(accounts: Accounts, file: Path) -> None:
    account_id = new_id()
    assert accounts("add", account_id, typed="simulated\nUTC\n").code == 1
    assert accounts.stored(f"accounts/{account_id}") is None
    assert not file.exists()


# --- list and check


def test_a_list_shows_which_accounts_lack_credentials(accounts: Accounts, file: Path) -> None:
    complete, bare = new_id(), accounts.stack.account()
    accounts.add(complete)
    rows = {row["accountId"]: row for row in accounts("list", "--json").json}
    assert rows[complete]["credentials"] == "there"
    assert rows[bare]["credentials"] == "missing token, webhookSecret"
    shown = accounts("list").out.splitlines()
    assert shown[0].split() == ["accountId", "provider", "status", "timezone", "perMinute", "credentials"]
    assert any(line.split()[:3] == [complete, "simulated", "active"] for line in shown)


def test_a_check_says_whether_it_works_and_what_is_missing(accounts: Accounts, file: Path) -> None:
    account_id, bare = new_id(), accounts.stack.account()
    accounts.add(account_id)
    assert accounts("check", account_id).out == f"{account_id}  works: the simulator takes every token\n"
    said = accounts("check", bare)
    assert (said.code, said.out) == (1, "")
    assert f"the credentials of {bare} lack token, webhookSecret" in said.err
    assert "there is no account unknown: `outbox accounts list` shows them" in accounts("check", "unknown").err


def test_in_a_terminal_with_the_stacks_exports_accounts_have_the_stacks_credentials(stack: Stack) -> None:
    account_id = stack.account(provider="whatsapp_cloud")
    (row,) = [row for row in stack("accounts", "list", "--json").json if row["accountId"] == account_id]
    assert row["credentials"] == "there"
    said = stack("accounts", "check", account_id)
    assert said.code == 0, said
    assert "sends as " in said.out, "the simulator answered, not the provider itself"


def test_in_a_terminal_without_the_exports_a_missing_credential_names_the_fix(stack: Stack) -> None:
    account_id = stack.account()
    bare = {name: value for name, value in stack.environment.items() if name != "OUTBOX_CREDENTIALS_FILE"}
    said = outbox("accounts", "check", account_id, env=bare)
    assert said.code == 1
    assert "run the export line that `outbox dev` prints, which sets OUTBOX_CREDENTIALS_FILE" in said.err


def test_without_secrets_of_its_own_an_account_uses_the_stacks(stack: Stack) -> None:
    account_id = new_id()
    said = stack("accounts", "add", account_id, "--provider", "simulated", "--no-secrets", "--json")
    assert said.code == 0, said
    assert said.json["credentials"] == "those of all accounts"
    stack.becomes(stack.send(account_id), "sent")
    bare = {name: value for name, value in stack.environment.items() if name != "OUTBOX_CREDENTIALS_FILE"}
    said = outbox("accounts", "add", new_id(), "--provider", "simulated", "--no-secrets", env=bare)
    assert (said.code, said.out) == (1, "")
    assert "the credentials of all accounts (the entry *) lack token, webhookSecret; run the export line" in said.err


def test_an_accounts_own_receiver_is_called_and_not_the_simulator(stack: Stack, tmp_path: Path) -> None:
    account_id, secrets_file = new_id(), tmp_path / "secrets.json"
    with receiver() as (url, requests):
        secrets_file.write_text(json.dumps({"url": url, "signingSecret": HIDDEN[1], "webhookSecret": HIDDEN[1]}))
        words = ("--provider", "signed_webhook", "--secrets", str(secrets_file), "--no-check")
        said = stack("accounts", "add", account_id, *words, "--json")
        assert said.code == 0, said
        request_id = stack.send(account_id)
        until(lambda: [one for one in requests if request_id in one], bool, "the call of the receiver")
    assert stack.calls(account_id) == []


def test_a_broken_file_of_credentials_is_said_in_words(accounts: Accounts, file: Path) -> None:
    file.write_text("t0ken-of-mine")
    said = accounts("check", accounts.stack.account())
    assert (said.code, said.out) == (1, "")
    assert said.err.endswith("credentials.json is not JSON\n")


def test_a_webhook_signed_with_the_new_secret_is_taken(accounts: Accounts, file: Path) -> None:
    """The functions of the stack have credentials for everybody; with the account's own secret in place they agree."""
    account_id = new_id()
    typed = json.dumps({"token": "local", "webhookSecret": "simulated-webhook-secret"})
    assert accounts.add(account_id, typed=typed).code == 0
    request_id = accounts.stack.send(account_id)
    accounts.stack.becomes(request_id, "sent")
    until(lambda: accounts.stack.status(request_id)["message"], lambda status: status == "read", "read")
