"""`POST /tasks/receipt`: who may ask, what a body must be, and what comes of the receipts in it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from firestore_outbox.firestore import paths
from firestore_outbox.lane.ref import outbox_lane
from tests.web.service.support import Service, now, token

PATH = "/tasks/receipt"


def batch(*receipts: dict[str, Any], looks: int = 1) -> dict[str, Any]:
    return {"accountId": "shop", "looks": looks, "receipts": list(receipts)}


def read(**changes: Any) -> dict[str, Any]:
    return {"status": "read", "at": now().isoformat(), "echo": "request-1:0:1", "providerMessageId": "p-1", **changes}


async def sent(service: Service) -> None:
    await service.account()
    await service.send("request-1")
    await service.system.waker.wake(outbox_lane("shop"))
    assert (await service.post("/tasks/lane", {"kind": "outbox", "key": "shop"})).status_code == 200
    service.tasks.asked.clear()


async def shown(service: Service) -> dict[str, Any]:
    snapshot = await service.system.gateway.get(paths.message("shop__+491701", "request-1"))
    assert snapshot is not None
    return snapshot.data


async def test_a_receipt_in_a_task_is_applied_and_a_doubled_task_changes_nothing(service: Service) -> None:
    await sent(service)
    for _ in range(3):
        answer = await service.post(PATH, batch(read()))
        assert (answer.status_code, answer.json()) == (200, {"unknown": 0})
    assert (await shown(service))["status"] == "read"
    assert service.tasks.asked == []


async def test_a_failure_in_a_task_keeps_its_reason(service: Service) -> None:
    await sent(service)
    error = {"code": "recipient_invalid", "message": "no such number", "retryable": False}
    assert (await service.post(PATH, batch(read(status="failed", error=error)))).status_code == 200
    message = await shown(service)
    assert (message["status"], message["error"]) == ("failed", {"code": error["code"], "message": error["message"]})
    assert await service.status("request-1") == "failed"


@pytest.mark.parametrize(("looks", "seconds"), [(0, 2), (1, 10), (2, 60), (3, 600)])
async def test_what_is_still_unknown_is_a_new_task_for_later(service: Service, looks: int, seconds: int) -> None:
    answer = await service.post(PATH, batch(read(), looks=looks))
    assert (answer.status_code, answer.json()) == (200, {"unknown": 1})
    ((path, body, at),) = service.tasks.asked
    assert (path, body["looks"], len(body["receipts"])) == (PATH, looks + 1, 1)
    assert abs(at - now() - timedelta(seconds=seconds)) < timedelta(seconds=1)


async def test_after_the_last_look_it_is_logged_and_dropped(service: Service, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("WARNING", "outbox"):
        assert (await service.post(PATH, batch(read(), looks=4))).status_code == 200
    assert service.tasks.asked == []
    (record,) = [record for record in caplog.records if record.name == "outbox"]
    assert record.__dict__["fields"] == {
        "action": "receipt_dropped",
        "accountId": "shop",
        "providerMessageId": "p-1",
        "requestId": "request-1",
    }


async def test_only_the_unknown_ones_of_a_task_go_on(service: Service) -> None:
    await sent(service)
    await service.post(PATH, batch(read(), read(echo="request-2:0:1"), read(echo=None, providerMessageId="p-3")))
    ((_, body, _),) = service.tasks.asked
    assert [receipt.get("echo", receipt["providerMessageId"]) for receipt in body["receipts"]] == [
        "request-2:0:1",
        "p-3",
    ]
    assert (await shown(service))["status"] == "read"


async def test_a_task_is_tried_again_when_firestore_is_out_of_reach(service: Service) -> None:
    await sent(service)
    service.store.is_down = True
    assert (await service.post(PATH, batch(read()))).status_code == 503
    service.store.is_down = False
    assert (await service.post(PATH, batch(read()))).status_code == 200
    assert (await shown(service))["status"] == "read"


BAD: dict[str, Any] = {
    "nothing": {},
    "no receipts": batch(),
    "too many": batch(*[read()] * 101),
    "no account": {"receipts": [read()]},
    "an account with a slash": {**batch(read()), "accountId": "a/b"},
    "a status that is none": batch(read(status="eaten")),
    "no time": batch({"status": "read", "providerMessageId": "p-1"}),
    "a time without a zone": batch(read(at="2026-03-01T12:00:00")),
    "a foreign echo": batch(read(echo="not ours")),
    "looks without end": batch(read(), looks=10_000),
    "texts": batch("read", "read"),  # type: ignore[arg-type]  # as a provider might send it
}


@pytest.mark.parametrize("case", BAD)
async def test_a_body_that_no_retry_can_repair_is_dropped(service: Service, case: str) -> None:
    answer = await service.post(PATH, BAD[case])
    assert answer.status_code == 200
    assert "receipt task" in answer.json()["dropped"]


async def test_only_cloud_tasks_may_ask(service: Service) -> None:
    await sent(service)
    assert (await service.http.post(PATH, json=batch(read()))).status_code == 401
    others = {"authorization": f"Bearer {token(email='another@example.com')}"}
    assert (await service.post(PATH, batch(read()), **others)).status_code == 403
    assert (await shown(service))["status"] == "sent"
