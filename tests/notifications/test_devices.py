"""Members' devices learn how runs end, by Firebase Cloud Messaging: over the real code in virtual time."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import httpx
import pytest

from firestore_outbox.accounts.devices import MOST_OF_A_MEMBER, Device, newest_of_each
from firestore_outbox.accounts.members import member_fields, member_path
from firestore_outbox.firestore import paths
from firestore_outbox.firestore.writes import create
from firestore_outbox.local.simulators.simulator import ProviderSimulator
from firestore_outbox.notifications.fcm import Fcm, Gone, Refused
from firestore_outbox.notifications.notification import DELIVERED, FAILED, MOST_ATTEMPTS, WAITING, fcm_message
from firestore_outbox.notifications.progress import NO_RECEIVER, WEBHOOK, Progress, state_of
from firestore_outbox.notifications.webhook import Accepted, NotAccepted
from firestore_outbox.settings import Settings
from tests.calm import START, Calm, simulate
from tests.notifications.test_notifications import URL, all_settled, crash, documents
from tests.reminders.support import only_run, remind, until_ended

STAND_IN = "fcm.example"
SETTINGS = Settings(notify_anywhere=True, fcm_emulator_host=STAND_IN)
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
GONE = {"error": {"status": "NOT_FOUND", "details": [{"errorCode": "UNREGISTERED"}]}}


class Phones:
    """Firebase Cloud Messaging, and the account's webhook beside it: it keeps what came, and answers as it is set."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.posts = 0
        self.answers: dict[str, Callable[[int], httpx.Response]] = {}
        """Token -> its answer to the call of this number, from 1; without one each is accepted."""
        self.webhook: Callable[[int], int] = lambda _: 200
        self.on_call: Callable[[int], None] = lambda _: None
        self.transport = httpx.MockTransport(self._take)

    def _take(self, request: httpx.Request) -> httpx.Response:
        if request.url.host != STAND_IN:
            self.posts += 1
            return httpx.Response(self.webhook(self.posts))
        message = json.loads(request.content)["message"]
        self.messages.append(message)
        self.on_call(len(self.messages))
        token = message["token"]
        answer = self.answers.get(token)
        return httpx.Response(200, json={"name": "m"}) if answer is None else answer(self.calls[token])

    @property
    def calls(self) -> Counter[str]:
        return Counter(message["token"] for message in self.messages)

    @property
    def ids(self) -> set[str]:
        return {message["data"]["notificationId"] for message in self.messages}


async def has_devices(calm: Calm, *tokens: str, uid: str = "ann", member: bool = True, at: datetime = START) -> None:
    if member:
        await calm.write(create(member_path("shop", uid), member_fields(uid, "viewer")))
    for token in tokens:
        device = {"uid": uid, "token": token, "createdAt": at - timedelta(days=1)}
        await calm.write(create(f"{paths.devices('shop')}/device-{token}", device))


def devices_left(calm: Calm) -> set[str]:
    return {path.rsplit("/", 1)[1] for path in calm.world.truth.latest() if "/devices/" in path}


def only_notification(calm: Calm) -> dict[str, Any]:
    (document,) = documents(calm).values()
    return document


def test_each_device_of_a_member_gets_the_sentence_and_the_id_once() -> None:
    phones = Phones()

    async def body(calm: Calm) -> None:
        await calm.account()
        await has_devices(calm, "phone", "tablet")
        await has_devices(calm, "laptop", uid="bob")
        await remind(calm, targets=3)
        await calm.until(lambda: all_settled(calm))
        assert phones.calls == {"phone": 1, "tablet": 1, "laptop": 1}
        assert phones.ids == set(documents(calm))
        for message in phones.messages:
            assert message["notification"] == {"title": "3 of 3 delivered", "body": "3 of 3 delivered."}
            assert (message["data"]["runId"], message["data"]["kind"]) == (only_run(calm)["runId"], "run.ended")
        told = only_notification(calm)
        assert told["state"] == "delivered"
        assert {one["state"] for one in told["devices"].values()} == {"delivered"}
        assert phones.posts == 0, "there is no webhook"

    simulate(body, settings=SETTINGS, webhooks=phones.transport, receipts=False)


