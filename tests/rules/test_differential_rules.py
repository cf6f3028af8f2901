"""Our emulator decides random rules as Google's does: gets, queries and writes, allowed and refused.

OUTBOX_RULES_DECISIONS is the number of decisions to compare, OUTBOX_RULES_SEED the seed (1 by default).
"""

from __future__ import annotations

import asyncio
import os
from random import Random

import pytest

from tests.rules.decisive import LANGUAGE
from tests.rules.differential import Side, Tally, commits, match_paths, play

DECISIONS = int(os.environ.get("OUTBOX_RULES_DECISIONS", "1500"))
SEED = int(os.environ.get("OUTBOX_RULES_SEED", "1"))
ENOUGH = 20_000
"""A run of this length goes on until every part of the language was decisive OFTEN_ENOUGH, for twice its length."""
OFTEN_ENOUGH = 20
ALMOST_ALL = 0.99
AT_ONCE = 4
"""Rounds under way: Google's emulator has threads."""


@pytest.mark.timeout(600 + DECISIONS // 10)
async def test_random_rules_are_decided_as_by_googles_emulator(
    ours: Side, theirs: Side, capsys: pytest.CaptureFixture[str]
) -> None:
    random = Random(SEED)
    tally = Tally()
    while tally.decisions < DECISIONS or (_rare(tally) and tally.decisions < 2 * DECISIONS):
        await asyncio.gather(*(play(Random(random.random()), ours, theirs, tally) for _ in range(AT_ONCE)))
    with capsys.disabled():
        print(f"\nrandom rules, seed {SEED}: {tally}")
    assert not tally.only_ours_allows, "\n".join(map(str, tally.only_ours_allows[:10]))
    others = [one for one in tally.only_theirs_allows if one.kind != "list"]
    assert not others, "\n".join(map(str, others[:10]))
    assert not tally.otherwise, "\n".join(map(str, tally.otherwise[:10]))
    assert len(tally.only_theirs_allows_queries) <= tally.queries * (1 - ALMOST_ALL)
    assert tally.allows >= 0.3 * tally.decisions
    assert tally.queries >= 0.3 * tally.decisions
    assert not _rare(tally), f"too rarely decisive: {_rare(tally)}"


@pytest.mark.timeout(600 + DECISIONS // 10)
async def test_random_commits_are_decided_as_by_googles_emulator(
    ours: Side, theirs: Side, capsys: pytest.CaptureFixture[str]
) -> None:
    random = Random(SEED)
    tally = Tally()
    while tally.decisions < DECISIONS // 10:
        await asyncio.gather(*(commits(Random(random.random()), ours, theirs, tally) for _ in range(AT_ONCE)))
    with capsys.disabled():
        print(f"\nrandom commits, seed {SEED}: {tally}")
    _assert_no_difference(tally)
    assert tally.allows >= 0.1 * tally.decisions


@pytest.mark.timeout(600 + DECISIONS // 10)
async def test_random_match_blocks_cover_the_paths_that_they_cover_for_googles_emulator(
    ours: Side, theirs: Side, capsys: pytest.CaptureFixture[str]
) -> None:
    random = Random(SEED)
    tally = Tally()
    while tally.decisions < DECISIONS // 4:
        await asyncio.gather(*(match_paths(Random(random.random()), ours, theirs, tally) for _ in range(AT_ONCE)))
    with capsys.disabled():
        print(f"\nrandom match blocks, seed {SEED}: {tally}")
    _assert_no_difference(tally)
    assert tally.allows >= 0.05 * tally.decisions


def _assert_no_difference(tally: Tally) -> None:
    assert not tally.only_ours_allows, "\n".join(map(str, tally.only_ours_allows[:10]))
    assert not tally.only_theirs_allows, "\n".join(map(str, tally.only_theirs_allows[:10]))
    assert not tally.otherwise, "\n".join(map(str, tally.otherwise[:10]))


def _rare(tally: Tally) -> dict[str, int]:
    """What was decisive too rarely; a short run does not ask for that."""
    if DECISIONS < ENOUGH:
        return {}
    return {name: tally.decisive[name] for name in LANGUAGE if tally.decisive[name] < OFTEN_ENOUGH}
