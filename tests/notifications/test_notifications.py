"""An account's webhook learns how its runs end: at least once, with the same id, over the real code in virtual time."""

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

from firestore_outbox.accounts.account import InvalidAccount, parse_account
from firestore_outbox.local.simulation.world import SECRET
from firestore_outbox.notifications.notification import (
    FIRST_WAIT,
    ID_HEADER,
    LONGEST_WAIT,
    MOST_ATTEMPTS,
    SIGNATURE_HEADER,
    next_attempt,
)
from firestore_outbox.notifications.webhook import Accepted, NotAccepted, Webhook, is_public
from firestore_outbox.providers.signature import is_genuine
from firestore_outbox.settings import Settings
from tests.calm import START, Calm, simulate
from tests.reminders.support import only_run, remind, until_ended

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
URL = "http://hooks.example/outbox"
LOCAL = Settings(notify_anywhere=True)


class Receiver:
    """The other side: it keeps what came, and answers as it is set."""

    def __init__(self, answer: Callable[[int], int] = lambda _: 200) -> None:
        self.requests: list[httpx.Request] = []
        self.transport = httpx.MockTransport(self._take)
        self._answer = answer

    def _take(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        return httpx.Response(self._answer(len(self.requests)))

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(request.content) for request in self.requests]


def documents(calm: Calm) -> dict[str, dict[str, Any]]:
    found = calm.world.truth.latest()
    return {path.rsplit("/", 1)[1]: data for path, data in found.items() if "/notifications/" in path}


def crash(calm: Calm, place: int) -> None:
    """Kill -9 of one worker, and a new one in its place."""
    calm.world.crash(calm.world.workers, place)


def all_settled(calm: Calm) -> bool:
    return bool(documents(calm)) and all(one["state"] != "waiting" for one in documents(calm).values())


def test_a_run_that_ends_is_posted_once_signed_and_with_what_was_delivered() -> None:
    receiver = Receiver()

    async def body(calm: Calm) -> None:
        await calm.account(notify={"webhook": URL})
        await remind(calm, targets=3)
        await calm.until(lambda: all_settled(calm))
        (request,) = receiver.requests
        (told,) = receiver.bodies
        run = only_run(calm)
        assert (told["kind"], told["runId"], told["status"]) == ("run.ended", run["runId"], "success")
        assert (told["title"], told["sent"], told["total"]) == ("3 of 3 delivered", 3, 3)
        assert told["accountId"] == "shop"
        assert request.headers[ID_HEADER] == told["id"] == next(iter(documents(calm)))
        assert is_genuine(request.headers[SIGNATURE_HEADER], request.content, SECRET, calm.world.clock())
        assert documents(calm)[told["id"]]["state"] == "delivered"

    simulate(body, settings=LOCAL, webhooks=receiver.transport, receipts=False)


def test_a_window_that_closes_is_reported_in_the_words_of_the_runs_end() -> None:
    receiver = Receiver()

    async def body(calm: Calm) -> None:
        await calm.account(pace={"perMinute": 1}, notify={"webhook": URL})
        at = START + timedelta(minutes=55)
        await remind(calm, targets=20, window={"startHour": 6, "endHour": 13}, schedule={"type": "once", "at": at})
        await calm.until(lambda: all_settled(calm), within=timedelta(hours=2))
        (told,) = receiver.bodies
        run = only_run(calm)
        assert told["status"] == "partial"
        assert told["title"] == f"{run['counts']['sent']} of 20 delivered"
        assert told["text"] == run["errorSummary"]
        assert "Delivery window closed at 13:00 (UTC)." in told["text"]

    simulate(body, settings=LOCAL, webhooks=receiver.transport, receipts=False)


def test_a_run_that_goes_on_the_next_day_tells_of_each_window_and_of_its_end() -> None:
    receiver = Receiver()

    async def body(calm: Calm) -> None:
        await calm.account(pace={"perMinute": 1}, notify={"webhook": URL})
        at = START + timedelta(minutes=55)
        hours = {"startHour": 6, "endHour": 13}
        await remind(calm, targets=8, window=hours, schedule={"type": "once", "at": at}, onWindowEnd="resumeNextDay")
        await until_ended(calm, within=timedelta(days=2))
        await calm.until(lambda: all_settled(calm))
        window, end = receiver.bodies
        assert (window["kind"], end["kind"]) == ("run.windowClosed", "run.ended")
        assert window["id"] != end["id"]
        assert window["text"].endswith("It goes on at 2026-03-02 06:00.")
        assert (end["sent"], end["total"]) == (8, 8)

    simulate(body, settings=LOCAL, webhooks=receiver.transport, receipts=False)


def test_a_webhook_that_is_down_gets_it_later_with_the_same_id_and_body() -> None:
    receiver = Receiver(lambda number: 503 if number < 4 else 204)

    async def body(calm: Calm) -> None:
        await calm.account(notify={"webhook": URL})
        await remind(calm, targets=1)
        await calm.until(lambda: all_settled(calm))
        assert len(receiver.requests) == 4
        assert len({request.content for request in receiver.requests}) == 1
        assert len({request.headers[ID_HEADER] for request in receiver.requests}) == 1
        (document,) = documents(calm).values()
        assert (document["state"], document["attempts"]) == ("delivered", 4)
        assert "error" not in document

    simulate(body, settings=LOCAL, webhooks=receiver.transport, receipts=False)


