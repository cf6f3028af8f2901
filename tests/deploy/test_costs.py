"""The costs that docs/deploy.md tells: its sums are right, and what it calls measured is what is measured here."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest

from bench.prices import LIST
from firestore_outbox.local.simulators.faults import Faults
from tests.calm import Calm, Meter, simulate
from tests.deploy.support import ROOT
from tests.sending.receipt_cost import cost_of_receipts

NO_RECEIPTS = Faults(latencyMs=100, receiptLossRate=1.0)


@dataclass(frozen=True)
class Row:
    what: str
    bulk: float
    alone: float
    price: float
    cost_bulk: float
    cost_alone: float


def table() -> tuple[dict[str, Row], tuple[float, float]]:
    """The rows by what they are about, and the sums."""
    rows: dict[str, Row] = {}
    sums: tuple[float, float] | None = None
    for line in (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip().strip("*").strip() for cell in line.strip("|").split("|")]
        if len(cells) == 6 and re.fullmatch(r"[\d.]+", cells[3]):
            rows[cells[0]] = Row(cells[0], *(float(cell) for cell in cells[1:]))
        elif len(cells) == 6 and cells[0] == "sum":
            sums = float(cells[4]), float(cells[5])
    assert sums is not None
    return rows, sums


ROWS, SUMS = table()


@pytest.mark.parametrize("what", ROWS)
def test_a_cost_is_its_quantity_times_its_price(what: str) -> None:
    row = ROWS[what]
    assert row.cost_bulk == pytest.approx(row.bulk * row.price, abs=0.006)
    assert row.cost_alone == pytest.approx(row.alone * row.price, abs=0.006)


def test_the_sums_add_up() -> None:
    assert SUMS[0] == pytest.approx(sum(row.cost_bulk for row in ROWS.values()), abs=0.001)
    assert SUMS[1] == pytest.approx(sum(row.cost_alone for row in ROWS.values()), abs=0.001)
    assert len(ROWS) == 11


def test_seconds_of_an_instance_have_its_price() -> None:
    seconds = [row for row in ROWS.values() if "seconds of an instance" in row.what]
    assert [row.price for row in seconds] == [pytest.approx(LIST.instance_second)] * 2


# --- what is measured


class Calls(Meter):
    """And how many tasks were asked for."""

    def __init__(self, calm: Calm) -> None:
        self.calls: Counter[str] = Counter()
        super().__init__(calm)

    def _count(self, path: str, answer: Any) -> None:
        self.calls[path.rsplit("/", 1)[-1]] += 1
        super()._count(path, answer)

    def of_each(self, count: int) -> tuple[float, float, float]:
        """Reads, writes, and operations of Cloud Tasks: a task is made, and tried."""
        return self.reads / count, self.writes / count, 2 * self.calls["CreateTask"] / count


def test_in_bulk_a_message_costs_what_the_page_says() -> None:
    async def body(calm: Calm) -> tuple[float, float, float]:
        calm.world.provider.faults = NO_RECEIPTS
        await calm.account(pace={"perMinute": 40}, concurrency=3)
        await asyncio.sleep(5)
        calls = Calls(calm)
        await calm.send_many(300)
        await calm.until(lambda: calm.statuses()["sent"] == 300)
        return calls.of_each(300)

    reads, writes, tasks = simulate(body, sweeps=False)
    assert reads == pytest.approx(ROWS["from queued to sent: reads"].bulk, rel=0.1)
    assert writes == pytest.approx(ROWS["from queued to sent: writes"].bulk, rel=0.1)
    assert tasks <= ROWS["Cloud Tasks: operations, two a task"].bulk


def test_alone_a_message_costs_what_the_page_says() -> None:
    """In an instance that has sent within the last two minutes; before its first call it looks for an app-wide
    throttle. And one a minute: the account is not in its memory."""

    async def body(calm: Calm) -> tuple[float, float, float]:
        calm.world.provider.faults = NO_RECEIPTS
        await calm.account(pace={"perMinute": 40}, concurrency=3)
        await calm.send("before-it", to="+481")
        await asyncio.sleep(60)
        calls = Calls(calm)
        for number in range(30):
            await calm.send(f"request-{number:03d}", to=f"+49{number}")
            await asyncio.sleep(60)
        await calm.until(lambda: calm.statuses()["sent"] == 31)
        return calls.of_each(30)

    assert simulate(body, sweeps=False, workers=1) == (
        ROWS["from queued to sent: reads"].alone,
        ROWS["from queued to sent: writes"].alone,
        ROWS["Cloud Tasks: operations, two a task"].alone,
    )


def test_receipts_cost_what_the_page_says() -> None:
    assert cost_of_receipts() == (ROWS["receipts: reads"].bulk, ROWS["receipts: writes"].bulk)
