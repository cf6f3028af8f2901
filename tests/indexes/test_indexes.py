"""`firestore.indexes.json` has every index that a query of ours needs, and no other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from google.cloud.firestore import AsyncClient

from firestore_emulator.queries.indexes import IndexRules
from tests.calm import Calm, simulate
from tests.indexes import tour
from tests.indexes.recording import FILE, Notes, content, notes_taken, refusal, times_in

WRITTEN_FOR_EACH_MESSAGE = ("outbox", "messages", "threads", "lanes")
"""The collections whose indexes can become hot spots."""

GROWS_AND_IS_INDEXED = {
    (
        "messages",
        "storedAt",
    ): "a handler reads what people wrote since its last run; within one thread it is no hot spot",
    ("messages", "createdAt"): "a thread's messages are shown in order; within one thread it is no hot spot",
}

SEEDS = range(8)
"""Of simulated worlds."""


@dataclass(frozen=True)
class Played:
    """What went on in them."""

    notes: Notes
    times: set[tuple[str, str]]


@pytest.fixture(scope="module")
def played() -> Played:
    with pytest.MonkeyPatch.context() as monkeypatch, notes_taken(monkeypatch) as notes:
        times = set().union(*(times_in(seed) for seed in SEEDS))
    return Played(notes, times)


@pytest.fixture(scope="module")
def toured() -> Notes:
    """All queries of the tour."""
    with pytest.MonkeyPatch.context() as monkeypatch, notes_taken(monkeypatch) as notes:
        simulate(_tour, sweeps=False)
    assert notes.queries
    return notes


async def _tour(calm: Calm) -> None:
    system = calm.world.client.system
    for ask in tour.OURS.values():
        await ask(system)
    client: AsyncClient = calm.world._client(None)
    for query in tour.CLIENTS.values():
        await query(client).get()


def test_the_tour_asks_every_query_in_the_code() -> None:
    asked = {*tour.OURS, *tour.CLIENTS}
    made = {*tour.places_in_python(), *tour.places_in_clients()}
    assert made - asked == set(), "queries that tests/indexes/tour.py does not ask: add them"
    assert asked - made == set(), "places in tests/indexes/tour.py that make no query any more: take them out"


def test_every_query_has_its_index(toured: Notes) -> None:
    rules = IndexRules.load(FILE)
    assert [told for query in toured.queries if (told := refusal(rules, query))] == []


def _named(index: dict[str, Any]) -> str:
    fields = ", ".join(("-" if one["order"] == "DESCENDING" else "") + one["fieldPath"] for one in index["fields"])
    return f"{index['collectionGroup']}({fields})"


WITHOUT_NEED = {
    "outbox(status, cancelRequested)": "without it the sweep's query joins the index of all queued documents with that "
    "of all cancelled ones, and takes longer with each scheduled message"
}


@pytest.mark.parametrize("index", [one for one in content()["indexes"] if _named(one) not in WITHOUT_NEED], ids=_named)
def test_no_index_is_there_in_vain(toured: Notes, index: dict[str, Any]) -> None:
    others = content()
    others["indexes"].remove(index)
    rules = IndexRules.parse(others)
    assert any(refusal(rules, query) for query in toured.queries), "no query needs it"


def test_what_runs_asks_nothing_that_the_tour_does_not(toured: Notes, played: Played) -> None:
    assert len(played.notes.shapes) > 10
    assert played.notes.shapes <= toured.shapes


def test_fields_that_grow_with_time_are_not_indexed_by_themselves(played: Played) -> None:
    growing = {one for one in played.times if one[0] in WRITTEN_FOR_EACH_MESSAGE}
    assert len(growing) > 15
    assert growing - set(_exempt()) == set(GROWS_AND_IS_INDEXED)


def test_no_exemption_takes_away_what_a_query_uses(toured: Notes) -> None:
    rules = IndexRules.parse({**content(), "indexes": []})
    everything = IndexRules.parse({"indexes": [], "fieldOverrides": []})
    lost = {refusal(rules, query) for query in toured.queries if refusal(everything, query) is None}
    assert lost == {None}


@pytest.mark.parametrize(
    ("collection", "field"),
    [
        ("outbox", "parts"),
        ("messages", "parts"),
        ("runs", "parts"),
        ("reminders", "parts"),
        ("reminders", "targets"),
        ("targets", "targets"),
        ("lanes", "holds"),
        ("lanes", "heldFor"),
        ("lanes", "cursor"),
        ("events", "data"),
        ("jobs", "events"),
    ],
)
def test_large_fields_are_not_indexed(collection: str, field: str) -> None:
    assert (collection, field) in set(_exempt())


def test_documents_that_have_an_end_are_deleted_after_it() -> None:
    told = {one["collectionGroup"] for one in content()["fieldOverrides"] if one.get("ttl")}
    assert told == {"events", "frequency", "incoming", "notifications", "outbox", "uploads"}
    assert all(one["fieldPath"] == "expireAt" for one in content()["fieldOverrides"] if one.get("ttl"))


def test_nothing_is_said_twice() -> None:
    indexes = [json.dumps(one, sort_keys=True) for one in content()["indexes"]]
    overrides = [(one["collectionGroup"], one["fieldPath"]) for one in content()["fieldOverrides"]]
    assert len(set(indexes)) == len(indexes)
    assert len(set(overrides)) == len(overrides)


def _exempt() -> Iterator[tuple[str, str]]:
    for one in content()["fieldOverrides"]:
        if not one["indexes"]:
            yield one["collectionGroup"], one["fieldPath"]
