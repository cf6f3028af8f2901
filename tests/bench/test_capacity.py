"""docs/capacity.md has the sums that follow from docs/deploy.md, the settings and the prices."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench.prices import AS_OF
from firestore_outbox.settings import Settings

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "capacity.md").read_text(encoding="utf-8")
PER_SECOND = 40 / 60
LANES_AN_INSTANCE = 40


def rows() -> list[list[float]]:
    table = PAGE.split("<!-- capacity -->")[1].split("<!-- end of capacity -->")[0]
    lines = [line.strip("| ").split(" | ") for line in table.strip().splitlines()[2:]]
    return [[float(cell.replace(",", "")) for cell in line] for line in lines]


def of_a_message(what: str) -> float:
    """The sum of a kind of operation in bulk, in deploy.md's table."""
    text = (DOCS / "deploy.md").read_text(encoding="utf-8")
    return sum(float(found) for found in re.findall(rf"^\| [^|]*: {what}[ *]*\| ([\d.]+) \|", text, re.MULTILINE))


def dollars_a_million() -> float:
    found = re.search(r"^\| \*\*sum\*\* [| ]*\*\*([\d.]+)\*\*", (DOCS / "deploy.md").read_text("utf-8"), re.MULTILINE)
    assert found is not None
    return float(found[1])


@pytest.mark.parametrize("row", rows(), ids=lambda row: f"{row[0]:g} accounts")
def test_the_sums_follow_from_the_cost_of_a_message(row: list[float]) -> None:
    accounts, messages, instances, requests, writes, reads, in_a_range, dollars = row
    rate = accounts * PER_SECOND
    settings = Settings()
    assert messages == pytest.approx(rate, rel=0.01)
    assert instances == max(1, accounts / LANES_AN_INSTANCE) == requests
    assert writes == pytest.approx(rate * of_a_message("writes"), rel=0.02)
    assert reads == pytest.approx(rate * of_a_message("reads"), rel=0.02)
    renewals = accounts / (settings.lease_seconds / 3)
    assert in_a_range == pytest.approx(renewals / settings.lane_shards, rel=0.25)
    assert dollars == pytest.approx(rate * 3600 * dollars_a_million() / 1e6, rel=0.02)


def test_the_prices_have_their_date() -> None:
    assert AS_OF in PAGE
    assert {row[0] for row in rows()} == {10, 1_000, 10_000, 100_000}
