"""Clearing a database deletes its documents now, and leaves its past and all other databases as they are."""

from __future__ import annotations

import httpx

from tests.conformance.backends import Backend, refused
from tests.conformance.wire import query
from tests.patience import PATIENCE_SECONDS


async def clear(backend: Backend) -> None:
    url = f"http://{backend.address}/emulator/v1/{backend.root}"
    async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE_SECONDS) as http:
        assert (await http.delete(url)).status_code == 200


async def test_a_snapshot_of_one_project_outlives_the_clearing_of_another(socket_backend: Backend) -> None:
    other = Backend(socket_backend.place)
    await other.seed({"c/a": {"x": 0}})
    await socket_backend.seed({"c/a": {"x": 1}})
    then = (await socket_backend.update_time("c/a")).proto()
    snapshot = await socket_backend.begin_read_only()
    await socket_backend.seed({"c/a": {"x": 2}, "c/b": {}})
    await clear(other)
    assert not await other.exists("c/a")
    for moment in ({"transaction": snapshot}, {"read_time": then}):
        assert await socket_backend.fields("c/a", **moment) == {"x": 1}
        assert await socket_backend.paths(query("c"), **moment) == ["c/a"]
    assert await socket_backend.fields("c/a") == {"x": 2}


async def test_a_snapshot_of_a_project_outlives_its_own_clearing(socket_backend: Backend) -> None:
    await socket_backend.seed({"c/a": {"x": 1}})
    then = (await socket_backend.update_time("c/a")).proto()
    snapshot = await socket_backend.begin_read_only()
    await clear(socket_backend)
    for moment in ({"transaction": snapshot}, {"read_time": then}):
        assert await socket_backend.fields("c/a", **moment) == {"x": 1}
        assert await socket_backend.paths(query("c"), **moment) == ["c/a"]
    with refused("NOT_FOUND"):
        await socket_backend.get("c/a")
    assert await socket_backend.paths(query("c")) == []
