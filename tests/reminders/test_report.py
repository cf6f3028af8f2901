"""What became of each target: pages, and a file that a spreadsheet opens without harm."""

from __future__ import annotations

import csv
from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest

from firestore_outbox.reminders.report import PAGE, Report
from firestore_outbox.reminders.target_rows import COLUMNS, csv_lines, harmless
from tests.calm import Calm, simulate
from tests.reminders.support import only_run, remind, until_ended


@pytest.mark.parametrize("value", ["=1+1", "+cmd|' /C calc'!A0", "-1+1", "@SUM(A1)", "\t=1", "\r=1"])
def test_a_cell_that_a_spreadsheet_would_calculate_is_marked_as_text(value: str) -> None:
    assert harmless(value) == f"'{value}"


@pytest.mark.parametrize("value", ["+4915112345678", "1203@g.us", "", "it's 5 = 5"])
def test_addresses_and_words_stay_as_they_are(value: str) -> None:
    assert harmless(value) == value


def test_a_cell_may_have_quotes_commas_and_lines() -> None:
    at = datetime(2026, 3, 1, 12, tzinfo=UTC)
    text = csv_lines([{"to": "+491", "error": 'no "such", \nnumber', "sentAt": at}], with_header=True)
    header, row = csv.reader(StringIO(text, newline=""))
    assert tuple(header) == COLUMNS
    assert dict(zip(header, row, strict=True))["error"] == 'no "such", \nnumber'
    assert dict(zip(header, row, strict=True))["sentAt"] == "2026-03-01T12:00:00Z"


def test_the_file_has_a_line_for_each_target_with_its_times_and_latencies() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(pace={"perMinute": 60})
        await remind(calm, targets=5)
        await until_ended(calm)
        await calm.until(lambda: "deliveredAt" in str(calm.world.truth.latest()))
        await calm.until(lambda: _all_read(calm))
        system = calm.world.client.system
        pieces = [piece async for piece in Report(system.gateway, system.messages).as_csv(only_run(calm)["runId"])]
        rows = list(csv.DictReader(StringIO("".join(pieces), newline="")))
        assert sorted(row["to"] for row in rows) == [f"{number:05}@g.us" for number in range(5)]
        assert {row["status"] for row in rows} == {"read"}
        for row in rows:
            sent, delivered = datetime.fromisoformat(row["sentAt"]), datetime.fromisoformat(row["deliveredAt"])
            assert float(row["secondsToDeliver"]) == pytest.approx((delivered - sent) / timedelta(seconds=1), abs=0.001)
            assert float(row["secondsToSend"]) >= 0
            assert row["errorCode"] == ""

    simulate(body)


def test_a_skipped_target_has_its_reason_and_pages_follow_each_other() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(pace={"perMinute": 1})
        at = calm.world.clock() + timedelta(minutes=55)
        await remind(calm, targets=20, window={"startHour": 6, "endHour": 13}, schedule={"type": "once", "at": at})
        await until_ended(calm)
        system, run_id = calm.world.client.system, only_run(calm)["runId"]
        report = Report(system.gateway, system.messages)
        found, after = [], None
        while (page := await report.page(run_id, 7, after)).targets:
            found += page.targets
            after = page.after
        assert len({row["targetId"] for row in found}) == len(found) == 20
        skipped = [row for row in found if row["status"] == "skipped"]
        assert {row["errorCode"] for row in skipped} == {"window_closed"}
        assert len(skipped) == only_run(calm)["counts"]["skipped"] > 10

    simulate(body, receipts=False)


def test_the_file_is_made_a_page_at_a_time() -> None:
    async def body(calm: Calm) -> None:
        await calm.account(pace={"perMinute": 1})
        await remind(calm, targets=PAGE + 50)
        await calm.until(lambda: len(calm.statuses()) > 0 and sum(calm.statuses().values()) == PAGE + 50)
        system = calm.world.client.system
        pieces = [piece async for piece in Report(system.gateway, system.messages).as_csv(only_run(calm)["runId"])]
        assert [piece.count("\r\n") for piece in pieces] == [PAGE + 1, 50, 0]

    simulate(body, receipts=False)


def _all_read(calm: Calm) -> bool:
    shown = [data for path, data in calm.world.truth.latest().items() if "/messages/" in path]
    return bool(shown) and {data.get("status") for data in shown} == {"read"}