def test_a_token_that_is_unregistered_is_deleted_and_the_others_get_it() -> None:
    phones = Phones()
    phones.answers["old"] = lambda _: httpx.Response(404, json=GONE)

    async def body(calm: Calm) -> None:
        await calm.account()
        await has_devices(calm, "old", "phone")
        await remind(calm, targets=1)
        await calm.until(lambda: all_settled(calm))
        assert phones.calls == {"old": 1, "phone": 1}
        assert devices_left(calm) == {"device-phone"}
        assert only_notification(calm)["state"] == "delivered"

    simulate(body, settings=SETTINGS, webhooks=phones.transport, receipts=False)


def test_a_member_who_left_the_account_gets_nothing() -> None:
    phones = Phones()

    async def body(calm: Calm) -> None:
        await calm.account()
        await has_devices(calm, "phone")
        await has_devices(calm, "left", uid="eve", member=False)
        await remind(calm, targets=1)
        await calm.until(lambda: all_settled(calm))
        assert phones.calls == {"phone": 1}
        assert devices_left(calm) == {"device-phone"}, "it is looked at no more"

    simulate(body, settings=SETTINGS, webhooks=phones.transport, receipts=False)


def test_a_device_that_fails_is_tried_again_alone_with_the_same_id() -> None:
    phones = Phones()
    phones.answers["weak"] = lambda number: httpx.Response(503 if number < 4 else 200)

    async def body(calm: Calm) -> None:
        await calm.account(notify={"webhook": URL})
        await has_devices(calm, "phone", "weak")
        await remind(calm, targets=1)
        await calm.until(lambda: all_settled(calm))
        assert phones.calls == {"phone": 1, "weak": 4}
        assert phones.posts == 1
        assert len(phones.ids) == 1
        told = only_notification(calm)
        assert (told["state"], told["devices"]["device-weak"]) == ("delivered", {"state": "delivered", "attempts": 4})

    simulate(body, settings=SETTINGS, webhooks=phones.transport, receipts=False)


def test_a_webhook_that_is_down_delays_no_device() -> None:
    phones = Phones()
    phones.webhook = lambda number: 503 if number < 5 else 200

    async def body(calm: Calm) -> None:
        await calm.account(notify={"webhook": URL})
        await has_devices(calm, "phone")
        await remind(calm, targets=1)
        await calm.until(lambda: bool(phones.messages))
        assert phones.posts == 1
        await calm.until(lambda: all_settled(calm))
        assert (phones.posts, phones.calls) == (5, {"phone": 1})
        assert only_notification(calm)["attempts"] == 5

    simulate(body, settings=SETTINGS, webhooks=phones.transport, receipts=False)


def test_a_device_that_was_registered_after_the_run_ended_gets_nothing_of_it() -> None:
    phones = Phones()

    async def body(calm: Calm) -> None:
        await calm.account()
        await has_devices(calm, "late", at=START + timedelta(days=30))
        await remind(calm, targets=1)
        await until_ended(calm)
        await calm.until(lambda: all_settled(calm))
        assert not phones.messages
        told = only_notification(calm)
        assert (told["state"], told["error"]) == ("failed", NO_RECEIVER)

    simulate(body, settings=SETTINGS, webhooks=phones.transport, receipts=False)


@pytest.mark.parametrize("steps", [1, 2, 4, 7, 11, 16])
def test_killed_between_two_devices_each_gets_it_and_a_repeat_has_the_same_id(steps: int) -> None:
    """The only worker dies this many steps after the first device was called."""
    phones = Phones()

    async def body(calm: Calm) -> None:
        (worker,) = calm.world.workers

        def kill_soon(number: int) -> None:
            if number == 1:
                worker.process.after_steps(steps, partial(crash, calm, 0))

        phones.on_call = kill_soon
        await calm.account()
        await has_devices(calm, "one", "two", "three")
        await remind(calm, targets=1)
        await calm.until(lambda: all_settled(calm) and calm.world.workers != [worker])
        assert set(phones.calls) == {"one", "two", "three"}
        assert len(phones.messages) <= 4, "a call is repeated if its answer was not written"
        assert len(phones.ids) == 1, "a repeat is recognised"
        assert {one["state"] for one in only_notification(calm)["devices"].values()} == {"delivered"}

    simulate(body, settings=SETTINGS, webhooks=phones.transport, receipts=False, workers=1)


