"""Credentials from Secret Manager: found, kept, replaced, missing, refused; and an outage without effect."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import traceback
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firestore_outbox.providers import secret_manager as ours
from firestore_outbox.providers.built_in import ProviderSettings, providers
from firestore_outbox.providers.credentials import CredentialsUnavailable, LookupsExhausted, credentials_from
from firestore_outbox.providers.lookups import LOOKUPS_PER_SECOND, MOST_LOOKUPS
from firestore_outbox.providers.outcome import AuthFailed
from firestore_outbox.providers.registry import Refused
from firestore_outbox.providers.secret_manager import SecretManagerCredentials, connect, secret_id
from firestore_outbox.providers.store_secrets import FileKeeper, Kept, NotKept, keeper_from
from tests.patience import PATIENCE_SECONDS
from tests.providers.secret_manager import PROJECT, SecretManager, secret_manager
from tests.providers.support import LIMIT, message

HUNTER = json.dumps({"token": "hunter2"})
REPLACED = json.dumps({"token": "replaced"})


@dataclass
class Clock:
    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Setting:
    google: SecretManager
    resolver: SecretManagerCredentials
    clock: Clock = field(default_factory=Clock)

    async def token(self, account_id: str = "acme") -> str | None:
        return (await self.resolver.resolve(account_id)).get("token")


@pytest.fixture
async def setting() -> AsyncIterator[Setting]:
    clock = Clock()
    async with secret_manager() as google:
        google.put("acme", HUNTER)
        resolver = SecretManagerCredentials(connect(PROJECT, google.address), clock)
        yield Setting(google, resolver, clock)
        await resolver.close()


# --- found and kept


async def test_an_accounts_secret_is_found_and_kept_for_five_minutes(setting: Setting) -> None:
    for _ in range(10):
        assert await setting.token() == "hunter2"
    assert setting.google.asked == ["access outbox-account-acme"]
    setting.clock.now += 299
    assert await setting.token() == "hunter2"
    assert len(setting.google.asked) == 1
    setting.clock.now += 2
    setting.google.put("acme", REPLACED)
    assert await setting.token() == "replaced"
    assert len(setting.google.asked) == 2


async def test_many_who_ask_at_once_are_one_question(setting: Setting) -> None:
    setting.google.answers.clear()
    asking = [asyncio.create_task(setting.token()) for _ in range(50)]
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not setting.google.asked:  # noqa: ASYNC110 - the server has no signal for a question
            await asyncio.sleep(0.01)
        setting.google.answers.set()
        assert set(await asyncio.gather(*asking)) == {"hunter2"}
    assert len(setting.google.asked) == 1


async def test_one_who_gives_up_does_not_end_the_question_of_the_others(setting: Setting) -> None:
    setting.google.answers.clear()
    first, second = asyncio.create_task(setting.token()), asyncio.create_task(setting.token())
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not setting.google.asked:  # noqa: ASYNC110 - the server has no signal for a question
            await asyncio.sleep(0.01)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    setting.google.answers.set()
    assert await second == "hunter2"


async def test_accounts_have_secrets_of_their_own(setting: Setting) -> None:
    setting.google.put("other", REPLACED)
    assert (await setting.token("acme"), await setting.token("other")) == ("hunter2", "replaced")


# --- refused


async def test_credentials_that_the_provider_refused_are_looked_up_again_at_once(setting: Setting) -> None:
    assert await setting.token() == "hunter2"
    setting.google.put("acme", REPLACED)
    setting.resolver.refused("acme")
    assert await setting.token() == "replaced"


async def test_a_send_that_the_provider_refuses_makes_the_next_one_look_again(setting: Setting) -> None:
    setting.google.put("acme", json.dumps({"webhookSecret": "no token"}))
    registry = providers(ProviderSettings(), credentials=setting.resolver)
    assert isinstance(await registry.send("simulated", message(), limit=LIMIT), AuthFailed)
    setting.google.put("acme", REPLACED)
    assert await setting.token() == "replaced"
    await registry.close()


async def test_a_refusal_of_an_unused_account_is_nothing(setting: Setting) -> None:
    setting.resolver.refused("acme")
    assert await setting.token() == "hunter2"


# --- missing


async def test_an_account_without_a_secret_has_empty_credentials_and_is_asked_for_again_soon(setting: Setting) -> None:
    assert await setting.token("new") is None
    assert await setting.token("new") is None
    assert len(setting.google.asked) == 1
    setting.google.put("new", HUNTER)
    setting.clock.now += 31
    assert await setting.token("new") == "hunter2"


async def test_a_disabled_secret_is_none(setting: Setting) -> None:
    setting.google.disabled.add("outbox-account-acme")
    assert await setting.token() is None


async def test_names_that_anybody_can_ask_for_do_not_fill_the_memory(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ours, "MOST_MISSING", 10)
    assert await setting.token() == "hunter2"
    for number in range(30):
        await setting.token(f"unknown-{number}")
    assert (list(setting.resolver._copies), len(setting.resolver._missing)) == (["acme"], 10)


# --- names that anonymous callers chose


async def unproven(setting: Setting, account_id: str) -> str | None:
    return (await setting.resolver.resolve_unproven(account_id)).get("token")


async def test_a_thousand_unknown_names_cost_few_questions_and_leave_the_good_copies(
    setting: Setting, caplog: pytest.LogCaptureFixture
) -> None:
    assert await setting.token() == "hunter2"
    limited = 0
    with caplog.at_level(logging.WARNING):
        for number in range(1_000):
            try:
                assert await unproven(setting, f"made-up-{number}") is None
            except LookupsExhausted:
                limited += 1
    assert len(setting.google.asked) == 1 + MOST_LOOKUPS
    assert limited == 1_000 - MOST_LOOKUPS
    assert [record.__dict__["fields"]["action"] for record in caplog.records] == ["unknown_accounts_limited"]
    assert (await unproven(setting, "acme"), await setting.token()) == ("hunter2", "hunter2")
    assert len(setting.google.asked) == 1 + MOST_LOOKUPS, "its copy is still there"
    setting.clock.now += 301
    assert await unproven(setting, "acme") == "hunter2", "and is fetched again, whatever strangers ask for"


async def test_the_same_unknown_name_costs_one_question(setting: Setting) -> None:
    for _ in range(100):
        assert await unproven(setting, "made-up") is None
    assert len(setting.google.asked) == 1


async def test_unknown_names_are_looked_up_again_when_time_has_passed(setting: Setting) -> None:
    for number in range(MOST_LOOKUPS):
        await unproven(setting, f"made-up-{number}")
    setting.google.put("new", HUNTER)
    with pytest.raises(LookupsExhausted):
        await unproven(setting, "new")
    setting.clock.now += 1 / LOOKUPS_PER_SECOND
    assert await unproven(setting, "new") == "hunter2"


async def test_names_that_exist_use_nothing_up(setting: Setting) -> None:
    for number in range(3 * MOST_LOOKUPS):
        setting.google.put(f"shop-{number}", HUNTER)
        assert await unproven(setting, f"shop-{number}") == "hunter2"


async def test_an_account_of_ours_does_not_wait_for_names_of_strangers(setting: Setting) -> None:
    setting.google.answers.clear()
    flood = [asyncio.create_task(unproven(setting, f"made-up-{number}")) for number in range(MOST_LOOKUPS)]
    async with asyncio.timeout(PATIENCE_SECONDS):
        while len(setting.google.asked) < ours.UNPROVEN_AT_ONCE:  # noqa: ASYNC110 - the server has no signal for it
            await asyncio.sleep(0.01)
        asking = asyncio.create_task(setting.token())
        while "access outbox-account-acme" not in setting.google.asked:  # noqa: ASYNC110 - the same
            await asyncio.sleep(0.01)
    assert len(setting.google.asked) == ours.UNPROVEN_AT_ONCE + 1, "the others of the flood wait for their places"
    setting.google.answers.set()
    assert await asking == "hunter2"
    await asyncio.gather(*flood)


async def test_a_webhook_of_a_provider_that_is_not_here_asks_for_no_secret(setting: Setting) -> None:
    registry = providers(ProviderSettings(), credentials=setting.resolver)
    now = datetime.now(UTC)
    assert isinstance(await registry.receive("pigeon", "acme", {}, b"{}", now=now), Refused)
    assert isinstance(await registry.handshake("pigeon", "acme", {}), Refused)
    assert setting.google.asked == []
    await registry.close()


# --- an outage


async def test_a_copy_is_good_for_an_hour_while_secret_manager_does_not_answer(
    setting: Setting, caplog: pytest.LogCaptureFixture
) -> None:
    assert await setting.token() == "hunter2"
    setting.google.refuses = grpc.StatusCode.INTERNAL
    setting.clock.now += 301
    with caplog.at_level(logging.WARNING):
        for _ in range(20):
            assert await setting.token() == "hunter2"
    assert len(setting.google.asked) == 2, "it is not asked for every message"
    assert [record.__dict__["fields"]["action"] for record in caplog.records] == ["credentials_stale"]
    setting.clock.now += 3200
    assert await setting.token() == "hunter2"
    setting.clock.now += 200
    with pytest.raises(CredentialsUnavailable, match="does not answer"):
        await setting.token()
    setting.google.refuses = None
    assert await setting.token() == "hunter2"


async def test_without_a_copy_credentials_are_unavailable(setting: Setting) -> None:
    setting.google.refuses = grpc.StatusCode.INTERNAL
    with pytest.raises(CredentialsUnavailable, match="does not answer"):
        await setting.token()


async def test_a_secret_manager_that_says_nothing_is_not_waited_for(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ours, "ANSWER_SECONDS", 0.2)
    setting.google.answers.clear()
    async with asyncio.timeout(PATIENCE_SECONDS):
        with pytest.raises(CredentialsUnavailable, match="does not answer"):
            await setting.token()


async def test_nothing_at_the_address_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ours, "ANSWER_SECONDS", 0.5)
    resolver = SecretManagerCredentials(connect(PROJECT, "127.0.0.1:1"))
    with pytest.raises(CredentialsUnavailable, match="does not answer"):
        await resolver.resolve("acme")
    await resolver.close()


async def test_a_short_outage_is_bridged(setting: Setting) -> None:
    setting.google.refuses = grpc.StatusCode.UNAVAILABLE
    setting.google.answers.clear()
    asking = asyncio.create_task(setting.token())
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not setting.google.asked:  # noqa: ASYNC110 - the server has no signal for a question
            await asyncio.sleep(0.01)
        setting.google.answers.set()
        while len(setting.google.asked) < 2:  # noqa: ASYNC110 - the same
            await asyncio.sleep(0.01)
        setting.google.refuses = None
        assert await asking == "hunter2"


async def test_a_lack_of_rights_says_which_are_needed(setting: Setting) -> None:
    setting.google.refuses = grpc.StatusCode.PERMISSION_DENIED
    with pytest.raises(CredentialsUnavailable, match=r"roles/secretmanager\.secretAccessor"):
        await setting.token()


# --- broken ones


@pytest.mark.parametrize("content", ["hunter2", '["hunter2"]', '{"token": 2}', '{"token": "hunter2\\n"}', "[" * 99_999])
async def test_a_secret_that_is_no_object_of_texts_says_so_and_quotes_nothing_of_it(
    setting: Setting, content: str
) -> None:
    setting.google.put("acme", content)
    with pytest.raises(CredentialsUnavailable) as refused:
        await setting.token()
    assert "outbox-account-acme" in str(refused.value)
    assert "hunter2" not in "".join(traceback.format_exception(refused.value, chain=True))


async def test_a_secret_that_is_no_text_says_so(setting: Setting) -> None:
    setting.google.secrets["outbox-account-acme"] = [b"\xff\xfe"]
    with pytest.raises(CredentialsUnavailable, match="is not text"):
        await setting.token()


# --- names


_ids = st.text(min_size=1, max_size=128).filter(lambda text: "__" not in text and "/" not in text)


@given(one=_ids, other=_ids)
def test_different_accounts_have_different_secrets_with_names_that_google_takes(one: str, other: str) -> None:
    for account_id in (one, other):
        name = secret_id(account_id)
        assert len(name) <= 255
        assert name.isascii()
        assert all(letter.isalnum() or letter in "-_" for letter in name)
    assert (secret_id(one) == secret_id(other)) == (one == other)


def test_a_usual_account_keeps_its_name() -> None:
    assert secret_id("my_shop-1") == "outbox-account-my_shop-1"
    assert secret_id("shop.de") == "outbox-account-shop__2ede"


# --- which place counts


async def test_the_environment_names_the_project_and_what_is_local_wins() -> None:
    async with secret_manager() as google:
        google.put("acme", HUNTER)
        environment = {"OUTBOX_CREDENTIALS_SECRETS": PROJECT, "OUTBOX_SECRETS_EMULATOR_HOST": google.address}
        resolver = credentials_from(environment)
        assert (await resolver.resolve("acme")).get("token") == "hunter2"
        await resolver.close()
        local = credentials_from({**environment, "OUTBOX_CREDENTIALS": '{"acme": {"token": "local"}}'})
        assert (await local.resolve("acme")).get("token") == "local"


@pytest.mark.parametrize("parent", ["demo-outbox", "projects/", "projects/a/secrets/b", "projects/A b"])
def test_a_project_that_is_none_is_refused_in_words(parent: str) -> None:
    with pytest.raises(CredentialsUnavailable, match="must be projects/PROJECT"):
        credentials_from({"OUTBOX_CREDENTIALS_SECRETS": parent})


# --- put there


async def test_what_is_kept_is_found_and_a_second_time_replaces_it() -> None:
    async with secret_manager() as google:
        environment = {"OUTBOX_CREDENTIALS_SECRETS": PROJECT, "OUTBOX_SECRETS_EMULATOR_HOST": google.address}
        keeper, resolver = keeper_from(environment), credentials_from(environment)
        first = await keeper.keep("acme", {"token": "hunter2"})
        assert first == Kept(f"{PROJECT}/secrets/outbox-account-acme/versions/1")
        assert (await resolver.resolve("acme")).get("token") == "hunter2"
        second = await keeper.keep("acme", {"token": "replaced"})
        assert second == Kept(f"{PROJECT}/secrets/outbox-account-acme/versions/2")
        resolver.refused("acme")
        assert (await resolver.resolve("acme")).get("token") == "replaced"
        await resolver.close()


async def test_a_project_that_is_not_there_is_said_so() -> None:
    async with secret_manager() as google:
        keeper = keeper_from(
            {"OUTBOX_CREDENTIALS_SECRETS": "projects/another", "OUTBOX_SECRETS_EMULATOR_HOST": google.address}
        )
        with pytest.raises(CredentialsUnavailable, match="there is no projects/another"):
            await keeper.keep("acme", {"token": "hunter2"})


async def test_a_file_keeps_other_accounts_and_is_for_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "credentials.json"
    file.write_text('{"other": {"token": "stays"}}')
    file.chmod(0o644)
    assert await FileKeeper(file).keep("acme", {"token": "hunter2"}) == Kept(str(file))
    assert json.loads(file.read_text()) == {"other": {"token": "stays"}, "acme": {"token": "hunter2"}}
    assert file.stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path) == ["credentials.json"]


async def test_what_is_in_the_environment_is_for_a_person_and_no_value_is_said() -> None:
    for environment in ({}, {"OUTBOX_CREDENTIALS": '{"other": {"token": "theirs"}}'}):
        told = await keeper_from(environment).keep("acme", {"token": "hunter2"})
        assert isinstance(told, NotKept)
        assert "OUTBOX_CREDENTIALS" in told.to_do
        assert '{"acme": {"token": "…"}}' in told.to_do
        assert "hunter2" not in told.to_do
