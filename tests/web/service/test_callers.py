"""Who may call the worker: every endpoint with every kind of credential, and how certificates are fetched."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta

import httpx
import jwt
import pytest

from firestore_outbox.web.auth import Allowed, CallerCheck, Unauthenticated
from tests.web.service.support import ACCOUNT, AUDIENCE, AdjustableClock, Certificates, Service, now, token

ENDPOINTS = ("/tasks/lane", "/tasks/sweep")


def _ago(**of: float) -> int:
    return int((now() - timedelta(**of)).timestamp())


CREDENTIALS: dict[str, tuple[int, Callable[[], str | None]]] = {
    "none": (401, lambda: None),
    "an empty one": (401, lambda: ""),
    "another scheme": (401, lambda: "Basic dTpw"),
    "a bearer with nothing": (401, lambda: "Bearer "),
    "malformed": (401, lambda: "Bearer not.a.token"),
    "not a token at all": (401, lambda: "Bearer é\x00"),
    "not signed": (401, lambda: "Bearer " + jwt.encode({"aud": AUDIENCE}, "", algorithm="none")),
    "signed by a shared secret": (401, lambda: "Bearer " + jwt.encode({"aud": AUDIENCE}, "s" * 32, algorithm="HS256")),
    "an unknown key": (401, lambda: "Bearer " + token(key="stranger")),
    "another key under a known name": (401, lambda: "Bearer " + token(key="stranger", kid="first")),
    "expired": (401, lambda: "Bearer " + token(iat=_ago(hours=2), exp=_ago(hours=1))),
    "not valid yet": (401, lambda: "Bearer " + token(iat=_ago(hours=-1))),
    "without an end": (401, lambda: "Bearer " + token(exp=None)),
    "another issuer": (401, lambda: "Bearer " + token(iss="https://login.example")),
    "another audience": (403, lambda: "Bearer " + token(aud="https://another.example")),
    "several audiences": (403, lambda: "Bearer " + token(aud=[AUDIENCE, "https://another.example"])),
    "another account": (403, lambda: "Bearer " + token(email="another@example.com")),
    "an account without an address": (403, lambda: "Bearer " + token(email=None)),
    "an address that is not verified": (403, lambda: "Bearer " + token(email_verified=False)),
    "an address verified by a word": (403, lambda: "Bearer " + token(email_verified="true")),
    "a good one": (200, lambda: "Bearer " + token()),
    "a good one, in small letters": (200, lambda: "bearer " + token()),
}


async def called(service: Service, endpoint: str, credential: str) -> httpx.Response:
    header = CREDENTIALS[credential][1]()
    headers = [] if header is None else [(b"authorization", header.encode())]
    return await service.http.post(endpoint, json={"kind": "outbox", "key": "shop"}, headers=headers)


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.parametrize("credential", CREDENTIALS)
async def test_an_endpoint_answers_each_credential_as_it_should(
    service: Service, endpoint: str, credential: str
) -> None:
    answer = await called(service, endpoint, credential)
    assert answer.status_code == CREDENTIALS[credential][0], answer.text


@pytest.mark.parametrize("credential", [name for name, (status, _) in CREDENTIALS.items() if status != 200])
async def test_a_refused_call_does_nothing(service: Service, credential: str) -> None:
    await service.account()
    await service.send("request-1", at=now() - timedelta(minutes=1))
    for endpoint in ENDPOINTS:
        await called(service, endpoint, credential)
    assert (service.called, service.tasks.asked) == ([], [])
    assert await service.status("request-1") == "queued"


# --- certificates


def check(served: Certificates, clock: AdjustableClock) -> CallerCheck:
    return CallerCheck(audience=AUDIENCE, email=ACCOUNT, clock=clock, certs_url=served.url)


async def test_certificates_are_fetched_once_for_many_calls_at_once(served: Certificates) -> None:
    callers = check(served, AdjustableClock())
    answers = await asyncio.gather(*(callers.check(f"Bearer {token()}") for _ in range(30)))
    assert set(answers) == {Allowed(ACCOUNT)}
    assert served.fetches == 1


async def test_certificates_are_fetched_again_after_an_hour(served: Certificates) -> None:
    clock = AdjustableClock()
    callers = check(served, clock)
    for minutes in (0, 30, 59, 61, 62):
        clock.ahead = timedelta(minutes=minutes)
        assert await callers.check(f"Bearer {token()}") == Allowed(ACCOUNT)
    assert served.fetches == 2


async def test_a_new_key_is_found_without_a_restart(served: Certificates) -> None:
    clock = AdjustableClock()
    callers = check(served, clock)
    await callers.check(f"Bearer {token()}")
    served.keys = ["second"]
    clock.ahead = timedelta(minutes=2)
    assert await callers.check(f"Bearer {token(key='second')}") == Allowed(ACCOUNT)
    assert isinstance(await callers.check(f"Bearer {token(key='first')}"), Unauthenticated), "it was withdrawn"


async def test_a_flood_of_unknown_keys_is_one_fetch_a_minute(served: Certificates) -> None:
    clock = AdjustableClock()
    callers = check(served, clock)
    await callers.check(f"Bearer {token()}")
    for minutes in (0, 2, 4):
        clock.ahead = timedelta(minutes=minutes)
        for n in range(20):
            assert isinstance(await callers.check(f"Bearer {token(kid=f'flood-{n}')}"), Unauthenticated)
    assert served.fetches == 3
    assert await callers.check(f"Bearer {token()}") == Allowed(ACCOUNT)


async def test_keys_in_hand_stay_good_while_certificates_are_out_of_reach(served: Certificates) -> None:
    clock = AdjustableClock()
    callers = check(served, clock)
    await callers.check(f"Bearer {token()}")
    served.is_down, clock.ahead = True, timedelta(hours=2)
    for _ in range(10):
        assert await callers.check(f"Bearer {token()}") == Allowed(ACCOUNT)
    assert served.fetches == 2, "one try, and not one for each call"


async def test_no_caller_is_believed_before_there_are_certificates_and_then_the_right_ones(
    served: Certificates,
) -> None:
    clock = AdjustableClock()
    callers = check(served, clock)
    served.is_down = True
    for _ in range(10):
        assert isinstance(await callers.check(f"Bearer {token()}"), Unauthenticated)
    assert served.fetches == 1
    served.is_down, clock.ahead = False, timedelta(minutes=2)
    assert await callers.check(f"Bearer {token()}") == Allowed(ACCOUNT)
