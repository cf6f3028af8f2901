"""An index scan is only a fast way: whatever is written in between, it finds what looking at every document finds."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import given

from firestore_emulator.queries import plan
from firestore_emulator.queries.query import Op, Query
from firestore_emulator.rpc.errors import RpcError
from firestore_emulator.storage import entries as storage
from firestore_emulator.storage.engine import Engine
from tests.conformance.wire import all_of, query, where
from tests.emulator.firestore import chance
from tests.emulator.firestore.support import by_scanning, drop, everything, examples, parsed, paths, put


def hold_to_the_definition(engine: Engine, rng: Random, chapters: int = 3) -> Counter[str]:
    """Each chapter writes, then asks. The next chapter's writes must keep up what this one asked for."""
    seen: Counter[str] = Counter()
    asked: list[Query] = []
    for _ in range(chapters):
        for path, data in chance.commit(rng, most=len(chance.PATHS)):
            if data is None:
                drop(engine, path)
            elif rng.random() < 0.5:
                put(engine, path, data)
            else:  # into what is there, some fields only, and the rest of it stays
                put(engine, path, data, mask=rng.sample(chance.FIELDS, rng.randint(1, 3)))
        asked += [one for _ in range(6) if (one := asked_of(rng)) is not None]
        stored = everything(engine)
        for question in asked:
            expected = by_scanning(stored, question)
            assert paths(engine.run(question)) == paths(expected), question
            assert engine.count(question, None) == len(expected), question
            assert engine.count(question, 1) == min(1, len(expected)), question
            seen["compared"] += 1
            seen["found something"] += bool(expected)
            for op in {predicate.op for alternative in question.alternatives for predicate in alternative}:
                seen[op.name] += bool(expected)
    return seen


def asked_of(rng: Random) -> Query | None:
    """A query that is refused finds nothing to compare."""
    structured, parent = chance.structured_query(rng), chance.parent(rng)
    try:
        question = parsed(structured, parent)
    except RpcError:
        return None
    is_refused = question.is_by_name_alone and question.orders[0].descending
    return None if is_refused else question


@given(chance.randomness)
@examples(120)
def test_a_scan_finds_what_looking_at_every_document_finds(rng: Random) -> None:
    engine = Engine()
    hold_to_the_definition(engine, rng)
    engine.close()


def test_the_random_queries_find_something_with_every_operator() -> None:
    """Else the test above would show little."""
    seen: Counter[str] = Counter()
    for seed in range(40):
        engine = Engine()
        seen += hold_to_the_definition(engine, Random(seed))
        engine.close()
    assert seen["compared"] > 600
    assert seen["found something"] > seen["compared"] * 0.3
    true_of_none = {Op.NEVER, Op.UNDEFINED}
    assert [op.name for op in Op if op not in true_of_none and seen[op.name] < 10] == []


@given(chance.randomness)
@examples(40)
def test_a_scan_stays_right_when_indexes_are_dropped_and_made_again(rng: Random) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(storage, "MAX_SHAPES", 6)
        engine = Engine()
        hold_to_the_definition(engine, rng, chapters=4)
        assert len(engine.storage.database.rows("SELECT id FROM shapes")) <= 6
        assert not engine.storage.database.rows("SELECT 1 FROM entries WHERE shape NOT IN (SELECT id FROM shapes)")
        (newest,) = engine.storage.database.row("SELECT max(id) FROM shapes") or (0,)
        engine.close()
    assert newest > 6, "the test asked for too few different indexes to drop one"


@given(chance.randomness)
@examples(15)
def test_a_scan_is_right_after_the_file_is_opened_again(tmp_path_factory: Any, rng: Random) -> None:
    path = tmp_path_factory.mktemp("engine") / "firestore.sqlite3"
    for _ in range(3):
        engine = Engine(path)
        hold_to_the_definition(engine, rng, chapters=1)
        engine.close()


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
