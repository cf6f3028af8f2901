"""Every endpoint with every kind of credential: who gets in, who does not, and that a refused caller changes nothing.

The endpoints are not listed here: the worker's are the routes of its application, the functions' are what
functions-framework has registered. A new one that asks for no credential fails, and a new function fails until
this file knows how it is called.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

import functions_framework.aio
import httpx
import pytest
from functions_framework import _function_registry
from starlette.applications import Starlette
from starlette.routing import Route

import firestore_outbox.web.functions
from firestore_emulator.rpc.inprocess import Carry
from firestore_emulator.rpc.service import Message
from firestore_outbox.accounts.window import Window
from firestore_outbox.firestore.writes import upsert
from firestore_outbox.handlers.context import Context
from firestore_outbox.handlers.registration import Registration
from firestore_outbox.lane.ref import outbox_lane
from firestore_outbox.local.simulators.webhooks import SIGNATURE_HEADER, signed
from firestore_outbox.local.stripe import shapes
from firestore_outbox.messages.model import TextPart
from firestore_outbox.reminders.choices import OnWindowEnd
from firestore_outbox.reminders.run import Run
from firestore_outbox.web.auth import CallerCheck
from firestore_outbox.web.events_api import EventsApi
from tests.web.functions import firebase
from tests.web.functions.conftest import google as google
from tests.web.functions.firebase import Google
from tests.web.service import support
from tests.web.service.support import ACCOUNT, AUDIENCE, SECRET, Service, now, token

OPEN_TO_EVERYBODY = {"/healthz", "/metrics"}
"""The platform calls them, and they tell nothing of anybody."""
GUARDED_BY_THE_PLATFORM = {
    "on_cancel_created",
    "on_event_created",
    "on_outbox_created",
    "on_reminder_created",
    "on_request_created",
}
"""Eventarc calls them with a token that Cloud Run checks; tests/deploy holds that they are deployed so."""

CREDENTIALS = ("none", "garbage", "a stranger's", "expired", "another audience", "the right one")
REFUSED = CREDENTIALS[:-1]

Headers = Mapping[str, str]


# --- credentials, one column of the table for each way in


def _bearer(value: str) -> Headers:
    return {"authorization": f"Bearer {value}"}


SERVICE_ACCOUNT: dict[str, Callable[[], Headers]] = {
    "none": dict,
    "garbage": lambda: _bearer("garbage"),
    "a stranger's": lambda: _bearer(token(email="stranger@example.com")),
    "expired": lambda: _bearer(token(iat=firebase.ago(hours=2), exp=firebase.ago(hours=1))),
    "another audience": lambda: _bearer(token(aud="https://another.example")),
    "the right one": lambda: _bearer(token()),
}

PERSON: dict[str, Callable[[], Headers]] = {
    "none": dict,
    "garbage": lambda: _bearer("garbage"),
    "a stranger's": lambda: _bearer(firebase.id_token("stranger")),
    "expired": lambda: _bearer(firebase.id_token("ann", iat=firebase.ago(hours=2), exp=firebase.ago(hours=1))),
    "another audience": lambda: _bearer(firebase.id_token("ann", aud="other")),
    "the right one": lambda: _bearer(firebase.id_token("ann")),
}

INBOUND = {"type": "inbound", "providerMessageId": "in-1", "from": "+491701", "at": "2026-01-01T00:00:00+00:00"}
WEBHOOK_BODY = json.dumps({"events": [{**INBOUND, "parts": [{"type": "text", "text": "hello"}]}]}).encode()

PROVIDER: dict[str, Callable[[], Headers]] = {
    "none": dict,
    "garbage": lambda: {SIGNATURE_HEADER: "garbage"},
    "a stranger's": lambda: {SIGNATURE_HEADER: signed("a stranger's secret", WEBHOOK_BODY, now())},
    "expired": lambda: {SIGNATURE_HEADER: signed(SECRET, WEBHOOK_BODY, now() - timedelta(hours=1))},
    "another audience": lambda: {SIGNATURE_HEADER: signed(SECRET, b"{}", now())},
    "the right one": lambda: {SIGNATURE_HEADER: signed(SECRET, WEBHOOK_BODY, now())},
}
"""A signature is of one body: that of another one is what comes closest to another audience."""


STRIPE_SECRET = "whsec_test"
STRIPE_BODY = json.dumps(
    shapes.event("evt_1", "customer.subscription.created", shapes.subscription("sub_1", "cus_1", "price_1"), created=1)
).encode()


def _stripe(secret: str = STRIPE_SECRET, body: bytes = STRIPE_BODY, *, age: int = 0) -> Headers:
    return {"stripe-signature": shapes.signature(secret, body, int(now().timestamp()) - age)}


STRIPE: dict[str, Callable[[], Headers]] = {
    "none": dict,
    "garbage": lambda: {"stripe-signature": "garbage"},
    "a stranger's": lambda: _stripe("a stranger's secret"),
    "expired": lambda: _stripe(age=3600),
    "another audience": lambda: _stripe(body=b"{}"),
    "the right one": _stripe,
}
SOLD: dict[str, Any] = {
    "plans": "free=total:3 pro=",
    "billing_prices": "pro=price_1",
    "billing_return_url": "https://app.example",
    "stripe_secret_key": "sk_test_1",
    "stripe_webhook_secret": STRIPE_SECRET,
}


@dataclass(frozen=True)
class Way:
    """How a function is called, and what it answers to each credential."""

    path: str
    body: bytes
    headers: dict[str, Callable[[], Headers]]
    answers: dict[str, int]


def _answers(**exceptions: int) -> dict[str, int]:
    """401 unless said otherwise; names are credentials with underscores for all but letters."""
    found = {}
    for credential in CREDENTIALS:
        name = "".join(letter if letter.isalpha() else "_" for letter in credential)
        found[credential] = exceptions.get(name, 401)
    return found


MESSAGE = {
    "requestId": "request-1",
    "accountId": "shop",
    "to": "+491701",
    "parts": [{"type": "text", "text": "Hello!"}],
}

REMINDER = {
    "reminderId": "rem",
    "accountId": "shop",
    "targets": ["1@g.us"],
    "parts": [{"type": "text", "text": "Hello!"}],
    "timezone": "UTC",
    "schedule": {"type": "once", "at": (now() + timedelta(days=1)).isoformat()},
}
RUN = Run(
    run_id="run-1",
    account_id="shop",
    parts=(TextPart(type="text", text="Hello!"),),
    window=Window(start_hour=0, end_hour=24, zone=ZoneInfo("UTC")),
    on_window_end=OnWindowEnd.STOP,
    fire_at=now(),
    reminder_id="rem",
    window_end_at=now() + timedelta(days=1),
)


async def nextup(context: Context) -> None:
    """Nothing."""


NEXTUP = Registration(kind="nextup", function=nextup)
NEXTUP_EVENTS = {"scheme": "oidc", "audience": AUDIENCE, "email": ACCOUNT, "key": "/user"}

PERSON_ANSWERS = _answers(a_stranger_s=403, the_right_one=201)
TASK_ANSWERS = _answers(a_stranger_s=403, another_audience=403, the_right_one=200)

FUNCTIONS: dict[str, Way] = {
    "accounts": Way("/v1/accounts/shop:check", b"", PERSON, PERSON_ANSWERS | {"the right one": 200}),
    "billing_webhook": Way("/", STRIPE_BODY, STRIPE, dict.fromkeys(REFUSED, 400) | {"the right one": 200}),
    "enqueue": Way("/v1/messages", json.dumps(MESSAGE).encode(), PERSON, PERSON_ANSWERS),
    "events": Way("/v1/events/nextup", b'{"user": "ann"}', SERVICE_ACCOUNT, _answers(the_right_one=202)),
    "files": Way(
        "/v1/accounts/shop/uploads",
        json.dumps({"sha256": "0" * 64, "bytes": 9, "mimeType": "image/png"}).encode(),
        PERSON,
        PERSON_ANSWERS | {"the right one": 503},  # no storage is configured
    ),
    "open_messages": Way(
        "/v1/messages:open",
        json.dumps({"accountId": "shop", "messages": [{"messageId": "m", "parts": []}]}).encode(),
        PERSON,
        PERSON_ANSWERS | {"the right one": 503},  # nothing is sealed here, so no key service is configured
    ),
    "provider_webhook": Way("/simulated/shop", WEBHOOK_BODY, PROVIDER, _answers(the_right_one=200)),
    "reminders": Way(
        "/v1/reminders", json.dumps(REMINDER).encode(), PERSON, _answers(a_stranger_s=403, the_right_one=201)
    ),
    "runs": Way("/v1/runs/run-1:pause", b"", PERSON, PERSON_ANSWERS | {"the right one": 202}),
    "sweep": Way("/", b"", SERVICE_ACCOUNT, TASK_ANSWERS),
}


# --- a world that remembers what was written


@dataclass
class Remembering(support.Store):
    """The wire to Firestore, and what went over it."""

    calls: list[str] = field(default_factory=list)

    async def wire(self, path: str, carry: Carry) -> Message:
        self.calls.append(path.rsplit("/", 1)[-1])
        return await super().wire(path, carry)

    def written(self) -> list[str]:
        return [name for name in self.calls if name in ("Commit", "BatchWrite", "Write")]


@pytest.fixture
async def world(google: Google, served: support.Certificates, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(support, "Store", Remembering)
    async with support.service(served, handlers={"nextup": NEXTUP}, **SOLD) as service:
        ready: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        ready.set_result(service.system)
        callers = CallerCheck(audience=AUDIENCE, email=ACCOUNT, clock=now, certs_url=served.url)
        monkeypatch.setattr(firestore_outbox.web.functions, "_ready", ready)
        monkeypatch.setattr(firestore_outbox.web.functions, "_callers", lambda: callers)
        events = EventsApi(json.dumps({"nextup": NEXTUP_EVENTS}), {}, now, served.url)
        monkeypatch.setattr(firestore_outbox.web.functions, "_events", lambda: events)
        firestore_outbox.web.functions._users.cache_clear()
        await service.account()
        await service.system.gateway.commit([upsert("accounts/shop/members/ann", {"role": "owner"})])
        await service.send("due-long-ago", at=now() - timedelta(minutes=5))  # something for a task or a sweep to do
        await service.system.waker.wake(outbox_lane("shop"))
        await service.system.runs.create(RUN)
        service.tasks.asked.clear()
        yield service


def worker_endpoints(service: Service) -> list[str]:
    """The routes of the application that is served."""
    transport: Any = service.http._transport
    application: Starlette = transport.app
    paths = [route.path for route in application.routes if isinstance(route, Route)]
    assert len(paths) == len(application.routes), "something is mounted that this table does not see"
    return [path for path in paths if path not in OPEN_TO_EVERYBODY]


def http_functions() -> set[str]:
    """What functions-framework would serve of the functions' module."""
    return {name for name in _function_registry.REGISTRY_MAP if hasattr(firestore_outbox.web.functions, name)}


