"""What changed since a moment turns what was seen then into what is there now, for as long as the moment is known."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given

from firestore_emulator.documents.names import Location, location_of
from firestore_emulator.documents.protos import Proto, Target
from firestore_emulator.listen.existence_filter import existence_filter
from firestore_emulator.listen.resume import resumed_from, token_at
from firestore_emulator.listen.targets import Deleted, DocumentsTarget, Effect, QueryTarget, Shown
from firestore_emulator.queries.query import Query
from firestore_emulator.storage import history
from firestore_emulator.storage.engine import Engine
from tests.conformance.listener import might_hold
from tests.conformance.wire import delete, set_
from tests.emulator.firestore import chance
from tests.emulator.firestore.support import DATABASE, SteppingClock, commit, examples, name, place, put
from tests.emulator.firestore.test_queries import asked_of

View = dict[Location, bytes]


@given(chance.randomness)
@examples(80)
def test_what_changed_since_a_moment_turns_its_view_into_todays(rng: Random) -> None:
    engine = Engine(clock=SteppingClock())  # which stands still: a commit must get a later time than what was told
    questions = [one for _ in range(6) if (one := asked_of(rng)) is not None]
    watched = tuple(place(path) for path in chance.PATHS[::2])
    past: list[tuple[int, list[View], View]] = []
    for _ in range(6):
        past.append((engine.moment(), [_found(engine, one) for one in questions], _standing(engine, watched)))
        writes = chance.commit(rng)
        commit(engine, *(delete(name(path)) if data is None else set_(name(path), data) for path, data in writes))
    for micros, views, standing in past:
        assert resumed_from(Target(resume_token=token_at(micros)), DATABASE, engine) == micros
        for question, view in zip(questions, views, strict=True):
            target = QueryTarget(1, question)
            _fold(view, list(target.changed_since(engine, micros)))
            assert view == _found(engine, question)
            assert set(target.matching(engine)) == view.keys()
        documents = DocumentsTarget(2, watched)
        for effect in documents.changed_since(engine, micros):
            standing.pop(effect.location, None)
            if isinstance(effect, Shown):
                standing[effect.location] = _data(effect.document)
        assert standing == _standing(engine, watched)
        assert set(documents.matching(engine)) == standing.keys()
    engine.close()


def _fold(view: View, effects: list[Effect]) -> None:
    """Each effect must be news to the view."""
    for effect in effects:
        if isinstance(effect, Shown):
            assert view.get(effect.location) != _data(effect.document)
            view[effect.location] = _data(effect.document)
        else:
            del view[effect.location]


def _found(engine: Engine, query: Query) -> View:
    return {location_of(document): _data(document) for document in engine.run(query)}


def _standing(engine: Engine, locations: tuple[Location, ...]) -> View:
    found = ((location, engine.get(location)) for location in locations)
    return {location: _data(document) for location, document in found if document is not None}


def _data(document: Proto) -> bytes:
    data: bytes = document.SerializeToString(deterministic=True)
    return data


def test_a_moment_that_history_has_let_go_is_not_taken_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "KEEP_CHANGES", 2)
    engine = Engine(clock=SteppingClock())
    first = engine.moment()
    put(engine, "c/a", {"x": 1})
    put(engine, "c/a", {"x": 2})
    assert resumed_from(Target(resume_token=token_at(first)), DATABASE, engine) == first
    put(engine, "c/a", {"x": 3})
    assert resumed_from(Target(resume_token=token_at(first)), DATABASE, engine) is None
    engine.close()


def test_a_moment_before_everything_was_cleared_is_taken_up_with_the_deletions() -> None:
    engine = Engine(clock=SteppingClock())
    put(engine, "c/a", {"x": 1})
    before = engine.moment()
    engine.clear(DATABASE)
    assert resumed_from(Target(resume_token=token_at(before)), DATABASE, engine) == before
    documents = DocumentsTarget(1, (place("c/a"), place("c/none")))
    assert list(documents.changed_since(engine, before)) == [Deleted(1, place("c/a"))]
    engine.close()


@pytest.mark.parametrize("count", [0, 1, 7, 1000])
def test_an_existence_filter_holds_every_name_and_few_others(count: int) -> None:
    filter_ = existence_filter(2, [place(f"c/{number}") for number in range(count)], with_names=True).filter
    assert filter_.count == count
    assert all(might_hold(filter_, name(f"c/{number}")) for number in range(count))
    assert sum(might_hold(filter_, name(f"d/{number}")) for number in range(1000)) < 30
