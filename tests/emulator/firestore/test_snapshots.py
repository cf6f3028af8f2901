"""Snapshots of a project, and documents seeded from JSON."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio

from firestore_emulator.emulator import FirestoreEmulator
from firestore_emulator.rpc.inprocess import InProcessChannel
from tests.conformance.backends import Backend, Place
from tests.conformance.listener import listening
from tests.conformance.wire import Geo, Stamp, Vector, delete, query, set_, where


class Subject:
    def __init__(self, emulator: FirestoreEmulator, http: httpx.AsyncClient) -> None:
        self.emulator = emulator
        self.backend = Backend(Place("inprocess", InProcessChannel([emulator.service]), None), "p")
        self._http = http

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        answer = await self._http.request(method, f"/emulator/v1/projects/p{path}", json=body)
        return answer.json() if answer.status_code == 200 else answer.status_code

    async def everywhere(self, path: str) -> Any:
        return (await self._http.get(f"/emulator/v1{path}")).json()

    def events(self) -> int:
        [(count,)] = self.emulator.engine.storage.database.rows("SELECT count(*) FROM events")
        return int(count)


@pytest_asyncio.fixture
async def subject() -> AsyncIterator[Subject]:
    emulator = FirestoreEmulator(databases=("(default)", "other"))
    await emulator.start()
    transport = httpx.ASGITransport(app=emulator.http_app)
    async with httpx.AsyncClient(transport=transport, base_url="http://emulator") as http:
        yield Subject(emulator, http)
    await emulator.stop()


async def test_a_project_is_brought_back_to_a_saved_state(subject: Subject) -> None:
    backend, other = subject.backend, Backend(subject.backend.place, "p", "other")
    elsewhere = Backend(subject.backend.place, "q")
    await backend.seed({"c/kept": {"x": 1}, "c/changed": {"x": 1}, "c/deleted": {"x": 1}})
    await other.seed({"c/a": {"x": 1}})
    kept = await backend.update_time("c/kept")
    assert await subject.ask("PUT", "/snapshots/before") == {"documents": 4}
    await backend.commit(
        set_(backend.name("c/changed"), {"x": 2}), set_(backend.name("c/new"), {}), delete(backend.name("c/deleted"))
    )
    await other.seed({"c/a": {"x": 2}})
    await elsewhere.seed({"c/a": {"x": 2}})
    assert await subject.ask("POST", "/snapshots/before:restore") == {"changed": 4}
    assert await backend.paths(query("c", where("x", "==", 1))) == ["c/changed", "c/deleted", "c/kept"]
    assert await backend.paths(query("c")) == ["c/changed", "c/deleted", "c/kept"]
    assert await backend.update_time("c/kept") == kept, "what is as it was is not touched"
    assert await other.fields("c/a") == {"x": 1}
    assert await elsewhere.fields("c/a") == {"x": 2}, "another project"
    assert await subject.ask("POST", "/snapshots/before:restore") == {"changed": 0}


async def test_listeners_hear_of_a_restored_state(subject: Subject) -> None:
    backend = subject.backend
    await backend.seed({"c/a": {"x": 1}})
    await subject.ask("PUT", "/snapshots/one")
    await backend.seed({"c/a": {"x": 2}, "c/b": {}})
    async with listening(backend) as listener:
        await listener.query(query("c"))
        await listener.shows("c/a", "c/b")
        await subject.ask("POST", "/snapshots/one:restore")
        view = await listener.shows("c/a")
        assert view["c/a"] == {"x": 1}


async def test_snapshots_are_listed_replaced_and_forgotten(subject: Subject) -> None:
    assert await subject.ask("POST", "/snapshots/none:restore") == 404
    await subject.ask("PUT", "/snapshots/one")
    await subject.backend.seed({"c/a": {}})
    assert await subject.ask("PUT", "/snapshots/one") == {"documents": 1}
    assert await subject.ask("GET", "/snapshots") == {"snapshots": ["one"]}
    assert await subject.ask("DELETE", "/snapshots/one") == {}
    assert await subject.ask("DELETE", "/snapshots/one") == 404


async def test_documents_are_seeded_from_json(subject: Subject) -> None:
    fields = {
        "number": 5,
        "double": 1.5,
        "nothing": None,
        "yes": True,
        "list": [1, {"deep": "x"}],
        "map": {"a": {"b": 1}},
        "at": {"$timestamp": "1970-01-01T00:00:05Z"},
        "bytes": {"$bytes": "/w=="},
        "place": {"$geopoint": [1.5, -2]},
        "to": {"$reference": "c/b"},
        "vector": {"$vector": [1, 2.5]},
    }
    assert await subject.ask("POST", "/databases/(default):seed", {"c/a": fields, "/c/b/d/e": {}}) == {"documents": 2}
    stored = await subject.backend.fields("c/a")
    assert (stored["at"], stored["bytes"], stored["place"]) == (Stamp(5), b"\xff", Geo(1.5, -2.0))
    assert stored["to"] == subject.backend.ref("c/b")
    assert await subject.backend.paths(query("c", where("vector", "==", Vector((1.0, 2.5))))) == ["c/a"]
    assert {name: stored[name] for name in ("number", "list", "map")} == {
        name: fields[name] for name in ("number", "list", "map")
    }


@pytest.mark.parametrize(
    "body",
    [[], {"c/a": 1}, {"c": {}}, {"c/a": {"x": {"$what": 1}}}, {"c/a": {"x": {"$bytes": "?"}}}, {"c/a": {"x": 2**63}}],
)
async def test_a_seed_that_cannot_be_read_is_refused_as_a_whole(subject: Subject, body: Any) -> None:
    seeds = {"c/good": {}, **body} if isinstance(body, dict) else body
    assert await subject.ask("POST", "/databases/(default):seed", seeds) == 400
    assert await subject.backend.paths(query("c")) == []
    assert await subject.ask("POST", "/databases/none:seed", {}) == 404


async def test_seeding_and_restoring_cause_events_unless_asked_not_to(subject: Subject) -> None:
    trigger = {
        "eventType": "google.cloud.firestore.document.v1.written",
        "document": {"value": "c/{id}", "matchType": "PATH_PATTERN"},
    }
    await subject.ask("POST", "/eventarcTrigger?eventarcTriggerId=t", trigger)
    await subject.ask("POST", "/databases/(default):seed?triggers=false", {"c/a": {"x": 1}})
    await subject.ask("PUT", "/snapshots/one")
    assert subject.events() == 0
    await subject.ask("POST", "/databases/(default):seed", {"c/a": {"x": 2}})
    assert subject.events() == 1
    await subject.ask("POST", "/snapshots/one:restore?triggers=false")
    assert (subject.events(), await subject.backend.fields("c/a")) == (1, {"x": 1})
    await subject.backend.seed({"c/a": {"x": 3}})
    await subject.ask("POST", "/snapshots/one:restore")
    assert subject.events() == 3
    assert await subject.ask("POST", "/snapshots/one:restore?triggers=maybe") == 400


async def test_every_database_that_holds_documents_is_listed(subject: Subject) -> None:
    place = subject.backend.place
    assert await subject.everywhere("/databases") == {"databases": []}
    for project, database in (("q", "(default)"), ("p", "other"), ("p", "(default)")):
        await Backend(place, project, database).seed({"c/a": {"x": 1}, "c/a/d/b": {"x": 1}})
    await Backend(place, "r").seed({"c/a": {"x": 1}})
    gone = Backend(place, "r")
    await gone.commit(delete(gone.name("c/a")))
    names = [one["name"] for one in (await subject.everywhere("/databases"))["databases"]]
    assert names == ["projects/p/databases/(default)", "projects/p/databases/other", "projects/q/databases/(default)"]
