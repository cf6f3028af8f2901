"""A read at an earlier time gives what was there then, for as long as that time is kept; later, a refusal."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given

from firestore_emulator.documents.names import Location
from firestore_emulator.documents.times import micros_of
from firestore_emulator.rpc.errors import RpcError
from firestore_emulator.storage import history
from firestore_emulator.storage.engine import Engine
from tests.conformance.wire import Proto, Timestamp, delete, query, set_
from tests.emulator.firestore import chance
from tests.emulator.firestore.support import (
    DATABASE,
    SteppingClock,
    commit,
    drop,
    examples,
    name,
    parsed,
    paths,
    place,
    put,
)
from tests.emulator.firestore.test_queries import asked_of


def shown(documents: list[Any]) -> list[bytes]:
    return [document.SerializeToString(deterministic=True) for document in documents]


@given(chance.randomness)
@examples(80)
def test_queries_and_reads_at_a_past_time_repeat_what_they_gave_then(rng: Random) -> None:
    clock = SteppingClock()
    engine = Engine(clock=clock)
    questions = [one for _ in range(8) if (one := asked_of(rng)) is not None]
    past: list[tuple[int, list[list[bytes]], dict[str, Any]]] = []
    for _ in range(8):
        writes = chance.commit(rng)
        commit(engine, *(delete(name(path)) if data is None else set_(name(path), data) for path, data in writes))
        answers = [shown(engine.run(question)) for question in questions]
        past.append((engine.now_micros(), answers, {path: engine.get(place(path)) for path in chance.PATHS}))
        clock.step(seconds=rng.choice([0, 0, 1]))
    for micros, answers, documents in past:
        assert [shown(engine.run(question, micros)) for question in questions] == answers
        assert [engine.count(question, None, micros) for question in questions] == [len(one) for one in answers]
        assert {path: engine.get(place(path), micros) for path in documents} == documents
    engine.close()


def test_commit_times_grow_even_when_the_clock_stands_or_steps_back() -> None:
    clock = SteppingClock()
    engine = Engine(clock=clock)
    times = []
    for number in range(6):
        times.append(put(engine, "c/1", {"n": number}).commit_micros)
        clock.step(seconds=-10 if number % 2 else 0)
    assert times == sorted(set(times))
    engine.close()


def test_commit_times_grow_over_a_restart_with_a_clock_that_stepped_back(tmp_path: Any) -> None:
    clock = SteppingClock()
    first = Engine(tmp_path / "db", clock)
    before = put(first, "c/1", {"n": 1}).commit_micros
    first.close()
    clock.step(days=-30)
    second = Engine(tmp_path / "db", clock)
    assert second.now_micros() >= before
    assert put(second, "c/1", {"n": 2}).commit_micros > before
    second.close()


def test_a_time_that_is_no_longer_kept_is_refused_and_never_answered_with_something_newer() -> None:
    clock = SteppingClock()
    engine = Engine(clock=clock)
    put(engine, "c/1", {"n": 1})
    early = engine.now_micros()
    clock.step(seconds=1)
    put(engine, "c/1", {"n": 2})
    clock.step(microseconds=history.KEEP_MICROS)
    put(engine, "c/2", {})
    clock.step(seconds=2)
    put(engine, "c/2", {"n": 1})
    with pytest.raises(RpcError, match="too old") as refused:
        engine.check_read_time(stamp_of(early), DATABASE)
    assert refused.value.code.name == "FAILED_PRECONDITION"
    engine.close()


def test_too_many_changes_shorten_what_is_kept_but_not_under_an_open_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "KEEP_CHANGES", 3)
    clock = SteppingClock()
    engine = Engine(clock=clock)
    put(engine, "c/1", {"n": 0})
    pinned = engine.now_micros()
    engine.history.pin(DATABASE, pinned)
    for number in range(1, 10):
        clock.step(seconds=1)
        put(engine, "c/1", {"n": number})
        put(engine, f"c/new{number}", {"n": number})
    question = parsed(query("c", order=["n"]))
    assert paths(engine.run(question, pinned)) == ["c/1"]
    found = engine.get(place("c/1"), pinned)
    assert found is not None
    assert found.fields["n"].integer_value == 0
    engine.history.unpin(DATABASE, pinned)
    drop(engine, "c/1")
    with pytest.raises(RpcError, match="too old"):
        engine.check_read_time(stamp_of(pinned), DATABASE)
    assert len(engine.history) <= 3
    engine.close()


def test_a_flood_of_changes_in_one_database_leaves_the_past_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "KEEP_CHANGES", 3)
    kept = history.History(0)
    here, there = place("c/a"), Location("projects/there/databases/(default)", ("c", "a"))
    kept.record(here.database, 10, [(here, b"early")])
    for number in range(10):
        kept.record(there.database, 11 + number, [(there, bytes([number]))])
    assert kept.reaches(here.database, 5, 20)
    assert kept.state_at(here, 5) == (True, b"early")
    assert not kept.reaches(there.database, 16, 20)
    assert kept.state_at(there, 17) == (True, b"\x07")
    assert len(kept) == 4


@given(chance.randomness)
@examples(200)
def test_what_was_asked_and_what_was_forgotten_in_between_changes_no_answer(rng: Random) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(history, "KEEP_CHANGES", 6)
        kept = history.History(0)
        stored: dict[Location, bytes | None] = {}
        versions: list[tuple[int, dict[Location, bytes | None]]] = [(0, {})]
        for micros in range(1, 30):
            changed = rng.sample([place(f"c/{number}") for number in range(5)], rng.randrange(1, 4))
            kept.record(DATABASE, micros, [(location, stored.get(location)) for location in changed])
            for location in changed:
                stored[location] = rng.randbytes(2) if rng.random() < 0.7 else None
            versions.append((micros, dict(stored)))
            if rng.random() < 0.6:
                continue
            for at, then in versions:
                if not kept.reaches(DATABASE, at, micros):
                    continue
                for location in map(place, ("c/0", "c/1", "c/2", "c/3", "c/4")):
                    has_changed, state = kept.state_at(location, at)
                    assert (state if has_changed else stored.get(location)) == then.get(location)
                assert kept.changed_since(DATABASE, at) >= {
                    location for location in stored if stored[location] != then.get(location)
                }
        assert len(kept) <= 6


def test_of_many_databases_the_one_changed_longest_ago_loses_its_past(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "KEEP_CHANGES_IN_ALL", 3)
    kept = history.History(0)
    places = [Location(f"projects/{number}/databases/(default)", ("c", "a")) for number in range(4)]
    first = places[0].database
    kept.pin(first, 1)
    for micros, location in enumerate(places, start=10):
        kept.record(location.database, micros, [(location, b"")])
    assert kept.reaches(first, 1, 13), "an open snapshot needs it"
    kept.unpin(first, 1)
    kept.record(places[3].database, 20, [(places[3], b"")])
    assert [kept.reaches(location.database, 5, 20) for location in places] == [False, False, True, True]
    assert all(kept.reaches(location.database, 19, 20) for location in places), "nothing has changed in them since"
    assert len(kept) == 3


def test_before_its_first_commit_a_firestore_was_empty_unless_it_was_restarted(tmp_path: Any) -> None:
    clock = SteppingClock()
    first = Engine(tmp_path / "db", clock)
    before = first.now_micros() - 60 * 10**6
    put(first, "c/1", {"n": 1})
    assert first.check_read_time(stamp_of(before), DATABASE) == before
    assert first.get(place("c/1"), before) is None
    first.close()
    second = Engine(tmp_path / "db", clock)
    with pytest.raises(RpcError, match="too old"):
        second.check_read_time(stamp_of(before), DATABASE)
    second.close()


def test_a_time_in_the_future_is_refused() -> None:
    clock = SteppingClock()
    engine = Engine(clock=clock)
    with pytest.raises(RpcError, match="future"):
        engine.check_read_time(stamp_of(engine.now_micros() + 1), DATABASE)
    engine.close()


def stamp_of(micros: int) -> Proto:
    stamp = Timestamp(seconds=micros // 10**6, nanos=micros % 10**6 * 1000)
    assert micros_of(stamp) == micros
    return stamp
