"""Which shard and which gateway an account belongs to, and how the slots are divided."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from firestore_outbox.providers.built_in import ProviderSettings, providers
from firestore_outbox.providers.credentials import Credentials, FixedCredentials
from firestore_outbox.providers.servers import base_url_of, server_of
from firestore_outbox.sessions.layout import LINE_FOR_A_SLOT, Layout, layouts
from firestore_outbox.sessions.sets import Sets
from firestore_outbox.sessions.states import Rules
from firestore_outbox.settings import Settings

ACCOUNTS = [f"account-{number:04}" for number in range(3_000)]


@pytest.mark.parametrize(("slots", "shards"), [(5, 1), (5, 2), (5, 5), (20, 7)])
def test_the_shares_of_all_shards_add_up_to_the_slots_of_the_set(slots: int, shards: int) -> None:
    layout = Layout(slots=slots, shards=shards)
    shares = [layout.share(shard) for shard in range(shards + 3)]
    assert sum(shares) == slots
    assert min(shares[:shards]) >= 1
    assert shares[shards:] == [0, 0, 0]


def test_accounts_are_spread_evenly_over_the_shards() -> None:
    layout = Layout(slots=5, shards=5)
    counts = Counter(map(layout.shard_of, ACCOUNTS))
    assert set(counts) == {0, 1, 2, 3, 4}
    assert max(counts.values()) < 1.2 * min(counts.values())


def test_a_set_with_one_shard_has_the_document_and_the_rules_of_a_release_before_shards() -> None:
    layout = Layout(slots=5)
    assert layout.documents == ["hotsets/default"]
    assert layout.rules(Rules(), 0, 5) == Rules(sticky_slots=4)


def test_one_slot_of_a_set_with_shards_is_no_seat_and_its_lines_are_short() -> None:
    layout = Layout(slots=5, shards=5)
    rules = [layout.rules(Rules(), shard, layout.share(shard)) for shard in range(5)]
    assert [one.seats for one in rules] == [0, 1, 1, 1, 1]
    assert {one.longest_line for one in rules} == {LINE_FOR_A_SLOT}


def test_the_setting_names_gateways_with_their_slots_and_shards() -> None:
    found = layouts("waha-1.internal:3000=5/5, waha-2.internal=10")
    assert found["waha-1.internal:3000"] == Layout(name="waha-1.internal:3000", slots=5, shards=5)
    assert found["waha-2.internal"] == Layout(name="waha-2.internal", slots=10, shards=1)


@pytest.mark.parametrize("text", ["waha", "waha=", "waha=a", "waha=5/x", "waha=2/3", "a=1,a=2", "default=5", "a/b=1"])
def test_a_setting_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="GATEWAYS"):
        Settings(gateways=text)


def test_accounts_belong_to_the_set_of_the_gateway_that_their_credentials_name() -> None:
    secrets = {
        "north": {"baseUrl": "https://WAHA-1.internal:3000/"},
        "south": {"baseUrl": "https://waha-2.internal"},
        "other": {"baseUrl": "https://elsewhere.example"},
    }
    registry = providers(ProviderSettings(), credentials=FixedCredentials(secrets))
    settings = Settings(hot_sessions=3, gateways="waha-1.internal:3000=5/5,waha-2.internal=10")
    sets = Sets(default=settings.hot_layout, by_gateway=layouts(settings.gateways), server_of=registry.server)

    async def found() -> list[str]:
        return [(await sets.of(account_id)).name for account_id in ("north", "south", "other", "unknown")]

    assert asyncio.run(found()) == ["waha-1.internal:3000", "waha-2.internal", "default", "default"]
    assert [layout.slots for layout in sets.all] == [3, 5, 10]
    assert Settings(hot_sessions=3, hot_shards=9).hot_layout.shards == 3


def test_several_gateways_share_the_accounts_and_a_new_one_takes_only_its_part() -> None:
    two = Credentials({"baseUrl": "https://a.example, https://b.example/"})
    three = Credentials({"baseUrl": "https://a.example, https://b.example, https://c.example"})
    before = {account_id: base_url_of(account_id, two) for account_id in ACCOUNTS}
    after = {account_id: base_url_of(account_id, three) for account_id in ACCOUNTS}
    assert 0.45 < Counter(before.values())["https://a.example"] / len(ACCOUNTS) < 0.55
    moved = [account_id for account_id in ACCOUNTS if before[account_id] != after[account_id]]
    assert {after[account_id] for account_id in moved} == {"https://c.example"}
    assert 0.28 < len(moved) / len(ACCOUNTS) < 0.39
    assert server_of("shop", Credentials()) == ""