def test_a_webhook_that_never_accepts_is_given_up_after_about_a_day() -> None:
    receiver = Receiver(lambda _: 404)

    async def body(calm: Calm) -> None:
        await calm.account(notify={"webhook": URL})
        await remind(calm, targets=1)
        await calm.until(lambda: all_settled(calm), within=timedelta(days=2))
        (document,) = documents(calm).values()
        assert (document["state"], document["attempts"]) == ("failed", MOST_ATTEMPTS)
        assert document["error"] == "the webhook answered 404"
        assert timedelta(hours=18) < calm.world.clock() - START < timedelta(hours=30)

    simulate(body, settings=LOCAL, webhooks=receiver.transport, receipts=False)


def test_an_account_without_a_webhook_has_no_notifications_and_no_lane_for_them() -> None:
    async def body(calm: Calm) -> None:
        await calm.account()
        await remind(calm, targets=1)
        await until_ended(calm)
        await asyncio.sleep(120)
        assert not documents(calm)
        assert "lanes/notify:shop" not in calm.world.truth.latest()

    simulate(body, receipts=False)


@pytest.mark.parametrize("moment", range(8))
def test_killed_at_any_moment_no_notification_is_lost_and_a_repeat_has_the_same_id(moment: int) -> None:
    """Each process dies a few steps after the run's last message was sent, at another step in each case."""
    receiver = Receiver(lambda number: 200 if number > 1 else 503)

    async def body(calm: Calm) -> None:
        await calm.account(notify={"webhook": URL})
        await remind(calm, targets=2)
        await calm.until(lambda: calm.statuses()["sent"] == 2)
        for place, worker in enumerate(calm.world.workers):
            worker.process.after_steps(1 + moment * 7, partial(crash, calm, place))
        await until_ended(calm)
        await calm.until(lambda: all_settled(calm))
        run = only_run(calm)
        assert {told["runId"] for told in receiver.bodies} == {run["runId"]}
        assert len({told["id"] for told in receiver.bodies}) == 1, "a repeat is recognised"
        assert Counter(one["state"] for one in documents(calm).values()) == {"delivered": 1}

    simulate(body, settings=LOCAL, webhooks=receiver.transport, receipts=False)


# --- the URL is not trusted


@pytest.mark.parametrize(
    "address",
    [
        *(
            "127.0.0.1",
            "10.1.2.3",
            "192.168.0.1",
            "172.16.9.9",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "224.0.0.1",
        ),
        *("::1", "fe80::1%eth0", "fd00::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "metadata", ""),
    ],
)
def test_a_private_address_is_not_called(address: str) -> None:
    assert not is_public(address)


def test_public_addresses_are_called() -> None:
    assert all(is_public(address) for address in ("93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946"))


def _posted(url: str, addresses: list[str], answer: int = 200) -> tuple[Accepted | NotAccepted, Receiver]:
    receiver = Receiver(lambda _: answer)

    async def resolve(host: str, port: int) -> list[str]:
        return addresses

    async def post() -> Accepted | NotAccepted:
        webhook = Webhook(transport=receiver.transport, resolve=resolve)
        try:
            return await webhook.post(url, "secret", "n1", b"{}", NOW)
        finally:
            await webhook.close()

    return asyncio.run(post()), receiver


@pytest.mark.parametrize(
    ("url", "addresses"),
    [
        ("http://hooks.example/", ["93.184.216.34"]),
        ("https://user@hooks.example/", ["93.184.216.34"]),
        ("https://hooks.example/", ["93.184.216.34", "10.0.0.1"]),
        ("https://metadata.internal/", ["169.254.169.254"]),
        ("https://nowhere.example/", []),
        ("not a url", ["93.184.216.34"]),
    ],
)
def test_what_an_owner_must_not_reach_is_not_called(url: str, addresses: list[str]) -> None:
    answer, receiver = _posted(url, addresses)
    assert isinstance(answer, NotAccepted)
    assert not receiver.requests


def test_the_connection_goes_to_the_checked_address_with_the_hosts_name() -> None:
    answer, receiver = _posted("https://hooks.example:8443/a?b=c", ["93.184.216.34"])
    (request,) = receiver.requests
    assert isinstance(answer, Accepted)
    assert (request.url.host, request.url.port, request.url.raw_path) == ("93.184.216.34", 8443, b"/a?b=c")
    assert request.headers["Host"] == "hooks.example:8443"
    assert request.extensions["sni_hostname"] == "hooks.example"


def test_a_redirect_is_not_followed() -> None:
    answer, receiver = _posted("https://hooks.example/", ["93.184.216.34"], answer=302)
    assert answer == NotAccepted("the webhook answered 302")
    assert len(receiver.requests) == 1


# --- the decisions


def test_waits_double_up_to_an_hour_and_end() -> None:
    assert next_attempt(1, NOW) == NOW + FIRST_WAIT
    assert next_attempt(3, NOW) == NOW + 4 * FIRST_WAIT
    assert next_attempt(MOST_ATTEMPTS - 1, NOW) == NOW + LONGEST_WAIT
    assert next_attempt(MOST_ATTEMPTS, NOW) is None


@pytest.mark.parametrize("url", ["ftp://x.example", "javascript:alert(1)", "https://a b", "https://u@x.example", ""])
def test_a_webhook_that_is_no_url_is_refused_with_the_account(url: str) -> None:
    assert isinstance(parse_account("shop", {"provider": "simulated", "notify": {"webhook": url}}), InvalidAccount)
