"""Each SDK while our emulator is killed and comes back. Google's is no judge here: it keeps nothing when it ends."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from google.auth.credentials import AnonymousCredentials
from google.cloud import firestore

from firestore_emulator.official import HOST_VARIABLE
from tests.client import node
from tests.client.node import Results, names_in
from tests.sdks.restarts import Mortal, mortal_emulator, obeying
from tests.sdks.test_node_servers import SDKS
from tests.sdks.views import Views

pytestmark = node.FILE_TIMEOUT

HERE = Path(__file__).parent
SERVER = HERE / "restarts_server.mjs"
WEB = HERE / "restarts_web.mjs"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def mortal(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Mortal]:
    async with mortal_emulator(tmp_path_factory.mktemp("data")) as running:
        yield running


# --- Node


async def run(file: Path, mortal: Mortal, **told: str) -> Results:
    async with obeying(mortal) as wishes:
        world = {"host": mortal.address, "projectId": f"p-{secrets.token_hex(6)}", "wishes": wishes, **told}
        return await node.run(file, world)


@pytest_asyncio.fixture(scope="module", loop_scope="session", params=SDKS)
async def servers(request: pytest.FixtureRequest, mortal: Mortal) -> Results:
    return await run(SERVER, mortal, sdk=request.param)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def web(mortal: Mortal) -> Results:
    return await run(WEB, mortal)


@pytest.mark.parametrize("name", names_in(SERVER))
def test_servers(servers: Results, name: str) -> None:
    servers.check(name)


@pytest.mark.parametrize("name", names_in(WEB))
def test_web(web: Results, name: str) -> None:
    web.check(name)


# --- Python


@pytest.fixture
def options(mortal: Mortal, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setenv(HOST_VARIABLE, mortal.address)
    return {"project": f"p-{secrets.token_hex(6)}", "credentials": AnonymousCredentials()}


async def test_the_blocking_client_reads_writes_and_listens_on(mortal: Mortal, options: dict[str, Any]) -> None:
    db, views = firestore.Client(**options), Views()
    document = db.document("c/a")
    await asyncio.to_thread(document.set, {"x": 1})
    watch = document.on_snapshot(lambda snapshots, changes, read_time: views.add(str(snapshots[0].get("x"))))
    try:
        await asyncio.to_thread(views.wait_for, "1")
        await mortal.kill()
        writing = asyncio.create_task(asyncio.to_thread(document.update, {"x": 2}))
        await mortal.start()
        await writing
        await asyncio.to_thread(views.wait_for, "2")
    finally:
        watch.unsubscribe()
    assert views.all == ["1", "2"]


async def test_the_asynchronous_client_reads_and_writes_on(mortal: Mortal, options: dict[str, Any]) -> None:
    document = firestore.AsyncClient(**options).document("c/a")
    await document.set({"x": 1})
    await mortal.kill()
    writing = asyncio.create_task(document.update({"y": 2}))
    await mortal.start()
    await writing
    assert (await document.get()).to_dict() == {"x": 1, "y": 2}
