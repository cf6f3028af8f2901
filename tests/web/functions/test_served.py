"""Each function in a process of its own, served by functions-framework as Google's builder starts it: no arguments, the
source and the target in the environment, the repository's root as the folder. Firestore and Cloud Tasks are ours, on
sockets; tokens are verified with certificates, as in production.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import os
import socket
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
import pytest_asyncio
from google.cloud import tasks_v2
from google.cloud.firestore import AsyncClient
from google.cloud.firestore_v1.types import Document
from google.cloud.tasks_v2.services.cloud_tasks.transports import CloudTasksGrpcAsyncIOTransport
from google.events.cloud import firestore as firestore_events

from firestore_emulator.stack import EmulatorSettings, EmulatorStack
from firestore_outbox.local.simulators.webhooks import SIGNATURE_HEADER, signed
from firestore_outbox.settings import Settings
from tests.patience import PATIENCE_SECONDS
from tests.web.functions import firebase
from tests.web.functions.firebase import HOST, PROJECT, id_token, now, unsigned_token

pytestmark = pytest.mark.asyncio(loop_scope="module")

ROOT = Path(__file__).parents[3]
SIGNATURES = {
    "on_outbox_created": "cloudevent",
    **dict.fromkeys(("provider_webhook", "enqueue", "events", "reminders", "runs", "sweep"), "http"),
}
SECRET = "a webhook secret"
SETTINGS = Settings()
RANKING = """
from firestore_outbox import keyed

@keyed("nextup")
async def rank(context):
    ...
