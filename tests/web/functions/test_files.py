"""Files of an account for its members' apps: the function `files`, the file server and the client, on a socket."""

from __future__ import annotations

import asyncio
import hashlib
import json
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import functions_framework.aio
import httpx
import pytest
from starlette.routing import Route

import firestore_outbox.web.functions
from firestore_outbox.firestore import paths
from firestore_outbox.local.file_server import FileServer
from firestore_outbox.local.simulators.simulator import ProviderSimulator
from firestore_outbox.media.directory import DirectoryStorage
from firestore_outbox.media.storage import FileRef
from tests.client import node
from tests.patience import PATIENCE_SECONDS
from tests.web.functions.calling import call, member, prepared
from tests.web.functions.firebase import unsigned_token
from tests.web.service import support
from tests.web.service.support import Certificates, Service

MEGABYTE = 1024 * 1024
CONTENT = b"\x89PNG" + bytes(range(256)) * 40
SHA256 = hashlib.sha256(CONTENT).hexdigest()
NEW = {"sha256": SHA256, "bytes": len(CONTENT), "mimeType": "image/png", "filename": "cat.png"}
UPLOADS = "/v1/accounts/shop/uploads"


@dataclass
class World:
    url: str
    service: Service
    server: FileServer
    storage: DirectoryStorage

    async def client(self, uid: str = "ann", **options: Any) -> dict[str, Any] | None:
        """client/files.js in a process of its own. None: it was killed."""
        given = {"url": self.url, "token": unsigned_token(uid), "accountId": "shop", "seed": 7, **options}
        process = await asyncio.create_subprocess_exec(
            node.require_node(),
            str(node.HERE / "uploading.mjs"),
            json.dumps(given),
            cwd=node.ROOT,
            stdout=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(PATIENCE_SECONDS):
            out, _ = await process.communicate()
        if process.returncode == -signal.SIGKILL:
            return None
        answer: dict[str, Any] = json.loads(out)
        return answer

    async def put(self, url: str, content: bytes, content_range: str) -> httpx.Response:
        async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE_SECONDS) as client:
            return await client.put(url, content=content, headers={"content-range": content_range})

    async def get(self, url: str) -> httpx.Response:
        async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE_SECONDS) as client:
            return await client.get(url)


