"""@conversation and @keyed, and how OUTBOX_HANDLERS finds them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from firestore_outbox import Context, conversation, keyed
from firestore_outbox.handlers.registration import BadHandlers, debounces, load

MODULE = """
from firestore_outbox import Context, conversation, keyed

@conversation(quiet=2, at_most=9)
async def answer(context: Context) -> None:
    "Answers."

@keyed("nextup")
async def rank(context: Context) -> None:
    "Ranks."
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in [name for name in sys.modules if name.startswith("handlers_of_")]:
        monkeypatch.delitem(sys.modules, name)
    return tmp_path


def test_the_functions_of_a_module_are_found_by_their_decorators(folder: Path) -> None:
    (folder / "handlers_of_mine.py").write_text(MODULE)
    found = load(" handlers_of_mine ,")
    assert set(found) == {"inbound", "nextup"}
    times = debounces(found.values(), 5, 15)
    assert {kind: (one.quiet.total_seconds(), one.most.total_seconds()) for kind, one in times.items()} == {
        "inbound": (2, 9),
        "nextup": (5, 15),
    }


def test_without_modules_there_are_no_handlers() -> None:
    assert load("") == {}


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (None, "handlers_of_none, which cannot be imported: is its folder on PYTHONPATH?"),
        ("x = 1", "has no function with @conversation or @keyed"),
        ("import no_such_package", "needs no_such_package, which is not installed"),
        ("1 / 0", "failed to load: ZeroDivisionError"),
        (MODULE.replace('"nextup"', '"outbox"'), "the kind 'outbox' cannot be used"),
        (MODULE.replace("async def rank", "def rank"), "rank must be an async function"),
        (MODULE.replace("at_most=9", "at_most=1"), "at_most at least quiet"),
        (MODULE + "\n@conversation()\nasync def other(context: Context) -> None: ...\n", "'inbound' has two handlers"),
    ],
    ids=["no module", "no handler", "a missing package", "an error", "a reserved kind", "not async", "times", "two"],
)
def test_what_cannot_be_used_is_named_with_what_to_change(folder: Path, source: str | None, said: str) -> None:
    name = "handlers_of_none" if source is None else f"handlers_of_{abs(hash(source))}"
    if source is not None:
        (folder / f"{name}.py").write_text(source)
    with pytest.raises(BadHandlers) as refused:
        load(name)
    assert said in str(refused.value)


def test_a_decorated_function_stays_an_ordinary_function() -> None:
    @keyed("one")
    @conversation()
    async def handle(context: Context) -> None:
        """Handles both."""

    assert handle.__doc__ == "Handles both."
