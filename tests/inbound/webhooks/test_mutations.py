"""Bodies that no provider would send, at the real function: whatever they are, the answer is no 5xx, and from a body
that is not signed nothing is ever written.

OUTBOX_WEBHOOK_MUTATIONS says how many bodies to try, over all providers together. In CI they are the same in each run;
elsewhere they are new each time, and a failure prints the blob that reproduces it.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firestore_outbox.firestore.queries import Find
from firestore_outbox.local.simulators.app import FORMS
from firestore_outbox.providers.registry import MAX_WEBHOOK_BYTES
from tests.inbound.webhooks import support
from tests.inbound.webhooks.bodies import POISONS, genuine, mutated, poisoned
from tests.inbound.webhooks.support import NAMES, Hooks, signature_of

BODIES = int(os.environ.get("OUTBOX_WEBHOOK_MUTATIONS", "1000"))
EACH = max(1, BODIES // (2 * len(NAMES)))
"""For each provider: this number signed, and as many not."""

TAKEN, REFUSED, TOO_LARGE = 200, 401, 413
_as_often = settings(
    max_examples=EACH,
    deadline=None,
    derandomize="CI" in os.environ,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture
async def hooks(monkeypatch: pytest.MonkeyPatch, name: str) -> AsyncIterator[Hooks]:
    """With two messages to tell of, and little patience: a body that hangs is a failure too."""
    async with support.hooks(monkeypatch, provider=name, receipt_retry_seconds="1") as hooks:
        await hooks.sent(["request-1", "request-2"])
        yield hooks


async def everything(hooks: Hooks) -> dict[str, dict[str, Any]]:
    found = {}
    for collection, group in (("messages", True), ("threads", False), ("outbox", False), ("lanes", False)):
        for snapshot in await hooks.system.gateway.find(Find(collection=collection, group=group)):
            found[snapshot.path] = {**snapshot.data, "version": snapshot.version}
    return found


def test_every_provider_of_the_registry_has_a_form_of_its_own_here() -> None:
    without = [name for name in NAMES if name not in FORMS and not name.startswith("simulated")]
    assert without == [], "worker/firestore_outbox/local/simulators/app.py must know what they post"


@pytest.mark.parametrize("name", NAMES)
async def test_genuine_bodies_are_taken(hooks: Hooks, name: str) -> None:
    """Otherwise the mutations would be of nothing."""
    for body in genuine(name):
        assert await hooks.post(name, body) == TAKEN
    assert len(await hooks.inbound()) == 2
    assert "sent" not in (await hooks.statuses())["request-1"]


@pytest.mark.timeout(600 + BODIES)
@pytest.mark.parametrize("name", NAMES)
@_as_often
@given(data=st.data())
async def test_a_signed_body_is_taken_whatever_is_in_it(hooks: Hooks, name: str, data: st.DataObject) -> None:
    body = data.draw(mutated(name))
    assert await hooks.post(name, body) == (TAKEN if len(body) <= MAX_WEBHOOK_BYTES else TOO_LARGE)
    for task, _ in hooks.tasks.receipts:
        assert task["accountId"] == support.ACCOUNT
    await hooks.run_tasks()


@pytest.mark.timeout(600 + BODIES)
@pytest.mark.parametrize("name", NAMES)
@_as_often
@given(data=st.data())
async def test_an_unsigned_body_is_refused_and_nothing_is_written(hooks: Hooks, name: str, data: st.DataObject) -> None:
    body = data.draw(mutated(name))
    headers = wrong_headers(name, body, data.draw(st.sampled_from(WRONG)))
    before, hooks.wire.writes = await everything(hooks), 0
    assert await hooks.post(name, body, headers) == (REFUSED if len(body) <= MAX_WEBHOOK_BYTES else TOO_LARGE)
    assert (hooks.wire.writes, hooks.tasks.asked) == (0, [])
    assert await everything(hooks) == before


@pytest.mark.parametrize("poison", POISONS)
@pytest.mark.parametrize("name", [name for name in NAMES if name in FORMS or name == "simulated"])
async def test_a_poison_in_any_place_of_a_signed_body_is_taken(hooks: Hooks, name: str, poison: str) -> None:
    for body in genuine(name):
        for changed in poisoned(body, POISONS[poison]):
            assert await hooks.post(name, changed) == TAKEN, changed[:500]
    await hooks.run_tasks()


WRONG = ("none", "another body's", "another secret's", "empty", "cut short", "reversed", "nonsense")


def wrong_headers(name: str, body: bytes, how: str) -> dict[str, str]:
    at = support.now()
    right, anothers = signature_of(name, body, at=at), signature_of(name, body, secret="another", at=at)
    (header,) = [header for header, value in right.items() if value != anothers[header]]
    damaged = {
        "empty": "",
        "cut short": right[header][:-1],
        "reversed": right[header][::-1],
        "nonsense": "sha256=" + "0" * 64,
    }
    match how:
        case "none":
            return {}
        case "another body's":
            return signature_of(name, body + b" ")
        case "another secret's":
            return anothers
        case _:
            return {**right, header: damaged[how]}
