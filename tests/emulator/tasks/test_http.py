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
from firestore_emulator.tasks.rest import BINDINGS
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
        await client.create_task(parent=other, task=http_task(gone))  # nothing listens there
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


# --- REST


@asynccontextmanager
async def over_rest(functions: str | None = None) -> AsyncIterator[httpx.AsyncClient]:
    emulator = TasksEmulator(queues=[QUEUE], functions=functions)
    await emulator.start()
    server = await Server.start(emulator.service, http=emulator.http_app)
    base = f"http://{server.address}"
    try:
        async with httpx.AsyncClient(base_url=base, trust_env=False, timeout=PATIENCE_SECONDS) as http:
            yield http
    finally:
        await server.stop(grace_seconds=0)
        await emulator.stop(timedelta(0))


async def test_queues_and_tasks_are_made_read_and_deleted_over_rest() -> None:
    async with over_rest() as http, worker() as heard:
        other = f"{LOCATION}/queues/other"
        made = await http.post(f"/v2/{LOCATION}/queues", json={"name": other})
        assert (made.status_code, made.json()["name"]) == (200, other)
        assert (await http.post(f"/v2/{other}:pause", json={})).json()["state"] == "PAUSED"
        changed = await http.patch(
            f"/v2/{other}?updateMask=rateLimits.maxConcurrentDispatches",
            json={"rateLimits": {"maxConcurrentDispatches": 7}},
        )
        assert changed.json()["rateLimits"]["maxConcurrentDispatches"] == 7
        listed = (await http.get(f"/v2/{LOCATION}/queues")).json()["queues"]
        assert sorted(one["name"] for one in listed) == sorted([QUEUE, other])
        task = {"httpRequest": {"url": heard.url, "body": "aGVsbG8="}, "name": f"{other}/tasks/one"}
        assert (await http.post(f"/v2/{other}/tasks", json={"task": task})).json()["name"] == task["name"]
        assert (await http.post(f"/v2/{other}/tasks", json={"task": task})).status_code == 409
        assert [one["name"] for one in (await http.get(f"/v2/{other}/tasks")).json()["tasks"]] == [task["name"]]
        assert (await http.get(f"/v2/{task['name']}?responseView=FULL")).json()["httpRequest"]["body"] == "aGVsbG8="
        assert (await http.post(f"/v2/{other}:resume", json={})).json()["state"] == "RUNNING"
        await heard.until(lambda all_heard: [one.body for one in all_heard] == [b"hello"])
        assert (await http.delete(f"/v2/{other}")).status_code == 200
        gone = await http.get(f"/v2/{other}")
        assert (gone.status_code, gone.json()["error"]["status"]) == (404, "NOT_FOUND")
        assert (await http.get("/v2/nothing")).status_code == 404


async def test_a_task_of_firebase_admin_goes_to_the_function_of_its_queue() -> None:
    """It leaves the URL empty when it talks to an emulator, and calls a path without a version."""
    task = {"httpRequest": {"url": "", "body": "e30=", "headers": {"Content-Type": "application/json"}}}
    async with worker() as heard:
        functions = heard.url.removeprefix("http://").partition("/")[0]
        async with over_rest(functions) as http:
            answer = await http.post(f"/{QUEUE}/tasks", json={"task": task})
            assert answer.status_code == 200, answer.text
            _, project, _, location, _, name = QUEUE.split("/")
            await heard.until(lambda all_heard: [one.path for one in all_heard] == [f"/{project}/{location}/{name}"])
    async with over_rest() as http:
        refused = await http.post(f"/{QUEUE}/tasks", json={"task": task})
        assert (refused.status_code, "--functions" in refused.json()["error"]["message"]) == (400, True)


def test_the_bindings_are_those_of_googles_own_client() -> None:
    """Without the calls that this emulator does not have."""
    from google.cloud.tasks_v2.services.cloud_tasks.transports import rest_base

    theirs = {
        (name.removeprefix("_Base"), option["method"].upper(), option["uri"], option.get("body", ""))
        for name, call in vars(rest_base._BaseCloudTasksRestTransport).items()
        if hasattr(call, "_get_http_options")
        for option in call._get_http_options()
    }
    ours = {(one.call, one.verb, one.template, one.body) for one in BINDINGS}
    assert ours == {one for one in theirs if one[0] in {call for call, *_ in ours}}
