"""Operations as Google bills them: what each call costs, read at the emulator's own address."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio

from firestore_emulator.pytest_plugin import unsigned_token
from tests.conformance.backends import SERVICE, Backend, Conversation, Place, outcome
from tests.conformance.listener import Listener, listening
from tests.conformance.wire import CONVERSATIONS, REQUESTS, DocumentMask, Proto, delete, query, set_, where
from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.asyncio(loop_scope="session")

TOKEN = unsigned_token({"sub": "ann", "user_id": "ann"})
Spent = tuple[int, int, int]
"""Reads, writes, deletes."""


class Metered:
    """A project whose bill can be read."""

    def __init__(self, place: Place, http: httpx.AsyncClient) -> None:
        self.backend = Backend(place)
        self._http = http
        self.admin = f"http://{place.address}/emulator/v1/projects/{self.backend.project}"

    async def bill(self, **parameters: str) -> dict[str, Any]:
        answer = await self._http.get(f"{self.admin}:billing", params=parameters)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    async def lines(self) -> dict[str, Spent]:
        """What each call cost, since the last time that it was asked."""
        lines = (await self.bill())["lines"]
        await self._http.delete(f"{self.admin}:billing")
        return {f"{one['call']} {one['collection']}": (one["reads"], one["writes"], one["deletes"]) for one in lines}

    async def load_rules(self, text: str) -> None:
        body = {"rules": {"files": [{"name": "rules", "content": text}]}}
        assert (await self._http.put(f"{self.admin}:securityRules", json=body)).status_code == 200

    def conversation(self, method: str) -> Conversation:
        """A stream of a user."""
        answer = CONVERSATIONS[method].FromString
        stream = self.backend.channel.stream_stream(SERVICE + method, lambda one: one.SerializeToString(), answer)
        return Conversation(stream(metadata=(("authorization", f"Bearer {TOKEN}"),)))

    async def as_user(self, verb: str, path: str, body: Any = None) -> int:
        url = f"http://{self.backend.address}/v1/{self.backend.root}{path}"
        answer = await self._http.request(verb, url, json=body, headers={"authorization": f"Bearer {TOKEN}"})
        return answer.status_code

    async def clear_below(self, path: str) -> None:
        url = f"{self.admin}/databases/(default)/documents/{path}"
        assert (await self._http.delete(url)).status_code == 200


@pytest_asyncio.fixture(loop_scope="session")
async def metered(grpc_place: Place) -> AsyncIterator[Metered]:
    async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE_SECONDS) as http:
        yield Metered(grpc_place, http)


async def filled(metered: Metered, count: int = 3) -> Backend:
    backend = metered.backend
    await backend.commit(*(set_(backend.name(f"c/{number:04}"), {"x": number}) for number in range(count)))
    await metered.lines()
    return backend


async def test_writes_and_deletes_count_whether_they_change_anything_or_not(metered: Metered) -> None:
    backend = metered.backend
    await backend.commit(
        set_(backend.name("c/a"), {"x": 1}), set_(backend.name("d/a"), {}), delete(backend.name("c/z"))
    )
    await backend.commit(set_(backend.name("c/a"), {"x": 1}))
    assert await metered.lines() == {"Commit c": (0, 2, 1), "Commit d": (0, 1, 0)}


async def test_a_commit_that_is_refused_costs_nothing(metered: Metered) -> None:
    backend = await filled(metered)
    refused = backend.commit(set_(backend.name("c/new"), {}), set_(backend.name("c/0000"), {}, exists=False))
    assert await outcome(refused) == "ALREADY_EXISTS"
    assert await metered.lines() == {}


async def test_a_batch_write_costs_the_writes_that_were_made(metered: Metered) -> None:
    backend = await filled(metered)
    writes = [set_(backend.name("c/new"), {}), set_(backend.name("c/0000"), {}, exists=False)]
    await backend.call("BatchWrite", REQUESTS["BatchWrite"](database=backend.database, writes=writes))
    assert await metered.lines() == {"BatchWrite c": (0, 1, 0)}


async def test_a_document_is_a_read_whether_it_exists_or_not(metered: Metered) -> None:
    backend = await filled(metered)
    await backend.get("c/0000", mask=DocumentMask())
    await outcome(backend.get("c/none"))
    names = [backend.name(path) for path in ("c/0000", "c/0000", "c/none", "d/none")]
    await backend.call("BatchGetDocuments", REQUESTS["BatchGetDocuments"](database=backend.database, documents=names))
    expected = {"GetDocument c": (2, 0, 0), "BatchGetDocuments c": (2, 0, 0), "BatchGetDocuments d": (1, 0, 0)}
    assert await metered.lines() == expected


@pytest.mark.parametrize(
    ("asked", "reads"),
    [
        (query("c"), 3),
        (query("c", select=[]), 3),
        (query("c", limit=2), 2),
        (query("c", where("x", ">", 100)), 1),
        (query("c", offset=2), 3),
        (query("c", offset=1, limit=1), 2),
        (query("c", offset=50), 3),
        (query("c", limit=0), 1),
    ],
)
async def test_a_query_is_a_read_for_each_document_it_returns_or_skips_and_one_at_least(
    metered: Metered, asked: Proto, reads: int
) -> None:
    backend = await filled(metered)
    await backend.run(asked)
    assert await metered.lines() == {"RunQuery c": (reads, 0, 0)}


@pytest.mark.parametrize(
    ("documents", "kinds", "reads"),
    [(0, ("count",), 1), (1000, ("count",), 1), (1001, ("count",), 2), (1500, ("sum", "count", "avg"), 2)],
)
async def test_an_aggregation_is_a_read_for_each_thousand_entries(
    metered: Metered, documents: int, kinds: tuple[str, ...], reads: int
) -> None:
    backend = await filled(metered, documents)
    request = REQUESTS["RunAggregationQuery"](parent=backend.root)
    request.structured_aggregation_query.structured_query.CopyFrom(query("c"))
    for kind in kinds:
        added = getattr(request.structured_aggregation_query.aggregations.add(), kind)
        added.SetInParent()
        if kind != "count":
            added.field.field_path = "x"
    await backend.call("RunAggregationQuery", request)
    assert await metered.lines() == {"RunAggregationQuery c": (reads, 0, 0)}


async def test_listings_are_queries_and_a_list_of_collections_is_one_read(metered: Metered) -> None:
    backend = await filled(metered)
    await backend.call("ListDocuments", REQUESTS["ListDocuments"](parent=backend.root, collection_id="c", page_size=2))
    await backend.call("ListDocuments", REQUESTS["ListDocuments"](parent=backend.root, collection_id="none"))
    await backend.call("ListCollectionIds", REQUESTS["ListCollectionIds"](parent=backend.root))
    assert await metered.lines() == {
        "ListDocuments c": (2, 0, 0),
        "ListDocuments none": (1, 0, 0),
        "ListCollectionIds *": (1, 0, 0),
    }


async def test_a_listener_costs_its_first_result_and_then_what_changes_in_it(metered: Metered) -> None:
    backend = await filled(metered)
    async with listening(backend) as listener:
        await listener.query(query("c", where("x", "<", 10)))
        await listener.shows("c/0000", "c/0001", "c/0002")
        assert await metered.lines() == {"Listen c": (3, 0, 0)}
        for change, shown, spent in (
            (set_(backend.name("c/new"), {"x": 5}), ("c/0000", "c/0001", "c/0002", "c/new"), (1, 0, 0)),
            (set_(backend.name("c/new"), {"x": 50}), ("c/0000", "c/0001", "c/0002"), (1, 0, 0)),
            (delete(backend.name("c/0002")), ("c/0000", "c/0001"), None),
        ):
            await backend.commit(change)
            await listener.shows(*shown)
            assert (await metered.lines()).get("Listen c") == spent, shown
        await backend.commit(set_(backend.name("c/elsewhere"), {"x": 99}), set_(backend.name("c/0001"), {"x": 2}))
        await listener.until(lambda view: view.get("c/0001") == {"x": 2})
        assert (await metered.lines())["Listen c"] == (1, 0, 0)
    async with listening(backend) as listener:
        await listener.query(query("none"))
        await listener.shows()
    assert await metered.lines() == {"Listen none": (1, 0, 0)}


async def test_a_listener_that_is_taken_up_again_pays_for_what_changed(metered: Metered) -> None:
    backend = await filled(metered)
    async with listening(backend) as listener:
        await listener.query(query("c"))
        await listener.shows("c/0000", "c/0001", "c/0002")
        token = listener.kept.resume_token
    await backend.commit(set_(backend.name("c/0001"), {"x": 7}), delete(backend.name("c/0002")))
    await metered.lines()
    async with listening(backend) as listener:
        await listener.query(query("c"), resume_token=token)
        await listener.until(lambda view: view.get("c/0001") == {"x": 7})
    assert await metered.lines() == {"Listen c": (1, 0, 0)}


RULES = """
rules_version = '2';
service cloud.firestore {
  match /databases/{database}/documents {
    function member() {
      return get(/databases/$(database)/documents/members/$(request.auth.uid)).data.level > 0
        && exists(/databases/$(database)/documents/members/$(request.auth.uid))
        && exists(/databases/$(database)/documents/teams/one);
    }
    match /c/{id} { allow read, write: if member(); }
    match /shut/{id} { allow read: if !exists(/databases/$(database)/documents/members/ann); }
  }
}
"""


async def test_what_rules_read_is_billed_once_a_request_even_if_they_refuse(metered: Metered) -> None:
    backend = metered.backend
    await backend.seed({"members/ann": {"level": 1}, "teams/one": {}, "c/a": {}})
    await metered.load_rules(RULES)
    await metered.lines()
    rules = {"security rules members": (1, 0, 0), "security rules teams": (1, 0, 0)}
    assert await metered.as_user("GET", "/c/a") == 200
    assert await metered.lines() == {"GetDocument c": (1, 0, 0), **rules}
    assert await metered.as_user("PATCH", "/c/b", {}) == 200
    assert await metered.lines() == {"UpdateDocument c": (0, 1, 0), **rules}
    assert await metered.as_user("GET", "/c") == 200
    assert await metered.lines() == {"ListDocuments c": (2, 0, 0), **rules}
    assert await metered.as_user("GET", "/shut/a") == 403
    assert await metered.lines() == {"security rules members": (1, 0, 0)}


async def test_the_rules_of_a_listener_are_billed_again_with_each_change_of_its_result(metered: Metered) -> None:
    backend = metered.backend
    await backend.seed({"members/ann": {"level": 1}, "teams/one": {}, "c/a": {}})
    await metered.load_rules(RULES)
    await metered.lines()
    rules = {"security rules members": (1, 0, 0), "security rules teams": (1, 0, 0)}
    listener = Listener(backend, metered.conversation("Listen"))
    await listener.query(query("c"))
    await listener.shows("c/a")
    assert await metered.lines() == {"Listen c": (1, 0, 0), **rules}
    await backend.commit(set_(backend.name("c/b"), {}))
    await listener.shows("c/a", "c/b")
    assert await metered.lines() == {"Commit c": (0, 1, 0), "Listen c": (1, 0, 0), **rules}


async def test_each_project_has_a_bill_and_each_call_can_be_looked_at(metered: Metered, grpc_place: Place) -> None:
    backend = await filled(metered)
    await Backend(grpc_place).seed({"c/elsewhere": {}})
    await backend.run(query("c"))
    await backend.run(query("c", limit=1))
    bill = await metered.bill(recent="10")
    assert (bill["reads"], bill["writes"], bill["deletes"]) == (4, 0, 0)
    assert [(one["call"], one["reads"]) for one in bill["recent"]] == [("RunQuery", 3), ("RunQuery", 1)]
    [line] = bill["lines"]
    assert (line["calls"], line["reads"]) == (2, 4)


async def test_clearing_is_not_billed(metered: Metered) -> None:
    await filled(metered)
    await metered.clear_below("c")
    assert await metered.lines() == {}
