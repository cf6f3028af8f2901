"""An index scan is only a fast way: whatever is written in between, it finds what looking at every document finds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.firestore import plan, storage
from emulator.firestore.engine import Engine
from emulator.rpc.errors import RpcError
from tests.conformance.wire import Plain, Proto, all_of, query, where
from tests.emulator.firestore import strategies
from tests.emulator.firestore.support import by_scanning, drop, everything, examples, parsed, paths, put

writes = st.lists(st.tuples(strategies.paths, st.one_of(strategies.documents, st.none())), max_size=12)
asked = st.lists(st.tuples(strategies.queries(), strategies.parents), min_size=1, max_size=4)
stories = st.lists(st.tuples(writes, asked), min_size=1, max_size=3)
"""Each chapter writes (None deletes), then asks. The next chapter's writes must keep up what this one asked for."""

Story = list[tuple[list[tuple[str, dict[str, Plain] | None]], list[tuple[Proto, str]]]]


def hold_to_the_definition(engine: Engine, story: Story) -> int:
    compared = 0
    earlier: list[tuple[Proto, str]] = []
    for chapter, questions in story:
        for path, data in chapter:
            if data is None:
                drop(engine, path)
            else:
                put(engine, path, data)
        earlier += questions
        stored = everything(engine)
        for proto, parent in earlier:
            try:
                question = parsed(proto, parent)
            except RpcError:
                continue  # a query that is refused finds nothing to compare
            expected = by_scanning(stored, question)
            assert paths(engine.run(question)) == paths(expected)
            assert engine.count(question, None) == len(expected)
            assert engine.count(question, 1) == min(1, len(expected))
            compared += 1
    return compared


@given(stories)
@examples(200)
def test_a_scan_finds_what_looking_at_every_document_finds(story: Story) -> None:
    engine = Engine()
    hold_to_the_definition(engine, story)
    engine.close()


@given(stories)
@examples(70)
def test_a_scan_stays_right_when_indexes_are_dropped_and_made_again(story: Story) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(storage, "MAX_SHAPES", 2)
        engine = Engine()
        hold_to_the_definition(engine, story)
        kept = engine.storage.database.rows("SELECT id FROM shapes")
        # One query may need several at once; each of its alternatives makes room for itself.
        assert len(kept) <= 2
        assert not engine.storage.database.rows("SELECT 1 FROM entries WHERE shape NOT IN (SELECT id FROM shapes)")
        engine.close()


@given(stories)
@examples(20)
def test_a_scan_is_right_after_the_file_is_opened_again(tmp_path_factory: Any, story: Story) -> None:
    path = tmp_path_factory.mktemp("engine") / "firestore.sqlite3"
    for chapter in story:
        engine = Engine(path)
        hold_to_the_definition(engine, [chapter])
        engine.close()


def test_most_random_queries_are_valid_so_that_the_tests_above_compare_something() -> None:
    valid, seen = 0, 0

    @given(strategies.queries(), strategies.parents)
    @examples(200)
    def ask(proto: Proto, parent: str) -> None:
        nonlocal valid, seen
        seen += 1
        try:
            parsed(proto, parent)
        except RpcError:
            return
        valid += 1

    ask()
    assert valid > seen * 0.5


def test_a_query_touches_what_it_returns_and_not_what_the_collection_holds() -> None:
    """Counted in SQLite's own steps, which no other load on the machine can change."""

    def steps(documents: int) -> int:
        engine = Engine()
        for number in range(documents):
            put(engine, f"outbox/{number:06}", {"accountId": f"a{number % 10}", "status": "queued", "at": number})
        question = parsed(
            query(
                "outbox",
                all_of(where("accountId", "==", "a3"), where("status", "==", "queued"), where("at", "<=", 10**6)),
                order=["at"],
                limit=20,
            )
        )
        assert len(engine.run(question)) == 20  # makes the index
        counted = 0

        def count() -> int:
            nonlocal counted
            counted += 1
            return 0

        engine.storage.database._connection.set_progress_handler(count, 1)
        engine.run(question)
        engine.close()
        return counted

    assert steps(4000) <= steps(400) * 1.2


def test_the_index_unused_for_longest_is_the_one_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "MAX_SHAPES", 2)
    engine = Engine()
    put(engine, "c/1", {"a": 1, "b": 2, "t": 3})
    for field in ("a", "b", "a", "t"):
        assert paths(engine.run(parsed(query("c", order=[field])))) == ["c/1"]
    kept = {
        plan.Shape.from_definition(text) for (text,) in engine.storage.database.rows("SELECT definition FROM shapes")
    }
    assert {shape.parts[0][0] for shape in kept} == {("a",), ("t",)}
    engine.close()
