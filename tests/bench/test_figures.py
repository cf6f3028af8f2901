"""What readers see is what was measured: README.md, docs/figures.md, its charts, and the prices of docs/deploy.md."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import pytest

from bench import charts
from bench.prices import LIST
from bench.readme import DOCUMENTS, ROOT, filled
from bench.shown import load
from bench.summary import HIGHLIGHTS
from bench.tables import BLOCKS, CHARTED, block

RESULTS = load()
_NAMES = re.compile(r"<!-- figures: ([a-z]+) -->")
_IMAGES = re.compile(r"!\[[^]]*\]\(([^)]+\.png)\)")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_a_document_has_the_figures_of_the_results(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    assert text == filled(text, RESULTS), "run: python -m bench.readme"


def test_every_table_has_its_place() -> None:
    named = {name for document in DOCUMENTS for name in _NAMES.findall(document.read_text(encoding="utf-8"))}
    assert named == {"summary", "highlights", "sections", *BLOCKS}


@pytest.mark.parametrize("name", sorted(charts.CHARTS.keys() & RESULTS.keys()))
def test_a_chart_was_drawn_from_the_results(name: str) -> None:
    drawn_from = charts.drawn_from(charts.FIGURES / f"{name}.png")
    assert drawn_from == charts.digest(RESULTS[name]), "run: python -m bench.charts"


def test_every_chart_is_shown_and_every_picture_is_there() -> None:
    assert CHARTED.keys() == charts.CHARTS.keys()
    for document in DOCUMENTS:
        for image in _IMAGES.findall(document.read_text(encoding="utf-8")):
            assert (document.parent / image).is_file(), f"{document.name} shows {image}"


def test_results_of_another_day_are_noticed(tmp_path: Path) -> None:
    """In the tables and in the charts: neither would be worth anything otherwise."""
    changed: dict[str, Any] = copy.deepcopy(RESULTS)
    changed["cost"]["rows"][0]["reads"] = 1_234.5
    summary = "<!-- figures: summary -->\n<!-- end of figures -->"
    assert "1234.50 reads" in filled(summary, changed)
    assert filled(summary, changed) != filled(summary, RESULTS)

    charts.draw("cost", RESULTS["cost"], tmp_path)
    assert "cost" not in charts.stale({"cost": RESULTS["cost"]}, tmp_path)
    assert charts.stale({"cost": changed["cost"]}, tmp_path) == ["cost"]


def test_the_readme_has_a_few_of_the_lines_and_each_is_also_in_the_whole_table() -> None:
    few, whole = (block(name, RESULTS).splitlines() for name in ("highlights", "summary"))
    assert set(few) < set(whole)
    assert len(few) == 2 + len(HIGHLIGHTS)


def test_what_was_not_measured_is_left_out() -> None:
    text = "<!-- figures: growth -->\nold\n<!-- end of figures -->"
    assert filled(text, {}) == "<!-- figures: growth -->\n<!-- end of figures -->"


def test_every_chart_can_be_drawn(tmp_path: Path) -> None:
    for name in charts.CHARTS.keys() & RESULTS.keys():
        charts.draw(name, RESULTS[name], tmp_path)
        assert charts.drawn_from(tmp_path / f"{name}.png") == charts.digest(RESULTS[name])


# --- one table of prices

_PRICED = {
    "reads": LIST.read,
    "writes": LIST.write,
    "deletes": LIST.delete,
    "operations, two a task": LIST.task_operation,
    "requests": LIST.request,
    "seconds of an instance": LIST.instance_second,
}


def _rows_with_a_price() -> dict[str, float]:
    rows: dict[str, float] = {}
    for line in (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 6 and re.fullmatch(r"[\d.]+", cells[3]):
            rows[cells[0]] = float(cells[3])
    return rows


def test_the_page_on_deploying_has_the_same_prices() -> None:
    rows = _rows_with_a_price()
    assert len(rows) == 11
    for what, price in rows.items():
        [listed] = [value for name, value in _PRICED.items() if re.search(rf"(: |^){name}\b", what)]
        assert price == pytest.approx(listed), what
