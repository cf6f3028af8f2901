"""Over real sockets: what a worker hears, tokens it can verify, and the HTTP side of the emulator."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import httpx
import jwt
import pytest
from google.cloud.tasks_v2 import CloudTasksAsyncClient, HttpMethod, HttpRequest, Queue, Task
from google.cloud.tasks_v2.types import OAuthToken, OidcToken, RetryConfig
from grpc import aio

from firestore_emulator.rpc.server import Server
from firestore_emulator.tasks.emulator import KEY_FILE, TasksEmulator
from tests.emulator.tasks.support import LOCATION, QUEUE, client_over, http_task, worker
from tests.patience import PATIENCE_SECONDS

ACCOUNT = "outbox@demo-outbox.iam.gserviceaccount.com"


@asynccontextmanager
async def served(data: Path | None = None) -> AsyncIterator[tuple[CloudTasksAsyncClient, str]]:
    emulator = TasksEmulator(data, queues=[QUEUE])
    await emulator.start()
    server = await Server.start(emulator.service, http=emulator.http_app)
    channel = aio.insecure_channel(server.address)
    try:
        yield client_over(channel), f"http://{server.address}"
    finally:
        await channel.close()
        await server.stop(grace_seconds=0)
        await emulator.stop(timedelta(0))


async def test_a_worker_hears_the_task_over_http() -> None:
    async with served() as (client, _), worker() as it:
        task = http_task(f"{it.url}/tasks/lane?x=1", name="t", body=b'{"key": 1}')
        task.http_request.headers = {"Content-Type": "application/json", "X-Text": "grün"}
        await client.create_task(parent=QUEUE, task=task)
        await it.until(lambda heard: len(heard) == 1)
    heard = it.heard[0]
    assert (heard.method, heard.path, heard.body) == ("POST", "/tasks/lane?x=1", b'{"key": 1}')
    assert heard.headers["user-agent"] == "Google-Cloud-Tasks"
    assert heard.headers["content-type"] == "application/json"
    assert heard.headers["content-length"] == str(len(heard.body))
    assert heard.headers["x-text"] == "grün"
    assert heard.headers["host"] == it.url.removeprefix("http://")
    assert heard.headers["x-cloudtasks-queuename"] == "lanes"
    assert heard.headers["x-cloudtasks-taskname"] == "t"


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS"])
async def test_every_method_is_sent_as_it_was_asked_for(method: str) -> None:
    async with served() as (client, _), worker() as it:
        request = HttpRequest(url=it.url, http_method=HttpMethod[method])
        await client.create_task(parent=QUEUE, task=Task(http_request=request))
        await it.until(lambda heard: len(heard) == 1)
    assert it.heard[0].method == method


async def test_a_failing_task_comes_back_and_a_redirect_is_a_failure() -> None:
    async with served() as (client, _), worker() as it:
        answers = [500, 302, 200]
        it.answer = lambda heard: answers[int(heard.headers["x-cloudtasks-taskretrycount"])]
        await client.create_task(parent=QUEUE, task=http_task(it.url, name="t"))
        await it.until(lambda heard: len(heard) == 3)
    assert [h.headers.get("x-cloudtasks-taskpreviousresponse") for h in it.heard] == [None, "500", "302"]


async def test_a_worker_that_starts_late_still_gets_its_task() -> None:
    async with worker() as early:
        gone = early.url
    async with served() as (client, _), worker() as it:
        retry = RetryConfig(max_attempts=2)
        other = f"{LOCATION}/queues/other"
        await client.create_queue(parent=LOCATION, queue=Queue(name=other, retry_config=retry))
        await client.create_task(parent=other, task=http_task(gone))  # nobody listens there
        await client.create_task(parent=QUEUE, task=http_task(it.url))
        await it.until(lambda heard: len(heard) == 1)


async def test_a_worker_can_verify_the_token_with_the_certificates_it_fetches() -> None:
    async with served() as (client, url), worker() as it:
        task = http_task(f"{it.url}/tasks/lane", name="default")
        task.http_request.oidc_token = OidcToken(service_account_email=ACCOUNT)
        task.http_request.headers = {"authorization": "mine"}
        await client.create_task(parent=QUEUE, task=task)
        task = http_task(it.url, name="chosen")
        task.http_request.oidc_token = OidcToken(service_account_email=ACCOUNT, audience="https://worker")
        await client.create_task(parent=QUEUE, task=task)
        await it.until(lambda heard: len(heard) == 2)
        async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE_SECONDS) as http:
            discovery = (await http.get(f"{url}/.well-known/openid-configuration")).json()
            keys = jwt.PyJWKSet.from_dict((await http.get(discovery["jwks_uri"])).json())
    audiences = {"default": f"{it.url}/tasks/lane", "chosen": "https://worker"}
    for heard in it.heard:
        scheme, _, token = heard.headers["authorization"].partition(" ")
        assert scheme == "Bearer"
        key = keys[jwt.get_unverified_header(token)["kid"]]
        claims = jwt.decode(token, key, ["RS256"], audience=audiences[heard.task], issuer="https://accounts.google.com")
        assert (claims["email"], claims["email_verified"]) == (ACCOUNT, True)
        assert claims["sub"].isdigit()
        assert claims["exp"] - claims["iat"] == 3600


async def test_an_oauth_token_is_attached_too() -> None:
    async with served() as (client, _), worker() as it:
        task = http_task(it.url)
        task.http_request.oauth_token = OAuthToken(service_account_email=ACCOUNT)
        await client.create_task(parent=QUEUE, task=task)
        await it.until(lambda heard: len(heard) == 1)
    assert it.heard[0].headers["authorization"].startswith("Bearer emulated-access-token-")


async def test_the_signing_key_outlives_a_restart_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    keys = []
    for _ in range(2):
        async with served(tmp_path) as (_, url), httpx.AsyncClient(trust_env=False, timeout=PATIENCE_SECONDS) as http:
            keys.append((await http.get(f"{url}/oidc/certs")).json())
    assert keys[0] == keys[1]
    assert (tmp_path / KEY_FILE).stat().st_mode & 0o777 == 0o600
    assert not {"d", "p", "q"} & keys[0]["keys"][0].keys()


async def test_the_reset_clears_tasks_and_names_and_restores_the_queues() -> None:
    async with served() as (client, url), httpx.AsyncClient(trust_env=False, timeout=PATIENCE_SECONDS) as http:
        await client.pause_queue(name=QUEUE)
        await client.create_queue(parent=LOCATION, queue=Queue(name=f"{LOCATION}/queues/extra"))
        await client.create_task(parent=QUEUE, task=http_task(name="t"))
        assert (await http.post(f"{url}/emulator/v1/reset")).status_code == 200
        assert [queue.name async for queue in await client.list_queues(parent=LOCATION)] == [QUEUE]
        assert (await client.get_queue(name=QUEUE)).state == Queue.State.RUNNING
        assert [task async for task in await client.list_tasks(parent=QUEUE)] == []


async def test_health_answers_and_unknown_paths_are_404() -> None:
    async with served() as (_, url), httpx.AsyncClient(trust_env=False, timeout=PATIENCE_SECONDS) as http:
        assert json.loads((await http.get(f"{url}/healthz")).text) == {"status": "ok"}
        assert (await http.get(f"{url}/nothing")).status_code == 404
        assert (await http.get(f"{url}/emulator/v1/reset")).status_code == 405