@pytest.fixture
async def world(served: Certificates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    server = FileServer(tmp_path)
    function = functions_framework.aio.create_asgi_app_from_module(
        "files", "main.py", None, firestore_outbox.web.functions, None
    )
    routes = [Route("/v1/accounts/{rest:path}", function), *server.routes()]
    async with AsyncExitStack() as stack:
        simulator = await stack.enter_async_context(ProviderSimulator(others=routes))
        await simulator.start(port=0)
        storage = DirectoryStorage(tmp_path, url=f"{simulator.url}/files")
        service = await stack.enter_async_context(support.service(served, storage=storage, media_max_mb=8))
        await prepared(service, monkeypatch)
        await service.account("clinic")
        await member(service, "carl", "owner", "clinic")
        yield World(simulator.url, service, server, storage)


async def test_a_member_uploads_and_any_member_reads_at_an_address_that_ends(world: World) -> None:
    begun = await call("files", "POST", UPLOADS, NEW)
    assert (begun.status_code, begun.json()["mediaId"], begun.json()["state"]) == (201, SHA256, "open")
    last = len(CONTENT) - 1
    assert (await world.put(begun.json()["uploadUrl"], CONTENT, f"bytes 0-{last}/{len(CONTENT)}")).status_code == 200
    again = await call("files", "POST", UPLOADS, NEW)
    assert (again.status_code, again.json()) == (200, {"mediaId": SHA256, "state": "stored"})
    link = await call("files", "GET", f"/v1/accounts/shop/files/{SHA256}", uid="vic")
    assert link.status_code == 200
    assert (link.json()["mimeType"], link.json()["filename"], link.json()["bytes"]) == (
        "image/png",
        "cat.png",
        len(CONTENT),
    )
    shown = await world.get(link.json()["url"])
    assert (shown.status_code, shown.content, shown.headers["content-type"]) == (200, CONTENT, "image/png")
    assert (await world.get(link.json()["url"].partition("?")[0])).status_code == 403


@pytest.mark.parametrize(("uid", "status"), [("carl", 403), ("stranger", 403), ("vic", 403), (None, 401)], ids=str)
async def test_who_may_not_send_gets_no_upload(world: World, uid: str | None, status: int) -> None:
    assert (await call("files", "POST", UPLOADS, NEW, uid=uid)).status_code == status
    assert await world.service.system.gateway.get(paths.incoming_file("shop", SHA256)) is None


async def test_a_file_of_one_account_is_no_file_of_another(world: World) -> None:
    await world.storage.add(FileRef("shop", SHA256), CONTENT, mime_type="image/png", filename=None)
    assert (await call("files", "GET", f"/v1/accounts/shop/files/{SHA256}", uid="carl")).status_code == 403
    assert (await call("files", "GET", f"/v1/accounts/clinic/files/{SHA256}", uid="carl")).status_code == 404
    begun = await call("files", "POST", "/v1/accounts/clinic/uploads", NEW, uid="carl")
    assert begun.json()["state"] == "open", "it is asked to upload its own"
    link = (await call("files", "GET", f"/v1/accounts/shop/files/{SHA256}")).json()["url"]
    stolen = link.replace("/shop/", "/clinic/")
    assert (await world.get(stolen)).status_code == 403


@pytest.mark.parametrize(
    ("change", "status", "words"),
    [
        ({"bytes": 8_000_001}, 413, "at most 8 MB"),
        ({"bytes": 0}, 400, "empty"),
        ({"bytes": True}, 400, "bytes"),
        ({"mimeType": "image/svg+xml"}, 415, "image/svg"),
        ({"mimeType": "text/html"}, 415, "text/html"),
        ({"mimeType": "image"}, 400, "media type"),
        ({"sha256": "../secrets"}, 400, "sha256"),
        ({"filename": "a/b"}, 400, "filename"),
        ({"account": "clinic"}, 400, "unknown"),
    ],
    ids=str,
)
async def test_a_file_that_cannot_be_taken_is_refused_before_it_is_sent(
    world: World, change: dict[str, Any], status: int, words: str
) -> None:
    answer = await call("files", "POST", UPLOADS, {**NEW, **change})
    assert (answer.status_code, words in answer.json()["error"]) == (status, True), answer.text


async def test_the_client_uploads_with_progress_and_finds_the_file(world: World) -> None:
    done = await world.client(size=3 * MEGABYTE + 5, read=True)
    assert done is not None
    assert done["part"]["type"] == "media"
    assert (done["part"]["filename"], done["part"]["mimeType"]) == ("cat.png", "image/png")
    assert done["seen"] == [0, MEGABYTE, 2 * MEGABYTE, 3 * MEGABYTE, 3 * MEGABYTE + 5]
    shown = await world.get(done["link"]["url"])
    assert hashlib.sha256(shown.content).hexdigest() == done["part"]["mediaId"]


async def test_the_client_says_in_words_why_a_file_is_not_taken(world: World) -> None:
    refused = await world.client(size=9 * MEGABYTE)
    assert refused is not None
    assert (refused["code"], "at most 8 MB" in refused["message"]) == ("invalid-file", True)
    stranger = await world.client("stranger", size=5)
    assert stranger is not None
    assert stranger["code"] == "not-allowed"


@pytest.mark.parametrize("killed_after", [0.1, 1, 2, 3], ids=lambda count: f"{count} MB")
async def test_a_client_that_is_killed_goes_on_where_it_stopped(world: World, killed_after: float) -> None:
    size = 3 * MEGABYTE + 5
    assert await world.client(size=size, killAfter=round(killed_after * MEGABYTE)) is None
    received = world.server.received_bytes
    assert received >= MEGABYTE
    done = await world.client("olga", size=size)
    assert done is not None
    assert world.server.received_bytes == size, "no byte came twice"
    assert done["seen"][0] == received
    found = await world.storage.find(FileRef("shop", done["part"]["mediaId"]))
    assert found is not None
    assert found.size_bytes == size


async def test_the_same_content_again_sends_no_byte(world: World) -> None:
    await world.client(size=MEGABYTE)
    before = world.server.received_bytes
    again = await world.client("olga", size=MEGABYTE)
    assert again is not None
    assert again["seen"] == [MEGABYTE]
    assert world.server.received_bytes == before == MEGABYTE


async def test_a_function_that_dies_before_it_stored_the_session_costs_a_session_and_no_byte(world: World) -> None:
    """What is left is an open session without content."""
    world.service.store.is_down = True
    assert (await call("files", "POST", UPLOADS, NEW)).status_code == 503
    world.service.store.is_down = False
    begun = (await call("files", "POST", UPLOADS, NEW)).json()
    again = (await call("files", "POST", UPLOADS, NEW)).json()
    assert again["uploadUrl"] == begun["uploadUrl"], "asked again, it is the same session"


async def test_a_session_that_storage_has_lost_is_replaced(world: World, tmp_path: Path) -> None:
    begun = (await call("files", "POST", UPLOADS, NEW)).json()
    token = urlsplit(begun["uploadUrl"]).path.rsplit("/", 1)[1]
    (tmp_path / "%uploads" / f"{token}.json").unlink()
    assert (await world.put(begun["uploadUrl"], b"", f"bytes */{len(CONTENT)}")).status_code == 404
    replaced = (await call("files", "POST", UPLOADS, {**NEW, "isLost": True})).json()
    assert replaced["uploadUrl"] != begun["uploadUrl"]


async def test_bytes_that_come_twice_or_too_early_do_no_harm(world: World) -> None:
    url = (await call("files", "POST", UPLOADS, NEW)).json()["uploadUrl"]
    total = len(CONTENT)
    assert (await world.put(url, b"", f"bytes */{total}")).status_code == 308
    early = await world.put(url, CONTENT[500:], f"bytes 500-{total - 1}/{total}")
    assert (early.status_code, "range" in early.headers) == (308, False)
    first = await world.put(url, CONTENT[:100], f"bytes 0-99/{total}")
    assert (first.status_code, first.headers["range"]) == (308, "bytes=0-99")
    rest = await world.put(url, CONTENT[50:], f"bytes 50-{total - 1}/{total}")
    assert rest.status_code == 200
    assert await world.storage.read(FileRef("shop", SHA256)) == CONTENT
    assert (await world.put(url, CONTENT, f"bytes 0-{total - 1}/{total}")).status_code == 200
    assert (await world.put(url, CONTENT, f"bytes 0-{total}/{total + 1}")).status_code == 400
