"""The GET by which a provider makes sure of a webhook's address."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.inbound.webhooks import support
from tests.inbound.webhooks.support import VERIFY_TOKEN, Hooks

RIGHT = {"hub.mode": "subscribe", "hub.challenge": "1158201444", "hub.verify_token": VERIFY_TOKEN}


@pytest.fixture
async def hooks(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Hooks]:
    async with support.hooks(monkeypatch, provider="whatsapp_cloud") as hooks:
        yield hooks


async def test_the_challenge_is_sent_back_as_plain_text(hooks: Hooks) -> None:
    answer = await hooks.http.get("/whatsapp_cloud/shop", params=RIGHT)
    assert (answer.status_code, answer.text) == (200, "1158201444")
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "changes",
    [
        {"hub.verify_token": "another word"},
        {"hub.verify_token": ""},
        {"hub.mode": "unsubscribe"},
        {"hub.challenge": "<script>alert(1)</script>"},
    ],
    ids=["another word", "no word", "another mode", "a page"],
)
async def test_a_handshake_that_is_not_right_is_refused(hooks: Hooks, changes: dict[str, str]) -> None:
    answer = await hooks.http.get("/whatsapp_cloud/shop", params={**RIGHT, **changes})
    assert (answer.status_code, answer.text) == (403, "no_handshake")


@pytest.mark.parametrize("path", ["/simulated/shop", "/carrier-pigeon/shop", "/whatsapp_cloud/a__b"])
async def test_who_has_no_handshake_refuses_it(hooks: Hooks, path: str) -> None:
    assert (await hooks.http.get(path, params=RIGHT)).status_code == 403


async def test_a_handshake_writes_nothing(hooks: Hooks) -> None:
    await hooks.http.get("/whatsapp_cloud/shop", params=RIGHT)
    assert (hooks.wire.writes, hooks.tasks.asked) == (0, [])