async def call_function(name: str, way: Way, credential: str) -> int:
    app = functions_framework.aio.create_asgi_app_from_module(
        name, "main.py", None, firestore_outbox.web.functions, None
    )
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://functions") as client:
        return (await client.post(way.path, content=way.body, headers=way.headers[credential]())).status_code


async def answers(service: Service, credential: str) -> dict[str, int]:
    """One row: each endpoint's answer to this credential."""
    found = {}
    for path in worker_endpoints(service):
        body = {"kind": "outbox", "key": "shop"}
        found[path] = (await service.http.post(path, json=body, headers=SERVICE_ACCOUNT[credential]())).status_code
    for name, way in FUNCTIONS.items():
        found[name] = await call_function(name, way, credential)
    return found


def expected(service: Service, credential: str) -> dict[str, int]:
    tasks = dict.fromkeys(worker_endpoints(service), TASK_ANSWERS[credential])
    return tasks | {name: way.answers[credential] for name, way in FUNCTIONS.items()}


# --- the table


@pytest.mark.parametrize("credential", CREDENTIALS)
async def test_each_endpoint_answers_this_credential_as_it_should(world: Service, credential: str) -> None:
    assert await answers(world, credential) == expected(world, credential)


@pytest.mark.parametrize("credential", REFUSED)
async def test_a_call_with_this_credential_changes_nothing_anywhere(world: Service, credential: str) -> None:
    store: Any = world.store
    before = store.written()
    await answers(world, credential)
    assert store.written() == before, "something was written to Firestore"
    assert world.tasks.asked == [], "a task was asked for"
    assert world.called == [], "a provider was called"


async def test_the_right_credential_does_change_something(world: Service) -> None:
    """Else the test before this one would prove nothing."""
    store: Any = world.store
    before = len(store.written())
    await answers(world, "the right one")
    assert len(store.written()) > before
    assert world.called == ["due-long-ago"]


def test_every_function_is_in_the_table() -> None:
    assert http_functions() == FUNCTIONS.keys() | GUARDED_BY_THE_PLATFORM, (
        "say in FUNCTIONS how a new function is called and what it answers to each credential"
    )


async def test_the_worker_has_the_endpoints_that_the_contract_names(world: Service) -> None:
    assert {"/tasks/lane", "/tasks/sweep"} <= set(worker_endpoints(world))


@pytest.mark.parametrize("path", sorted(OPEN_TO_EVERYBODY))
async def test_what_is_open_tells_nothing_of_anybody(world: Service, path: str) -> None:
    answer = await world.http.get(path)
    assert answer.status_code == 200
    for secret in ("shop", "+491701", "due-long-ago", "ann", SECRET):
        assert secret not in answer.text