# --- Firebase Cloud Messaging


async def test_the_stand_in_of_the_simulator_takes_a_message_and_shows_it() -> None:
    data = {"kind": "run.ended", "runId": "r", "title": "412 of 1000 delivered", "text": "Closed."}
    async with ProviderSimulator() as simulator:
        await simulator.start()
        fcm = Fcm("demo", simulator.url.partition("://")[2])
        try:
            sent = fcm_message("shop", "n1", "phone", data)
            assert await fcm.send(sent) == Accepted()
            assert isinstance(await fcm.send(fcm_message("shop", "n1", "unregistered-1", data)), Gone)
            assert isinstance(await fcm.send({"token": 7}), Refused)
            async with httpx.AsyncClient(base_url=simulator.url, trust_env=False) as http:
                assert (await http.get("/_sim/notifications")).json() == [sent]
        finally:
            await fcm.close()


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (404, GONE, Gone),
        (403, {"error": {"details": [{"errorCode": "SENDER_ID_MISMATCH"}]}}, Gone),
        (400, {"error": {"status": "INVALID_ARGUMENT"}}, Refused),
        (404, {"error": {"status": "NOT_FOUND"}}, NotAccepted),
        (403, {"error": {"status": "PERMISSION_DENIED"}}, NotAccepted),
        (429, {"error": {"details": [{"errorCode": "QUOTA_EXCEEDED"}]}}, NotAccepted),
        (500, [], NotAccepted),
    ],
)
def test_only_an_answer_about_the_token_removes_the_device(status: int, body: Any, kind: type) -> None:
    async def send() -> object:
        fcm = Fcm("demo", STAND_IN, httpx.MockTransport(lambda _: httpx.Response(status, json=body)))
        try:
            return await fcm.send({"token": "t"})
        finally:
            await fcm.close()

    assert isinstance(asyncio.run(send()), kind)


# --- the decisions


def _device(uid: str, number: int, token: str | None = None) -> Device:
    at = NOW + timedelta(seconds=number)
    return Device(device_id=f"{uid}-{number}", uid=uid, token=token or f"{uid}-{number}", created_at=at)


def test_one_member_with_many_devices_does_not_crowd_out_the_others() -> None:
    chosen = newest_of_each([_device("eve", 0), *(_device("ann", number) for number in range(1, 100))])
    assert [device.device_id for device in chosen] == [
        *(f"ann-{number}" for number in range(99, 99 - MOST_OF_A_MEMBER, -1)),
        "eve-0",
    ]


def test_a_token_that_two_members_registered_is_called_once() -> None:
    chosen = newest_of_each([_device("ann", 1, "same"), _device("bob", 2, "same")])
    assert [device.uid for device in chosen] == ["bob"]


def test_a_device_that_never_accepts_is_given_up_after_the_last_attempt() -> None:
    progress, calls, now = Progress(), 0, NOW
    while progress.state == WAITING:
        assert progress.is_due(now)
        progress, calls = progress.not_accepted("down", now), calls + 1
        now = progress.next_attempt_at or now
    assert progress == Progress(state=FAILED, attempts=MOST_ATTEMPTS, error="down")
    assert calls == MOST_ATTEMPTS


@pytest.mark.parametrize(
    ("states", "state"),
    [
        ({WEBHOOK: DELIVERED, "d": WAITING}, WAITING),
        ({WEBHOOK: DELIVERED, "d": FAILED}, DELIVERED),
        ({WEBHOOK: FAILED, "d": DELIVERED}, FAILED),
        ({"c": FAILED, "d": DELIVERED}, DELIVERED),
        ({"d": FAILED}, FAILED),
        ({}, FAILED),
    ],
)
def test_a_notification_is_settled_when_each_receiver_is(states: dict[str, str], state: str) -> None:
    assert state_of({receiver: Progress(state=one) for receiver, one in states.items()}) == state