"""


@dataclass
class Served:
    urls: dict[str, str]
    firestore: AsyncClient
    tasks: tasks_v2.CloudTasksAsyncClient
    stack: EmulatorStack

    async def call(self, target: str, path: str = "/", **request: Any) -> httpx.Response:
        async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE_SECONDS) as client:
            return await client.post(self.urls[target] + path, **request)

    async def wakes(self) -> int:
        return len([task async for task in await self.tasks.list_tasks(parent=SETTINGS.queue_name)])


@asynccontextmanager
async def function(target: str, environment: Mapping[str, str], directory: Path) -> AsyncIterator[str]:
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        port = taken.getsockname()[1]
    log = directory / f"{target}.log"
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            str(Path(sys.executable).with_name("functions-framework")),
            cwd=ROOT,
            env={
                **environment,
                "HOST": HOST,
                "PORT": str(port),
                "FUNCTION_SOURCE": "functions/main.py",
                "FUNCTION_TARGET": target,
                "FUNCTION_SIGNATURE_TYPE": SIGNATURES[target],
            },
            stdout=output,
            stderr=output,
        )
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not await _answers(port):
                assert process.returncode is None, f"{target} ended:\n{log.read_text()}"
                await asyncio.sleep(0.05)  # the framework says nothing when it is ready
        yield f"http://{HOST}:{port}"
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def _answers(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection(HOST, port)
    except OSError:
        return False
    writer.close()
    return True


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    directory = tmp_path_factory.mktemp("served")
    (directory / "ranking.py").write_text(RANKING)
    async with AsyncExitStack() as exits:
        google = await exits.enter_async_context(firebase.google(directory))
        settings = EmulatorSettings(firestore_port=0, tasks_port=0, queues=[SETTINGS.queue_name])
        stack = await exits.enter_async_context(EmulatorStack(settings))
        environment = {
            **{name: value for name, value in os.environ.items() if name != "FIREBASE_AUTH_EMULATOR_HOST"},
            **google.environment,
            "PYTHONPATH": f"{ROOT}{os.pathsep}{directory}",
            "FIRESTORE_EMULATOR_HOST": stack.firestore_address,
            "OUTBOX_TASKS_EMULATOR_HOST": stack.tasks_address,
            "OUTBOX_HANDLERS": "ranking",
            "OUTBOX_EVENTS": json.dumps({"nextup": {"scheme": "hmac", "header": "X-Signature", "key": "/user"}}),
            "OUTBOX_EVENT_SECRET_NEXTUP": SECRET,
            "OUTBOX_CREDENTIALS": f'{{"*": {{"webhookSecret": "{SECRET}"}}}}',
        }
        starting = [exits.enter_async_context(function(name, environment, directory)) for name in SIGNATURES]
        addresses = await asyncio.gather(*starting, return_exceptions=True)
        for failure in addresses:
            if isinstance(failure, BaseException):
                raise failure
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("FIRESTORE_EMULATOR_HOST", stack.firestore_address)
            firestore = AsyncClient(project=PROJECT)
        exits.callback(firestore.close)
        transport = CloudTasksGrpcAsyncIOTransport(channel=grpc.aio.insecure_channel(stack.tasks_address))
        tasks = tasks_v2.CloudTasksAsyncClient(transport=transport)
        await tasks.pause_queue(name=SETTINGS.queue_name)  # they stay where they can be counted
        await firestore.document("accounts/shop").set({"provider": "simulated", "status": "active"})
        await firestore.document("accounts/shop/members/ann").set({"role": "agent"})
        yield Served(dict(zip(SIGNATURES, map(str, addresses), strict=True)), firestore, tasks, stack)


def message(request_id: str) -> dict[str, Any]:
    text = {"type": "text", "text": "Hello!"}
    return {"requestId": request_id, "accountId": "shop", "to": "+491701", "parts": [text]}


async def event_of(served: Served, request_id: str) -> bytes:
    """What Eventarc sends of a document, raw."""
    name = f"projects/{PROJECT}/databases/(default)/documents/outbox/{request_id}"
    document = await served.firestore._firestore_api.get_document(request={"name": name})
    event = firestore_events.DocumentEventData.pb()()
    event.value.ParseFromString(Document.serialize(document))
    return bytes(event.SerializeToString())


async def test_enqueue_and_on_outbox_created_take_a_message_from_a_token_to_a_task(served: Served) -> None:
    refused = await served.call(
        "enqueue",
        "/v1/messages",
        json=message("request-1"),
        headers={"authorization": f"Bearer {unsigned_token('ann')}"},
    )
    assert refused.status_code == 401, refused.text
    headers = {"authorization": f"Bearer {id_token('ann')}"}
    for status in (201, 200):
        answer = await served.call("enqueue", "/v1/messages", json=message("request-1"), headers=headers)
        assert answer.status_code == status, answer.text
    before = await served.wakes()
    event = {
        "ce-id": "1",
        "ce-source": f"//firestore.googleapis.com/projects/{PROJECT}/databases/(default)",
        "ce-specversion": "1.0",
        "ce-type": "google.cloud.firestore.document.v1.created",
        "content-type": "application/protobuf",
    }
    answer = await served.call("on_outbox_created", content=await event_of(served, "request-1"), headers=event)
    assert answer.status_code == 200, answer.text
    assert await served.wakes() == before + 1


async def test_reminders_and_runs_take_a_reminder_from_a_token_to_a_task(served: Served) -> None:
    body = {
        "reminderId": "rem",
        "accountId": "shop",
        "targets": ["1@g.us"],
        "parts": [{"type": "text", "text": "Hello!"}],
        "timezone": "UTC",
        "schedule": {"type": "cron", "cron": "0 9 * * *"},
    }
    stranger = {"authorization": f"Bearer {unsigned_token('ann')}"}
    assert (await served.call("reminders", "/v1/reminders", json=body, headers=stranger)).status_code == 401
    assert (await served.call("runs", "/v1/runs/rem-1:pause", headers=stranger)).status_code == 401
    before = await served.wakes()
    headers = {"authorization": f"Bearer {id_token('ann')}"}
    for status in (201, 200):
        answer = await served.call("reminders", "/v1/reminders", json=body, headers=headers)
        assert answer.status_code == status, answer.text
    assert await served.wakes() > before
    assert (await served.call("runs", "/v1/runs/rem-1:pause", headers=headers)).status_code == 403


async def test_provider_webhook_checks_the_signature(served: Served) -> None:
    body = b'{"events": []}'
    assert (await served.call("provider_webhook", "/simulated/shop", content=body)).status_code == 401
    headers = {SIGNATURE_HEADER: signed(SECRET, body, now())}
    assert (await served.call("provider_webhook", "/simulated/shop", content=body, headers=headers)).status_code == 200


async def test_sweep_checks_the_token_and_sweeps(served: Served) -> None:
    issuer = served.stack._tasks.issuer
    assert (await served.call("sweep")).status_code == 401
    stranger = issuer.id_token("stranger@example.com", SETTINGS.worker_url)
    assert (await served.call("sweep", headers={"authorization": f"Bearer {stranger}"})).status_code == 403
    scheduler = issuer.id_token(SETTINGS.service_account, SETTINGS.worker_url)
    answer = await served.call("sweep", headers={"authorization": f"Bearer {scheduler}"})
    assert (answer.status_code, answer.json().keys()) == (200, {"lanes", "accounts"})


async def test_no_function_answers_a_get_with_anything(served: Served) -> None:
    async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE_SECONDS) as client:
        for target, url in served.urls.items():
            assert (await client.get(url)).status_code in (404, 405), target


async def test_a_signed_event_is_stored_for_its_key_and_wakes_the_lane(served: Served) -> None:
    body = b'{"user": "ann", "page": 7}'
    signature = hmac.new(SECRET.encode(), body, "sha256").hexdigest()
    before = await served.wakes()
    answers = [
        await served.call("events", "/v1/events/nextup", content=body, headers={"X-Signature": one})
        for one in (signature, signature, "00" * 32)
    ]
    assert [answer.status_code for answer in answers] == [202, 202, 401]
    assert [answer.json() for answer in answers[:2]] == [{"key": "ann", "isNew": True}, {"key": "ann", "isNew": False}]
    (event,) = [one async for one in served.firestore.collection("inbox/nextup:ann/events").stream()]
    assert (event.to_dict() or {})["data"] == {"user": "ann", "page": 7}
    assert await served.wakes() > before
