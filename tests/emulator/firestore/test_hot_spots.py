"""The hot-spot meter: the busiest window of each document and of each index range whose values grow with time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest

from firestore_emulator.meters import hot_spots
from firestore_emulator.meters.hot_spots import HotSpots
from firestore_emulator.queries.indexes import IndexRules
from firestore_emulator.storage.engine import Engine
from tests.conformance.backends import Backend, Place
from tests.conformance.wire import Plain, Stamp, set_
from tests.emulator.firestore.support import SteppingClock, drop, put
from tests.emulator.firestore.world import World, in_virtual_time
from tests.patience import PATIENCE_SECONDS

INDEXES = {
    "indexes": [
        {
            "collectionGroup": "c",
            "queryScope": "COLLECTION",
            "fields": [{"fieldPath": "status", "order": "ASCENDING"}, {"fieldPath": "at", "order": "DESCENDING"}],
        },
    ],
    "fieldOverrides": [
        {"collectionGroup": "c", "fieldPath": "at", "indexes": []},
        {
            "collectionGroup": "c",
            "fieldPath": "number",
            "indexes": [{"order": "ASCENDING", "queryScope": "COLLECTION_GROUP"}],
        },
    ],
}


class Metered:
    def __init__(self, rules: IndexRules | None = None) -> None:
        self.clock = SteppingClock()
        self.engine = Engine(clock=self.clock, index_rules=rules)
        self.engine.hot_spots.start()
        self.random = Random(7)

    def now(self) -> Stamp:
        return Stamp(int(self.clock.now.timestamp()), self.clock.now.microsecond * 1000)

    def id(self) -> str:
        return f"{self.random.getrandbits(80):020x}"

    def put(self, data: dict[str, Plain], path: str | None = None, then_seconds: float = 0.1) -> None:
        put(self.engine, path or f"c/{self.id()}", data)
        self.clock.step(seconds=then_seconds)

    def report(self) -> HotSpots:
        return self.engine.hot_spots.report()

    def growing(self) -> dict[str, int]:
        """Collection, field and values before it, with the writes of the busiest window."""
        return {" ".join([one.collection, one.field, *one.behind]): one.writes for one in self.report().ranges}


@pytest.fixture
def metered() -> Iterator[Metered]:
    made = Metered()
    yield made
    made.engine.close()


def test_a_document_counts_the_writes_of_its_busiest_window(metered: Metered) -> None:
    for number in range(10):
        metered.put({"n": number}, "c/slow", then_seconds=30)
    for number in range(90):
        metered.put({"n": number}, "c/fast", then_seconds=1)
    drop(metered.engine, "c/fast")
    fast, slow = metered.report().documents
    assert (fast.name.rpartition("/")[2], fast.writes, fast.per_second) == ("fast", 60, 1.0)
    assert (slow.name.rpartition("/")[2], slow.writes) == ("slow", 2)


def test_times_that_grow_are_found_and_random_and_constant_values_are_not(metered: Metered) -> None:
    random = metered.random
    for number in range(700):
        late = metered.now().seconds + random.randrange(5)
        data: dict[str, Plain] = {
            "createdAt": metered.now(),
            "dueAt": Stamp(late),
            "number": number,
            "map": {"text": f"{number:08}"},
            "random": random.random(),
            "status": random.choice(["queued", "sent"]),
            "constant": "x",
            "falling": -number,
        }
        metered.put(data)
    assert metered.growing() == {"c createdAt": 600, "c dueAt": 600, "c number": 600, "c map.text": 600}
    assert metered.report().ranges[0].per_second == 10.0


def test_a_batch_with_one_time_counts_and_a_change_of_another_field_does_not(metered: Metered) -> None:
    names = [f"c/{metered.id()}" for _ in range(100)]
    for name in names:
        put(metered.engine, name, {"at": metered.now()})
    assert metered.growing() == {"c at": 100}
    for name in names:
        put(metered.engine, name, {"n": metered.random.random()}, mask=["n"])
    assert metered.growing() == {"c at": 100}


def test_ids_that_grow_are_a_range_of_their_collection(metered: Metered) -> None:
    for number in range(50):
        metered.put({}, f"a/x/c/{number:06}")
        metered.put({}, f"a/y/c/{metered.id()}")
    assert metered.growing() == {"a/x/c __name__": 50}


def test_a_composite_index_is_a_range_for_each_value_before_and_exempt_fields_are_none() -> None:
    metered = Metered(IndexRules.parse(INDEXES))
    for number in range(90):
        status = "queued" if number % 3 else "sent"
        metered.put({"status": status, "at": metered.now(), "number": number}, f"p/{number % 2}/c/{metered.id()}")
    found = metered.report().ranges
    assert all(one.is_group == (one.field == "number") for one in found)
    assert metered.growing() == {
        "c number": 90,
        "p/0/c at 'queued'": 30,
        "p/1/c at 'queued'": 30,
    }, "the index of sent has too few entries to judge"
    metered.engine.close()


def test_the_busiest_window_is_remembered_when_it_is_long_past(metered: Metered) -> None:
    for number in range(40):
        metered.put({"n": number}, "c/once-busy")
    for _ in range(20):
        metered.put({}, f"d/{metered.id()}", then_seconds=300)
    busiest, *_ = metered.report().documents
    assert (busiest.name.rpartition("/")[2], busiest.writes) == ("once-busy", 40)
    assert metered.growing() == {"c n": 40}
    assert len(metered.engine.hot_spots._documents) < 10, "documents that were written once are let go"


def test_it_counts_from_its_start_and_can_be_reset_and_stopped(metered: Metered) -> None:
    meter = metered.engine.hot_spots
    metered.put({}, "c/a")
    meter.reset("another-project")
    assert len(metered.report().documents) == 1
    meter.reset("p")
    assert metered.report().documents == ()
    meter.start(window_seconds=1)
    for number in range(3):
        metered.put({"n": number}, "c/a", then_seconds=0.6)
    assert metered.report().documents[0].per_second == 2.0
    meter.stop()
    metered.put({}, "c/b")
    assert (metered.report().is_counting, len(metered.report().documents)) == (False, 1)
    with pytest.raises(ValueError, match="longer than zero"):
        meter.start(0)


def test_many_documents_do_not_fill_the_memory(metered: Metered, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hot_spots, "MOST_KEPT", 5)
    for number in range(30):
        for times in range(2):
            metered.put({"n": times}, f"c/{number}", then_seconds=40)
    assert len(metered.engine.hot_spots._documents) <= 5 + 2


@in_virtual_time()
async def test_it_counts_by_virtual_time(world: World) -> None:
    meter = world.emulator.engine.hot_spots
    meter.start()
    for number in range(120):
        await world.backend.commit(set_(world.backend.name("c/a"), {"n": number}))
        await asyncio.sleep(0.5)
    [document] = meter.report().documents
    assert (document.writes, document.per_second) == (120, 2.0)


def test_it_keeps_the_rules_of_an_index_file(tmp_path: Path) -> None:
    file = tmp_path / "firestore.indexes.json"
    file.write_text(json.dumps(INDEXES))
    metered = Metered(IndexRules.load(file))
    for number in range(30):
        metered.put({"at": metered.now(), "other": number})
    assert metered.growing() == {"c other": 30}
    metered.engine.close()


@pytest.mark.asyncio(loop_scope="session")
async def test_it_is_started_read_and_reset_over_http(grpc_place: Place) -> None:
    backend = Backend(grpc_place)
    address = f"http://{backend.address}/emulator/v1/projects/{backend.project}:hotSpots"

    async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE_SECONDS) as http:

        async def asked(method: str, **parameters: Any) -> Any:
            answer = await http.request(method, address, params=parameters)
            return answer.json() if answer.status_code == 200 else answer.status_code

        assert await asked("POST", windowSeconds="0") == 400
        assert await asked("POST", windowSeconds="10") == {}
        for number in range(30):
            await backend.commit(set_(backend.name("c/a"), {"n": number}), set_(backend.name(f"d/{number:04}"), {}))
        found = await asked("GET", most="1")
        [document] = found["documents"]
        [range_] = found["ranges"]
        assert (found["is_counting"], found["window_seconds"]) == (True, 10.0)
        assert (document["name"], document["writes"], document["per_second"]) == (backend.name("c/a"), 30, 3.0)
        assert (range_["writes"], range_["field"]) in ((30, "n"), (30, "__name__"))
        assert await asked("DELETE") == {}
        assert (await asked("GET"))["documents"] == []
