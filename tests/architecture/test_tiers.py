"""Every test file is in a tier, and every row of the table names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests import tiers
from tests.conformance import backends
from tests.tiers import ROWS, Tier, is_wholly_outside, parsed, row_of, tier_of

TESTS = Path(__file__).parents[1]
FILES = sorted(str(file.relative_to(TESTS)) for file in TESTS.rglob("test_*.py"))


def test_every_test_file_is_in_a_tier() -> None:
    assert [file for file in FILES if tier_of(f"tests/{file}") is None] == []


@pytest.mark.parametrize("row", ROWS)
def test_every_row_names_something(row: str) -> None:
    name, place = parsed()[row]
    path, _, test = name.partition("::")
    files = [file for file in FILES if file == path or file.startswith(f"{path}/")]
    assert files, f"no test file is {path} or below it"
    if test:
        assert re.search(rf"^(async )?def {test}\(", (TESTS / path).read_text(encoding="utf-8"), re.MULTILINE), name
    if place:
        assert place in backends.PLACES, f"no Firestore is called {place}"
        folder = (TESTS / path) if (TESTS / path).is_dir() else (TESTS / path).parent
        sources = [*(TESTS / file for file in files), *folder.glob("conftest.py")]
        named = re.compile(rf"backend|\b{place}\b")
        assert any(named.search(source.read_text(encoding="utf-8")) for source in sources), "none has backends"


def test_a_row_that_repeats_a_wider_one_is_not_needed() -> None:
    """A row that says what the row above it says would hide a change of the one above."""
    for row, (name, place) in parsed().items():
        parent = name if place else (name.partition("::")[0] if "::" in name else name.rpartition("/")[0])
        above = row_of(f"tests/{parent}") if parent else None
        assert above is None or ROWS[above] is not ROWS[row], f"{row} says what {above} says"


def test_the_narrowest_row_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {"a": Tier.FAST, "a[official]": Tier.SLOW, "a/test_b.py": Tier.SLOW, "a/test_b.py::test_c": Tier.FAST}
    monkeypatch.setattr(tiers, "ROWS", rows)
    assert tier_of("tests/a/test_z.py::test_y[x]") is Tier.FAST
    assert tier_of("tests/a/test_z.py::test_y[official-x]") is Tier.SLOW
    assert tier_of("tests/a/test_b.py::test_y") is Tier.SLOW
    assert tier_of("tests/a/test_b.py::test_c[grpc]") is Tier.FAST
    assert tier_of("tests/b/test_b.py::test_c") is None


def test_a_file_is_left_unread_only_if_no_test_of_it_can_be_in_the_tier(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {"a": Tier.FAST, "a[official]": Tier.SLOW, "b": Tier.SLOW, "b/test_b.py::test_c": Tier.FAST}
    monkeypatch.setattr(tiers, "ROWS", rows)
    assert not is_wholly_outside("a/test_z.py", Tier.SLOW)
    assert not is_wholly_outside("b/test_b.py", Tier.FAST)
    assert is_wholly_outside("b/test_z.py", Tier.FAST)
    assert not is_wholly_outside("c/test_z.py", Tier.FAST), "a file in no row is read, and fails the run"
