"""Random rules are decided as by Google's emulator: gets, queries and writes, allowed and refused.

OUTBOX_RULES_DECISIONS says how many decisions to compare. The seed is the same in each run unless OUTBOX_RULES_SEED
names another.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from random import Random

import httpx
import pytest
import pytest_asyncio

from emulator.firestore.emulator import FirestoreEmulator
from tests.conformance.backends import Place
from tests.rules.differential import Side, Tally, play

DECISIONS = int(os.environ.get("OUTBOX_RULES_DECISIONS", "1500"))
SEED = int(os.environ.get("OUTBOX_RULES_SEED", "1"))
ENOUGH = 20_000
"""From here on, every operator must have been decisive often enough for the comparison to mean something."""
OFTEN_ENOUGH = 20
ALMOST_ALL = 0.99
AT_ONCE = 4
"""Rounds under way: Google's emulator has threads."""


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def ours() -> AsyncIterator[Side]:
    emulator = FirestoreEmulator()
    await emulator.start()
    transport = httpx.ASGITransport(app=emulator.http_app)
    async with httpx.AsyncClient(transport=transport, base_url="http://ours", timeout=60) as client:
        yield Side(client)
    await emulator.stop()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def theirs(official_place: Place) -> AsyncIterator[Side]:
    async with httpx.AsyncClient(base_url=f"http://{official_place.address}", trust_env=False, timeout=60) as client:
        yield Side(client)


@pytest.mark.timeout(300 + DECISIONS // 20)
async def test_random_rules_are_decided_as_by_googles_emulator(
    ours: Side, theirs: Side, capsys: pytest.CaptureFixture[str]
) -> None:
    random = Random(SEED)
    tally = Tally()
    while tally.decisions < DECISIONS:
        await asyncio.gather(*(play(Random(random.random()), ours, theirs, tally) for _ in range(AT_ONCE)))
    with capsys.disabled():
        print(f"\nrandom rules, seed {SEED}: {tally}")
    assert not tally.only_ours_allows, "\n".join(map(str, tally.only_ours_allows[:10]))
    others = [one for one in tally.only_theirs_allows if one.kind != "list"]
    assert not others, "\n".join(map(str, others[:10]))
    assert len(tally.only_theirs_allows_queries) <= tally.queries * (1 - ALMOST_ALL)
    assert tally.allows >= 0.3 * tally.decisions
    assert tally.queries >= 0.3 * tally.decisions
    if DECISIONS >= ENOUGH:
        rare = {name: count for name, count in tally.decisive.items() if count < OFTEN_ENOUGH}
        assert not rare, f"too rarely decisive: {rare}"
