"""Several databases in one project: each has documents, transactions and listeners of its own."""

from __future__ import annotations

import httpx
import pytest

from tests.conformance.backends import NAMED, Backend, Place, outcome, refused
from tests.conformance.wire import query, set_, where
from tests.patience import PATIENCE_SECONDS


def named(backend: Backend, database_id: str = NAMED) -> Backend:
    return Backend(backend.place, backend.project, database_id)


async def test_a_named_database_has_documents_of_its_own(backend: Backend) -> None:
    other = named(backend)
    await backend.seed({"c/a": {"x": 1}, "c/b": {"x": 1}})
    await other.seed({"c/a": {"x": 2}, "d/a/c/z": {"x": 1}})
    assert await backend.fields("c/a") == {"x": 1}
    assert await other.fields("c/a") == {"x": 2}
    assert await other.paths(query("c")) == ["c/a"]
    assert await other.paths(query("c", where("x", "==", 1), group=True)) == ["d/a/c/z"]
    assert await backend.paths(query("c", where("x", "==", 1), group=True)) == ["c/a", "c/b"]


async def test_a_transaction_belongs_to_its_database(backend: Backend) -> None:
    other = named(backend)
    await other.seed({"c/a": {"x": 1}})
    transaction = await other.begin()
    assert await other.fields("c/a", transaction=transaction) == {"x": 1}
    await backend.seed({"c/a": {"x": 3}})  # another document of the same path: it is not locked
    await other.commit(set_(other.name("c/a"), {"x": 2}), transaction=transaction)
    assert (await backend.fields("c/a"), await other.fields("c/a")) == ({"x": 3}, {"x": 2})


# On ours alone: Google's emulator makes every database at its first use, and has no such calls.


async def asked(backend: Backend, method: str, path: str = "") -> httpx.Response:
    url = f"http://{backend.address}/emulator/v1/projects/{backend.project}/databases{path}"
    async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE_SECONDS) as http:
        return await http.request(method, url)


@pytest.fixture
def ours(grpc_place: Place) -> Backend:
    return Backend(grpc_place)


async def test_a_database_exists_from_its_creation_to_its_deletion_and_in_its_project_alone(ours: Backend) -> None:
    made = named(ours, "made-later")
    with refused("NOT_FOUND"):
        await made.seed({"c/a": {}})
    created = await asked(ours, "POST", "?databaseId=made-later")
    assert (created.status_code, created.json()) == (200, {"name": made.database})
    await made.seed({"c/a": {}})
    assert await outcome(Backend(ours.place, None, "made-later").seed({"c/a": {}})) == "NOT_FOUND"
    listed = (await asked(ours, "GET")).json()["databases"]
    assert [one["name"] for one in listed] == [ours.database, named(ours).database, made.database]
    assert (await asked(ours, "POST", "?databaseId=made-later")).status_code == 409
    assert (await asked(ours, "DELETE", "/made-later")).status_code == 200
    assert (await asked(ours, "DELETE", "/made-later")).status_code == 404
    with refused("NOT_FOUND"):
        await made.get("c/a")
    await asked(ours, "POST", "?databaseId=made-later")
    assert await made.paths(query("c")) == [], "its documents went with it"


@pytest.mark.parametrize("bad", ["", "abc", "Upper-case", "1-digit-first", "hyphen-last-", "a" * 64, "%2Fslash"])
async def test_an_id_that_production_refuses_is_refused(ours: Backend, bad: str) -> None:
    assert (await asked(ours, "POST", f"?databaseId={bad}")).status_code == 400


async def test_a_database_of_every_project_is_not_deleted(ours: Backend) -> None:
    assert (await asked(ours, "DELETE", "/(default)")).status_code == 400
    assert (await asked(ours, "DELETE", f"/{NAMED}")).status_code == 400
