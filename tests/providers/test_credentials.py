"""Secrets: found, replaced, missing, broken; and never shown."""

from __future__ import annotations

import json
import logging
import traceback
from pathlib import Path

import pytest

from firestore_outbox.providers.built_in import ProviderSettings, providers
from firestore_outbox.providers.credentials import (
    Credentials,
    CredentialsUnavailable,
    FileCredentials,
    FixedCredentials,
    credentials_from,
)
from firestore_outbox.providers.outcome import NotConnected
from tests.providers.support import LIMIT, OutOfReach, message

ENTRIES = {"acme": {"token": "hunter2"}, "*": {"token": "for-all"}}


def test_credentials_show_their_names_and_never_their_values() -> None:
    it = Credentials({"token": "hunter2", "webhookSecret": "hunter3"})
    for shown in (repr(it), str(it), f"{it}", f"{it!r}", repr([it]), repr(FixedCredentials(ENTRIES))):
        assert "hunter" not in shown
    assert repr(it) == "Credentials(token=***, webhookSecret=***)"
    assert it.get("token") == "hunter2"


async def test_an_account_without_an_entry_gets_everybodys_or_none() -> None:
    assert (await FixedCredentials(ENTRIES).resolve("acme")).get("token") == "hunter2"
    assert (await FixedCredentials(ENTRIES).resolve("other")).get("token") == "for-all"
    assert (await FixedCredentials({}).resolve("other")).get("token") is None


async def test_the_environment_holds_them_or_names_a_file_and_the_file_wins(tmp_path: Path) -> None:
    file = tmp_path / "credentials.json"
    file.write_text(json.dumps({"acme": {"token": "from file"}}))
    environment = {"OUTBOX_CREDENTIALS": json.dumps(ENTRIES)}
    assert (await credentials_from(environment).resolve("acme")).get("token") == "hunter2"
    environment["OUTBOX_CREDENTIALS_FILE"] = str(file)
    assert (await credentials_from(environment).resolve("acme")).get("token") == "from file"
    assert (await credentials_from({}).resolve("acme")).get("token") is None


async def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "credentials.json"
    file.write_text(json.dumps(ENTRIES))
    resolver = FileCredentials(file)
    assert (await resolver.resolve("acme")).get("token") == "hunter2"
    file.write_text(json.dumps({"acme": {"token": "replaced"}}))
    assert (await resolver.resolve("acme")).get("token") == "replaced"


@pytest.mark.parametrize(
    "content",
    [
        b'{"acme": {"token": "hunter2"}',
        b'["hunter2"]',
        b'{"acme": "hunter2"}',
        b'{"acme": {"token": "hunter2\\n"}}',
        b"hunter2\xff",
    ],
)
async def test_a_broken_file_says_so_and_quotes_nothing_of_it(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "credentials.json"
    file.write_bytes(content)
    with pytest.raises(CredentialsUnavailable) as refused:
        await FileCredentials(file).resolve("acme")
    assert str(file) in str(refused.value)
    assert refused.value.__cause__ is None
    assert "hunter2" not in "".join(traceback.format_exception(refused.value, chain=True))


async def test_a_missing_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(CredentialsUnavailable, match="cannot be read"):
        await FileCredentials(tmp_path / "none.json").resolve("acme")


async def test_secrets_out_of_reach_pause_the_account_instead_of_failing_its_message(
    caplog: pytest.LogCaptureFixture,
) -> None:
    adapters = providers(ProviderSettings(), credentials=OutOfReach())
    with caplog.at_level(logging.ERROR):
        outcome = await adapters.send("simulated", message(), limit=LIMIT)
    assert isinstance(outcome, NotConnected)
    assert [record.__dict__["fields"]["action"] for record in caplog.records] == ["credentials_unavailable"]
