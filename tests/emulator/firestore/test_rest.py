"""The REST side: the same requests told to Google's emulator and to ours, every status and body compared."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from random import Random
from typing import Any

import httpx
import pytest
import pytest_asyncio
from google.protobuf import json_format

from firestore_emulator.wire import rest
from firestore_emulator.wire.rest_messages import HTTP_STATUS
from firestore_emulator.wire.rest_routes import BINDINGS
from tests.conformance.backends import Place
from tests.conformance.wire import document, query, where
from tests.emulator.firestore import chance
from tests.emulator.firestore.rest_stories import STORIES, commit, run
from tests.emulator.firestore.rest_story import Ask, Teller
from tests.patience import PATIENCE_SECONDS

on_one_loop = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE_SECONDS) as client:
        yield client


def teller(http: httpx.AsyncClient, place: Place, project: str | None = None) -> Teller:
    assert place.address is not None
    return Teller(http, place.address, project or f"p-{secrets.token_hex(6)}")


@on_one_loop
@pytest.mark.parametrize("story", STORIES)
async def test_it_is_answered_as_by_googles_emulator(
    http: httpx.AsyncClient, grpc_place: Place, official_place: Place, story: str
) -> None:
    asked = STORIES[story]
    expected, answered = await asyncio.gather(
        teller(http, official_place).tell(asked), teller(http, grpc_place).tell(asked)
    )
    for ask, theirs, ours in zip(asked, expected, answered, strict=True):
        assert ours == theirs, ask
    assert {answer.status for answer in answered} != {404} or "not found" in story


# --- random requests


def as_json(message: Any) -> Any:
    return json_format.MessageToDict(message)


def random_story(rng: Random) -> list[Ask]:
    """Writes by every road, then reads by every road. The texts of queries and values are those of the query tests."""
    story = [
        commit(*(_random_write(rng, path, data) for path, data in chance.commit(rng)))
        if rng.random() < 0.4
        else _random_single_write(rng)
        for _ in range(6)
    ]
    for _ in range(8):
        path = rng.choice(chance.PATHS)
        parent = chance.parent(rng)
        story.append(
            rng.choice(
                [
                    Ask("GET", f"/{path}{_random_query(rng, 'mask.fieldPaths')}"),
                    Ask("GET", f"/{path.rpartition('/')[0]}?pageSize={rng.randrange(4)}"),
                    Ask("POST", ":batchGet", {"documents": [f"<root>/{path}"]}),
                    Ask("POST", f"{'/' + parent if parent else ''}:listCollectionIds", {}),
                    run(as_json(chance.structured_query(rng)), f"/{parent}" if parent else ""),
                    run(as_json(chance.structured_query(rng))),
                ]
            )
        )
    return story


def _random_fields(data: dict[str, Any] | None) -> dict[str, Any]:
    return {"fields": as_json(document("", data or {})).get("fields", {})}


def _random_write(rng: Random, path: str, data: dict[str, Any] | None) -> dict[str, Any]:
    write: dict[str, Any] = (
        {"delete": f"<root>/{path}"} if data is None else {"update": {"name": f"<root>/{path}", **_random_fields(data)}}
    )
    return write | ({"currentDocument": {"exists": rng.random() < 0.5}} if rng.random() < 0.1 else {})


def _random_single_write(rng: Random) -> Ask:
    path = rng.choice(chance.PATHS)
    collection, _, document_id = path.rpartition("/")
    fields = _random_fields(chance.fields(rng))
    guard = f"currentDocument.exists={rng.choice(['true', 'false'])}" if rng.random() < 0.5 else ""
    return rng.choice(
        [
            Ask("POST", f"/{collection}?documentId={document_id}", fields),
            Ask("PATCH", f"/{path}{_random_query(rng, 'updateMask.fieldPaths', guard)}", fields),
            Ask("PATCH", f"/{path}?{guard}", fields),
            Ask("DELETE", f"/{path}?{guard}"),
        ]
    )


def _random_query(rng: Random, mask: str, *others: str) -> str:
    return "?" + "&".join([f"{mask}={path}" for path in rng.sample(["a", "b", "m.k"], rng.randrange(3))] + [*others])


@on_one_loop
@pytest.mark.parametrize("seed", range(12))
async def test_random_requests_are_answered_as_by_googles_emulator(
    http: httpx.AsyncClient, grpc_place: Place, official_place: Place, seed: int
) -> None:
    # References in random queries name the project p, so both databases are that one, emptied.
    asked = [Ask("DELETE", "//emulator/v1/<root>"), *random_story(Random(seed))]
    expected, answered = await asyncio.gather(
        teller(http, official_place, "p").tell(asked), teller(http, grpc_place, "p").tell(asked)
    )
    for ask, theirs, ours in zip(asked, expected, answered, strict=True):
        assert ours == theirs, ask


@on_one_loop
async def test_random_stories_find_and_refuse(http: httpx.AsyncClient, grpc_place: Place) -> None:
    """Else comparing them would prove little."""
    seen = [answer for seed in range(12) for answer in await teller(http, grpc_place).tell(random_story(Random(seed)))]
    assert sum(answer.status == 200 and "fields" in str(answer.body) for answer in seen) > 40
    assert {400, 404, 409} <= {answer.status for answer in seen}


@on_one_loop
async def test_broken_requests_are_never_our_fault(http: httpx.AsyncClient, grpc_place: Place) -> None:
    told = teller(http, grpc_place)
    statuses = set()
    for seed in range(300):
        rng = Random(seed)
        ask = rng.choice(random_story(rng))
        text = bytearray(str(as_json(document("", chance.fields(rng)))).replace("'", '"').encode())
        for _ in range(rng.randrange(3)):
            text[rng.randrange(len(text))] = rng.randrange(256)
        path = ask.path + rng.choice(["", "%ff", "?%ff=1", "/%00", "?a.b.c=1", "?mask.fieldPaths.x=1", "/" * 50, ":"])
        response = await told.send(Ask(ask.verb, path, None if ask.verb == "GET" else bytes(text)))
        assert response.status_code < 500, (ask.verb, path, bytes(text), response.text)
        statuses.add(response.status_code)
    assert {200, 400, 404} <= statuses


@on_one_loop
async def test_a_request_that_is_too_large_is_refused(
    http: httpx.AsyncClient, grpc_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = teller(http, grpc_place)
    large = Ask("PATCH", "/c/a", {"fields": {"a": {"stringValue": "x" * 11 * 1024 * 1024}}})
    assert (await told.ask(large)).body == "400 INVALID_ARGUMENT"
    monkeypatch.setattr(rest, "MAX_BODY_BYTES", 1000)
    refused = await told.send(Ask("PATCH", "/c/a", " " * 1001 + "{}"))
    assert "1000 bytes" in refused.json()["error"]["message"]
    assert (await told.ask(Ask("PATCH", "/c/a", {}))).status == 200


@on_one_loop
async def test_a_client_that_leaves_in_the_middle_is_no_error(
    http: httpx.AsyncClient, grpc_place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    assert grpc_place.address is not None
    host, _, port = grpc_place.address.partition(":")
    for path in ("/v1/projects/p/databases/(default)/documents:commit", "/emulator/v1/projects/p/eventarcTrigger"):
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n{{".encode())
        writer.write_eof()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await reader.read()
        writer.close()
    assert (await teller(http, grpc_place).ask(Ask("PATCH", "/c/a", {}))).status == 200
    assert [record.getMessage() for record in caplog.records if record.levelname in ("ERROR", "CRITICAL")] == []


# --- the tables


def test_the_bindings_are_those_of_googles_own_client() -> None:
    """Its REST transport is made from the annotations of the protocol."""
    from google.cloud.firestore_v1.services.firestore.transports import rest_base

    theirs = {
        (name.removeprefix("_Base"), option["method"].upper(), option["uri"], option.get("body", ""))
        for name, call in vars(rest_base._BaseFirestoreRestTransport).items()
        if hasattr(call, "_get_http_options") and "Operation" not in name
        for option in call._get_http_options()
    }
    assert {(one.call, one.verb, one.template, one.body) for one in BINDINGS} == theirs


def test_each_code_has_the_status_that_googles_client_reads_it_from() -> None:
    from google.api_core import exceptions

    for code, status in HTTP_STATUS.items():
        assert exceptions.from_grpc_status(code, "").code == status, code


# --- a client of Google's that speaks REST


@on_one_loop
async def test_googles_python_client_works_over_rest(grpc_place: Place) -> None:
    from google.api_core.exceptions import Conflict, NotFound
    from google.auth.credentials import AnonymousCredentials
    from google.cloud.firestore_v1.services.firestore import FirestoreClient
    from google.cloud.firestore_v1.services.firestore.transports import FirestoreRestTransport

    root = f"projects/p-{secrets.token_hex(6)}/databases/(default)/documents"

    def use(address: str) -> None:
        transport = FirestoreRestTransport(host=address, url_scheme="http", credentials=AnonymousCredentials())
        with FirestoreClient(transport=transport) as client:
            first = {"name": f"{root}/c/a b", "fields": {"n": {"integer_value": 1}}}
            client.update_document(request={"document": first, "current_document": {"exists": False}})
            with pytest.raises(Conflict):
                client.update_document(request={"document": first, "current_document": {"exists": False}})
            below = {"parent": f"{root}/c/a b", "collection_id": "s", "document_id": "x+y"}
            assert client.create_document(request={**below, "document": {}}).name == f"{root}/c/a b/s/x+y"
            assert client.get_document(request={"name": f"{root}/c/a b"}).fields["n"].integer_value == 1
            with pytest.raises(NotFound):
                client.get_document(request={"name": f"{root}/c/none"})
            asked = {"parent": root, "structured_query": query("c", where("n", "==", 1))}
            found = [answer.document.name for answer in client.run_query(request=asked) if answer.document]
            assert found == [f"{root}/c/a b"]
            listed = client.list_documents(request={"parent": root, "collection_id": "c", "order_by": "n desc"})
            assert [one.name for one in listed] == found
            client.delete_document(request={"name": found[0]})
            assert list(client.list_documents(request={"parent": root, "collection_id": "c"})) == []

    assert grpc_place.address is not None
    await asyncio.to_thread(use, grpc_place.address)
